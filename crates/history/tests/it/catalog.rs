//! The catalog has the sessions on the disk, and a scan reads only changed ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use grove_core::Timestamp;
use grove_history::catalog::{
    BackupStore, Catalog, CatalogError, CatalogFilter, DoctorFinding, ScanPhase, ScanReport, ScanRequest, check,
};
use grove_history::{ChangeOperation, StoreRoot, TailLimit, newest};
use grove_transcript::{DamageKind, TranscriptSource};

use crate::support::TestStore;

const HASH: &str = "0123456789abcdef0123456789abcdef";

/// A home with stores of two tools, and a catalog beside it.
struct Home {
    store: TestStore,
    data: TestStore,
}

impl Home {
    fn new() -> Self {
        Self { store: TestStore::new(), data: TestStore::new() }
    }

    fn roots(&self) -> Vec<StoreRoot> {
        let root = |source, product: &str, folder: &str| StoreRoot {
            source,
            product: product.to_owned(),
            folder: self.store.path().join(folder),
        };
        vec![
            root(TranscriptSource::VsCode, "Code", "Code/User"),
            root(TranscriptSource::CopilotCli, "Copilot CLI", "session-state"),
        ]
    }

    fn catalog(&self) -> Catalog {
        Catalog::open(&self.database()).unwrap()
    }

    fn database(&self) -> PathBuf {
        self.data.path().join("history.db")
    }

    fn scan(&self, catalog: &Catalog) -> ScanReport {
        catalog.scan(&ScanRequest { roots: self.roots(), keep: None }, &mut |_| {}).unwrap()
    }

    fn chat(&self, id: &str, said: &[&str]) -> PathBuf {
        let requests = said.iter().enumerate().map(|(at, said)| {
            serde_json::json!({"requestId": format!("r{at}"), "message": {"text": said}, "response": [{"value": "ok"}],
                "timestamp": 1_000 + at, "modelId": "copilot/gpt-5", "modelState": {"value": 1}})
        });
        let session = serde_json::json!({"version": 3, "sessionId": id, "requests": requests.collect::<Vec<_>>(),
            "creationDate": 1_000, "lastMessageDate": 2_000 + said.len()});
        self.store.put(&format!("Code/User/workspaceStorage/{HASH}/chatSessions/{id}.json"), session.to_string())
    }

    fn cli(&self, id: &str, said: &[&str]) -> PathBuf {
        let mut log = format!(
            "{{\"id\":\"e0\",\"type\":\"session.start\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"parentId\":null,\
             \"data\":{{\"sessionId\":\"{id}\",\"version\":1,\"startTime\":\"2026-01-01T00:00:00Z\"}}}}\n"
        );
        said.iter().enumerate().for_each(|(at, said)| log.push_str(&line(at, said)));
        self.store.put(&format!("session-state/{id}/events.jsonl"), log)
    }
}

fn line(at: usize, said: &str) -> String {
    format!(
        "{{\"id\":\"u{at}\",\"type\":\"user.message\",\"timestamp\":\"2026-01-01T00:{at:02}:00Z\",\"parentId\":null,\
         \"data\":{{\"content\":\"{said}\"}}}}\n"
    )
}

fn append(path: &Path, text: &str) {
    let mut whole = fs::read(path).unwrap();
    whole.extend_from_slice(text.as_bytes());
    // Written in place, so that the file keeps its inode.
    fs::write(path, whole).unwrap();
}

fn ids(catalog: &Catalog, filter: &CatalogFilter) -> Vec<String> {
    catalog.list(filter, None, 100).unwrap().entries.into_iter().map(|entry| entry.session.source_id).collect()
}

#[test]
fn a_scan_finds_every_session_of_every_root_and_tells_how_far_it_is() {
    let home = Home::new();
    home.chat("one", &["first"]);
    home.cli("two", &["hello", "again"]);
    let catalog = home.catalog();
    let mut told = Vec::new();
    let report =
        catalog.scan(&ScanRequest { roots: home.roots(), keep: None }, &mut |progress| told.push(progress)).unwrap();
    assert_eq!((report.sessions, report.read, report.removed), (2, 2, 0), "{report:?}");
    assert_eq!(told.first().map(|it| it.phase), Some(ScanPhase::Listing));
    assert_eq!(told.last().map(|it| (it.phase, it.read, it.of)), Some((ScanPhase::Finished, 2, 2)));
    let entry = catalog.get("two").unwrap().unwrap();
    assert_eq!((entry.id.as_str(), entry.session.turns), ("copilot-cli.two", 2));
    assert_eq!(catalog.get("vs-code.one").unwrap().unwrap().session.models, ["gpt-5"]);
    assert_eq!(catalog.get("three").unwrap(), None);
}

#[test]
fn what_has_not_changed_is_not_opened_again() {
    let home = Home::new();
    let path = home.chat("one", &["first"]);
    let catalog = home.catalog();
    home.scan(&catalog);
    assert_eq!(home.scan(&catalog).read, 0);
    // A catalog that is opened again has the same contents.
    drop(catalog);
    let catalog = home.catalog();
    assert_eq!(home.scan(&catalog).read, 0);
    home.chat("one", &["first", "second"]);
    assert_eq!(home.scan(&catalog).read, 1);
    assert_eq!(catalog.get("one").unwrap().unwrap().session.turns, 2);
    fs::remove_file(path).unwrap();
    assert_eq!((home.scan(&catalog).removed, catalog.len().unwrap()), (1, 0));
}

#[test]
fn where_the_newest_turns_of_a_long_session_lie_is_remembered_and_stays_true_as_it_grows() {
    let home = Home::new();
    let words = "word ".repeat(8_000);
    let said: Vec<&str> = (0..40).map(|_| words.as_str()).collect();
    let (chat, log) = (home.chat("one", &said), home.cli("two", &said));
    home.chat("short", &["hello"]);
    let catalog = home.catalog();
    home.scan(&catalog);
    let check = |name: &str, is_known: bool| {
        let entry = catalog.get(name).unwrap().unwrap();
        let tail_index = catalog.tail_index(&entry).unwrap();
        assert_eq!(tail_index.is_some(), is_known, "{name}");
        for amount in [TailLimit::Turns(3), TailLimit::Turns(30), TailLimit::Entries(20), TailLimit::Turns(1_000)] {
            let quick = newest(&entry.location(), tail_index.as_ref(), amount).unwrap();
            assert_eq!(quick, newest(&entry.location(), None, amount).unwrap(), "{name} {amount:?}");
        }
    };
    check("one", true);
    check("two", true);
    check("short", false);
    append(&log, &line(90, "four"));
    check("two", true);
    assert_eq!(home.scan(&catalog).continued, 1);
    check("two", true);
    // A removed session leaves nothing behind.
    let entry = catalog.get("one").unwrap().unwrap();
    fs::remove_file(&chat).unwrap();
    home.scan(&catalog);
    assert_eq!(catalog.tail_index(&entry).unwrap(), None);
}

#[test]
fn a_file_that_has_grown_is_read_on_and_comes_to_the_same_as_read_anew() {
    let home = Home::new();
    let path = home.cli("two", &["one", "two", "three"]);
    let catalog = home.catalog();
    home.scan(&catalog);
    append(&path, &line(7, "four"));
    let report = home.scan(&catalog);
    assert_eq!((report.read, report.continued), (1, 1), "{report:?}");
    let grown = catalog.get("two").unwrap().unwrap();
    catalog.clear().unwrap();
    assert_eq!(home.scan(&catalog).continued, 0);
    assert_eq!(catalog.get("two").unwrap().unwrap(), grown);
    assert_eq!(grown.session.turns, 4);
    // A file that was written again under the same name is not read on.
    fs::remove_file(&path).unwrap();
    home.cli("two", &["another"]);
    home.scan(&catalog);
    assert_eq!(catalog.get("two").unwrap().unwrap().session.turns, 1);
}

/// An edit event of the Copilot CLI, and the event of its result.
fn edit(call: &str, path: &str, input: serde_json::Value, success: bool) -> String {
    let mut input = input;
    input["path"] = path.into();
    let name = if input.get("file_text").is_some() { "create" } else { "edit" };
    let start = serde_json::json!({"id": format!("{call}-1"), "type": "tool.execution_start", "timestamp": "2026-01-01T00:00:30Z",
        "data": {"toolCallId": call, "toolName": name, "arguments": input}});
    let end = serde_json::json!({"id": format!("{call}-2"), "type": "tool.execution_complete",
        "timestamp": "2026-01-01T00:00:31Z", "data": {"toolCallId": call, "success": success, "result": {"content": "ok"}}});
    format!("{start}\n{end}\n")
}

#[test]
fn what_a_session_changed_is_kept_beside_the_list_and_grows_with_its_file() {
    let home = Home::new();
    let path = home.cli("two", &["one"]);
    append(&path, &edit("c1", "/w/new", serde_json::json!({"file_text": "1\n2\n3"}), true));
    append(&path, &edit("c2", "/w/failed", serde_json::json!({"file_text": "x"}), false));
    home.chat("none", &["first"]);
    let catalog = home.catalog();
    home.scan(&catalog);
    let changes = || {
        let entry = catalog.get("two").unwrap().unwrap();
        let none = catalog.get("none").unwrap().unwrap();
        let mut both = catalog.changes([&entry, &none]).unwrap();
        assert!(both.pop().unwrap().is_empty());
        both.pop().unwrap()
    };
    let told = |path: &str| changes().files.get(path).map(|it| (it.operation, it.insertions, it.deletions));
    assert_eq!((told("/w/new"), told("/w/failed")), (Some((ChangeOperation::Created, 3, 0)), None));
    // The newest turn goes on, and another one comes.
    append(&path, &edit("c3", "/w/new", serde_json::json!({"old_str": "2", "new_str": "two\nhalf"}), true));
    append(&path, &line(3, "two"));
    append(&path, &edit("c4", "/w/old", serde_json::json!({"old_str": "a", "new_str": "b"}), true));
    assert_eq!(home.scan(&catalog).continued, 1);
    append(&path, &line(4, "three"));
    append(&path, &edit("c5", "/w/old", serde_json::json!({"old_str": "b", "new_str": ""}), true));
    assert_eq!(home.scan(&catalog).continued, 1);
    let grown = changes();
    assert_eq!(told("/w/new"), Some((ChangeOperation::Created, 5, 1)));
    assert_eq!(told("/w/old"), Some((ChangeOperation::Modified, 1, 2)));
    catalog.clear().unwrap();
    home.scan(&catalog);
    assert_eq!(changes(), grown);
    // A removed session leaves nothing behind, and a rewritten one has its own changes.
    let entry = catalog.get("two").unwrap().unwrap();
    fs::remove_file(&path).unwrap();
    home.scan(&catalog);
    assert!(catalog.changes([&entry]).unwrap()[0].is_empty());
}

#[test]
fn sessions_of_a_model_are_found_however_it_is_spelled() {
    let home = Home::new();
    let path = home.chat("chat", &["first"]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("copilot/gpt-5", "copilot/claude-opus-4.5")).unwrap();
    let path = home.cli("cli", &["hello"]);
    append(&path, r#"{"id":"m","type":"assistant.message","data":{"content":"x","model":"claude-opus-4-5-20251101"}}"#);
    home.chat("other", &["second"]);
    let catalog = home.catalog();
    home.scan(&catalog);
    let of = |model: &str| ids(&catalog, &CatalogFilter { model: Some(model.to_owned()), ..CatalogFilter::default() });
    for spelling in ["claude-opus-4.5", "claude-opus-4-5", "anthropic/Claude-Opus-4-5-20251101"] {
        assert_eq!(of(spelling), ["cli", "chat"], "{spelling}");
    }
    assert_eq!(
        (of("gpt-5"), of("claude-opus-4"), of("gpt"), of("")),
        (vec!["other".to_owned()], vec![], vec![], vec![])
    );
}

#[test]
fn a_name_means_what_it_says_exactly_before_what_only_begins_so() {
    let home = Home::new();
    for id in ["abc", "abcd", "abd"] {
        home.chat(id, &["first"]);
    }
    home.cli("abce", &["hello"]);
    let catalog = home.catalog();
    home.scan(&catalog);
    let candidates = |source, wanted: &str| {
        let entries = catalog.candidates(source, wanted).unwrap().into_iter();
        entries.map(|entry| entry.session.source_id).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(candidates(None, "abc"), ["abc"]);
    assert_eq!(candidates(None, "vs-code.abc"), ["abc"]);
    assert_eq!(candidates(None, "ab"), ["abc", "abcd", "abce", "abd"]);
    assert_eq!(candidates(Some(TranscriptSource::CopilotCli), "ab"), ["abce"]);
    assert_eq!(candidates(Some(TranscriptSource::CopilotCli), "abc"), ["abce"], "another tool's is not meant");
    assert_eq!(candidates(None, "vs-code.abcd"), ["abcd"]);
    for nothing in ["", "x", "%", "a%", "_bc"] {
        assert_eq!(candidates(None, nothing), [""; 0], "{nothing}");
    }
    assert!(Catalog::open_read_only(&home.data.path().join("none.db")).is_err());
}

#[test]
fn a_damaged_catalog_or_one_of_another_version_is_made_anew() {
    let home = Home::new();
    home.chat("one", &["first"]);
    fs::write(home.database(), "this is no database, however long it may be").unwrap();
    let catalog = home.catalog();
    assert_eq!(home.scan(&catalog).sessions, 1);
    drop(catalog);
    let other = rusqlite::Connection::open(home.database()).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    drop(other);
    assert!(matches!(Catalog::open_read_only(&home.database()), Err(CatalogError::OtherVersion)));
    let catalog = home.catalog();
    assert!(catalog.is_empty().unwrap());
    assert_eq!(home.scan(&catalog).sessions, 1);
    // Damage that shows only later is found by the next scan.
    let other = rusqlite::Connection::open(home.database()).unwrap();
    other.execute_batch("DROP TABLE session").unwrap();
    drop(other);
    assert_eq!(home.scan(&catalog).sessions, 1);
}

#[test]
fn lists_give_the_newest_first_page_by_page_and_only_what_is_wanted() {
    let home = Home::new();
    for at in 0..5 {
        let said: Vec<String> = (0..=at).map(|turn| format!("Message {turn} of Session {at}")).collect();
        home.chat(&format!("s{at}"), &said.iter().map(String::as_str).collect::<Vec<_>>());
    }
    home.cli("cli", &["Fix the ÜBER bug"]);
    let catalog = home.catalog();
    home.scan(&catalog);
    let all = ids(&catalog, &CatalogFilter::default());
    assert_eq!(all, ["cli", "s4", "s3", "s2", "s1", "s0"]);
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = catalog.list(&CatalogFilter::default(), after.as_ref(), 4).unwrap();
        paged.extend(page.entries.into_iter().map(|entry| entry.session.source_id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(paged, all);
    let only = |filter: CatalogFilter| ids(&catalog, &filter);
    assert_eq!(only(CatalogFilter { source: Some("copilot-cli".into()), ..CatalogFilter::default() }), ["cli"]);
    assert_eq!(only(CatalogFilter { text: Some("über".into()), ..CatalogFilter::default() }), ["cli"]);
    assert_eq!(only(CatalogFilter { since: Some(Timestamp(2_004)), ..CatalogFilter::default() }), ["cli", "s4", "s3"]);
    assert!(matches!(grove_history::catalog::CatalogCursor::parse("nonsense"), Err(CatalogError::BadCursor(_))));
}

#[test]
fn a_session_is_found_by_the_catalogs_name_its_own_and_what_its_agent_calls_it() {
    let home = Home::new();
    let request = serde_json::json!({"requestId": "r", "message": {"text": "x"}, "response": [],
        "result": {"metadata": {"sessionId": "agents-name"}}});
    let session = serde_json::json!({"version": 3, "sessionId": "one", "requests": [request]});
    home.store.put(&format!("Code/User/workspaceStorage/{HASH}/chatSessions/one.json"), session.to_string());
    let catalog = home.catalog();
    home.scan(&catalog);
    for name in ["vs-code.one", "one", "agents-name"] {
        assert_eq!(catalog.get(name).unwrap().map(|entry| entry.id).as_deref(), Some("vs-code.one"), "{name}");
    }
    assert_eq!(catalog.named("one").unwrap(), None);
}

#[test]
fn two_files_of_one_session_are_both_shown_under_names_of_their_own() {
    let home = Home::new();
    home.chat("one", &["first"]);
    let text = fs::read(home.store.path().join(format!("Code/User/workspaceStorage/{HASH}/chatSessions/one.json")));
    home.store.put("Code/User/workspaceStorage/ffffffffffffffffffffffffffffffff/chatSessions/one.json", text.unwrap());
    let catalog = home.catalog();
    home.scan(&catalog);
    let entries = catalog.list(&CatalogFilter::default(), None, 10).unwrap().entries;
    let names: BTreeSet<_> = entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["vs-code.one", "vs-code.one.2"]));
}

#[test]
fn a_torn_file_is_listed_with_its_mark_and_the_doctor_tells() {
    let home = Home::new();
    let path = home.cli("two", &["one"]);
    append(&path, "{\"id\":\"x\",\"type\":\"user.mess");
    home.chat("whole", &["fine"]);
    home.store.put("session-state/nested/deeper/stray.jsonl", "{}");
    let catalog = home.catalog();
    assert_eq!(home.scan(&catalog).recovered, 1);
    let entry = catalog.get("two").unwrap().unwrap();
    assert_eq!(entry.session.damage.marks, [DamageKind::TornTail]);
    let checkup = check(&catalog, &home.roots()).unwrap();
    assert_eq!((checkup.files, checkup.shown, checkup.damaged.len(), checkup.unknown.len()), (3, 2, 1, 1));
    assert_eq!(checkup.damaged[0].path, path);
    assert!(checkup.unknown[0].path.ends_with("stray.jsonl") && !checkup.is_well());
}

#[test]
fn what_a_tool_lists_and_lies_nowhere_is_lost_and_what_it_does_not_list_is_orphaned() {
    let (store, data) = (TestStore::new(), TestStore::new());
    let root = |source, folder: &str| StoreRoot { source, product: String::new(), folder: store.path().join(folder) };
    let roots = vec![
        root(TranscriptSource::Claude, "projects"),
        root(TranscriptSource::Codex, "codex"),
        root(TranscriptSource::Gemini, "gemini"),
        root(TranscriptSource::VsCode, "User"),
    ];
    let said = r#"{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hi"}}"#;
    for id in ["here", "unlisted"] {
        store.put(&format!("projects/-w/{id}.jsonl"), format!("{said}\n"));
    }
    store.put("projects/-w/agent-1.jsonl", "{}");
    let elsewhere = store.put("elsewhere.jsonl", "");
    let entries = serde_json::json!({"version": 1, "entries": [{"sessionId": "here"}, {"sessionId": "gone"},
        {"sessionId": "moved", "fullPath": elsewhere}]});
    store.put("projects/-w/sessions-index.json", entries.to_string());
    let (here, gone) = ("01a1e039-1686-7a20-b7e3-98dd8870ad1b", "01a1e039-1686-7a20-b7e3-98dd8870ad1c");
    let rollout = format!("codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{here}.jsonl");
    let meta = format!(r#"{{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{{"id":"{here}"}}}}"#);
    store.put(&rollout, format!("{meta}\n"));
    store.put(&format!("{rollout}.zst"), "");
    let named = |id: &str| format!("{{\"id\":\"{id}\",\"thread_name\":\"x\"}}\n");
    store.put("codex/session_index.jsonl", named(here) + &named(gone));
    store.put("codex/history.jsonl", format!("{{\"session_id\":\"{gone}\",\"ts\":1,\"text\":\"hi\"}}\n"));
    store.put("gemini/p/chats/session-1.json", r#"{"sessionId":"g","messages":[]}"#);
    store.put("gemini/p/chats/g/sub.jsonl", "{}");
    store.put("gemini/p/logs.json", r#"[{"sessionId":"other","message":"hi"}]"#);
    for (folder, id) in [("User/workspaceStorage/h", "chat"), ("User/globalStorage", "window")] {
        std::fs::create_dir_all(store.path().join(folder)).unwrap();
        let state = rusqlite::Connection::open(store.path().join(folder).join("state.vscdb")).unwrap();
        state.execute_batch("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)").unwrap();
        let entry = |id: &str, empty: bool| serde_json::json!({"sessionId": id, "title": "x", "isEmpty": empty});
        let index = serde_json::json!({"version": 1, "entries": {id: entry(id, false), "empty": entry("empty", true)}});
        let sql = "INSERT INTO ItemTable VALUES ('chat.ChatSessionStore.index', ?1)";
        state.execute(sql, [index.to_string()]).unwrap();
    }
    let catalog = Catalog::open(&data.path().join("history.db")).unwrap();
    catalog.scan(&ScanRequest { roots: roots.clone(), keep: None }, &mut |_| {}).unwrap();
    let checkup = check(&catalog, &roots).unwrap();
    let names = |suspects: &[DoctorFinding]| {
        suspects.iter().map(|it| (it.source, it.source_id.clone().unwrap_or_default())).collect::<Vec<_>>()
    };
    let pair = |source, id: &str| (source, id.to_owned());
    assert_eq!(
        names(&checkup.lost),
        [
            pair(TranscriptSource::Claude, "gone"),
            pair(TranscriptSource::Codex, gone),
            pair(TranscriptSource::VsCode, "chat"),
            pair(TranscriptSource::VsCode, "window")
        ]
    );
    assert!(checkup.lost[0].path.ends_with("projects/-w/gone.jsonl"));
    assert_eq!(names(&checkup.orphaned), [pair(TranscriptSource::Claude, "unlisted")]);
    assert_eq!((names(&checkup.unknown), &checkup.problems), (vec![], &Vec::<String>::new()));
    assert_eq!((checkup.files, checkup.shown), (5, 4), "one rollout is there in both forms");
}

#[test]
fn sessions_without_a_file_by_design_are_not_lost_and_empty_or_transferred_ones_are_not_orphaned() {
    let home = Home::new();
    home.chat("listed", &["first"]);
    home.chat("hidden", &[]);
    home.chat("unlisted-and-empty", &[]);
    home.chat("orphan", &["first"]);
    home.chat("taken-for-empty", &["first"]);
    let path = home.chat("transferred", &["first"]);
    let global = home.store.path().join("Code/User/globalStorage");
    fs::create_dir_all(global.join("transferredChatSessions")).unwrap();
    fs::rename(path, global.join("transferredChatSessions/transferred.json")).unwrap();
    let list = |folder: &Path, entries: serde_json::Value| {
        let state = rusqlite::Connection::open(folder.join("state.vscdb")).unwrap();
        state
            .execute_batch("CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
            .unwrap();
        let sql = "INSERT INTO ItemTable VALUES ('chat.ChatSessionStore.index', ?1)";
        state.execute(sql, [serde_json::json!({"version": 1, "entries": entries}).to_string()]).unwrap();
    };
    let storage = home.store.path().join("Code/User/workspaceStorage").join(HASH);
    let mut entries = serde_json::json!({"listed": {"title": "x"}, "hidden": {"isEmpty": true}, "taken-for-empty": {"isEmpty": true},
        "agent://cloud/1": {"title": "x", "isExternal": true}});
    list(&storage, entries.clone());
    list(&global, serde_json::json!({}));
    let catalog = home.catalog();
    home.scan(&catalog);
    let names = |suspects: &[DoctorFinding]| {
        suspects.iter().filter_map(|it| it.source_id.clone()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    let checkup = check(&catalog, &home.roots()).unwrap();
    assert_eq!(names(&checkup.lost), [""; 0]);
    assert_eq!(names(&checkup.orphaned), ["orphan", "taken-for-empty"]);
    // A session that VS Code has listed since is not an orphan any more, though its file was not read again.
    entries["orphan"] = serde_json::json!({"title": "x"});
    list(&storage, entries);
    home.scan(&catalog);
    assert_eq!(names(&check(&catalog, &home.roots()).unwrap().orphaned), ["taken-for-empty"]);
}

#[test]
fn a_log_that_was_written_over_in_place_is_read_from_its_beginning() {
    let home = Home::new();
    let words = "word ".repeat(8_000);
    let said: Vec<&str> = (0..40).map(|_| words.as_str()).collect();
    let (short, long) = (home.cli("short", &["one", "two", "three"]), home.cli("long", &said));
    let catalog = home.catalog();
    home.scan(&catalog);
    let before = catalog.get("long").unwrap().unwrap();
    let tail_index = catalog.tail_index(&before).unwrap().unwrap();
    for (path, turns) in [(&short, 6), (&long, 50)] {
        let id = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        // The same inode, and longer than before: only its bytes differ.
        let text = fs::read_to_string(path).unwrap();
        let mut over = text.replace("two", "other").replace("word word word", "another word or two");
        (0..turns).for_each(|at| over.push_str(&line(at, "more")));
        let old = fs::metadata(path).unwrap();
        fs::write(path, &over).unwrap();
        let new = fs::metadata(path).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::ino(&old), std::os::unix::fs::MetadataExt::ino(&new));
        assert!(new.len() > old.len(), "{id}");
    }
    let quick = newest(&before.location(), Some(&tail_index), TailLimit::Turns(20)).unwrap();
    assert_eq!(quick, newest(&before.location(), None, TailLimit::Turns(20)).unwrap());
    let report = home.scan(&catalog);
    assert_eq!((report.read, report.continued), (2, 0), "{report:?}");
    let shown = [catalog.get("short").unwrap().unwrap(), catalog.get("long").unwrap().unwrap()];
    catalog.clear().unwrap();
    home.scan(&catalog);
    assert_eq!(shown, [catalog.get("short").unwrap().unwrap(), catalog.get("long").unwrap().unwrap()]);
}

#[test]
fn a_title_that_was_taken_back_is_not_kept_by_the_catalog() {
    let home = Home::new();
    let log = |title: &str| {
        let state = r#"{"version":3,"sessionId":"one","requests":[{"requestId":"r","message":{"text":"hello"},"response":[]}]}"#;
        let set = format!("{{\"kind\":1,\"k\":[\"customTitle\"]{title}}}\n");
        home.store.put(
            &format!("Code/User/workspaceStorage/{HASH}/chatSessions/one.jsonl"),
            format!("{{\"kind\":0,\"v\":{state}}}\n{set}"),
        );
    };
    let catalog = home.catalog();
    log(",\"v\":\"Given\"");
    home.scan(&catalog);
    assert_eq!(catalog.get("one").unwrap().unwrap().title(), "Given");
    log("");
    home.scan(&catalog);
    assert_eq!(catalog.get("one").unwrap().unwrap().title(), "hello");
}

#[test]
fn a_moved_folder_is_found_again_by_its_repository() {
    let home = Home::new();
    let git = |folder: &str| {
        home.data
            .put(&format!("{folder}/.git/config"), "[remote \"origin\"]\nurl = https://example.org/acme/site.git\n");
        home.data.put(&format!("{folder}/.git/HEAD"), "ref: refs/heads/main\n");
        home.data.path().join(folder)
    };
    let worked = |hash: &str, id: &str, folder: &Path| {
        let path = home.chat(id, &["x"]);
        let storage = home.store.path().join("Code/User/workspaceStorage").join(hash);
        fs::create_dir_all(storage.join("chatSessions")).unwrap();
        fs::rename(path, storage.join(format!("chatSessions/{id}.json"))).unwrap();
        let json = serde_json::json!({"folder": format!("file://{}", folder.display())});
        fs::write(storage.join("workspace.json"), json.to_string()).unwrap();
    };
    let old = git("old");
    worked(HASH, "before", &old);
    let catalog = home.catalog();
    home.scan(&catalog);
    let shown = |id: &str| catalog.get(id).unwrap().unwrap();
    assert_eq!(shown("before").repository.as_deref(), Some("acme/site"));
    assert_eq!(shown("before").folder, Some(old.display().to_string()));
    let new = home.data.path().join("new");
    fs::rename(&old, &new).unwrap();
    assert_eq!(home.scan(&catalog).moved, 0, "nobody has worked in the new place yet");
    worked("ffffffffffffffffffffffffffffffff", "after", &new);
    assert_eq!(home.scan(&catalog).moved, 1);
    assert_eq!(shown("before").folder, Some(new.display().to_string()));
    let filter =
        |repository: &str| CatalogFilter { repository: Some(repository.to_owned()), ..CatalogFilter::default() };
    for spelled in ["acme/site", "site", "git@example.org:Acme/Site.git", &new.display().to_string()] {
        assert_eq!(ids(&catalog, &filter(spelled)).len(), 2, "{spelled}");
    }
    assert_eq!(ids(&catalog, &filter("acme/sit_")).len(), 0);
}

#[test]
fn copies_stand_in_for_files_that_are_gone_also_in_a_catalog_made_anew() {
    let home = Home::new();
    let copies = home.data.path().join("kept");
    let path = home.cli("two", &["one", "two"]);
    // As a scan leaves it, once the tool's time for it has nearly passed.
    let folder = copies.join("copilot-cli/0011223344556677");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(&path, folder.join("events.jsonl")).unwrap();
    fs::write(folder.join("origin"), path.display().to_string()).unwrap();
    let scan = ScanRequest { roots: home.roots(), keep: Some(BackupStore { folder: copies, now: None }) };
    let catalog = home.catalog();
    let run = || catalog.scan(&scan, &mut |_| {}).unwrap();
    assert_eq!((run().gone, catalog.len().unwrap()), (0, 1), "the file is there");
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    for _ in 0..2 {
        let report = run();
        assert_eq!((report.gone, report.sessions), (1, 1));
        let page = catalog.list(&CatalogFilter::default(), None, 10).unwrap();
        assert_eq!(page.entries[0].kept_from.as_deref(), Some(path.as_path()));
        assert_eq!(page.entries[0].session.turns, 2);
        catalog.clear().unwrap();
    }
}

#[test]
fn a_scan_writes_nothing_into_a_foreign_store() {
    let home = Home::new();
    home.chat("one", &["first"]);
    home.cli("two", &["hello"]);
    let before = crate::support::everything(home.store.path());
    let catalog = home.catalog();
    home.scan(&catalog);
    check(&catalog, &home.roots()).unwrap();
    assert_eq!(crate::support::everything(home.store.path()), before);
}
