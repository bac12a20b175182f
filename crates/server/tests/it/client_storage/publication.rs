//! Changes are published when the storage client has what must survive.

use std::time::Duration;

use grove_fs::SessionFs;
use grove_testkit::ahp::markdown;
use grove_wire::ahp::ToolCallState;
use serde_json::json;
use tokio::time::Instant;

use super::{URI, asks, begun, count, entries, host_with, lent, quiet, said, unsaved, wanted};
use crate::storage_client::{Fault, FaultyStorageClient};

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
