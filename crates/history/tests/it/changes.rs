//! The changes of sessions, as each tool records them.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use grove_fixtures::outside;
use grove_history::catalog::{Catalog, ScanRequest};
use grove_history::{ChangeOperation, FileChangeSummary, SessionChanges, StoreRoot};
use grove_transcript::{TranscriptSession, TranscriptSource};
use serde_json::{Value, json};

use crate::support::{TestStore, json as parsed, lines};

/// The catalog's data on the only session in a file, and its changes.
fn read(source: TranscriptSource, name: &str, text: impl AsRef<[u8]>) -> (TranscriptSession, SessionChanges) {
    let (store, data) = (TestStore::new().with(name, text), TestStore::new());
    scanned(source, store.path(), data.path())
}

fn scanned(source: TranscriptSource, folder: &Path, data: &Path) -> (TranscriptSession, SessionChanges) {
    let catalog = Catalog::open(&data.join("history.db")).unwrap();
    let roots = vec![StoreRoot { source, product: String::new(), folder: folder.to_owned() }];
    catalog.scan(&ScanRequest { roots, keep: None }, &mut |_| {}).unwrap();
    let mut entries = Vec::new();
    catalog.each(|entry| entries.push(entry)).unwrap();
    assert_eq!(entries.len(), 1);
    let changes = catalog.changes(&entries).unwrap().remove(0);
    (entries.remove(0).session, changes)
}

fn told(changes: &SessionChanges) -> Vec<(&str, ChangeOperation, u64, u64)> {
    let files = changes.files.iter();
    files.map(|(path, it)| (path.as_str(), it.operation, it.insertions, it.deletions)).collect()
}

/// Calls of Claude Code, each with its result and the program's data beside it.
fn claude(calls: &[(&str, Value, Value)]) -> String {
    let mut log = vec![
        json!({"type": "user", "uuid": "u", "sessionId": "s", "cwd": "/w", "message": {"role": "user", "content": "go"}}),
    ];
    for (at, (name, input, result)) in calls.iter().enumerate() {
        let id = format!("c{at}");
        log.push(json!({"type": "assistant", "uuid": format!("a{at}"), "sessionId": "s", "message": {"id": id,
            "role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}}));
        log.push(json!({"type": "user", "uuid": format!("r{at}"), "sessionId": "s", "toolUseResult": result,
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]}}));
    }
    lines(&log)
}

#[test]
fn claude_codes_edits_are_counted_by_its_patches_and_a_file_that_was_there_is_not_new() {
    let patch =
        json!([{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 3, "lines": [" a", "-b", "+c", "+d"]}]);
    let log = claude(&[
        (
            "Write",
            json!({"file_path": "/w/new", "content": "1\n2\n"}),
            json!({"type": "create", "structuredPatch": []}),
        ),
        (
            "Write",
            json!({"file_path": "/w/there", "content": "a\nc\nd"}),
            json!({"type": "update", "structuredPatch": patch}),
        ),
        ("Edit", json!({"file_path": "/w/e", "old_string": "x", "new_string": "y"}), json!({"structuredPatch": patch})),
        (
            "MultiEdit",
            json!({"file_path": "/w/m", "edits": [
                {"old_string": "x", "new_string": "y"}, {"old_string": "1", "new_string": "2\n3"}]}),
            Value::Null,
        ),
    ]);
    let (_, changes) = read(TranscriptSource::Claude, "-w/s.jsonl", log);
    assert_eq!(
        told(&changes),
        [
            ("/w/new", ChangeOperation::Created, 2, 0),
            ("/w/there", ChangeOperation::Modified, 2, 1),
            ("/w/e", ChangeOperation::Modified, 2, 1),
            ("/w/m", ChangeOperation::Modified, 3, 2),
        ]
    );
}

#[test]
fn a_patch_of_codexs_tells_of_all_its_files_under_the_folder_that_it_worked_in() {
    let patch = "*** Begin Patch\n*** Add File: src/a.rs\n+1\n+2\n*** Update File: b.rs\n*** Move to: c.rs\n@@\n-x\n+y\n\
        *** Delete File: /w/d.rs\n*** Delete File: e.rs\n*** End Patch";
    let log = lines(&[
        json!({"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}}),
        json!({"type": "event_msg", "payload": {"type": "user_message", "message": "go"}}),
        json!({"type": "response_item", "payload": {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch",
            "input": patch}}),
        json!({"type": "response_item", "payload": {"type": "custom_tool_call_output", "call_id": "c",
            "output": "{\"output\":\"Success\",\"metadata\":{\"exit_code\":0}}"}}),
        json!({"type": "response_item", "payload": {"type": "custom_tool_call", "call_id": "d", "name": "apply_patch",
            "input": "*** Begin Patch\n*** Add File: no\n+x\n*** End Patch"}}),
        json!({"type": "response_item", "payload": {"type": "custom_tool_call_output", "call_id": "d",
            "output": "{\"output\":\"bad\",\"metadata\":{\"exit_code\":1}}"}}),
    ]);
    let name = "sessions/rollout-2026-01-01T00-00-00-01a1e039-1686-7a20-b7e3-98dd8870ad1b.jsonl";
    let (_, changes) = read(TranscriptSource::Codex, name, log);
    let expected = [
        ("/w/src/a.rs", ChangeOperation::Created, 2, 0),
        ("/w/c.rs", ChangeOperation::Modified, 1, 1),
        ("/w/d.rs", ChangeOperation::Deleted, 0, 0),
        ("/w/e.rs", ChangeOperation::Deleted, 0, 0),
    ];
    assert_eq!(told(&changes), expected);
    assert_eq!(changes.files["/w/c.rs"].from.as_deref(), Some("/w/b.rs"));
}

#[test]
fn edits_in_vs_code_count_by_the_text_that_came_of_them_and_a_file_that_a_call_made_is_new() {
    let uri = |path: &str| json!({"$mid": 1, "scheme": "file", "path": path});
    let range =
        |from: u64, to: u64| json!({"startLineNumber": from, "startColumn": 1, "endLineNumber": to, "endColumn": 1});
    let shown = |id: &str, tool: &str, input: Value| {
        json!({"kind": "toolInvocationSerialized", "toolId": tool, "toolCallId": id, "isComplete": true,
            "toolSpecificData": {"kind": "input", "rawInput": input}})
    };
    let session = json!({"version": 3, "sessionId": "s", "requests": [{"requestId": "r", "message": {"text": "go"}, "result": {},
    "response": [
        shown("a", "copilot_createFile", json!({"filePath": "/w/new", "content": "1\n2\n3\n"})),
        {"kind": "textEditGroup", "uri": uri("/w/new"), "edits": [[{"range": range(1, 1), "text": "1\n2\n3\n"}]]},
        {"kind": "textEditGroup", "uri": uri("/w/b"), "edits": [[{"range": range(2, 4), "text": "x\n"}], []]},
        {"kind": "externalEdit", "uri": uri("/w/c"), "editKind": "delete", "diff": {"added": 0, "removed": 9}},
        {"kind": "pullRequest", "title": "PR", "description": "d", "author": "a", "linkTag": "#7",
            "command": {"command": "open", "arguments": [{"scheme": "https", "authority": "github.com", "path": "/acme/site/pull/7"}]}},
    ]}]});
    let name = "User/workspaceStorage/0123456789abcdef0123456789abcdef/chatSessions/s.json";
    let store = TestStore::new().with(name, session.to_string());
    let data = TestStore::new();
    let (session, changes) = scanned(TranscriptSource::VsCode, &store.path().join("User"), data.path());
    let expected = [
        ("/w/new", ChangeOperation::Created, 3, 0),
        ("/w/b", ChangeOperation::Modified, 1, 2),
        ("/w/c", ChangeOperation::Deleted, 0, 9),
    ];
    assert_eq!(told(&changes), expected);
    assert_eq!(session.workspace.pull_request.as_deref(), Some("https://github.com/acme/site/pull/7"));
}

#[test]
fn edits_of_gemini_pi_and_opencode_count_with_what_their_results_say() {
    let gemini = json!({"sessionId": "s", "messages": [{"id": "u", "type": "user", "content": "go"},
        {"id": "a", "type": "gemini", "content": "", "toolCalls": [
            {"id": "1", "name": "write_file", "args": {"file_path": "/w/a", "content": "1\n2"}, "status": "success",
                "resultDisplay": {"originalContent": "x", "diffStat": {"model_added_lines": 1, "model_removed_lines": 2,
                    "user_added_lines": 1, "user_removed_lines": 0}}},
            {"id": "2", "name": "replace", "args": {"file_path": "/w/b", "old_string": "", "new_string": "1\n"}, "status": "success"},
            {"id": "3", "name": "write_file", "args": {"file_path": "/w/c", "content": "x"}, "status": "cancelled"}]}]});
    let (_, changes) = read(TranscriptSource::Gemini, "p/chats/session-1.json", gemini.to_string());
    assert_eq!(told(&changes), [("/w/a", ChangeOperation::Modified, 2, 2), ("/w/b", ChangeOperation::Created, 1, 0)]);

    let call =
        |id: &str, name: &str, input: Value| json!({"type": "toolCall", "id": id, "name": name, "arguments": input});
    let pi = lines(&[
        json!({"type": "session", "version": 3, "id": "s", "cwd": "/w"}),
        json!({"type": "message", "id": "u", "parentId": null, "message": {"role": "user", "content": "go"}}),
        json!({"type": "message", "id": "a", "parentId": "u", "message": {"role": "assistant", "content": [
            call("1", "write", json!({"path": "a", "content": "1\n2\n"})),
            call("2", "edit", json!({"path": "/w/a", "edits": [{"oldText": "2", "newText": "3"}]}))]}}),
        json!({"type": "message", "id": "r1", "parentId": "a", "message": {"role": "toolResult", "toolCallId": "1", "content": "ok"}}),
        json!({"type": "message", "id": "r2", "parentId": "r1", "message": {"role": "toolResult", "toolCallId": "2", "content": "ok"}}),
    ]);
    let (_, changes) = read(TranscriptSource::Pi, "--w--/2026_s.jsonl", pi);
    assert_eq!(told(&changes), [("/w/a", ChangeOperation::Created, 3, 1)]);

    let store = TestStore::new();
    let tool = |id: &str, tool: &str, input: Value, metadata: Value| {
        let state = json!({"status": "completed", "input": input, "output": "ok", "metadata": metadata, "time": {"start": 1, "end": 2}});
        json!({"id": id, "messageID": "m2", "sessionID": "ses_1", "type": "tool", "callID": id, "tool": tool, "state": state})
    };
    store.put(
        "storage/session/p/ses_1.json",
        json!({"id": "ses_1", "directory": "/w", "time": {"created": 1, "updated": 2}}).to_string(),
    );
    store.put(
        "storage/message/ses_1/m1.json",
        json!({"id": "m1", "sessionID": "ses_1", "role": "user", "time": {"created": 1}}).to_string(),
    );
    store.put(
        "storage/message/ses_1/m2.json",
        json!({"id": "m2", "sessionID": "ses_1", "role": "assistant", "time": {"created": 2}}).to_string(),
    );
    for part in [
        tool("p1", "write", json!({"filePath": "/w/a", "content": "1\n2"}), json!({"exists": true})),
        tool(
            "p2",
            "edit",
            json!({"filePath": "/w/b", "oldString": "x", "newString": "y"}),
            json!({"filediff": {"additions": 4, "deletions": 3}}),
        ),
    ] {
        store.put(&format!("storage/part/m2/{}.json", part["id"].as_str().unwrap()), part.to_string());
    }
    let data = TestStore::new();
    let (_, changes) = scanned(TranscriptSource::OpenCode, store.path(), data.path());
    assert_eq!(told(&changes), [("/w/a", ChangeOperation::Modified, 2, 0), ("/w/b", ChangeOperation::Modified, 4, 3)]);
}

#[test]
fn a_pull_request_and_the_worktrees_origin_are_known_where_the_store_tells_them() {
    let log = claude(&[])
        + &lines(&[
            json!({"type": "worktree-state", "sessionId": "s", "worktreeSession": {"originalCwd": "/w", "worktreePath": "/w/trees/x",
            "worktreeBranch": "feature", "originalBranch": "main", "originalHeadCommit": "00ff"}}),
            json!({"type": "pr-link", "sessionId": "s", "prNumber": 1, "prUrl": "https://github.com/acme/site/pull/1", "prRepository": "acme/site"}),
            json!({"type": "pr-link", "sessionId": "s", "prUrl": "javascript:alert(1)"}),
        ]);
    let (session, _) = read(TranscriptSource::Claude, "-w/s.jsonl", log);
    let workspace = session.workspace;
    assert_eq!(
        workspace.pull_request.as_deref(),
        Some("https://github.com/acme/site/pull/1"),
        "the last that is a page's"
    );
    assert_eq!((workspace.branch.as_deref(), workspace.base_branch.as_deref()), (Some("feature"), Some("main")));
    let tree = workspace.worktree.unwrap();
    assert_eq!((tree.folder.as_str(), tree.repository.as_deref()), ("/w/trees/x", Some("/w")));

    let store = TestStore::new();
    store.put(
        "s/events.jsonl",
        lines(&[json!({"type": "session.start", "data": {"sessionId": "s", "context": {"cwd": "/w/trees/y"}}})]),
    );
    store.put(
        "s/vscode.metadata.json",
        json!({"worktreeProperties": {"version": 2, "branchName": "y", "baseBranchName": "dev",
        "repositoryPath": "/w", "worktreePath": "/w/trees/y", "pullRequestUrl": "https://github.com/acme/site/pull/2"}})
        .to_string(),
    );
    let data = TestStore::new();
    let (session, _) = scanned(TranscriptSource::CopilotCli, store.path(), data.path());
    let workspace = session.workspace;
    assert_eq!(workspace.pull_request.as_deref(), Some("https://github.com/acme/site/pull/2"));
    assert_eq!((workspace.branch.as_deref(), workspace.base_branch.as_deref()), (Some("y"), Some("dev")));
    assert_eq!(workspace.worktree.and_then(|tree| tree.repository).as_deref(), Some("/w"));
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn a_recorded_session_tells_each_file_that_a_call_of_its_changed() {
    let fixtures = outside("pi/60-real-v1");
    let log = std::fs::read_to_string(fixtures.join("large-session.input.jsonl")).unwrap();
    // The calls that edit, and those that succeeded, by their own records.
    let folder = parsed(log.lines().next().unwrap())["cwd"].as_str().unwrap().to_owned();
    let (mut calls, mut expected) = (HashMap::new(), BTreeSet::new());
    let (mut came, mut went) = (0, 0);
    for line in log.lines().map(parsed) {
        let message = &line["message"];
        for block in message["content"].as_array().into_iter().flatten() {
            if matches!(block["name"].as_str(), Some("edit" | "write")) {
                calls.insert(block["id"].as_str().unwrap().to_owned(), block["arguments"].clone());
            }
        }
        if message["role"] == "toolResult" && message["isError"] != true {
            let Some(input) = calls.get(message["toolCallId"].as_str().unwrap()) else { continue };
            let path = input["path"].as_str().unwrap();
            let is_whole = path.starts_with(['/', '~']);
            expected.insert(if is_whole { path.to_owned() } else { format!("{folder}/{path}") });
            // The program records the diff of an edit.
            let diff = message["details"]["diff"].as_str().unwrap_or_default();
            came += diff.lines().filter(|line| line.starts_with('+')).count();
            came += input["content"].as_str().unwrap_or_default().lines().count();
            went += diff.lines().filter(|line| line.starts_with('-')).count();
        }
    }
    let (_, changes) = read(TranscriptSource::Pi, "--w--/2026_s.jsonl", log);
    assert!(expected.len() > 20, "the recording is another one");
    assert_eq!(changes.files.keys().cloned().collect::<BTreeSet<_>>(), expected);
    let sum = |count: fn(&FileChangeSummary) -> u64| changes.files.values().map(count).sum::<u64>();
    // The text around an edit is not known here, and may have a line in common with it.
    assert!(sum(|it| it.insertions).abs_diff(came as u64) <= 5, "{came}");
    assert!(sum(|it| it.deletions).abs_diff(went as u64) <= 5, "{went}");
}
