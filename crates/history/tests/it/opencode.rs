//! OpenCode: the database, the files that it replaced, subagents.

use std::path::Path;

use grove_history::catalog::{Catalog, CatalogFilter, ScanReport, ScanRequest};
use grove_history::opencode::{Database, OpenCode, read_exports};
use grove_history::{Hints, HistoryReader, SessionLocation, StoreRoot, read_with_turns};
use grove_transcript::{CallState, DamageKind, TranscriptPart, TranscriptSource, TranscriptToolKind, TurnOutcome};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{TestStore, calls, everything, read_file};

/// The tables as far as they are read.
const TABLES: &str = "
    CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT,
        revert TEXT, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER,
        data TEXT);";

type SessionMessages = Vec<(&'static str, Value, Vec<Value>)>;

fn talk() -> SessionMessages {
    let answer = |finish: &str| {
        json!({"role": "assistant", "mode": "build", "modelID": "m", "providerID": "p", "cost": 0.5, "finish": finish,
            "time": {"created": 20, "completed": 30}, "tokens": {"input": 6, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 0}}})
    };
    let bash = json!({"type": "tool", "tool": "bash", "callID": "c1", "state": {"status": "completed", "input": {"command": "ls"},
        "output": "a\n", "title": "list", "metadata": {"exit": 3}, "time": {"start": 21, "end": 22}}});
    let task = json!({"type": "tool", "tool": "task", "callID": "c2", "state": {"status": "completed",
        "input": {"prompt": "go", "description": "walk", "subagent_type": "walker"}, "output": "went", "metadata": {"sessionId": "sub"}}});
    vec![
        (
            "m1",
            json!({"role": "user", "time": {"created": 10}, "agent": "build"}),
            vec![
                json!({"type": "text", "text": "look"}),
                json!({"type": "text", "text": "for the model", "synthetic": true}),
                json!({"type": "file", "mime": "image/png", "filename": "a.png", "url": "file:///w/a.png"}),
            ],
        ),
        (
            "m2",
            answer("tool-calls"),
            vec![json!({"type": "step-start"}), json!({"type": "reasoning", "text": "hm"}), bash, task],
        ),
        ("m3", answer("stop"), vec![json!({"type": "text", "text": "done"}), json!({"type": "hologram", "beam": 1})]),
        ("m4", json!({"role": "user", "time": {"created": 40}}), vec![json!({"type": "text", "text": "again"})]),
        (
            "m5",
            json!({"role": "assistant", "time": {"created": 41}, "error": {"name": "MessageAbortedError", "data": {"message": "x"}}}),
            vec![],
        ),
    ]
}

fn sub() -> SessionMessages {
    vec![
        ("n1", json!({"role": "user", "time": {"created": 22}}), vec![json!({"type": "text", "text": "go"})]),
        (
            "n2",
            json!({"role": "assistant", "time": {"created": 23}, "finish": "stop"}),
            vec![
                // A session that names itself is not included again.
                json!({"type": "tool", "tool": "task", "callID": "x", "state": {"status": "completed", "input": {}, "metadata": {"sessionId": "sub"}}}),
                json!({"type": "text", "text": "went"}),
            ],
        ),
    ]
}

fn database(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database.execute_batch(TABLES).unwrap();
    for (id, parent, title, talk) in [("ses", None, "Look", talk()), ("sub", Some("ses"), "walk", sub())] {
        let sql = "INSERT INTO session VALUES (?1, 'global', ?2, '/w', ?3, '1.18.0', NULL, 5, 50)";
        database.execute(sql, (id, parent, title)).unwrap();
        for (message, data, parts) in talk {
            let created = data["time"]["created"].as_i64();
            let sql = "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)";
            database.execute(sql, (message, id, created, data.to_string())).unwrap();
            for (at, part) in parts.iter().enumerate() {
                let sql = "INSERT INTO part VALUES (?1, ?2, ?3, 0, 0, ?4)";
                database.execute(sql, (format!("{message}-{at}"), message, id, part.to_string())).unwrap();
            }
        }
    }
    database
}

fn files(store: &TestStore) {
    for (id, parent, title, talk) in [("ses", None, "Look", talk()), ("sub", Some("ses"), "walk", sub())] {
        let info = json!({"id": id, "parentID": parent, "title": title, "directory": "/w", "version": "1.18.0", "time": {"created": 5, "updated": 50}});
        store.put(&format!("storage/session/global/{id}.json"), info.to_string());
        for (message, data, parts) in talk {
            store.put(&format!("storage/message/{id}/{message}.json"), data.to_string());
            for (at, part) in parts.iter().enumerate() {
                store.put(&format!("storage/part/{message}/p{at}.json"), part.to_string());
            }
        }
    }
}

fn root(store: &TestStore) -> StoreRoot {
    StoreRoot { source: TranscriptSource::OpenCode, product: "OpenCode".into(), folder: store.path().into() }
}

#[test]
fn a_session_is_read_out_of_the_database_with_its_subagents_and_nothing_is_written() {
    let store = TestStore::new();
    drop(database(&store.path().join("opencode.db")));
    let before = everything(store.path());
    let listing = OpenCode.find(&root(&store), Hints::Read);
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    assert_eq!(listing.sessions.len(), 1, "a subagent's session is no session of its own");
    let location = &listing.sessions[0];
    assert_eq!((location.id.as_str(), location.preview.title.as_deref()), ("ses", Some("Look")));
    let (session, turns) = read_with_turns(&OpenCode, location).unwrap();
    assert_eq!((session.turns, session.turns_completed, session.models.as_slice()), (2, 1, &["m".to_owned()][..]));
    assert_eq!(session.workspace.folders[0].shown(), "/w");
    let turn = &turns[0];
    assert_eq!((turn.message.text.as_str(), turn.context.len(), turn.message.attachments.len()), ("look", 1, 1));
    assert_eq!((turn.text().as_str(), turn.outcome.clone()), ("done", TurnOutcome::Complete));
    let calls = calls(&turn.parts);
    assert_eq!(
        (calls[0].kind, calls[0].exit_code, calls[0].state),
        (TranscriptToolKind::Shell, Some(3), CallState::Complete)
    );
    let chat = calls[1].subagent.as_ref().unwrap();
    assert_eq!((chat.agent.as_deref(), chat.turns[0].text().as_str()), (Some("walker"), "went"));
    let usage = turn.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.cost.as_ref().unwrap().as_f64()), (Some(20), Some(1.0)));
    assert!(matches!(turn.parts.last(), Some(TranscriptPart::Raw(raw)) if raw["type"] == "hologram"));
    assert_eq!(turns[1].outcome, TurnOutcome::Cancelled);
    assert!(session.damage.marks.is_empty(), "{:?}", session.damage);
    assert_eq!(everything(store.path()), before);
}

#[test]
fn what_is_still_in_the_databases_log_is_read_too() {
    let store = TestStore::new();
    let path = store.path().join("opencode.db");
    let open = database(&path);
    open.pragma_update(None, "journal_mode", "WAL").unwrap();
    open.execute("UPDATE session SET title = 'Newer' WHERE id = 'ses'", []).unwrap();
    let before = everything(store.path());
    let mut turns = 0;
    let session = Database::copy(&path).unwrap().read("ses", &mut |_| turns += 1).unwrap();
    assert_eq!((session.title.as_deref(), turns), (Some("Newer"), 2));
    assert_eq!(everything(store.path()), before, "its owner has it open");
    drop(open);
}

#[test]
fn both_forms_of_a_session_come_to_the_same_and_none_is_told_twice() {
    let new = TestStore::new();
    drop(database(&new.path().join("opencode.db")));
    let old = TestStore::new();
    files(&old);
    let read = |store: &TestStore| {
        let found = OpenCode.find(&root(store), Hints::Read);
        let location = found.sessions.iter().find(|found| found.id == "ses").unwrap().clone();
        read_with_turns(&OpenCode, &location).unwrap()
    };
    assert_eq!(read(&new), read(&old));
    files(&new);
    let found = OpenCode.find(&root(&new), Hints::Read).sessions;
    assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["ses"]);
    new.put("storage/session/global/left.json", r#"{"id":"left","title":"Left behind"}"#);
    let found = OpenCode.find(&root(&new), Hints::Read).sessions;
    assert_eq!(found.len(), 2, "a session that was not taken along");
    let listed = |id: &str| found.iter().find(|found| found.id == id).unwrap().preview.listed;
    assert_eq!((listed("ses"), listed("left")), (Some(true), Some(false)), "the program itself does not show it");
}

#[test]
fn sessions_that_were_found_share_one_copy_of_their_database() {
    let store = TestStore::new();
    let path = store.path().join("opencode.db");
    drop(database(&path));
    let found = OpenCode.find(&root(&store), Hints::Skip).sessions;
    let mut apart = SessionLocation::of_file(TranscriptSource::OpenCode, &path).unwrap();
    apart.id = found[0].id.clone();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read_with_turns(&OpenCode, &found[0]).unwrap().1.len(), 2, "it is not copied again");
    assert!(read_with_turns(&OpenCode, &apart).is_err());
}

#[test]
fn the_catalog_has_every_session_of_a_database_and_reads_those_that_changed() {
    let (store, data) = (TestStore::new(), TestStore::new());
    let path = store.path().join("opencode.db");
    let open = database(&path);
    let add = |id: &str| {
        let sql = "INSERT INTO session VALUES (?1, 'global', NULL, '/w', ?1, '1.18.0', NULL, 5, 50)";
        open.execute(sql, [id]).unwrap();
    };
    add("other");
    let catalog = Catalog::open(&data.path().join("history.db")).unwrap();
    let scan =
        || -> ScanReport { catalog.scan(&ScanRequest { roots: vec![root(&store)], keep: None }, &mut |_| {}).unwrap() };
    let listed = || -> Vec<String> {
        let page = catalog.list(&CatalogFilter::default(), None, 10).unwrap();
        page.entries.into_iter().map(|entry| entry.id).collect()
    };
    let report = scan();
    assert_eq!((report.sessions, report.read), (2, 2), "{report:?}");
    assert_eq!(listed(), ["opencode.ses", "opencode.other"]);
    let entry = catalog.get("ses").unwrap().unwrap();
    assert_eq!((entry.session.turns, entry.path.as_path()), (2, path.as_path()));
    assert_eq!(read_with_turns(&OpenCode, &entry.location()).unwrap().1.len(), 2);
    assert_eq!(scan().read, 0);
    open.execute("UPDATE session SET title = 'New', time_updated = 60 WHERE id = 'other'", []).unwrap();
    assert_eq!(scan().read, 1);
    assert_eq!(catalog.get("other").unwrap().unwrap().title(), "New");
    // While the database cannot be read nothing is removed.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, "no database").unwrap();
    let report = scan();
    assert_eq!((report.sessions, report.removed, report.problems.len()), (2, 0, 1), "{report:?}");
    std::fs::write(&path, bytes).unwrap();
    open.execute("DELETE FROM session WHERE id = 'other'", []).unwrap();
    let report = scan();
    assert_eq!((report.sessions, report.removed), (1, 1), "{report:?}");
}

#[test]
fn an_export_of_the_program_comes_to_the_same_as_its_database() {
    let export = |id: &str, parent: Option<&str>, title: &str, talk: SessionMessages| {
        let messages = talk.into_iter().map(|(id, mut info, parts)| {
            info["id"] = id.into();
            json!({"info": info, "parts": parts})
        });
        json!({"info": {"id": id, "parentID": parent, "title": title, "directory": "/w", "version": "1.18.0",
            "time": {"created": 5, "updated": 50}}, "messages": messages.collect::<Vec<_>>()})
    };
    let (one, inner) = (export("ses", None, "Look", talk()), export("sub", Some("ses"), "walk", sub()));
    let store = TestStore::new();
    drop(database(&store.path().join("opencode.db")));
    let found = OpenCode.find(&root(&store), Hints::Read).sessions;
    let mut turns = Vec::new();
    let session = read_exports(format!("{one:#}{inner:#}").as_bytes(), "x", &mut |turn| turns.push(turn)).unwrap();
    assert_eq!((session, turns), read_with_turns(&OpenCode, &found[0]).unwrap());
    let path = store.put("ses.json", one.to_string());
    let (session, turns) = read_file(TranscriptSource::OpenCode, &path);
    assert_eq!((session.source_id.as_str(), turns.len()), ("ses", 2));
    let torn = &one.to_string()[..200];
    let session = read_exports(torn.as_bytes(), "x", &mut |_| {}).unwrap();
    assert!(session.damage.marks.contains(&DamageKind::TornTail), "{:?}", session.damage);
}

#[test]
fn what_is_broken_costs_itself_alone() {
    let store = TestStore::new();
    files(&store);
    store.put("storage/message/ses/m2.json", "{\"role\":\"assis");
    store.put("storage/part/m1/p1.json", "");
    store.put("storage/session/global/ses.json", "{");
    let found = OpenCode.find(&root(&store), Hints::Read);
    let location = found.sessions.iter().find(|found| found.id == "ses").unwrap();
    let (session, turns) = read_with_turns(&OpenCode, location).unwrap();
    assert_eq!((turns.len(), turns[0].text().as_str()), (2, "done"));
    assert_eq!((session.damage.marks.as_slice(), session.damage.count), (&[DamageKind::Damaged][..], 3));
    store.put("opencode.db", "no database");
    let found = OpenCode.find(&root(&store), Hints::Read);
    assert_eq!((found.sessions.len(), found.problems.len()), (1, 2));
}
