//! The data that survives the host's end, and the host's behaviour while nothing can be stored.

use std::sync::atomic::Ordering;

use grove_fs::SessionFs;
use grove_host::{Config, Env, Limits};
use grove_storage::{JournalContents, RecoveredState, recover};
use grove_testkit::Client;
use grove_wire::v1::{self, ToolCallStatus, TurnState};
use serde_json::json;

use crate::harness::TestHost;

const URI: &str = "scripted:/s";

fn permission_of(client: &Client) -> Option<String> {
    client.session(URI).active_turn.as_ref()?.pending_permissions.keys().next().cloned()
}

async fn approve(client: &mut Client, turn: &str, request: &str) {
    client
        .dispatch(json!({"type": "session/permissionResolved", "session": URI, "turnId": turn,
            "requestId": request, "approved": true}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_after_a_kill_gets_exactly_what_it_missed() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    let mut other = host.client("b").await;
    other.subscribe(URI).await.unwrap();
    client.run_script(URI, "t1", json!([{"say": "one", "chunks": 3}])).await;
    client.cut().await;
    other.run_script(URI, "t2", json!([{"say": "two", "chunks": 3}, {"tool": {"name": "ls", "output": "x"}}])).await;
    let all = other.session(URI).clone();
    let seen = other.seen;

    host.kill_and_restart(Config::default()).await;
    assert!(host.bring_back(&mut client).await, "a replay, not snapshots");
    assert_eq!(*client.session(URI), all);
    assert!(host.bring_back(&mut other).await);
    other.run_script(URI, "t3", json!([{"say": "three"}])).await;
    assert!(other.envelopes.last().unwrap().server_seq > seen);
    client.turn_end(URI, "t3").await;
    client.must_agree(URI).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_a_permission_still_waits_after_a_kill_and_goes_on_when_answered() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    let steps = json!([{"say": "before"}, {"tool": {"name": "sh", "input": "ls", "output": "out", "permission": "shell"}},
        {"say": " after"}]);
    client.script(URI, "t1", steps).await;
    client.until(|client| permission_of(client).is_some()).await;
    for _ in 0..2 {
        host.kill_and_restart(Config::default()).await;
        host.bring_back(&mut client).await;
        client.must_agree(URI).await;
        assert!(permission_of(&client).is_some(), "it waits, however often the host ends");
    }
    let request = permission_of(&client).unwrap();
    approve(&mut client, "t1", &request).await;
    let turn = client.turn_end(URI, "t1").await;
    assert_eq!(turn.state, TurnState::Complete);
    assert_eq!(turn.tool_calls[0].tool_output.as_deref(), Some("out"));
    assert!(serde_json::to_string(&turn.response_parts).unwrap().contains("before after"));
    client.must_agree(URI).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_given_right_after_the_restart_is_not_lost_before_the_agent_is_back() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.call::<()>("createSession", json!({"session": URI, "model": "scripted/slow-start"})).await.unwrap();
    client.subscribe(URI).await.unwrap();
    client.script(URI, "t1", json!([{"tool": {"name": "sh", "permission": "shell"}}, {"say": "done"}])).await;
    client.until(|client| permission_of(client).is_some()).await;
    host.kill_and_restart(Config::default()).await;
    host.bring_back(&mut client).await;
    // The agent takes a second to restart.
    let request = permission_of(&client).unwrap();
    approve(&mut client, "t1", &request).await;
    client.until(|c| c.active(URI).tool_calls.values().all(|call| call.status == ToolCallStatus::Running)).await;
    assert_eq!(client.turn_end(URI, "t1").await.state, TurnState::Complete);
}

#[tokio::test(start_paused = true)]
async fn any_other_turn_that_is_cut_off_is_closed_with_what_had_arrived() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.script(URI, "t1", json!([{"say": "half a mess"}, {"hang": true}])).await;
    client.until(|c| c.session(URI).active_turn.as_ref().is_some_and(|t| !t.streaming_text.is_empty())).await;
    host.kill_and_restart(Config::default()).await;
    host.bring_back(&mut client).await;
    let turn = client.turn_end(URI, "t1").await;
    assert_eq!(turn.error.unwrap().error_type, "interrupted");
    assert!(serde_json::to_string(&turn.response_parts).unwrap().contains("half a mess"));
    client.must_agree(URI).await;
    assert_eq!(client.run_script(URI, "t2", json!([{"say": "x"}])).await.state, TurnState::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_in_the_log_and_in_the_journal_is_there_once() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.run_script(URI, "t1", json!([{"say": "one"}])).await;
    client.must_agree(URI).await;
    let before = host.sessions.read_file("s/session.json").await.unwrap();
    client.run_script(URI, "t2", json!([{"say": "two"}])).await;
    client.run_script(URI, "t3", json!([{"say": "three"}])).await;
    let all = client.session(URI).turns.clone();
    // As if the host had been killed between writing the log and the file beside it.
    while host.sessions.read_file("s/session.json").await.unwrap() == before {
        client.must_agree(URI).await;
    }
    host.sessions.write_file("s/session.json", &before).await.unwrap();
    host.kill_and_restart(Config::default()).await;
    let mut late = host.client("b").await;
    late.subscribe(URI).await.unwrap();
    assert_eq!(late.session(URI).turns, all);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_loaded_with_its_newest_turns_and_older_ones_are_read_when_asked_for() {
    let config = || Config { limits: Limits { snapshot_turns: 5, ..Limits::default() }, ..Config::default() };
    let mut host = TestHost::start(config()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    for n in 0..12 {
        client
            .run_script(
                URI,
                &format!("t{n}"),
                json!([{"say": format!("answer {n}")}, {"tool": {"name": "ls", "output": "x"}}]),
            )
            .await;
    }
    let all = client.session(URI).turns.clone();
    client.must_agree(URI).await;
    host.kill_and_restart(config()).await;
    // Once more, so that the journal has no events of it.
    let mut settled = host.client("b").await;
    settled.subscribe(URI).await.unwrap();
    while !host.sessions.exists("s/session.json").await.unwrap() {
        settled.must_agree(URI).await;
    }
    host.kill_and_restart(config()).await;

    let mut late = host.client("c").await;
    late.subscribe(URI).await.unwrap();
    assert_eq!(late.session(URI).turns, all[7..]);
    let mut fetch = async |before: Option<&str>, limit: u64| -> v1::FetchTurnsResult {
        let mut params = json!({"session": URI, "limit": limit});
        if let Some(before) = before {
            params["before"] = before.into();
        }
        late.call("fetchTurns", params).await.unwrap()
    };
    let page = fetch(Some("t7"), 3).await;
    assert_eq!((&page.turns[..], page.has_more), (&all[4..7], true));
    let page = fetch(Some("t4"), 5).await;
    assert_eq!((&page.turns[..], page.has_more), (&all[0..4], false));
    let page = fetch(Some("t9"), 4).await;
    assert_eq!((&page.turns[..], page.has_more), (&all[5..9], true), "some are here, some are stored");
    let page = fetch(None, 5).await;
    assert_eq!((&page.turns[..], page.has_more), (&all[7..], true));
    let page = fetch(Some("t0"), 5).await;
    assert_eq!((page.turns.len(), page.has_more), (0, false));
    let error = late.call::<()>("fetchTurns", json!({"session": URI, "before": "none"})).await.unwrap_err();
    assert_eq!(error.code, -32602);
    late.run_script(URI, "t12", json!([{"say": "more"}])).await;
    late.must_agree(URI).await;
}

#[tokio::test(start_paused = true)]
async fn a_disposed_session_stays_away_after_a_restart() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.call::<()>("disposeSession", json!({"session": URI})).await.unwrap();
    host.kill_and_restart(Config::default()).await;
    let mut client = host.client("b").await;
    assert_eq!(client.subscribe(URI).await.unwrap_err().code, -32001);
}

#[tokio::test(start_paused = true)]
async fn a_sessions_file_names_a_number_that_never_goes_back() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    let mut last = 0;
    for round in 0..3 {
        client.run_script(URI, &format!("t{round}"), json!([{"say": "x"}])).await;
        host.kill_and_restart(Config::default()).await;
        host.bring_back(&mut client).await;
        // Wakes the session's task, which writes its folder.
        client.dispatch(json!({"type": "session/modelChanged", "session": URI, "model": "scripted"})).await;
        client.must_agree(URI).await;
        let file = host.sessions.read_file("s/session.json").await.unwrap();
        let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
        assert!(file["seq"].as_u64().unwrap() > last, "{file}");
        last = file["seq"].as_u64().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_session_of_a_disposed_ones_id_begins_with_nothing_of_it() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.run_script(URI, "t1", json!([{"say": "old"}])).await;
    client.call::<()>("disposeSession", json!({"session": URI})).await.unwrap();
    client.sessions.clear();
    client.ready_session(URI).await;
    client.run_script(URI, "t2", json!([{"say": "new"}])).await;
    client.must_agree(URI).await;
    for _ in 0..2 {
        host.kill_and_restart(Config::default()).await;
        let mut late = host.client("b").await;
        late.subscribe(URI).await.unwrap();
        let ids: Vec<_> = late.session(URI).turns.iter().map(|turn| turn.id.clone()).collect();
        assert_eq!(ids, ["t2"]);
    }
    assert!(host.sessions.exists("s~1/events.jsonl").await.unwrap(), "the old one's folder stays");
}

#[tokio::test(start_paused = true)]
async fn while_nothing_can_be_stored_actions_are_refused_and_an_agents_words_are_held() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.ready_session("scripted:/idle").await;
    client.script(URI, "t1", json!([{"say": "0123456789", "chunks": 10, "delayMs": 100}])).await;
    client.until(|c| c.session(URI).active_turn.as_ref().is_some_and(|t| t.streaming_text.len() >= 3)).await;

    host.journal.full.store(true, Ordering::SeqCst);
    let refused = client.script("scripted:/idle", "t2", json!([{"say": "x"}])).await;
    let reason = client.answer_to(refused).await.rejection_reason.unwrap();
    assert!(reason.starts_with("cannot write to the journal"), "{reason}");
    let error = client.create_session("scripted:/new").await.unwrap_err();
    assert!(error.message.starts_with("cannot write to the journal"), "{error}");
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    client.settle().await;
    assert!(client.session(URI).active_turn.is_some(), "what cannot be stored is not shown");
    assert!(client.session("scripted:/idle").active_turn.is_none());

    host.journal.full.store(false, Ordering::SeqCst);
    let turn = client.turn_end(URI, "t1").await;
    assert!(serde_json::to_string(&turn.response_parts).unwrap().contains("0123456789"), "and nothing is lost");
    client.run_script("scripted:/idle", "t2", json!([{"say": "x"}])).await;
    client.create_session("scripted:/new").await.unwrap();
    client.must_agree(URI).await;
    client.must_agree("scripted:/idle").await;
}

/// The state according to a journal alone.
async fn recovered_from(bytes: &[u8]) -> RecoveredState {
    recover(JournalContents::from_bytes(bytes), &Env::in_memory().stores, Limits::default().snapshot()).await.unwrap()
}

/// The journal's part of the log law.
#[tokio::test(start_paused = true)]
async fn a_journal_cut_at_any_byte_gives_the_state_at_its_last_whole_record() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client
        .run_script(
            URI,
            "t1",
            json!([{"reason": "hm"}, {"say": "héllo", "chunks": 3},
            {"tool": {"name": "ls", "input": "ls", "output": "x"}}]),
        )
        .await;
    let bytes = host.journal.bytes.lock().unwrap().clone();
    let mut whole = RecoveredState::default();
    let mut last_whole = 0;
    for cut in 0..=bytes.len() {
        if cut > 0 && bytes[cut - 1] == b'\n' {
            whole = recovered_from(&bytes[..cut]).await;
            last_whole = cut;
        }
        let recovered = recovered_from(&bytes[..cut]).await;
        assert_eq!(recovered.damage, Vec::<String>::new(), "a torn end is no damage");
        assert_eq!(recovered.state, whole.state, "cut at {cut}, last whole record ends at {last_whole}");
        assert_eq!(recovered.seq, whole.seq);
    }
    assert_eq!(whole.state.sessions.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn damage_in_the_middle_is_reported_and_the_rest_is_taken() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.run_script(URI, "t1", json!([{"say": "one"}])).await;
    client.run_script(URI, "t2", json!([{"say": "two"}])).await;
    let mut bytes = host.journal.bytes.lock().unwrap().clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let recovered = recovered_from(&bytes).await;
    assert_eq!(recovered.damage.len(), 1, "{:?}", recovered.damage);
    assert!(recovered.damage[0].contains("line"), "{:?}", recovered.damage);
    assert_eq!(recovered.state.sessions.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_misses_nothing_where_hosts_started_and_published_nothing() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    for _ in 0..3 {
        host.kill_and_restart(Config::default()).await;
        assert!(host.bring_back(&mut client).await, "a replay of nothing");
        // Its watermark is now the number at which the host started.
        client.must_agree(URI).await;
    }
}
