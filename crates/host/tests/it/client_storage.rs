//! Client-stored sessions: what is published when, what is held, and what is on this machine's disk.

use std::sync::Arc;
use std::time::Duration;

use grove_core::{SessionId, StoreName};
use grove_fs::{MemoryFs, Removal, SessionFs};
use grove_host::{Config, CreateError, CreateSession, DeleteOutcome, ForkError, Limits, ResumeError, StoreError};
use grove_testkit::ahp::{Client, markdown};
use grove_wire::ahp::ToolCallState;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::harness::{TestHost, until};
use crate::storage_client::{self, Failure, Fault, FaultyStorageClient};

const URI: &str = "scripted:/s";

fn lent() -> StoreName {
    StoreName::from("lent")
}

fn wanted(uri: &str) -> CreateSession {
    CreateSession {
        uri: uri.into(),
        provider: None,
        model: None,
        working_directories: vec![],
        config: None,
        store: Some(lent()),
    }
}

/// A host with a storage client that serves session `s`.
async fn host_with(storage_client: &Arc<FaultyStorageClient>) -> TestHost {
    let host = TestHost::start(Config::default()).await;
    host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
    host
}

/// A host with a storage client, with the session, and a client that follows it.
async fn begun() -> (TestHost, Arc<FaultyStorageClient>, Client, String) {
    let storage_client = FaultyStorageClient::new();
    storage_client.open("s");
    let host = host_with(&storage_client).await;
    host.host.create_session(wanted(URI)).await.unwrap();
    let mut client = host.ahp("a").await;
    let chat = client.follow(URI).await;
    (host, storage_client, client, chat)
}

fn said(client: &Client, chat: &str) -> Vec<String> {
    client.chat(chat).turns.iter().map(|turn| markdown(&turn.response_parts)).collect()
}

fn unsaved(client: &Client) -> Option<String> {
    client.session(URI).meta.as_ref()?.get("unsaved")?.as_str().map(str::to_owned)
}

/// Every line of a log, parsed.
fn entries(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(log: &str, what: &str) -> usize {
    log.matches(what).count()
}

/// Restores the storage client. Unanswered calls of the old connection never get an answer.
async fn repaired(host: &TestHost, storage_client: &Arc<FaultyStorageClient>) {
    storage_client.fail(Fault::None);
    host.host.provider_left(&lent()).await.unwrap();
    host.host.provider_returned(&lent(), storage_client.clone()).await.unwrap();
}

/// Waits until the storage client has had no calls for a while.
async fn quiet(storage_client: &FaultyStorageClient) {
    loop {
        let before = storage_client.asked().len();
        tokio::time::sleep(Duration::from_secs(3)).await;
        if storage_client.asked().len() == before {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_at_a_provider_has_its_log_there_when_its_turn_is_over() {
    let (_host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "hello there"}])).await;
    let log = storage_client.log("s").await;
    assert_eq!((count(&log, "hello there"), count(&log, "grove.turnEnd")), (2, 1), "{log}");
    quiet(&storage_client).await;
    let files = storage_client.open("s");
    assert_eq!(
        files.readdir("state").await.unwrap(),
        ["checkpoints", "events.jsonl", "files", "research", "session.json", "workspace.yaml"]
    );
    client.must_agree(&chat).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_over_for_clients_when_its_append_is_answered_and_its_text_is_told_before() {
    let (_host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t0", json!([{"say": "first"}])).await;
    storage_client.fail(Fault::SlowAppends(Duration::from_secs(5)));
    let start = Instant::now();
    client.script(&chat, "t1", json!([{"say": "streamed", "chunks": 4, "delayMs": 10}])).await;
    client.until(|client| client.chat(&chat).active_turn.as_ref().is_some_and(|t| !t.response_parts.is_empty())).await;
    client.until(|client| markdown(&client.active(&chat).response_parts) == "streamed").await;
    assert!(start.elapsed() < Duration::from_secs(1), "text does not wait: {:?}", start.elapsed());
    client.turn_end(&chat, "t1").await;
    let appended =
        storage_client.asked().into_iter().rev().find(|asked| asked.method == "sessionFs.appendFile").unwrap();
    assert!(appended.params["content"].as_str().unwrap().contains("grove.turnEnd"));
    assert!(Instant::now() >= appended.at && start.elapsed() >= Duration::from_secs(5));
    assert_eq!(
        count(&storage_client.log("s").await, "\"turn\":\"t1\""),
        count(&storage_client.log("s").await, "\"turn\":\"t0\"")
    );
    client.must_agree(&chat).await;
}

#[tokio::test(start_paused = true)]
async fn the_next_turn_waits_for_the_one_before_it_to_be_saved() {
    let (_host, storage_client, mut client, chat) = begun().await;
    storage_client.fail(Fault::SlowAppends(Duration::from_secs(2)));
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    client.run_script(&chat, "t2", json!([{"say": "two"}])).await;
    assert_eq!(said(&client, &chat), ["one", "two"]);
    let log = storage_client.log("s").await;
    assert!(log.find("one").unwrap() < log.find("two").unwrap());
    assert_eq!(count(&log, "grove.turnEnd"), 2);
}

async fn asks(client: &mut Client, chat: &str, turn: &str) -> (String, Value) {
    let steps = json!([{"tool": {"name": "make", "output": "it ran", "permission": "shell"}}, {"say": "done"}]);
    client.script(chat, turn, steps).await;
    let call = client.call_that(chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
    let id = call.id().unwrap().to_owned();
    let approve = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": id, "approved": true,
        "confirmed": "user-action"});
    (id, approve)
}

#[tokio::test(start_paused = true)]
async fn a_tool_runs_when_its_permission_is_in_the_log() {
    let (_host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t0", json!([{"say": "before"}])).await;
    let (id, approve) = asks(&mut client, &chat, "t1").await;
    storage_client.fail(Fault::SlowAppends(Duration::from_secs(5)));
    let start = Instant::now();
    client.dispatch(&chat, approve).await;
    client.turn_end(&chat, "t1").await;
    assert!(start.elapsed() >= Duration::from_secs(10), "the record, then the turn");
    let log = storage_client.log("s").await;
    let entries = entries(&log);
    let at = entries.iter().position(|entry| entry["customType"] == "grove.permission").unwrap();
    let record = &entries[at];
    assert_eq!(
        (&record["data"]["turn"], &record["data"]["call"], &record["data"]["tool"], &record["data"]["decision"]),
        (&json!("t1"), &json!(id), &json!("make"), &json!("approved"))
    );
    assert!(record["data"]["at"].is_u64() && record["timestamp"].as_str().unwrap().ends_with('Z'));
    // It is nobody's parent, and precedes the output of the tool.
    assert!(entries.iter().all(|entry| entry["parentId"] != record["id"]));
    assert!(entries[..at].iter().all(|entry| !entry.to_string().contains("it ran")));
    assert!(entries[at..].iter().any(|entry| entry.to_string().contains("it ran")));
    assert_eq!(said(&client, &chat), ["before", "done"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_provider_does_not_take_is_held_told_and_written_once() {
    for fault in [Fault::Errors, Fault::Refusals, Fault::DoneButFailed, Fault::Lost] {
        let (_host, storage_client, mut client, chat) = begun().await;
        client.run_script(&chat, "t0", json!([{"say": "before"}])).await;
        quiet(&storage_client).await;
        client.script(&chat, "t1", json!([{"say": "kept"}, {"sleepMs": 100}, {"say": "more"}])).await;
        client.until(|client| client.chat(&chat).active_turn.is_some()).await;
        client.until(|client| !markdown(&client.active(&chat).response_parts).is_empty()).await;
        storage_client.fail(fault);
        let start = Instant::now();
        client.until(|client| unsaved(client).is_some()).await;
        let reason = unsaved(&client).unwrap();
        let expected = match fault {
            Fault::Refusals => "not today",
            Fault::Lost => "not connected",
            _ => "disk full",
        };
        assert!(reason.contains(expected), "{fault:?}: {reason}");
        assert!(client.chat(&chat).active_turn.is_some(), "{fault:?}: nobody is told of an end that is not kept");
        // Meanwhile nothing new is accepted, and the reason is published. An append that was done all the same is found
        // soon.
        if fault != Fault::DoneButFailed {
            let refused = client.rejected(&chat, grove_testkit::ahp::turn_started("t2", "more")).await;
            assert!(refused.contains(expected), "{refused}");
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        client.barrier().await;
        if fault != Fault::DoneButFailed {
            assert!(client.chat(&chat).active_turn.is_some(), "{fault:?}");
        }
        storage_client.fail(Fault::None);
        client.turn_end(&chat, "t1").await;
        assert!(start.elapsed() < Duration::from_secs(12), "{fault:?}: {:?}", start.elapsed());
        client.until(|client| unsaved(client).is_none()).await;
        client.run_script(&chat, "t2", json!([{"say": "after"}])).await;
        let log = storage_client.log("s").await;
        assert_eq!(count(&log, "grove.turnEnd"), 3, "{fault:?}: nothing lost, nothing doubled: {log}");
        let ids: Vec<_> = entries(&log).into_iter().map(|entry| entry["id"].to_string()).collect();
        let mut unique = ids.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{fault:?}: {ids:?}");
        assert_eq!(said(&client, &chat), ["before", "keptmore", "after"], "{fault:?}");
        client.must_agree(&chat).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_cannot_be_kept_reaches_its_agent_when_it_is() {
    let (_host, storage_client, mut client, chat) = begun().await;
    let (_, approve) = asks(&mut client, &chat, "t1").await;
    quiet(&storage_client).await;
    storage_client.fail(Fault::Errors);
    client.dispatch(&chat, approve).await;
    client.until(|client| unsaved(client).is_some()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count(&storage_client.log("s").await, "grove.permission"), 0);
    let call = client.call_that(&chat, |_| true).await;
    assert!(matches!(call, ToolCallState::PendingConfirmation(_)), "{call:?}");
    storage_client.fail(Fault::None);
    client.turn_end(&chat, "t1").await;
    let log = storage_client.log("s").await;
    assert_eq!((count(&log, "grove.permission"), count(&log, "grove.turnEnd")), (1, 1), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_can_be_cancelled_while_nothing_can_be_saved() {
    for fault in [Fault::Errors, Fault::Hangs] {
        let (host, storage_client, mut client, chat) = begun().await;
        let (_, approve) = asks(&mut client, &chat, "t1").await;
        quiet(&storage_client).await;
        storage_client.fail(fault);
        client.dispatch(&chat, approve).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.dispatch(&chat, json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        repaired(&host, &storage_client).await;
        let turn = client.turn_end(&chat, "t1").await;
        assert_eq!(serde_json::to_value(&turn).unwrap()["state"], "cancelled", "{fault:?}");
        let log = storage_client.log("s").await;
        assert_eq!(count(&log, "grove.turnEnd"), 1, "{fault:?}: {log}");
        assert_eq!(count(&log, "it ran"), 1, "{fault:?}: only the prompt has it, the agent was stopped: {log}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_goes_and_comes_back_gets_everything_in_its_order() {
    let (host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t0", json!([{"say": "before"}])).await;
    client.script(&chat, "t1", json!([{"say": "one"}, {"sleepMs": 1000}, {"say": "two"}])).await;
    client.until(|client| client.chat(&chat).active_turn.as_ref().is_some_and(|t| !t.response_parts.is_empty())).await;
    host.host.provider_left(&lent()).await.unwrap();
    client.until(|client| unsaved(client).is_some()).await;
    let refused = client.rejected(&chat, grove_testkit::ahp::turn_started("t2", "x")).await;
    assert!(refused.contains("no storage client is connected"), "{refused}");
    storage_client.open("n");
    let refused = host.host.create_session(wanted("scripted:/n")).await.unwrap_err();
    assert!(matches!(refused, CreateError::Store(StoreError::Away(_))), "{refused}");
    let refused = host.host.resume_client_stored(&lent(), &"n".into()).await.unwrap_err();
    assert!(matches!(refused, ResumeError::Store(StoreError::Away(_))), "{refused}");
    tokio::time::sleep(Duration::from_secs(30)).await;
    client.barrier().await;
    assert!(client.chat(&chat).active_turn.is_some(), "its end is not told");
    let calls = storage_client.asked().len();
    host.host.provider_returned(&lent(), storage_client.clone()).await.unwrap();
    client.turn_end(&chat, "t1").await;
    client.until(|client| unsaved(client).is_none()).await;
    assert!(storage_client.asked().len() > calls);
    assert_eq!(said(&client, &chat), ["before", "onetwo"]);
    assert_eq!(count(&storage_client.log("s").await, "grove.turnEnd"), 2);
    client.run_script(&chat, "t2", json!([{"say": "after"}])).await;
    // A session without unsaved changes is free at once.
    quiet(&storage_client).await;
    host.host.provider_left(&lent()).await.unwrap();
    client.until(|client| unsaved(client).is_some()).await;
    host.host.provider_returned(&lent(), storage_client.clone()).await.unwrap();
    client.until(|client| unsaved(client).is_none()).await;
    client.must_agree(&chat).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_handler_is_not_created_and_never_elsewhere() {
    let storage_client = FaultyStorageClient::new();
    let host = host_with(&storage_client).await;
    let refused = host.host.create_session(wanted(URI)).await.unwrap_err();
    assert!(matches!(refused, CreateError::Provider { .. }), "{refused}");
    assert!(refused.to_string().contains("No session found for sessionId: s"), "{refused}");
    assert_eq!(host.host.status().await.unwrap().sessions, 0);
    assert_eq!(host.sessions.readdir("").await.unwrap(), [""; 0]);
    assert_eq!(host.host.client_storage(&lent()), []);
    let refused = host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap_err();
    assert!(matches!(refused, ResumeError::NoAnswer { .. }), "{refused}");
    // The same id can be created once there is one, and not twice.
    storage_client.open("s");
    host.host.create_session(wanted(URI)).await.unwrap();
    let again = host.host.create_session(wanted(URI)).await.unwrap_err();
    assert!(matches!(again, CreateError::Exists(_)), "{again}");
    host.host.dispose_session(&URI.into()).await.unwrap();
    let again = host.host.create_session(wanted(URI)).await.unwrap_err();
    assert!(matches!(again, CreateError::Kept(_)), "{again}");
    let refused = host
        .host
        .attach_storage_client(&"local".into(), storage_client::config(), storage_client.clone())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("already"), "{refused}");
}

/// Everything on this host's disk.
async fn disk(host: &TestHost) -> Vec<u8> {
    async fn all(fs: &MemoryFs, folder: String, bytes: &mut Vec<u8>) {
        for entry in fs.readdir_with_types(&folder).await.unwrap() {
            let path = if folder.is_empty() { entry.name.clone() } else { format!("{folder}/{}", entry.name) };
            bytes.extend(path.as_bytes());
            match entry.kind {
                grove_fs::FileKind::Folder => Box::pin(all(fs, path, bytes)).await,
                _ => bytes.extend(fs.read_file(&path).await.unwrap()),
            }
        }
    }
    let mut bytes = host.journal.bytes.lock().unwrap().clone();
    for fs in [&host.sessions, &host.other, &host.register] {
        all(fs, String::new(), &mut bytes).await;
    }
    bytes
}

#[tokio::test(start_paused = true)]
async fn the_disk_has_no_word_of_an_entrusted_session_also_after_a_clean_stop() {
    let (mut host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "turn-id", json!([{"say": "secret-answer"}, {"title": "secret-title"}])).await;
    let (_, approve) = asks(&mut client, &chat, "t2").await;
    client.dispatch(&chat, approve).await;
    client.turn_end(&chat, "t2").await;
    let plan = json!({"channel": URI, "content": "secret-plan"});
    client.ask("x-grove/workspace/plan/update", plan).await.ok();
    client.run_script(&chat, "t3", json!([{"say": "secret ".repeat(20_000)}])).await;
    quiet(&storage_client).await;
    let fork = host.host.fork_client_stored(&lent(), &"s".into(), None, Some("secret-fork".into())).await.unwrap();
    host.host.stop().await;
    let check = async |host: &TestHost, when: &str| {
        let disk = String::from_utf8_lossy(&disk(host).await).into_owned();
        for word in ["secret", "hello", "/state", "/virtual", "make", "it ran", "turn-id", "scripted:/s"] {
            assert!(!disk.contains(word), "{when}: {word} is in {disk}");
        }
        assert!(disk.contains(fork.as_str()), "what is known is known");
    };
    check(&host, "after a stop").await;
    assert!(storage_client.log("s").await.contains("secret-answer"));
    host.kill_and_restart(Config::default()).await;
    assert_eq!(host.host.status().await.unwrap().sessions, 0, "recovery knows nothing of it");
    check(&host, "after a restart").await;
    assert_eq!(host.host.client_storage(&lent()).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_resumed_with_its_conversation_after_a_kill_and_on_another_host() {
    let (mut host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "one"}, {"title": "Named"}])).await;
    client.run_script(&chat, "t2", json!([{"say": "two"}])).await;
    quiet(&storage_client).await;
    let rows = host.host.client_storage(&lent());
    assert_eq!((rows.len(), rows[0].id.as_str(), rows[0].turns), (1, "s", 2));
    for round in 0..2 {
        match round {
            0 => host.kill_and_restart(Config::default()).await,
            // A host that has never heard of it.
            _ => host = TestHost::start(Config::default()).await,
        }
        host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
        assert_eq!(host.host.client_storage(&lent()).len(), 1 - round);
        assert_eq!(host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap().as_str(), URI);
        host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
        let mut client = host.ahp("late").await;
        let chat = client.follow(URI).await;
        assert_eq!(said(&client, &chat)[..2], ["one", "two"]);
        assert_eq!(client.session(URI).title, "Named");
        client.run_script(&chat, &format!("more{round}"), json!([{"say": "more"}])).await;
        assert_eq!(host.host.client_storage(&lent())[0].turns, 3 + round as u64);
        client.must_agree(&chat).await;
        quiet(&storage_client).await;
    }
    assert_eq!(count(&storage_client.log("s").await, "grove.turnEnd"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_was_taken_is_there_after_a_kill_in_the_middle_of_its_turn() {
    let (mut host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    client.script(&chat, "t2", json!([{"say": "half"}, {"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.as_ref().is_some_and(|t| !t.response_parts.is_empty())).await;
    host.kill_and_restart(Config::default()).await;
    host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
    host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
    let mut client = host.ahp("late").await;
    let chat = client.follow(URI).await;
    client.until(|client| client.chat(&chat).turns.len() == 2).await;
    let turn = serde_json::to_value(&client.chat(&chat).turns[1]).unwrap();
    assert!(turn["message"].to_string().contains("half"), "{turn}");
    assert_eq!(turn["state"], "error");
    client.run_script(&chat, "t3", json!([{"say": "three"}])).await;
    assert_eq!(count(&storage_client.log("s").await, "grove.turnEnd"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_after_a_restart_and_a_resume_gets_a_snapshot() {
    let (mut host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    client.cut().await;
    let mut other = host.ahp("b").await;
    let same = other.follow(URI).await;
    other.run_script(&same, "t2", json!([{"say": "two"}])).await;
    quiet(&storage_client).await;
    host.kill_and_restart(Config::default()).await;
    host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
    host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
    host.bring_back_ahp(&mut client).await;
    assert_eq!(said(&client, &chat), ["one", "two"]);
    client.must_agree(&chat).await;
}

#[tokio::test(start_paused = true)]
async fn damage_at_the_provider_costs_what_is_damaged_or_is_told() {
    let whole = {
        let (_host, storage_client, mut client, chat) = begun().await;
        client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
        client.run_script(&chat, "t2", json!([{"say": "two"}])).await;
        quiet(&storage_client).await;
        let files = storage_client.open("s");
        (files.read_file("state/events.jsonl").await.unwrap(), files.read_file("state/session.json").await.unwrap())
    };
    let (log, file) = whole;
    let resumed = async |log: Option<Vec<u8>>, file: Option<Vec<u8>>| {
        let storage_client = FaultyStorageClient::new();
        let files = storage_client.open("s");
        for (name, bytes) in [("state/events.jsonl", log), ("state/session.json", file)] {
            if let Some(bytes) = bytes {
                files.write_file(name, &bytes).await.unwrap();
            }
        }
        let host = host_with(&storage_client).await;
        match host.host.resume_client_stored(&lent(), &"s".into()).await {
            Err(error) => Err(error),
            Ok(_) => {
                let mut client = host.ahp("a").await;
                let chat = client.follow(URI).await;
                let before = said(&client, &chat);
                client.run_script(&chat, "t9", json!([{"say": "nine"}])).await;
                quiet(&storage_client).await;
                // Whatever was there before, the current files are read again.
                let again = host_with(&storage_client).await;
                again.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
                let mut late = again.ahp("late").await;
                let chat = late.follow(URI).await;
                assert_eq!(said(&late, &chat).last().unwrap(), "nine");
                Ok(before)
            }
        }
    };
    let with = |end: &[u8]| Some([log.as_slice(), end].concat());
    let file = || Some(file.clone());
    let both = vec!["one".to_owned(), "two".to_owned()];
    assert_eq!(resumed(with(b"{\"type\":\"mess"), file()).await.unwrap(), both, "a torn end");
    assert_eq!(resumed(with(&[0; 64]), file()).await.unwrap(), both, "NULs");
    assert_eq!(resumed(with(b"no json at all\n"), file()).await.unwrap(), both, "garbage");
    let leaf =
        entries(std::str::from_utf8(&log).unwrap()).into_iter().rfind(|entry| entry["type"] == "message").unwrap();
    let mut unknown = json!({"type": "of tomorrow", "id": "zzzzzzzz", "parentId": leaf["id"],
        "timestamp": "2026-01-01T00:00:00.000Z"});
    assert_eq!(resumed(with(format!("{unknown}\n").as_bytes()), file()).await.unwrap(), both, "an unknown type");
    unknown["parentId"] = Value::Null;
    assert_eq!(resumed(with(format!("{unknown}\n").as_bytes()), file()).await.unwrap(), [""; 0], "the leaf elsewhere");
    assert_eq!(resumed(Some(log[..log.len() - 1].to_vec()), file()).await.unwrap(), both, "no line feed");
    assert_eq!(resumed(with(b""), None).await.unwrap(), both, "without session.json");
    let refused = resumed(None, file()).await.unwrap_err();
    assert!(matches!(refused, ResumeError::LostTurns(_)), "{refused}");
    let refused = resumed(with(b""), Some(b"{".to_vec())).await.unwrap_err();
    assert!(matches!(&refused, ResumeError::Unreadable { file, .. } if file == "session.json"), "{refused}");
    let refused = resumed(Some(b"what is this\n".to_vec()), file()).await.unwrap_err();
    assert!(matches!(&refused, ResumeError::Unreadable { file, .. } if file == "events.jsonl"), "{refused}");
    let refused = resumed(None, None).await.unwrap_err();
    assert!(matches!(refused, ResumeError::NotThere(_)), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_a_record_until_it_is_resumed_and_then_lies_under_its_own_id() {
    let (mut host, storage_client, mut client, chat) = begun().await;
    let source = SessionId::from("s");
    let empty = host.host.fork_client_stored(&lent(), &source, None, None).await.unwrap_err();
    assert!(matches!(empty, ForkError::Empty(_)), "{empty}");
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    client.run_script(&chat, "t2", json!([{"say": "two"}])).await;
    let log = storage_client.log("s").await;
    let second = entries(&log).into_iter().filter(|entry| entry["message"]["role"] == "user").nth(1).unwrap();
    let second = second["id"].as_str().unwrap().to_owned();
    let whole = host.host.fork_client_stored(&lent(), &source, None, Some("My fork".into())).await.unwrap();
    let part = host.host.fork_client_stored(&lent(), &source, Some(second), None).await.unwrap();
    let unknown = host.host.fork_client_stored(&lent(), &source, Some("nope".into()), None).await.unwrap_err();
    assert!(unknown.to_string().contains("nope"), "{unknown}");
    client.run_script(&chat, "t3", json!([{"say": "three"}])).await;
    quiet(&storage_client).await;
    let forked: Vec<_> = host.host.client_storage(&lent()).into_iter().filter_map(|row| row.forked_from).collect();
    assert_eq!(forked, ["s".into(), "s".into()]);
    host.kill_and_restart(Config::default()).await;
    host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
    // Neither the fork nor its source is available if the storage client does not serve them.
    let refused = host.host.resume_client_stored(&lent(), &whole).await.unwrap_err();
    assert!(matches!(refused, ResumeError::NoAnswer { .. }), "{refused}");
    storage_client.open(whole.as_str());
    storage_client.open(part.as_str());
    storage_client.close("s");
    let refused = host.host.resume_client_stored(&lent(), &whole).await.unwrap_err();
    assert!(matches!(&refused, ResumeError::Source { source_id, .. } if *source_id == source), "{refused}");
    assert!(refused.to_string().contains("resume that one first"), "{refused}");
    storage_client.open("s");
    for (id, expected, title) in
        [(&whole, &["one", "two"][..], "My fork"), (&part, &["one"], "script:[{\"say\":\"one\"}] (fork)")]
    {
        let uri = host.host.resume_client_stored(&lent(), id).await.unwrap();
        let mut client = host.ahp(id.as_str()).await;
        let chat = client.follow(uri.as_str()).await;
        assert_eq!(said(&client, &chat), expected);
        assert!(client.session(uri.as_str()).title.starts_with(title), "{}", client.session(uri.as_str()).title);
        client.run_script(&chat, "mine", json!([{"say": "mine alone"}])).await;
        assert!(storage_client.log(id.as_str()).await.contains("mine alone"));
    }
    assert!(!storage_client.log("s").await.contains("mine alone"));
    quiet(&storage_client).await;
    // It is written once: the second time it is read.
    let before = storage_client.log(whole.as_str()).await;
    host.kill_and_restart(Config::default()).await;
    host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
    host.host.resume_client_stored(&lent(), &whole).await.unwrap();
    quiet(&storage_client).await;
    assert_eq!(storage_client.log(whole.as_str()).await, before);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_session_takes_its_files_and_its_row() {
    let (host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    quiet(&storage_client).await;
    assert_eq!(host.host.delete_client_stored(&lent(), &"s".into()).await.unwrap(), DeleteOutcome::Files);
    let files = storage_client.open("s");
    assert_eq!(files.readdir("state").await.unwrap_or_default(), [""; 0]);
    assert_eq!(host.host.client_storage(&lent()), []);
    assert_eq!(host.host.status().await.unwrap().sessions, 0);
    host.host.delete_client_stored(&lent(), &"s".into()).await.unwrap_err();
    // Its id is free.
    host.host.create_session(wanted(URI)).await.unwrap();
    storage_client.close("s");
    let deleted = host.host.delete_client_stored(&lent(), &"s".into()).await.unwrap();
    assert!(matches!(&deleted, DeleteOutcome::RowOnly(reason) if reason.contains("No session found")), "{deleted:?}");
    assert_eq!(host.host.client_storage(&lent()), []);
}

#[tokio::test(start_paused = true)]
async fn a_slow_session_of_a_provider_does_not_hold_up_another() {
    let (host, storage_client, mut client, chat) = begun().await;
    storage_client.open("z");
    host.host.create_session(wanted("scripted:/z")).await.unwrap();
    let other = client.follow("scripted:/z").await;
    storage_client.fail(Fault::SlowAppends(Duration::from_secs(5)));
    let start = Instant::now();
    client.script(&chat, "t1", json!([{"say": "one"}])).await;
    client.script(&other, "t1", json!([{"say": "two"}])).await;
    client.turn_end(&chat, "t1").await;
    client.turn_end(&other, "t1").await;
    // Each appends a header and a turn: twice five seconds, concurrently.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_not_told_where_works_where_its_provider_says() {
    let (host, storage_client, client, _chat) = begun().await;
    let state = serde_json::to_value(client.session(URI)).unwrap();
    assert!(state.to_string().contains("/virtual/project"), "{state}");
    let mut other = host.ahp("b").await;
    other.ask("resourceList", json!({"channel": "ahp-root://", "uri": "file:///virtual"})).await.unwrap_err();
    for asked in storage_client.asked() {
        for path in ["path", "src", "dest"].into_iter().filter_map(|name| asked.params[name].as_str()) {
            assert!(path == "/state" || path.starts_with("/state/"), "{} {}", asked.method, asked.params);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_entrusted_session_stays_where_it_is() {
    let (host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    for (method, store) in [("x-grove/migrate", "local"), ("x-grove/fork", "local"), ("x-grove/fork", "lent")] {
        let refused = client.ask(method, json!({"channel": URI, "store": store})).await.unwrap_err();
        assert!(refused.message.contains("the store of a storage client"), "{method}: {}", refused.message);
    }
    assert!(host.host.set_default_store(&lent()).is_err());
    quiet(&storage_client).await;
    let busy =
        host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap_err();
    assert!(busy.to_string().contains("sessions are active"), "{busy}");
    assert_eq!(host.sessions.readdir("").await.unwrap(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn large_output_and_large_messages_lie_at_the_provider() {
    let storage_client = FaultyStorageClient::new();
    let files = storage_client.open("s");
    let host = host_with(&storage_client).await;
    host.host.create_session(wanted(URI)).await.unwrap();
    let mut client = host.ahp("a").await;
    let chat = client.follow(URI).await;
    client.start_turn(&chat, "t1", &"long ".repeat(20_000)).await;
    client.call_that(&chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
    client.dispatch(&chat, json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})).await;
    client.turn_end(&chat, "t1").await;
    let pasted = files.readdir("state/files").await.unwrap();
    assert_eq!(pasted.len(), 1);
    assert_eq!(files.read_file(&format!("state/files/{}", pasted[0])).await.unwrap().len(), 100_000);
    let turn = serde_json::to_value(&client.chat(&chat).turns[0]).unwrap().to_string();
    assert!(turn.contains(&format!("/state/files/{}", pasted[0])), "{turn}");
    // The result of a client's tool, as its agent gets it.
    let active = json!({"clientId": "a", "tools": [{"name": "look"}]});
    client.dispatch(URI, json!({"type": "session/activeClientSet", "activeClient": active})).await;
    client.script(&chat, "t2", json!([{"clientTool": {"name": "look"}}])).await;
    client.call_that(&chat, |call| matches!(call, ToolCallState::Running(_))).await;
    let text = "0123456789".repeat(10_000);
    let result = json!({"success": true, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": text}]});
    let complete =
        json!({"type": "chat/toolCallComplete", "turnId": "t2", "toolCallId": "t2-call-0", "result": result});
    client.dispatch(&chat, complete).await;
    let said = markdown(&client.turn_end(&chat, "t2").await.response_parts);
    let spilled = files.readdir("state/temp").await.unwrap();
    assert!(said.contains(&format!("All of it is in /state/temp/{}", spilled[0])), "{said}");
    assert_eq!(files.read_text(&format!("state/temp/{}", spilled[0])).await.unwrap(), text);
    quiet(&storage_client).await;
    host.host.stop().await;
    assert_eq!(files.readdir("state/temp").await.unwrap_or_default(), [""; 0], "it goes with the session");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_tries_once_more_and_gives_up() {
    for fault in [Fault::None, Fault::Errors, Fault::Hangs] {
        let storage_client = FaultyStorageClient::new();
        storage_client.open("s");
        let limits = Limits { stop_grace: Duration::from_secs(2), ..Limits::default() };
        let host = TestHost::start(Config { limits, ..Config::default() }).await;
        host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
        host.host.create_session(wanted(URI)).await.unwrap();
        let mut client = host.ahp("a").await;
        let chat = client.follow(URI).await;
        client.run_script(&chat, "t0", json!([{"say": "zero"}])).await;
        client.script(&chat, "t1", json!([{"say": "half"}, {"hang": true}])).await;
        client
            .until(|client| client.chat(&chat).active_turn.as_ref().is_some_and(|t| !t.response_parts.is_empty()))
            .await;
        quiet(&storage_client).await;
        storage_client.fail(fault);
        let start = Instant::now();
        host.host.stop().await;
        assert!(start.elapsed() < Duration::from_secs(30), "{fault:?}: {:?}", start.elapsed());
        let ends = count(&storage_client.log("s").await, "grove.turnEnd");
        assert_eq!(ends, if fault == Fault::None { 2 } else { 1 }, "{fault:?}");
        // Accepted changes are not lost: they are saved later.
        storage_client.fail(Fault::None);
        let again = host_with(&storage_client).await;
        again.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
        let mut late = again.ahp("late").await;
        let chat = late.follow(URI).await;
        late.until(|client| client.chat(&chat).turns.len() == 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn disposing_a_session_leaves_it_whole_at_its_provider() {
    for fault in [Fault::None, Fault::Errors, Fault::Hangs] {
        let (host, storage_client, mut client, chat) = begun().await;
        client.run_script(&chat, "t0", json!([{"say": "zero"}])).await;
        client.script(&chat, "t1", json!([{"say": "half"}, {"hang": true}])).await;
        client
            .until(|client| client.chat(&chat).active_turn.as_ref().is_some_and(|t| !t.response_parts.is_empty()))
            .await;
        quiet(&storage_client).await;
        storage_client.fail(fault);
        assert!(host.host.dispose_session(&URI.into()).await.unwrap());
        assert_eq!(host.host.status().await.unwrap().sessions, 0, "{fault:?}");
        repaired(&host, &storage_client).await;
        host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
        let chat = client.follow(URI).await;
        client.until(|client| client.chat(&chat).turns.len() == 2).await;
        assert_eq!(said(&client, &chat)[0], "zero");
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_written_refuses_the_turn_that_needs_it() {
    let (_host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t0", json!([{"say": "zero"}])).await;
    quiet(&storage_client).await;
    storage_client.fail(Fault::Errors);
    let refused = client.rejected(&chat, grove_testkit::ahp::turn_started("t1", "hello")).await;
    assert!(refused.contains("disk full"), "{refused}");
    assert!(client.chat(&chat).active_turn.is_none());
    storage_client.fail(Fault::None);
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    assert_eq!(said(&client, &chat), ["zero", "one"]);
    storage_client.open("s").rm("state/session.json", Removal::One).await.unwrap();
    client.run_script(&chat, "t2", json!([{"say": "two"}])).await;
    client.must_agree(&chat).await;
}

/// Runs one turn with a permission and one without, with a client that retries refused actions.
async fn persistently(client: &mut Client, chat: &str) {
    let steps = json!([{"tool": {"name": "make", "output": "ok", "permission": "shell"}}, {"say": "done"}]);
    for (turn, steps) in [("t1", steps), ("t2", json!([{"say": "two"}]))] {
        let text = format!("script:{steps}");
        until("the turn is taken", async || {
            let seq = client.start_turn(chat, turn, &text).await;
            client.answer_to(seq).await.rejection_reason.is_none()
        })
        .await;
        if turn == "t1" {
            let call = client.call_that(chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
            let approve = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": call.id().unwrap(),
                "approved": true, "confirmed": "user-action"});
            until("the answer is taken", async || {
                let seq = client.dispatch(chat, approve.clone()).await;
                client.answer_to(seq).await.rejection_reason.is_none()
            })
            .await;
        }
        client.turn_end(chat, turn).await;
    }
}

/// The number of calls for that, and the resulting log.
async fn undisturbed() -> (usize, String) {
    let (_host, storage_client, mut client, chat) = begun().await;
    quiet(&storage_client).await;
    let before = storage_client.asked().len();
    persistently(&mut client, &chat).await;
    quiet(&storage_client).await;
    let calls = storage_client.asked().len() - before;
    assert!(calls > 10, "{calls}");
    (calls, storage_client.log("s").await)
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_killed_at_any_call_has_lost_nothing_that_a_client_saw() {
    let (calls, _) = undisturbed().await;
    for failure in [Failure::Silent, Failure::DoneAndSilent] {
        for number in 0..calls {
            let (mut host, storage_client, mut client, chat) = begun().await;
            quiet(&storage_client).await;
            storage_client.fail(Fault::Once(number, failure));
            // It completes if nobody waits for the failed call.
            tokio::time::timeout(Duration::from_secs(10), persistently(&mut client, &chat)).await.ok();
            let seen = said(&client, &chat);
            let taken = client.chat(&chat).active_turn.as_ref().map(|turn| turn.id.clone());
            storage_client.fail(Fault::None);
            host.kill_and_restart(Config::default()).await;
            host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
            host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
            let mut late = host.ahp("late").await;
            let chat = late.follow(URI).await;
            late.until(|late| late.chat(&chat).active_turn.is_none()).await;
            assert_eq!(said(&late, &chat)[..seen.len()], seen, "call {number}, {failure:?}");
            let ids: Vec<_> = late.chat(&chat).turns.iter().map(|turn| turn.id.clone()).collect();
            assert!(taken.is_none_or(|taken| ids.contains(&taken)), "call {number}, {failure:?}: {ids:?}");
            late.run_script(&chat, "t9", json!([{"say": "nine"}])).await;
            late.must_agree(&chat).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whichever_call_fails_nothing_is_lost_or_doubled() {
    let (calls, whole) = undisturbed().await;
    let silent = [Failure::Silent, Failure::DoneAndSilent];
    for failure in [Failure::NotDone, Failure::Done, Failure::DoneAndLost].into_iter().chain(silent) {
        for number in 0..calls {
            let (_host, storage_client, mut client, chat) = begun().await;
            quiet(&storage_client).await;
            storage_client.fail(Fault::Once(number, failure));
            persistently(&mut client, &chat).await;
            client.until(|client| unsaved(client).is_none()).await;
            quiet(&storage_client).await;
            let log = storage_client.log("s").await;
            let kinds = |log: &str| -> Vec<String> {
                let entries = entries(log).into_iter();
                entries
                    .map(|entry| format!("{}{}{}", entry["type"], entry["customType"], entry["message"]["role"]))
                    .collect()
            };
            assert_eq!(kinds(&log), kinds(&whole), "call {number}, {failure:?}");
            client.must_agree(&chat).await;
            let again = host_with(&storage_client).await;
            again.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
            let mut late = again.ahp("late").await;
            let chat = late.follow(URI).await;
            assert_eq!(said(&late, &chat), ["done", "two"], "call {number}, {failure:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_bytes_is_kept_by_a_provider_that_takes_text_alone() {
    let (host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"part": {"mimeType": "image/png", "base64": "/wAB"}}])).await;
    quiet(&storage_client).await;
    let uri = grove_testkit::ahp::contents(&client.chat(&chat).turns[0].response_parts)[0].uri.clone();
    let read = client.ask("resourceRead", json!({"channel": URI, "uri": uri})).await.unwrap();
    assert_eq!(read["data"], "/wAB");
    // It is copied with a fork.
    let fork = host.host.fork_client_stored(&lent(), &"s".into(), None, None).await.unwrap();
    let files = storage_client.open(fork.as_str());
    host.host.resume_client_stored(&lent(), &fork).await.unwrap();
    assert_eq!(
        files.readdir("state/content").await.unwrap(),
        storage_client.open("s").readdir("state/content").await.unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn a_way_through_the_tree_is_kept_by_the_provider() {
    for fault in [Fault::None, Fault::Errors, Fault::DoneButFailed] {
        let (host, storage_client, mut client, chat) = begun().await;
        client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
        client.run_script(&chat, "t2", json!([{"say": "two"}])).await;
        quiet(&storage_client).await;
        storage_client.fail(fault);
        client.dispatch(&chat, json!({"type": "chat/truncated", "turnId": "t1"})).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        storage_client.fail(Fault::None);
        client.until(|client| client.chat(&chat).turns.len() == 1 && unsaved(client).is_none()).await;
        client.run_script(&chat, "t3", json!([{"say": "three"}])).await;
        assert_eq!(said(&client, &chat), ["one", "three"], "{fault:?}");
        quiet(&storage_client).await;
        drop(host);
        let again = host_with(&storage_client).await;
        again.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
        let mut late = again.ahp("late").await;
        let chat = late.follow(URI).await;
        assert_eq!(said(&late, &chat), ["one", "three"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_at_a_provider_does_not_go_to_another_host() {
    let (_host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "hello there"}])).await;
    quiet(&storage_client).await;
    client.barrier().await;
    let (log, before) = (storage_client.log("s").await, client.session(URI).clone());
    let to = json!({"host": "lab", "session": URI, "stamp": "x"});
    for (method, mut params) in
        [("files", json!({})), ("read", json!({"path": "events.jsonl", "offset": 0})), ("leave", json!({"to": to}))]
    {
        params["channel"] = json!(URI);
        let refused = client.ask(&format!("x-grove/handover/{method}"), params).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{method}: {refused}");
        assert!(refused.message.contains("this session is stored by a client"), "{refused}");
        assert!(refused.message.contains("export its conversation"), "{refused}");
    }
    quiet(&storage_client).await;
    client.barrier().await;
    assert_eq!((storage_client.log("s").await, client.session(URI).clone()), (log, before), "nothing has changed");
    client.run_script(&chat, "t2", json!([{"say": "it goes on"}])).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_goes_on_after_an_append_that_is_never_answered() {
    for failure in [Failure::Silent, Failure::DoneAndSilent] {
        let (_host, storage_client, mut client, chat) = begun().await;
        client.run_script(&chat, "t0", json!([{"say": "before"}])).await;
        quiet(&storage_client).await;
        // The log gets a turn when it is over.
        storage_client.fail_next_append(failure);
        client.script(&chat, "t1", json!([{"say": "kept"}])).await;
        let start = Instant::now();
        client.until(|client| unsaved(client).is_some()).await;
        client.turn_end(&chat, "t1").await;
        // The call's own timeout, and a retry.
        assert!(start.elapsed() < Duration::from_secs(20), "{failure:?}: {:?}", start.elapsed());
        client.run_script(&chat, "t2", json!([{"say": "after"}])).await;
        let log = storage_client.log("s").await;
        assert_eq!(count(&log, "grove.turnEnd"), 3, "{failure:?}: nothing lost, nothing doubled: {log}");
        assert_eq!(said(&client, &chat), ["before", "kept", "after"], "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_turn_of_a_session_costs_few_calls_of_its_provider() {
    let (_host, storage_client, mut client, chat) = begun().await;
    quiet(&storage_client).await;
    let created = storage_client.asked().len();
    client.run_script(&chat, "t1", json!([{"say": "hello"}])).await;
    quiet(&storage_client).await;
    let first = storage_client.asked().len();
    client.run_script(&chat, "t2", json!([{"say": "again"}])).await;
    quiet(&storage_client).await;
    let asked: Vec<_> =
        storage_client.asked().iter().map(|asked| format!("{} {}", asked.method, asked.params["path"])).collect();
    // It was 38 with the creation before, and 12 for each later turn.
    assert!(first <= 28, "{first} with the creation: {:#?}", &asked[..first]);
    assert!(asked.len() - first <= 10, "the second: {:#?}", &asked[first..]);
    assert!(created < first);
}

#[tokio::test(start_paused = true)]
async fn what_a_storage_client_hands_back_allows_nothing_and_opens_no_folder_but_its_own() {
    let (mut host, storage_client, mut client, chat) = begun().await;
    client.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    quiet(&storage_client).await;
    host.kill_and_restart(Config::default()).await;
    let files = storage_client.open("s");
    let mut file: Value = serde_json::from_slice(&files.read_file("state/session.json").await.unwrap()).unwrap();
    let always = json!({"id": "a", "label": "Always", "allows": true, "lasting": true});
    file["details"]["permissions"] = json!({"allowAll": true});
    file["details"]["remembered"] = json!([{"kind": "shell", "about": "sh", "option": always}]);
    file["workingDirectories"] = json!(["file:///", "file:///virtual/project/below", "file:///virtual/projects"]);
    files.write_file("state/session.json", &serde_json::to_vec(&file).unwrap()).await.unwrap();

    host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
    host.host.resume_client_stored(&lent(), &"s".into()).await.unwrap();
    let mut client = host.ahp("late").await;
    let chat = client.follow(URI).await;
    assert_eq!(client.session(URI).working_directories, Some(vec!["file:///virtual/project/below".to_owned()]));
    client.ask("resourceList", json!({"channel": "ahp-root://", "uri": "file:///"})).await.unwrap_err();
    let allowed = client.ask("x-grove/permissions", json!({"channel": URI})).await.unwrap();
    assert_eq!((&allowed["allowAll"], &allowed["remembered"]), (&json!(false), &json!([])), "{allowed}");
    // A person is asked: with what the file says, the tool would run at once.
    client.script(&chat, "t2", json!([{"tool": {"name": "sh", "permission": "shell"}}, {"say": "done"}])).await;
    client.call_that(&chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
}

#[tokio::test(start_paused = true)]
async fn the_folder_of_a_session_that_a_client_stores_is_set_by_that_client_alone() {
    let (_host, _lender, mut client, _chat) = begun().await;
    let set = json!({"channel": URI, "directory": "/"});
    let refused = client.ask("x-grove/setWorkingDirectory", set).await.unwrap_err();
    assert_eq!(refused.code, -32602, "{refused}");
    assert!(refused.message.contains("it names the working directory when it resumes"), "{refused}");
}
