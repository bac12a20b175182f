//! Storage clients that fail, go away or do not answer.

use std::time::Duration;

use grove_fs::{Removal, SessionFs};
use grove_host::{Config, CreateError, Limits, ResumeError};
use grove_storage::StoreError;
use grove_testkit::ahp::{Client, markdown};
use grove_wire::ahp::ToolCallState;
use serde_json::json;
use tokio::time::Instant;

use super::{URI, asks, begun, count, entries, host_with, lent, quiet, repaired, said, unsaved, wanted};
use crate::harness::{TestHost, until};
use crate::storage_client::{self, Failure, Fault, FaultyStorageClient};

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
    host.host.storage_client_left(&lent()).await.unwrap();
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
    host.host.storage_client_returned(&lent(), storage_client.clone()).await.unwrap();
    client.turn_end(&chat, "t1").await;
    client.until(|client| unsaved(client).is_none()).await;
    assert!(storage_client.asked().len() > calls);
    assert_eq!(said(&client, &chat), ["before", "onetwo"]);
    assert_eq!(count(&storage_client.log("s").await, "grove.turnEnd"), 2);
    client.run_script(&chat, "t2", json!([{"say": "after"}])).await;
    // A session without unsaved changes is free at once.
    quiet(&storage_client).await;
    host.host.storage_client_left(&lent()).await.unwrap();
    client.until(|client| unsaved(client).is_some()).await;
    host.host.storage_client_returned(&lent(), storage_client.clone()).await.unwrap();
    client.until(|client| unsaved(client).is_none()).await;
    client.must_agree(&chat).await;
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
