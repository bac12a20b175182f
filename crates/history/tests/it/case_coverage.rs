//! Cases of our own cover every kind of record and part that the recordings of other programs have, so that a clone without
//! the recordings covers each reader. The Copilot CLI and pi have such cases in tests of their own. Of Codex, the Gemini CLI and
//! OpenCode there are no recordings: their cases are held against the kinds that their readers name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use grove_fixtures::outside;
use grove_transcript::{CallState, DamageKind, TranscriptPart, TranscriptSource, TranscriptTurn, TurnOutcome};
use serde_json::Value;

use crate::support::{calls, cases, read_file};

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

/// Our own cases of VS Code in which these kinds are counted.
fn own_vscode() -> PathBuf {
    cases("vscode").join("every-kind")
}

#[test]
fn own_cases_are_read_whole_and_hold_as_many_kinds_as_the_recordings_had() {
    let (claude, vscode) = (claude_kinds(&cases("claude")), vscode_kinds(&[own_vscode()]));
    assert!(claude.len() >= 68, "{} {claude:?}", claude.len());
    assert!(vscode.len() >= 36, "{} {vscode:?}", vscode.len());
    let log = cases("claude").join("c0ffee00-0000-4000-8000-000000000001.jsonl");
    let (session, turns) = read_file(TranscriptSource::Claude, &log);
    assert_eq!((session.title.as_deref(), session.damage.marks.as_slice()), (Some("The gate"), &[][..]));
    assert_eq!(session.workspace.pull_request.as_deref(), Some("https://example.org/me/site/pull/7"));
    assert!(turns.len() >= 3, "{}", turns.len());
    let (session, turns) = read_file(TranscriptSource::Claude, &cases("claude").join("odd-lines.jsonl"));
    assert_eq!((turns.len(), session.damage.marks.as_slice()), (1, &[DamageKind::Damaged][..]));
    let flat = read_file(TranscriptSource::VsCode, &own_vscode().join("flat.json"));
    let log = read_file(TranscriptSource::VsCode, &own_vscode().join("log.jsonl"));
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

/// The kinds that a reader tells apart: the texts in the patterns of its source, and in the lists of kinds that it has.
fn kinds_of_reader(source: &str, lists: &[&str]) -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(source)).unwrap();
    let quoted = |text: &str| -> Vec<String> { text.split('"').skip(1).step_by(2).map(str::to_owned).collect() };
    let pattern = |line: &str| {
        let pattern = line.split_once("=>")?.0.trim_start();
        // What a guard compares is no kind.
        let pattern = pattern.split_once(" if ").map_or(pattern, |(pattern, _)| pattern);
        pattern.starts_with(['"', '(', 'S']).then(|| quoted(pattern))
    };
    let mut kinds: BTreeSet<String> = text.lines().filter_map(pattern).flatten().collect();
    for list in lists {
        let line = text.lines().find(|line| line.starts_with(&format!("const {list}:"))).unwrap();
        kinds.extend(quoted(line));
    }
    kinds
}

/// Every text in some JSON, and every name of a member.
fn words(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(found.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        Value::Object(members) => {
            for (name, member) in members {
                found.insert(name.clone());
                words(member, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Holds a case against the kinds that its reader names. Gives how many there are.
fn must_have_every_kind(case: &Path, kinds: &BTreeSet<String>) -> usize {
    let mut found = BTreeSet::new();
    values(case).iter().for_each(|value| words(value, &mut found));
    let missing: Vec<&String> = kinds.difference(&found).collect();
    assert!(missing.is_empty(), "{}: add a record of each kind: {missing:?}", case.display());
    kinds.len()
}

/// The kinds of what was kept as it came, since the reader does not know it.
fn unknown(turns: &[TranscriptTurn]) -> Vec<String> {
    let raw = turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| match part {
        TranscriptPart::Raw(raw) => {
            Some(raw.get("itemType").or(raw.get("type")).map_or("none", |it| it.as_str().unwrap()))
        }
        _ => None,
    });
    raw.map(str::to_owned).collect()
}

fn notices(turns: &[TranscriptTurn]) -> Vec<&str> {
    let notices = turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| match part {
        TranscriptPart::Notice(notice) => Some(notice.kind.as_str()),
        _ => None,
    });
    notices.collect()
}

fn states(turn: &TranscriptTurn) -> Vec<CallState> {
    calls(&turn.parts).iter().map(|call| call.state).collect()
}

#[test]
fn own_cases_of_codex_have_every_kind_that_its_reader_names() {
    let case = cases("codex").join("rollout-2026-01-02T03-00-00-every-kind.jsonl");
    let mut kinds = kinds_of_reader("codex/fold.rs", &["STATES", "SHOWN", "ROLLED_BACK"]);
    kinds.extend(kinds_of_reader("codex/content.rs", &[]));
    assert_eq!(must_have_every_kind(&case, &kinds), 35);
    let (session, turns) = read_file(TranscriptSource::Codex, &case);
    assert_eq!((session.title.as_deref(), session.damage.marks.as_slice()), (Some("The gate"), &[][..]));
    assert_eq!(turns.len(), 4);
    use CallState::{Complete, Failed};
    assert_eq!(states(&turns[0]), [Complete, Failed, Complete, Complete]);
    assert_eq!((turns[1].outcome.clone(), turns[3].outcome.clone()), (TurnOutcome::Cancelled, TurnOutcome::Complete));
    assert!(matches!(turns[2].outcome, TurnOutcome::Failed(_)));
    let told = ["item_completed", "warning", "turn_aborted", "error", "thread_rolled_back", "compacted"];
    assert_eq!(notices(&turns), told);
    assert_eq!(unknown(&turns), ["dance", "hologram", "none", "none"]);
}

#[test]
fn own_cases_of_the_gemini_cli_have_every_kind_that_its_reader_names() {
    let case = cases("gemini").join("session-every-kind.jsonl");
    let mut kinds = kinds_of_reader("gemini/turns.rs", &[]);
    // A record is told by a member of its own, and so is a part of a message.
    kinds.extend(
        ["$set", "$rewindTo", "sessionId", "text", "functionResponse", "inlineData", "fileData"].map(str::to_owned),
    );
    assert_eq!(must_have_every_kind(&case, &kinds), 14);
    let (session, turns) = read_file(TranscriptSource::Gemini, &case);
    assert_eq!((session.title.as_deref(), session.damage.marks.as_slice()), (Some("The gate"), &[][..]));
    assert_eq!((turns.len(), turns[0].message.attachments.len(), turns[0].text().as_str()), (3, 2, "It is \nshut."));
    use CallState::{Complete, Failed, Interrupted, Refused};
    assert_eq!(states(&turns[0]), [Complete, Failed, Refused, Interrupted, Complete]);
    assert!(matches!(turns[1].outcome, TurnOutcome::Failed(_)));
    assert_eq!(turns[2].outcome, TurnOutcome::Cancelled);
    assert_eq!(
        (notices(&turns), unknown(&turns)),
        (vec!["warning", "error", "info"], vec!["none".to_owned(), "hologram".to_owned()])
    );
}

#[test]
fn own_cases_of_opencode_have_every_kind_that_its_reader_names() {
    let case = cases("opencode").join("every-kind.json");
    let mut kinds = kinds_of_reader("opencode/turns.rs", &[]);
    kinds.extend(["user", "assistant", "stop", "MessageAbortedError", "revert", "share"].map(str::to_owned));
    assert_eq!(must_have_every_kind(&case, &kinds), 20);
    let (session, turns) = read_file(TranscriptSource::OpenCode, &case);
    assert_eq!((session.title.as_deref(), session.damage.marks.as_slice()), (Some("The gate"), &[][..]));
    assert!(session.raw.contains_key("revert") && session.raw.contains_key("share"));
    assert_eq!((turns.len(), turns[0].message.attachments.len(), turns[0].text().as_str()), (3, 2, "It is shut."));
    use CallState::{Complete, Failed, Interrupted, Refused};
    assert_eq!(states(&turns[0]), [Complete, Complete, Failed, Refused, Interrupted, Complete]);
    assert_eq!(turns[1].outcome, TurnOutcome::Cancelled);
    assert!(matches!(turns[2].outcome, TurnOutcome::Failed(_)));
    let told = ["agent", "subtask", "patch", "retry", "compaction"];
    assert_eq!((notices(&turns), unknown(&turns)), (told.to_vec(), vec!["hologram".to_owned()]));
}
