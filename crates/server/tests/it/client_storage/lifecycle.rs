//! Creating, resuming, forking, deleting and disposing of client-stored sessions.

use grove_core::SessionId;
use grove_fs::SessionFs;
use grove_host::{Config, CreateError, DeleteOutcome, ForkError, ResumeError};
use serde_json::{Value, json};

use super::{URI, begun, count, entries, host_with, lent, quiet, repaired, said, wanted};
use crate::harness::TestHost;
use crate::storage_client::{self, Fault, FaultyStorageClient};

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
