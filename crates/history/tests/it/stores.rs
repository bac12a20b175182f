//! VS Code's stores: the found sessions and their data, and that nothing is changed there.

use std::path::Path;

use grove_history::vscode::{self, VsCode};
use grove_history::{
    Hints, HistoryReader, SessionLocation, StoreListing, StoreRoot, locate, read_with_turns, reader_of,
};
use grove_transcript::{DamageKind, TranscriptSource};
use rusqlite::Connection;
use serde_json::json;

use crate::support::{TestStore, everything};

fn root(store: &TestStore) -> StoreRoot {
    StoreRoot { source: TranscriptSource::VsCode, product: "Code".into(), folder: store.path().into() }
}

fn session(id: &str, words: &str) -> String {
    let request = json!({"requestId": format!("request_{id}"), "message": {"text": words}, "response": [{"value": "Yes."}],
        "result": {"metadata": {"cacheKey": "file:///from/cache%20key,file:///second", "sessionId": format!("agent-{id}")}}});
    json!({"version": 3, "sessionId": id, "creationDate": 1, "requests": [request]}).to_string()
}

fn log(id: &str, words: &str) -> String {
    format!("{{\"kind\":0,\"v\":{}}}\n", session(id, words))
}

/// A database as VS Code has it, with this index.
fn database(path: &Path, index: Option<&serde_json::Value>) {
    let database = Connection::open(path).unwrap();
    database.execute_batch("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)").unwrap();
    if let Some(index) = index {
        let row = ("chat.ChatSessionStore.index", index.to_string());
        database.execute("INSERT INTO ItemTable VALUES (?1, ?2)", row).unwrap();
    }
}

fn index(id: &str, title: &str) -> serde_json::Value {
    json!({"version": 1, "entries": {id: {"sessionId": id, "title": title, "lastMessageDate": 5, "isEmpty": false}}})
}

fn ids(listing: &StoreListing) -> Vec<&str> {
    listing.sessions.iter().map(|location| location.id.as_str()).collect()
}

fn one<'a>(listing: &'a StoreListing, id: &str) -> &'a SessionLocation {
    listing.sessions.iter().find(|location| location.id == id).unwrap()
}

#[test]
fn sessions_of_workspaces_empty_windows_and_transfers_are_found_and_the_store_is_left_as_it_was() {
    let store = TestStore::new()
        .with("workspaceStorage/h1/workspace.json", r#"{"folder":"file:///home/me/my%20app"}"#)
        .with("workspaceStorage/h1/chatSessions/a.json", session("a", "first"))
        .with("workspaceStorage/h1/chatSessions/lost.jsonl", log("lost", "not in the index"))
        .with("workspaceStorage/h2/chatSessions/orphan.json", session("orphan", "no workspace.json"))
        .with("workspaceStorage/h3/workspace.json", "{")
        .with("workspaceStorage/h3/chatSessions/b.json", session("b", "bad workspace.json"))
        .with("workspaceStorage/no-workspace/chatSessions/old.json", session("old", "empty window, old place"))
        .with("workspaceStorage/note.txt", "not a folder")
        .with("globalStorage/emptyWindowChatSessions/e.jsonl", log("e", "empty window"))
        .with("globalStorage/transferredChatSessions/t.json", session("t", "transferred"))
        .with("profiles/p1/globalStorage/emptyWindowChatSessions/p.jsonl", log("p", "another profile"));
    database(&store.path().join("workspaceStorage/h1/state.vscdb"), Some(&index("a", "Listed")));
    let before = everything(store.path());

    let listing = VsCode.find(&root(&store), Hints::Read);
    assert_eq!(ids(&listing), ["a", "lost", "orphan", "b", "old", "e", "t", "p"]);
    assert_eq!(listing.problems.len(), 1, "{:?}", listing.problems);
    let listed = one(&listing, "a");
    assert_eq!((listed.preview.title.as_deref(), listed.preview.listed), (Some("Listed"), Some(true)));
    assert_eq!(one(&listing, "lost").preview.listed, Some(false), "that is how sessions get lost");
    assert_eq!(one(&listing, "orphan").preview.listed, None);
    for location in &listing.sessions {
        let (session, turns) = read_with_turns(&VsCode, location).unwrap();
        assert_eq!((session.source_id.as_str(), turns.len()), (location.id.as_str(), 1));
    }
    assert_eq!(everything(store.path()), before);
}

#[test]
fn a_session_finds_its_workspace_by_workspace_json_else_by_cache_key() {
    let store = TestStore::new()
        .with("workspaceStorage/h1/workspace.json", r#"{"folder":"file:///home/me/my%20app"}"#)
        .with("workspaceStorage/h1/chatSessions/a.json", session("a", "x"))
        .with("workspaceStorage/h2/chatSessions/b.json", session("b", "x"));
    let listing = VsCode.find(&root(&store), Hints::Read);
    let folders = |id: &str| {
        let (session, _) = read_with_turns(&VsCode, one(&listing, id)).unwrap();
        session.workspace.folders.iter().map(|place| place.shown().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(folders("a"), ["/home/me/my app"]);
    assert_eq!(folders("b"), ["/from/cache key", "/second"]);
}

#[test]
fn a_session_is_found_by_its_agents_name_for_it_as_well() {
    let store = TestStore::new().with("workspaceStorage/h/chatSessions/a.json", session("a", "x"));
    let (session, turns) = read_with_turns(&VsCode, &VsCode.find(&root(&store), Hints::Read).sessions[0]).unwrap();
    assert!(session.has_id("a") && session.has_id("agent-a") && !session.has_id("b"));
    assert_eq!(turns[0].agent_session.as_deref(), Some("agent-a"));
}

#[test]
fn a_sessions_editing_session_is_found_by_its_id() {
    let store = TestStore::new()
        .with("workspaceStorage/h/chatSessions/a.json", session("a", "x"))
        .with("workspaceStorage/h/chatSessions/b.json", session("b", "x"))
        .with("workspaceStorage/h/chatEditingSessions/a/state.json", r#"{"version":2,"initialFileContents":[]}"#);
    let listing = VsCode.find(&root(&store), Hints::Read);
    let folder = vscode::editing_folder(one(&listing, "a")).unwrap();
    assert!(vscode::editing::read(&folder).is_ok());
    assert_eq!(vscode::editing_folder(one(&listing, "b")), None);
}

#[test]
fn workspaces_and_their_sessions_are_listed() {
    let store = TestStore::new()
        .with("workspaceStorage/h1/workspace.json", r#"{"folder":"file:///one"}"#)
        .with("workspaceStorage/h1/chatSessions/a.json", session("a", "x"))
        .with("workspaceStorage/h2/workspace.json", r#"{"workspace":"file:///all.code-workspace"}"#);
    let workspaces = vscode::workspaces(&root(&store)).unwrap();
    let hashes: Vec<&str> = workspaces.iter().map(|workspace| workspace.hash.as_str()).collect();
    assert_eq!(hashes, ["h1", "h2"]);
    assert_eq!(workspaces[0].workspace.folders[0].shown(), "/one");
    assert_eq!(ids(&vscode::sessions(&root(&store), &workspaces[0], Hints::Read)), ["a"]);
    assert!(vscode::sessions(&root(&store), &workspaces[1], Hints::Read).sessions.is_empty());
}

#[test]
fn where_both_forms_of_a_session_are_there_the_log_wins() {
    let store = TestStore::new()
        .with("workspaceStorage/h/chatSessions/a.json", session("a", "older"))
        .with("workspaceStorage/h/chatSessions/a.jsonl", log("a", "newer"));
    let listing = VsCode.find(&root(&store), Hints::Read);
    assert_eq!(listing.sessions.len(), 1);
    assert_eq!(read_with_turns(&VsCode, &listing.sessions[0]).unwrap().0.first_message, "newer");
}

#[test]
fn a_log_without_its_beginning_gives_way_to_the_older_file() {
    let store = TestStore::new()
        .with("workspaceStorage/h/chatSessions/a.json", session("a", "older"))
        .with("workspaceStorage/h/chatSessions/a.jsonl", "{\"kind\":1,\"k\":[\"customTitle\"],\"v\":\"t\"}\n");
    let (session, _) = read_with_turns(&VsCode, &VsCode.find(&root(&store), Hints::Read).sessions[0]).unwrap();
    assert_eq!(session.first_message, "older");
    assert_eq!(session.damage.marks, [DamageKind::MissingStart, DamageKind::FromOlderFile]);
    assert!(session.damage.is_recovered());
}

#[test]
fn where_the_database_is_damaged_or_empty_the_index_is_taken_from_its_backup() {
    for damaged in [&b""[..], b"not a database, and long enough to be looked at as one", &[0; 4096]] {
        let store = TestStore::new()
            .with("workspaceStorage/h/chatSessions/a.json", session("a", "x"))
            .with("workspaceStorage/h/state.vscdb", damaged);
        database(&store.path().join("workspaceStorage/h/state.vscdb.backup"), Some(&index("a", "From the backup")));
        let listing = VsCode.find(&root(&store), Hints::Read);
        assert_eq!(one(&listing, "a").preview.title.as_deref(), Some("From the backup"));
    }
    let store = TestStore::new().with("workspaceStorage/h/chatSessions/a.json", session("a", "x"));
    database(&store.path().join("workspaceStorage/h/state.vscdb"), None);
    let listing = VsCode.find(&root(&store), Hints::Read);
    assert_eq!(
        (one(&listing, "a").preview.listed, listing.problems.len()),
        (None, 0),
        "without a list nothing is said"
    );
}

#[test]
fn an_index_that_is_in_the_write_ahead_log_alone_is_read() {
    let store = TestStore::new().with("workspaceStorage/h/chatSessions/a.json", session("a", "x"));
    let path = store.path().join("workspaceStorage/h/state.vscdb");
    database(&path, None);
    let open = Connection::open(&path).unwrap();
    open.pragma_update(None, "journal_mode", "wal").unwrap();
    open.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    let row = ("chat.ChatSessionStore.index", index("a", "In the log").to_string());
    open.execute("INSERT INTO ItemTable VALUES (?1, ?2)", row).unwrap();
    assert!(path.with_extension("vscdb-wal").metadata().unwrap().len() > 0);
    let before = everything(store.path());
    let listing = VsCode.find(&root(&store), Hints::Read);
    assert_eq!(one(&listing, "a").preview.title.as_deref(), Some("In the log"));
    let now = everything(store.path());
    let names = |all: &[(std::path::PathBuf, Vec<u8>, std::time::SystemTime)]| -> Vec<_> {
        all.iter().filter(|(path, ..)| !path.ends_with("state.vscdb-shm")).cloned().collect()
    };
    assert_eq!(names(&now), names(&before), "nothing is written there");
}

#[test]
fn a_workspace_of_several_folders_has_those_of_its_file() {
    let home = TestStore::new();
    let file = home.put("all.code-workspace", r#"{"folders": [{"path": "one"}, {"path": "/two"}], /* x */ }"#);
    let bad = home.put("bad.code-workspace", "{");
    let workspace = |path: &Path| json!({"workspace": format!("file://{}", path.display())}).to_string();
    let store = TestStore::new()
        .with("workspaceStorage/h1/workspace.json", workspace(&file))
        .with("workspaceStorage/h1/chatSessions/a.json", session("a", "x"))
        .with("workspaceStorage/h2/workspace.json", workspace(&bad))
        .with("workspaceStorage/h2/chatSessions/b.json", session("b", "x"))
        .with("workspaceStorage/h3/workspace.json", workspace(&home.path().join("gone.code-workspace")))
        .with("workspaceStorage/h3/chatSessions/c.json", session("c", "x"));
    let listing = VsCode.find(&root(&store), Hints::Read);
    let folders = |id: &str| {
        let (session, _) = read_with_turns(&VsCode, one(&listing, id)).unwrap();
        session.workspace.folders.iter().map(|place| place.shown().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(folders("a"), [home.path().join("one").display().to_string(), "/two".into()]);
    assert_eq!((folders("b"), folders("c")), (folders("c"), vec!["/from/cache key".into(), "/second".into()]));
    assert_eq!(listing.problems.len(), 1, "{:?}", listing.problems);
}

#[test]
fn a_session_that_is_named_by_its_file_has_its_workspace_and_its_listed_title() {
    let store = TestStore::new()
        .with("User/workspaceStorage/h/workspace.json", r#"{"folder":"file:///home/me/app"}"#)
        .with("User/globalStorage/emptyWindowChatSessions/e.jsonl", log("e", "empty window"))
        .with(
            "claude/projects/-w/sessions-index.json",
            r#"{"entries":[{"sessionId":"c","summary":"Listed","projectPath":"/w"}]}"#,
        )
        .with("claude/projects/-w/c.jsonl", "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n")
        .with(
            "codex/session_index.jsonl",
            "{\"id\":\"01a1e039-1686-7a20-b7e3-98dd8870ad1b\",\"thread_name\":\"Listed\"}\n",
        )
        .with("gemini/p/.project_root", "/w/project")
        .with("gemini/p/chats/session-1.json", r#"{"sessionId":"g","messages":[]}"#);
    let flat = store.put("User/workspaceStorage/h/chatSessions/a.json", session("a", "older"));
    let newer = store.put("User/workspaceStorage/h/chatSessions/a.jsonl", log("a", "newer"));
    database(&store.path().join("User/workspaceStorage/h/state.vscdb"), Some(&index("a", "Listed")));
    database(&store.path().join("User/globalStorage/state.vscdb"), Some(&index("e", "Listed")));
    let rollout = "codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-01a1e039-1686-7a20-b7e3-98dd8870ad1b.jsonl";
    let meta = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"01a1e039-1686-7a20-b7e3-98dd8870ad1b"}}"#;
    let rollout = store.put(rollout, meta);
    let read = |source, path: &Path| {
        let (session, _) = read_with_turns(reader_of(source), &locate(source, path).unwrap()).unwrap();
        let folder = session.workspace.folders.first().map(|place| place.shown().to_owned());
        (session.title.unwrap_or_default(), folder.unwrap_or_default())
    };
    let listed = |folder: &str| ("Listed".to_owned(), folder.to_owned());
    assert_eq!(read(TranscriptSource::VsCode, &newer), listed("/home/me/app"));
    assert_eq!(read(TranscriptSource::VsCode, &flat), listed("/home/me/app"));
    assert_eq!(locate(TranscriptSource::VsCode, &newer).unwrap().older.as_deref(), Some(flat.as_path()));
    let window = store.path().join("User/globalStorage/emptyWindowChatSessions/e.jsonl");
    assert_eq!(read(TranscriptSource::VsCode, &window), listed("/from/cache key"));
    assert_eq!(read(TranscriptSource::Claude, &store.path().join("claude/projects/-w/c.jsonl")), listed("/w"));
    assert_eq!(read(TranscriptSource::Codex, &rollout).0, "Listed");
    assert_eq!(read(TranscriptSource::Gemini, &store.path().join("gemini/p/chats/session-1.json")).1, "/w/project");
    // A file outside of any store has only its name.
    let alone = store.put("a.json", session("a", "alone"));
    assert_eq!(read(TranscriptSource::VsCode, &alone), ("alone".into(), "/from/cache key".into()));
}

#[test]
fn a_log_with_a_byte_order_mark_is_read_whole() {
    let store = TestStore::new();
    let path = store.put("a.jsonl", format!("\u{feff}{}", log("a", "hello")));
    let (session, turns) =
        read_with_turns(&VsCode, &SessionLocation::of_file(TranscriptSource::VsCode, &path).unwrap()).unwrap();
    assert_eq!((turns.len(), session.damage.marks.len()), (1, 0), "{:?}", session.damage);
}

#[test]
fn a_reader_refuses_the_sessions_of_another_tool() {
    let store = TestStore::new();
    let path = store.put("a.json", session("a", "x"));
    let location = SessionLocation::of_file(TranscriptSource::CopilotCli, &path).unwrap();
    let refused = read_with_turns(&VsCode, &location).unwrap_err();
    assert!(refused.to_string().contains("reader of copilot-cli"), "{refused}");
}

#[test]
fn what_is_no_file_is_not_opened() {
    let store = TestStore::new().with("workspaceStorage/h/chatSessions/a.json/inside", "x");
    let listing = VsCode.find(&root(&store), Hints::Read);
    assert_eq!((listing.sessions.len(), listing.problems.len()), (0, 1));
}

#[test]
fn without_hints_files_are_found_and_no_list_is_looked_at() {
    let store = TestStore::new()
        .with("workspaceStorage/h/chatSessions/a.json", session("a", "x"))
        .with("workspaceStorage/h/state.vscdb", "not a database");
    let listing = VsCode.find(&root(&store), Hints::Skip);
    assert_eq!((ids(&listing), listing.problems.len()), (vec!["a"], 0));
    let found = one(&listing, "a");
    assert_eq!((found.preview.listed, found.mark.size), (None, session("a", "x").len() as u64));
}
