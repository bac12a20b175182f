//! Sessions in several stores: the store of new ones, restarts, forks and moves between two.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use grove_agents::scripted::ScriptedAgent;
use grove_core::StoreName;
use grove_fs::{FsError, LocalFs, MemoryFs, Removal, SessionFs};
use grove_host::{Config, Env, Host, Limits};
use grove_storage::{JournalContents, NoJournal, RecordJournal, RetiredStore, StoreError, Stores, recover};
use grove_testkit::ahp::{Client, markdown};
use serde_json::{Value, json};

use crate::harness::{MemoryJournal, TestHost, until};

const URI: &str = "scripted:/s";

async fn say(client: &mut Client, chat: &str, turn: &str, text: &str) {
    client.run_script(chat, turn, json!([{"say": text}])).await;
}

fn said(client: &Client, chat: &str) -> Vec<String> {
    client.chat(chat).turns.iter().map(|turn| markdown(&turn.response_parts)).collect()
}

/// Creates a session in a store, with two turns, one of them with a body of its own.
async fn session_in(host: &TestHost, client: &mut Client, store: &str) -> String {
    client.ask("createSession", json!({"channel": URI, "config": {"grove.store": store}})).await.unwrap();
    let chat = client.follow(URI).await;
    say(client, &chat, "t1", "one").await;
    client.run_script(&chat, "t2", json!([{"part": {"mimeType": "image/png", "base64": "/wAB"}}])).await;
    settled(host, store).await;
    chat
}

fn files<'a>(host: &'a TestHost, store: &str) -> &'a MemoryFs {
    match store {
        "local" => &host.sessions,
        _ => &host.other,
    }
}

/// Waits until the session's folder is written.
async fn settled(host: &TestHost, store: &str) {
    if store != "memory" {
        until("the session is written", async || files(host, store).exists("s/session.json").await.unwrap()).await;
    }
}

async fn migrate(client: &mut Client, store: &str) -> Result<Value, grove_wire::jsonrpc::ErrorObject> {
    client.ask("x-grove/migrate", json!({"channel": URI, "store": store})).await
}

/// The kept stores that contain anything of the session.
async fn lies_in(host: &TestHost) -> Vec<&'static str> {
    let mut stores = Vec::new();
    for (name, fs) in [("local", &host.sessions), ("other", &host.other)] {
        let names = fs.readdir("").await.unwrap();
        if names.iter().any(|folder| folder.starts_with('s')) {
            assert_eq!(names, ["s"], "in {name}");
            assert!(!fs.exists("s/.copying").await.unwrap(), "in {name}");
            stores.push(name);
        }
    }
    stores
}

/// Checks that the session's content is there, and that it continues.
async fn goes_on(client: &mut Client, expected: &[&str]) {
    let chat = client.follow(URI).await;
    assert_eq!(said(client, &chat), expected);
    let content = grove_testkit::ahp::contents(&client.chat(&chat).turns[1].response_parts)[0].uri.clone();
    let read = client.ask("resourceRead", json!({"channel": URI, "uri": content})).await.unwrap();
    assert_eq!(read["data"], "/wAB");
    say(client, &chat, "more", "more").await;
    let tree = client.ask("x-grove/tree", json!({"channel": URI})).await.unwrap();
    assert!(tree["rows"].to_string().contains("more"));
    client.must_agree(&chat).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_lies_in_the_store_that_it_was_made_in_also_after_a_restart() {
    for store in ["local", "other"] {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        session_in(&host, &mut client, store).await;
        assert_eq!(lies_in(&host).await, [store]);
        let file = files(&host, store).read_text("s/session.json").await.unwrap();
        assert_eq!(file.contains(r#""backend": "other""#), store == "other", "{file}");
        assert!(!file.contains("grove.store"), "it is no setting of the agent's: {file}");
        host.kill_and_restart(Config::default()).await;
        let mut late = host.ahp("late").await;
        goes_on(&mut late, &["one", ""]).await;
        // And before its folder was written, from the journal.
        let chat = late.follow(URI).await;
        late.script(&chat, "t9", json!([{"say": "nine"}, {"hang": true}])).await;
        host.kill_and_restart(Config::default()).await;
        let mut last = host.ahp("last").await;
        let chat = last.follow(URI).await;
        assert_eq!(said(&last, &chat)[2], "more");
        assert_eq!(lies_in(&host).await, [store]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_in_memory_is_gone_with_the_host() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    session_in(&host, &mut client, "memory").await;
    assert_eq!(lies_in(&host).await, [""; 0]);
    goes_on(&mut client, &["one", ""]).await;
    for _ in 0..2 {
        host.kill_and_restart(Config::default()).await;
        assert_eq!(host.host.status().await.unwrap().sessions, 0);
        let mut late = host.ahp("late").await;
        let error = late.ask("subscribe", json!({"channel": URI})).await.unwrap_err();
        assert_eq!(error.code, -32001);
        let root = late.ask("subscribe", json!({"channel": "ahp-root://"})).await.unwrap();
        assert_eq!(root["snapshot"]["state"]["activeSessions"], 0);
    }
    // Its id is free.
    let mut late = host.ahp("again").await;
    session_in(&host, &mut late, "local").await;
    host.kill_and_restart(Config::default()).await;
    goes_on(&mut host.ahp("last").await, &["one", ""]).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_not_there_is_refused_before_anything_happens() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let refused = client.ask("createSession", json!({"channel": URI, "config": {"grove.store": "nowhere"}})).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, -32602);
    assert!(refused.message.contains("there are local, memory, other"), "{}", refused.message);
    session_in(&host, &mut client, "local").await;
    for method in ["x-grove/migrate", "x-grove/fork"] {
        let refused = client.ask(method, json!({"channel": URI, "store": "nowhere"})).await.unwrap_err();
        assert_eq!((refused.code, refused.message.contains("nowhere")), (-32602, true), "{}", refused.message);
    }
    assert_eq!(host.host.status().await.unwrap().sessions, 1);
}

#[tokio::test(start_paused = true)]
async fn the_store_of_new_sessions_is_replaced_only_while_none_is_active() {
    let host = TestHost::start(Config::default()).await;
    let other = StoreName::from("other");
    assert_eq!(host.host.set_default_store(&other), Ok(StoreName::default()));
    assert!(matches!(host.host.set_default_store(&"nowhere".into()), Err(StoreError::Unknown { .. })));
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    assert_eq!(host.host.set_default_store(&StoreName::default()), Err(StoreError::SessionsActive(1)));
    settled(&host, "other").await;
    assert_eq!(lies_in(&host).await, ["other"]);
    client.ask("disposeSession", json!({"channel": URI})).await.unwrap();
    assert_eq!(host.host.set_default_store(&StoreName::default()), Ok(other));
}

#[tokio::test(start_paused = true)]
async fn a_fork_lies_in_the_store_that_was_asked_for_else_beside_its_source() {
    for from in ["local", "other", "memory"] {
        for to in ["local", "other", "memory"] {
            let mut host = TestHost::start(Config::default()).await;
            let mut client = host.ahp("a").await;
            session_in(&host, &mut client, from).await;
            let params = match from == to {
                true => json!({"channel": URI}),
                false => json!({"channel": URI, "store": to}),
            };
            let forked = client.ask("x-grove/fork", params).await.unwrap();
            let forked = forked["session"].as_str().unwrap().to_owned();
            let id = forked.rsplit('/').next().unwrap().to_owned();
            let chat = client.follow(&forked).await;
            assert_eq!(said(&client, &chat), ["one", ""], "{from} to {to}");
            say(&mut client, &chat, "t3", "three").await;
            client.ask("x-grove/tree", json!({"channel": forked})).await.unwrap();
            if to == "memory" {
                continue;
            }
            let files = files(&host, to);
            until("the session is written", async || files.exists(&format!("{id}/session.json")).await.unwrap()).await;
            let log = files.read_text(&format!("{id}/events.jsonl")).await.unwrap();
            assert!(log.contains("one") && log.contains("three"), "{from} to {to}");
            assert_eq!(files.readdir(&format!("{id}/content")).await.unwrap().len(), 1);
            // Its source may be disposed.
            client.ask("disposeSession", json!({"channel": URI})).await.unwrap();
            host.kill_and_restart(Config::default()).await;
            let mut late = host.ahp("late").await;
            let chat = late.follow(&forked).await;
            assert_eq!(said(&late, &chat), ["one", "", "three"], "{from} to {to}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_into_another_store_that_was_cut_off_is_finished_at_the_next_start() {
    for steps in 0..6 {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        session_in(&host, &mut client, "local").await;
        host.gate.close_behind(steps);
        let forked = client.ask("x-grove/fork", json!({"channel": URI, "store": "other"})).await.unwrap();
        let forked = forked["session"].as_str().unwrap().to_owned();
        tokio::time::sleep(Duration::from_millis(5)).await;
        host.kill_and_restart(Config::default()).await;
        let mut late = host.ahp("late").await;
        let chat = late.follow(&forked).await;
        assert_eq!(said(&late, &chat), ["one", ""], "{steps}");
        late.ask("x-grove/tree", json!({"channel": forked})).await.unwrap();
        let id = forked.rsplit('/').next().unwrap();
        assert!(host.other.exists(&format!("{id}/events.jsonl")).await.unwrap(), "{steps}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_goes_to_another_store_is_the_same_and_lies_there_alone() {
    for (from, to) in [("local", "other"), ("other", "local"), ("memory", "local"), ("memory", "other")] {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        let chat = session_in(&host, &mut client, from).await;
        if from != "memory" {
            files(&host, from).write_text("s/files/notes/x.md", "a file of the agent's").await.unwrap();
        }
        let moved = migrate(&mut client, to).await.unwrap();
        assert_eq!(moved["store"], to);
        assert!(moved["files"].as_u64().unwrap() >= 3, "{moved}");
        assert_eq!(lies_in(&host).await, [to], "{from} to {to}");
        if from != "memory" {
            assert_eq!(files(&host, to).read_text("s/files/notes/x.md").await.unwrap(), "a file of the agent's");
        }
        // A move to the current store does nothing.
        assert_eq!(migrate(&mut client, to).await.unwrap(), json!({"store": to, "files": 0, "bytes": 0}));
        // Clients see no difference.
        client.must_agree(&chat).await;
        goes_on(&mut client, &["one", ""]).await;
        for name in ["b", "c"] {
            host.kill_and_restart(Config::default()).await;
            let mut late = host.ahp(name).await;
            let chat = late.follow(URI).await;
            assert_eq!(said(&late, &chat), ["one", "", "more"], "{from} to {to}");
            assert_eq!(lies_in(&host).await, [to]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_move_that_is_cut_off_anywhere_leaves_one_session_the_old_or_the_new_one() {
    let mut outcomes = Vec::new();
    for steps in 0.. {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        let chat = session_in(&host, &mut client, "local").await;
        host.sessions.write_text("s/files/x.md", "x").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        host.changes.close_behind(steps);
        let asked = tokio::time::timeout(Duration::from_secs(5), migrate(&mut client, "other")).await;
        host.kill_and_restart(Config::default()).await;
        let store = lies_in(&host).await;
        assert!(store == ["local"] || store == ["other"], "killed after {steps} changes it is in {store:?}");
        if asked.is_ok() {
            assert_eq!(store, ["other"], "what was answered holds");
        }
        let mut late = host.ahp("late").await;
        goes_on(&mut late, &["one", ""]).await;
        assert_eq!(files(&host, store[0]).read_text("s/files/x.md").await.unwrap(), "x");
        // It can move again, wherever it was left.
        for to in ["other", "local", "other"] {
            migrate(&mut late, to).await.unwrap();
            assert_eq!(lies_in(&host).await, [to], "killed behind {steps} changes");
        }
        host.kill_and_restart(Config::default()).await;
        let mut last = host.ahp("last").await;
        last.follow(URI).await;
        assert_eq!(said(&last, &chat), ["one", "", "more"]);
        outcomes.push(store[0]);
        if asked.is_ok() {
            break;
        }
    }
    // First it stays, from some moment on it moves.
    assert!(outcomes.len() > 8 && outcomes.is_sorted() && outcomes[0] == "local", "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_move_into_memory_that_is_cut_off_is_undone_and_a_whole_one_goes_with_the_host() {
    for steps in 0..10 {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        session_in(&host, &mut client, "local").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        host.changes.close_behind(steps);
        let asked = tokio::time::timeout(Duration::from_secs(5), migrate(&mut client, "memory")).await;
        let left = host.sessions.exists("s").await.unwrap();
        host.kill_and_restart(Config::default()).await;
        let mut late = host.ahp("late").await;
        match left {
            true => goes_on(&mut late, &["one", ""]).await,
            false => assert_eq!(host.host.status().await.unwrap().sessions, 0),
        }
        if asked.is_ok() {
            assert!(!left);
            return;
        }
    }
    panic!("it never went");
}

#[tokio::test(start_paused = true)]
async fn a_session_does_not_go_while_a_turn_runs() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = session_in(&host, &mut client, "local").await;
    client.script(&chat, "t3", json!([{"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.is_some()).await;
    let refused = migrate(&mut client, "other").await.unwrap_err();
    assert_eq!(refused.code, -32004, "{}", refused.message);
    assert_eq!(lies_in(&host).await, ["local"]);
}

#[tokio::test(start_paused = true)]
async fn what_has_the_id_of_a_session_in_its_new_store_is_set_aside() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    session_in(&host, &mut client, "other").await;
    client.ask("disposeSession", json!({"channel": URI})).await.unwrap();
    session_in(&host, &mut client, "local").await;
    migrate(&mut client, "other").await.unwrap();
    assert_eq!(host.other.readdir("").await.unwrap(), ["s", "s~1"]);
    assert!(!host.sessions.exists("s").await.unwrap());
}

/// A host on these stores, and the damage that it reports at its start.
async fn host_on(stores: Stores, journal: &[u8]) -> (Host, Vec<String>) {
    let env = Env { stores, ..Env::in_memory() };
    let recovered =
        recover(JournalContents::from_bytes(journal), &env.stores, Config::default().limits.snapshot()).await.unwrap();
    let damage = recovered.damage.clone();
    let host =
        Host::start(env, Config::default(), vec![Arc::new(ScriptedAgent)], Box::new(NoJournal::default()), recovered);
    (host.await.unwrap(), damage)
}

#[tokio::test]
async fn a_copy_that_was_cut_off_before_its_note_was_there_leaves_no_folder() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    session_in(&host, &mut client, "local").await;
    let journal = host.journal.bytes.lock().unwrap().clone();
    // A note is written under another name first, and its folder is there by then.
    host.other.write_file("s/.grove-7-0.tmp", b"{\"mo").await.unwrap();
    host.other.write_file("foreign/notes.md", b"not ours").await.unwrap();
    let stores = Stores::new(Arc::new(host.sessions.clone())).with(&"other".into(), Arc::new(host.other.clone()));
    let (again, damage) = host_on(stores.unwrap(), &journal).await;
    assert_eq!(damage, Vec::<String>::new());
    assert_eq!(again.status().await.unwrap().sessions, 1);
    assert_eq!(host.other.readdir("").await.unwrap(), ["foreign"]);
    assert!(host.sessions.exists("s/session.json").await.unwrap());
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_costs_its_own_sessions_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    session_in(&host, &mut client, "other").await;
    client.ready_session("scripted:/here").await;
    until("the session is written", async || host.sessions.exists("here/session.json").await.unwrap()).await;
    let journal = host.journal.bytes.lock().unwrap().clone();
    let unmounted = Arc::new(LocalFs::new(folder.path().join("unmounted")));
    let stores = Stores::new(Arc::new(host.sessions.clone())).with(&"other".into(), unmounted.clone()).unwrap();
    let (other_host, damage) = host_on(stores.clone(), &journal).await;
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert!(damage[0].contains("the store other cannot be reached"), "{damage:?}");
    assert_eq!(other_host.status().await.unwrap().sessions, 1);
    // Nothing is created in its place.
    let wanted = grove_host::CreateSession {
        uri: "scripted:/new".into(),
        agent: None,
        model: None,
        working_directories: vec![],
        config: None,
        store: Some("other".into()),
        setup: grove_host::AgentSetup::default(),
        active_client: None,
    };
    let refused = other_host.create_session(wanted).await.unwrap_err().to_string();
    assert!(refused.contains("cannot be reached"), "{refused}");
    assert!(matches!(unmounted.stat("").await, Err(FsError::NotFound { .. })));
}

#[tokio::test]
async fn what_the_journal_has_of_a_session_out_of_reach_is_there_when_its_store_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = session_in(&host, &mut client, "other").await;
    client.script(&chat, "t3", json!([{"say": "three"}, {"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.as_ref().is_some_and(|t| !t.response_parts.is_empty())).await;
    let journal = host.journal.bytes.lock().unwrap().clone();
    let unmounted = Arc::new(LocalFs::new(folder.path().join("unmounted")));
    let stores = Stores::new(Arc::new(host.sessions.clone())).with(&"other".into(), unmounted).unwrap();
    // A host with a short replay releases everything it can, and not this.
    let limits = Limits { replay_actions: 1, ..Limits::default() };
    let kept = MemoryJournal { bytes: Arc::new(Mutex::new(journal)), ..MemoryJournal::default() };
    let recovered = recover(JournalContents::from_bytes(&kept.bytes.lock().unwrap()), &stores, limits.snapshot());
    let recovered = recovered.await.unwrap();
    assert!(recovered.state.sessions.is_empty());
    let env = Env { stores, ..Env::in_memory() };
    let config = Config { limits, ..Config::default() };
    let later =
        Host::start(env, config, vec![Arc::new(ScriptedAgent)], Box::new(RecordJournal::new(kept.clone())), recovered)
            .await
            .unwrap();
    let mut client = crate::harness::dialed(&later).await;
    let chat = client.ready_session("scripted:/here").await;
    for turn in ["h1", "h2", "h3"] {
        say(&mut client, &chat, turn, "here").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let journal = kept.bytes.lock().unwrap().clone();
    let stores = Stores::new(Arc::new(host.sessions.clone())).with(&"other".into(), Arc::new(host.other.clone()));
    let recovered =
        recover(JournalContents::from_bytes(&journal), &stores.unwrap(), Config::default().limits.snapshot())
            .await
            .unwrap();
    let session = &recovered.state.sessions[&"s".into()];
    assert_eq!((session.store.as_str(), session.chats[0].active.is_some()), ("other", true));
}

#[tokio::test]
async fn a_session_whose_store_is_not_configured_any_more_is_not_listed_and_says_why() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    session_in(&host, &mut client, "other").await;
    let former = RetiredStore { name: "other".into(), fs: Arc::new(host.other.clone()) };
    let stores = Stores::new(Arc::new(host.sessions.clone())).with_retired(vec![former]);
    let (later, _) = host_on(stores, &[]).await;
    assert_eq!(later.status().await.unwrap().sessions, 0);
    let mut client = crate::harness::dialed(&later).await;
    for (method, params) in [("subscribe", json!({"channel": URI})), ("x-grove/tree", json!({"channel": URI}))] {
        let error = client.ask(method, params).await.unwrap_err();
        assert_eq!(error.code, -32001);
        assert!(error.message.contains("store other") && error.message.contains("not configured"), "{}", error.message);
        let unknown = client.ask(method, json!({"channel": "scripted:/never"})).await.unwrap_err();
        assert!(unknown.message.starts_with("there is no session"), "{}", unknown.message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_was_written_for_another_store_is_left_alone() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    session_in(&host, &mut client, "local").await;
    // A backup, configured as a store.
    for name in ["session.json", "events.jsonl"] {
        let bytes = host.sessions.read_file(&format!("s/{name}")).await.unwrap();
        host.other.write_file(&format!("s/{name}"), &bytes).await.unwrap();
    }
    let stores = Stores::new(Arc::new(host.sessions.clone())).with(&"other".into(), Arc::new(host.other.clone()));
    let journal = host.journal.bytes.lock().unwrap().clone();
    let (later, damage) = host_on(stores.unwrap(), &journal).await;
    assert!(damage.len() == 1 && damage[0].contains("left alone"), "{damage:?}");
    assert_eq!(later.status().await.unwrap().sessions, 1);
    assert!(host.other.exists("s/events.jsonl").await.unwrap() && host.sessions.exists("s").await.unwrap());
    host.other.rm("s", Removal::Everything).await.unwrap();
}
