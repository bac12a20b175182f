//! The contents of files before, between and after the requests of a session, in all three formats.

use std::fs;

use grove_fixtures::outside;
use grove_history::catalog::{Catalog, ScanRequest};
use grove_history::vscode::editing::{self, FileSnapshot, Generation, Moment};
use grove_history::{ChangeOperation, SessionChanges, StoreRoot};
use grove_transcript::{EditKind, TranscriptPart, TranscriptSource};
use serde_json::{Value, json};

use crate::support::{TestStore, cases, read_file};

const FILE: &str = "file:///app/a.txt";

fn at(request: &str) -> Moment {
    Moment::At { request: request.into(), stop: None }
}

fn after(request: &str) -> Moment {
    Moment::After { request: request.into() }
}

fn text(text: &str) -> FileSnapshot {
    FileSnapshot::Text(text.into())
}

fn entry(hash: &str) -> Value {
    json!({"resource": FILE, "languageId": "text", "originalHash": "aaaaaaa", "currentHash": hash, "state": 0})
}

fn read(store: &TestStore, state: &Value) -> editing::EditingSession {
    store.put("state.json", state.to_string());
    for (hash, content) in [("aaaaaaa", "one\n"), ("bbbbbbb", "two\n"), ("ccccccc", "three\n")] {
        store.put(&format!("contents/{hash}"), content);
    }
    editing::read(store.path()).unwrap()
}

#[test]
fn a_files_text_at_any_request_is_told_from_the_first_version() {
    let store = TestStore::new();
    let session = read(
        &store,
        &json!({"version": 1, "sessionId": "s", "linearHistory": [
            {"requestId": "r1", "workingSet": [[FILE, {"state": 0}]], "entries": []},
            {"requestId": "r2", "workingSet": [], "entries": [entry("bbbbbbb")]},
        ], "linearHistoryIndex": 2, "initialFileContents": [[FILE, "aaaaaaa"]], "recentSnapshot": {"entries": [entry("ccccccc")]}}),
    );
    assert_eq!(session.generation, Generation::Requests);
    for (moment, expected) in [
        (Moment::Start, "one\n"),
        (at("r1"), "one\n"),
        (after("r1"), "two\n"),
        (at("r2"), "two\n"),
        (after("r2"), "three\n"),
        (Moment::Now, "three\n"),
    ] {
        assert_eq!(session.text_at(FILE, &moment), text(expected), "{moment:?}");
    }
    assert_eq!(session.text_at(FILE, &at("r9")), FileSnapshot::Unknown);
}

#[test]
fn a_files_text_at_any_stop_is_told_from_the_linear_history() {
    let store = TestStore::new();
    let session = read(
        &store,
        &json!({"version": 2, "sessionId": "s", "linearHistory": [
            {"requestId": "r1", "stops": [{"entries": []}, {"stopId": "u1", "entries": [entry("aaaaaaa")]}], "postEdit": [entry("bbbbbbb")]},
            {"requestId": "r2", "stops": [{"entries": [entry("bbbbbbb")]}]},
        ], "linearHistoryIndex": 3, "initialFileContents": [[FILE, "aaaaaaa"]],
            "recentSnapshot": {"entries": [{"resource": FILE, "currentHash": "ccccccc", "isDeleted": true}]}}),
    );
    assert_eq!(session.generation, Generation::Stops);
    let stop = Moment::At { request: "r1".into(), stop: Some("u1".into()) };
    assert_eq!(session.text_at(FILE, &stop), text("one\n"));
    assert_eq!(session.text_at(FILE, &after("r1")), text("two\n"));
    assert_eq!(session.text_at(FILE, &after("r2")), FileSnapshot::Absent);
}

#[test]
fn a_files_text_at_any_request_is_told_from_the_timeline() {
    let store = TestStore::new();
    let uri = |path: &str| json!({"$mid": 1, "scheme": "file", "path": path});
    let range = |line: u64, from: u64, to: u64| json!({"startLineNumber": line, "startColumn": from, "endLineNumber": line, "endColumn": to});
    let session = read(
        &store,
        &json!({"version": 2, "initialFileContents": [[FILE, "aaaaaaa"]], "timeline": {
            "checkpoints": [
                {"checkpointId": "c0", "epoch": 0, "label": "start"},
                {"checkpointId": "c1", "requestId": "r1", "epoch": 1, "label": "r1"},
                {"checkpointId": "c2", "requestId": "r1", "undoStopId": "u1", "epoch": 4, "label": "stop"},
                {"checkpointId": "c3", "requestId": "r2", "epoch": 8, "label": "r2"},
            ],
            "fileBaselines": [["x", {"uri": uri("/app/a.txt"), "requestId": "r1", "content": "one\n", "epoch": 2}]],
            "operations": [
                {"type": "textEdit", "uri": uri("/app/a.txt"), "requestId": "r1", "epoch": 3, "edits": [{"range": range(1, 1, 4), "text": "1"}]},
                {"type": "create", "uri": uri("/app/new.txt"), "requestId": "r1", "epoch": 5, "initialContent": "new"},
                {"type": "textEdit", "uri": uri("/app/new.txt"), "requestId": "r1", "epoch": 6, "edits": [{"range": range(1, 4, 4), "text": "er"}]},
                {"type": "rename", "uri": uri("/app/new.txt"), "requestId": "r1", "epoch": 7, "oldUri": uri("/app/new.txt"), "newUri": uri("/app/moved.txt")},
                {"type": "delete", "uri": uri("/app/a.txt"), "requestId": "r2", "epoch": 9, "finalContent": "1\n"},
                {"type": "notebookEdit", "uri": uri("/app/moved.txt"), "requestId": "r2", "epoch": 10},
                {"type": "create", "uri": uri("/app/undone.txt"), "requestId": "r2", "epoch": 11, "initialContent": "x"},
            ],
            "currentEpoch": 11, "epochCounter": 12,
        }, "recentSnapshot": {"entries": []}}),
    );
    assert_eq!(session.generation, Generation::Timeline);
    let stop = Moment::At { request: "r1".into(), stop: Some("u1".into()) };
    let (new, moved) = ("file:///app/new.txt", "file:///app/moved.txt");
    for (file, moment, expected) in [
        (FILE, Moment::Start, text("one\n")),
        (FILE, at("r1"), text("one\n")),
        (FILE, stop.clone(), text("1\n")),
        (FILE, at("r2"), text("1\n")),
        (FILE, Moment::Now, FileSnapshot::Absent),
        (new, at("r1"), FileSnapshot::Absent),
        (new, stop, FileSnapshot::Absent),
        (new, after("r1"), FileSnapshot::Absent),
        (moved, at("r1"), FileSnapshot::Absent),
        (moved, at("r2"), text("newer")),
        (moved, Moment::Now, FileSnapshot::Unknown),
        ("file:///app/undone.txt", Moment::Now, FileSnapshot::Absent),
        ("file:///app/other.txt", Moment::Now, FileSnapshot::Unknown),
        (FILE, at("r9"), FileSnapshot::Unknown),
    ] {
        assert_eq!(session.text_at(file, &moment), expected, "{file} {moment:?}");
    }
    let files: Vec<&str> = session.files().map(|place| place.shown()).collect();
    assert_eq!(files, ["/app/a.txt", "/app/moved.txt", "/app/new.txt", "/app/undone.txt"]);
}

#[test]
fn only_a_hash_names_a_content() {
    let store = TestStore::new();
    store.put("secret", "no");
    let session =
        read(&store, &json!({"version": 2, "initialFileContents": [[FILE, "../secret"]], "linearHistory": []}));
    assert_eq!(session.text_at(FILE, &Moment::Start), FileSnapshot::Unknown);
}

#[test]
fn editing_sessions_of_both_generations_tell_a_files_text() {
    let fixtures = cases("vscode");
    let (before, edited) =
        ("export function add(a, b) {\n  return a - b;\n}\n", "export function add(a, b) {\n  return a + b;\n}\n");
    let request = "request_11111111-1111-4111-8111-111111111111";
    let file = "file:///home/dev/app/src/add.ts";
    for generation in ["editing-v2-timeline", "editing-v2-linearhistory"] {
        let folder = fixtures.join(generation).join("22222222-2222-4222-8222-222222222222");
        let session = editing::read(&folder).unwrap();
        assert_eq!(session.text_at(file, &Moment::Start), text(before), "{generation}");
        assert_eq!(session.text_at(file, &at(request)), text(before), "{generation}");
        assert_eq!(session.text_at(file, &after(request)), text(edited), "{generation}");
        assert_eq!(session.text_at(file, &Moment::Now), text(edited), "{generation}");
    }
    let timeline = fixtures.join("editing-v2-timeline/22222222-2222-4222-8222-222222222222");
    let moved = editing::read(&timeline).unwrap().text_at("file:///home/dev/app/test/add.test.ts", &Moment::Now);
    assert_eq!(moved, text("import { add } from './add';\n"));
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn recorded_editing_sessions_without_edits_have_no_files() {
    let mut read = 0;
    for entry in fs::read_dir(outside("vscode/chat-editing-sessions/codingame")).unwrap() {
        assert_eq!(editing::read(&entry.unwrap().path()).unwrap().files().count(), 0);
        read += 1;
    }
    assert!(read > 0);
}

/// A session with two requests, and an editing session beside it.
fn edited(state: &Value) -> (TestStore, std::path::PathBuf) {
    let request = |id: &str, response: Value| json!({"requestId": id, "message": {"text": id}, "response": response, "modelState": {"value": 1}});
    let shown = json!([{"kind": "textEditGroup", "uri": {"$mid": 1, "scheme": "file", "path": "/app/a.txt"}, "done": true,
        "edits": [[{"range": {"startLineNumber": 1, "startColumn": 1, "endLineNumber": 2, "endColumn": 1}, "text": "1\n"}]]}]);
    let session = json!({"version": 3, "sessionId": "s", "requests": [request("r1", shown), request("r2", json!([]))]});
    let store = TestStore::new();
    let path = store.put("User/workspaceStorage/h/chatSessions/s.json", session.to_string());
    store.put("User/workspaceStorage/h/chatEditingSessions/s/state.json", state.to_string());
    for (hash, content) in [("aaaaaaa", "one\n"), ("bbbbbbb", "two\nand more\n")] {
        store.put(&format!("User/workspaceStorage/h/chatEditingSessions/s/contents/{hash}"), content);
    }
    (store, path)
}

fn timeline() -> Value {
    let uri = |path: &str| json!({"$mid": 1, "scheme": "file", "path": path});
    let range = json!({"startLineNumber": 1, "startColumn": 1, "endLineNumber": 2, "endColumn": 1});
    json!({"version": 2, "initialFileContents": [[FILE, "aaaaaaa"]], "timeline": {
        "checkpoints": [
            {"checkpointId": "c1", "requestId": "r1", "epoch": 1, "label": "r1"},
            {"checkpointId": "c2", "requestId": "r2", "epoch": 5, "label": "r2"},
        ],
        "fileBaselines": [["x", {"uri": uri("/app/a.txt"), "requestId": "r1", "content": "one\n", "epoch": 2}]],
        "operations": [
            {"type": "textEdit", "uri": uri("/app/a.txt"), "requestId": "r1", "epoch": 3, "edits": [{"range": range, "text": "1\n"}]},
            {"type": "create", "uri": uri("/app/new.txt"), "requestId": "r1", "epoch": 4, "initialContent": "new\n"},
            {"type": "rename", "uri": uri("/app/new.txt"), "requestId": "r2", "epoch": 6, "oldUri": uri("/app/new.txt"), "newUri": uri("/app/moved.txt")},
            {"type": "delete", "uri": uri("/app/a.txt"), "requestId": "r2", "epoch": 7, "finalContent": "1\n"},
            {"type": "create", "uri": uri("/app/undone.txt"), "requestId": "r2", "epoch": 8, "initialContent": "x"},
        ],
        "currentEpoch": 8, "epochCounter": 9,
    }, "recentSnapshot": {"entries": []}})
}

fn edits(turn: &grove_transcript::TranscriptTurn) -> Vec<(String, EditKind, Option<u64>, Option<u64>)> {
    let edits = turn.parts.iter().filter_map(|part| match part {
        TranscriptPart::Edit(edit) => Some((edit.place.shown().to_owned(), edit.kind, edit.added, edit.removed)),
        _ => None,
    });
    edits.collect()
}

#[test]
fn what_each_request_did_to_files_is_told_in_its_turn_and_once() {
    let (_store, path) = edited(&timeline());
    let (session, turns) = read_file(TranscriptSource::VsCode, &path);
    assert_eq!(session.damage.marks, []);
    let told = |path: &str, kind, added, removed| (path.to_owned(), kind, Some(added), Some(removed));
    assert_eq!(
        edits(&turns[0]),
        [told("/app/a.txt", EditKind::Edit, 1, 1), told("/app/new.txt", EditKind::Create, 1, 0)],
        "the response shows the first one itself"
    );
    assert_eq!(
        edits(&turns[1]),
        [told("/app/a.txt", EditKind::Delete, 0, 1), told("/app/moved.txt", EditKind::Rename, 0, 0)]
    );
    let changes = SessionChanges::of(&turns);
    let shown: Vec<_> = changes.files.iter().map(|(path, it)| (path.as_str(), it.operation)).collect();
    assert_eq!(shown, [("/app/a.txt", ChangeOperation::Deleted), ("/app/moved.txt", ChangeOperation::Created)]);
}

#[test]
fn snapshots_tell_what_each_request_did_to_files() {
    let (_store, path) = edited(&json!({"version": 2, "sessionId": "s", "linearHistory": [
        {"requestId": "r1", "stops": [{"entries": []}], "postEdit": [entry("aaaaaaa")]},
        {"requestId": "r2", "stops": [{"entries": [entry("aaaaaaa")]}], "postEdit": [entry("bbbbbbb")]},
    ], "linearHistoryIndex": 2, "initialFileContents": [[FILE, "aaaaaaa"]], "recentSnapshot": {"entries": []}}));
    let (_, turns) = read_file(TranscriptSource::VsCode, &path);
    assert_eq!(edits(&turns[0]), [("/app/a.txt".into(), EditKind::Edit, None, None)], "what the response shows");
    assert_eq!(edits(&turns[1]), [("/app/a.txt".into(), EditKind::Edit, Some(2), Some(1))]);
}

#[test]
fn a_row_of_changes_follows_an_editing_session_that_is_written_behind_its_session() {
    let (store, _) = edited(&json!({"version": 2, "initialFileContents": []}));
    let data = TestStore::new();
    let root =
        StoreRoot { source: TranscriptSource::VsCode, product: String::new(), folder: store.path().join("User") };
    let scan = ScanRequest { roots: vec![root], keep: None };
    let catalog = Catalog::open(&data.path().join("history.db")).unwrap();
    let changed = || {
        catalog.scan(&scan, &mut |_| {}).unwrap();
        let entry = catalog.get("s").unwrap().unwrap();
        catalog.changes([&entry]).unwrap()[0].files.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(changed(), ["/app/a.txt"]);
    let state = store.put("User/workspaceStorage/h/chatEditingSessions/s/state.json", timeline().to_string());
    let later = fs::metadata(&state).unwrap().modified().unwrap() + std::time::Duration::from_secs(5);
    fs::File::options().write(true).open(&state).unwrap().set_modified(later).unwrap();
    assert_eq!(changed(), ["/app/a.txt", "/app/moved.txt"]);
    let damaged = store.put("User/workspaceStorage/h/chatEditingSessions/s/state.json", "{");
    assert!(damaged.is_file());
    assert_eq!(changed(), ["/app/a.txt"]);
    assert!(catalog.get("s").unwrap().unwrap().session.damage.is_recovered(), "the doctor tells");
}
