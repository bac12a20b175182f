//! Cases of our own cover every kind of record and part that the recordings of other programs have, so that a clone without
//! the recordings covers each reader. The Copilot CLI and pi have such cases in tests of their own; of Codex, the Gemini CLI and
//! OpenCode there are no recordings, and all that their readers are tested with is ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use grove_fixtures::outside;
use grove_history::{Mark, Source};
use serde_json::Value;

use crate::support::{cases, read_file};

/// Every file below a folder with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|it| it == extension) => found.push(path),
                false => {}
            }
        }
    }
    found
}

fn values(path: &Path) -> Vec<Value> {
    let bytes = fs::read(path).unwrap();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn kind_of(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or("none").to_owned()
}

/// The kinds of lines, blocks, attachments and progress in logs of Claude Code.
fn claude_kinds(folder: &Path) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for line in files(folder, "jsonl").iter().flat_map(|path| values(path)).filter(Value::is_object) {
        let kind = kind_of(&line, "type");
        match kind.as_str() {
            "system" => kinds.insert(format!("system {}", kind_of(&line, "subtype"))),
            "attachment" => kinds.insert(format!("attachment {}", kind_of(&line["attachment"], "type"))),
            "progress" => kinds.insert(format!("progress {}", kind_of(&line["data"], "type"))),
            _ => false,
        };
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            kinds.insert(format!("block {}", kind_of(block, "type")));
        }
        kinds.insert(format!("line {kind}"));
    }
    kinds
}

/// The kinds of parts, attachments, tool data and changes in sessions of VS Code, and the members of its requests.
fn vscode_kinds(folders: &[PathBuf]) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    let mut request = |request: &Value| {
        kinds.extend(request.as_object().into_iter().flatten().map(|(name, _)| format!("request {name}")));
        for part in request["message"]["parts"].as_array().into_iter().flatten() {
            kinds.insert(format!("message {}", kind_of(part, "kind")));
        }
        for variable in request["variableData"]["variables"].as_array().into_iter().flatten() {
            kinds.insert(format!("variable {}", kind_of(variable, "kind")));
        }
        for part in request["response"].as_array().into_iter().flatten() {
            kinds.insert(format!("part {}", kind_of(part, "kind")));
            if part.get("toolSpecificData").is_some_and(Value::is_object) {
                kinds.insert(format!("tool {}", kind_of(&part["toolSpecificData"], "kind")));
            }
        }
    };
    let mut changes = BTreeSet::new();
    for folder in folders {
        for path in files(folder, "json") {
            let session: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            session["requests"].as_array().into_iter().flatten().for_each(&mut request);
        }
        for line in files(folder, "jsonl").iter().flat_map(|path| values(path)) {
            changes.insert(format!("change {}", line["kind"]));
            line["v"]["requests"].as_array().into_iter().flatten().for_each(&mut request);
            if line["k"] == serde_json::json!(["requests"]) {
                line["v"].as_array().into_iter().flatten().for_each(&mut request);
            }
        }
    }
    kinds.extend(changes);
    kinds
}

/// The own cases of VS Code that these kinds are counted in.
fn own_vscode() -> PathBuf {
    cases("vscode").join("every-kind")
}

#[test]
fn own_cases_are_read_whole_and_hold_as_many_kinds_as_the_recordings_had() {
    let (claude, vscode) = (claude_kinds(&cases("claude")), vscode_kinds(&[own_vscode()]));
    assert!(claude.len() >= 68, "{} {claude:?}", claude.len());
    assert!(vscode.len() >= 36, "{} {vscode:?}", vscode.len());
    let log = cases("claude").join("c0ffee00-0000-4000-8000-000000000001.jsonl");
    let (session, turns) = read_file(Source::Claude, &log);
    assert_eq!((session.title.as_deref(), session.damage.marks.as_slice()), (Some("The gate"), &[][..]));
    assert_eq!(session.workspace.pull_request.as_deref(), Some("https://example.org/me/site/pull/7"));
    assert!(turns.len() >= 3, "{}", turns.len());
    let (session, turns) = read_file(Source::Claude, &cases("claude").join("odd-lines.jsonl"));
    assert_eq!((turns.len(), session.damage.marks.as_slice()), (1, &[Mark::Damaged][..]));
    let flat = read_file(Source::VsCode, &own_vscode().join("flat.json"));
    let log = read_file(Source::VsCode, &own_vscode().join("log.jsonl"));
    assert_eq!((flat.1.len(), flat.0.damage.marks.as_slice()), (1, &[][..]));
    assert_eq!(flat.1, log.1, "both forms come to the same turns");
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn no_kind_is_in_the_recordings_alone() {
    let missing = |recorded: BTreeSet<String>, own: &BTreeSet<String>| -> Vec<String> {
        assert!(!recorded.is_empty());
        recorded.difference(own).cloned().collect()
    };
    assert_eq!(missing(claude_kinds(&outside("vscode/claude-code")), &claude_kinds(&cases("claude"))), [""; 0]);
    let folders = ["copilot-chat-json", "copilot-chat-export", "copilot-chat-jsonl/codingame/chatSessions"];
    let recorded = vscode_kinds(&folders.map(|folder| outside(&format!("vscode/{folder}"))));
    assert_eq!(missing(recorded, &vscode_kinds(&[own_vscode()])), [""; 0]);
}
