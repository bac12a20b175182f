//! Reconnecting in version 1.

use grove_testkit::ConnectionEnd;
use grove_wire::v1::{Notification, TurnState};
use serde_json::{Value, json};

use crate::support::*;

const ROOT: &str = "agenthost:root";

fn params(client: &str, seen: u64, subscriptions: &[&str]) -> Value {
    json!({"clientId": client, "lastSeenServerSeq": seen, "subscriptions": subscriptions})
}

#[tokio::test]
async fn what_was_missed_is_replayed_exactly() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    speaker.ready_session("scripted:/other").await;
    let mut client = host.subscriber("a").await;
    client.run_script(S, "seen", json!([{"say": "seen"}])).await;
    speaker.turn_end(S, "seen").await;
    let seen = client.seen;
    drop(client);

    speaker.envelopes.clear();
    speaker.run_script("scripted:/other", "t", json!([{"say": "not subscribed to"}])).await;
    speaker.envelopes.clear();
    let steps = json!([
        {"say": "missed", "chunks": 6}, {"reason": "why"}, {"title": "New"}, {"usage": {"inputTokens": 1}},
        {"tool": {"name": "ls", "output": "x"}}, {"part": {"mimeType": "a/b", "text": "p"}},
    ]);
    speaker.run_script(S, "missed", steps).await;
    let told: Vec<Value> = speaker.envelopes.iter().map(envelope_json).collect();

    let mut again = host.connect("a").await;
    let result = again.get("reconnect", params("a", seen, &[S])).await;
    assert_eq!(result, json!({"type": "replay", "actions": told}));

    // And from the middle.
    let middle = told[4]["serverSeq"].as_u64().unwrap();
    let mut again = host.connect("a").await;
    let result = again.get("reconnect", params("a", middle, &[S])).await;
    assert_eq!(result, json!({"type": "replay", "actions": told[5..]}));

    // And from the end.
    let end = told.last().unwrap()["serverSeq"].as_u64().unwrap();
    let mut again = host.connect("a").await;
    let result = again.get("reconnect", params("a", end, &[S])).await;
    assert_eq!(result, json!({"type": "replay", "actions": []}));
}

#[tokio::test]
async fn a_client_that_comes_back_in_the_middle_of_a_turn_has_everything() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    let mut client = host.subscriber("a").await;
    for round in 0..5 {
        let turn = format!("t{round}");
        speaker.script(S, &turn, json!([{"say": "x".repeat(200), "chunks": 200, "delayMs": 1}])).await;
        client
            .until(|client| client.session(S).active_turn.as_ref().is_some_and(|a| a.streaming_text.len() >= 20))
            .await;
        assert!(host.reconnect(&mut client).await, "the gap is small enough for a replay");
        let end = client.turn_end(S, &turn).await;
        assert_eq!(end.state, TurnState::Complete);
        speaker.turn_end(S, &turn).await;
        assert_eq!(client.session(S), speaker.session(S));
    }
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn a_gap_beyond_the_replay_is_answered_with_snapshots() {
    let host = TestHome::new().serve(&["--replay-actions", "20"]);
    let mut speaker = host.client_with_session("speaker").await;
    let mut client = host.connect("a").await;
    client.initialize(&[ROOT, S]).await;
    speaker.run_script(S, "t", json!([{"say": "x".repeat(50), "chunks": 50}])).await;
    assert!(!host.reconnect(&mut client).await);
    assert_eq!(client.session(S), speaker.session(S));
    assert_eq!(client.roots[ROOT].agents.len(), 1);
    // A small gap is still replayed, and later actions are live.
    speaker.run_script(S, "u", json!([{"say": "y"}])).await;
    assert!(host.reconnect(&mut client).await);
    assert_eq!(client.session(S), speaker.session(S));
    speaker.run_script(S, "v", json!([{"say": "z"}])).await;
    client.turn_end(S, "v").await;
    assert_eq!(client.session(S), speaker.session(S));
}

#[tokio::test]
async fn the_replay_is_bounded_by_bytes_too() {
    let host = TestHome::new().serve(&["--replay-bytes", "100000"]);
    let mut speaker = host.client_with_session("speaker").await;
    let mut client = host.subscriber("a").await;
    speaker.run_script(S, "t", json!([{"say": "x".repeat(400_000), "chunks": 4}])).await;
    assert!(!host.reconnect(&mut client).await);
    assert_eq!(client.session(S), speaker.session(S));
}

#[tokio::test]
async fn a_client_that_the_host_does_not_know_gets_snapshots_and_is_live() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    let mut client = host.connect("stranger").await;
    client.seen = speaker.seen;
    let result = client.get("reconnect", params("stranger", speaker.seen, &[ROOT, S])).await;
    assert_eq!(result["type"], "snapshot");
    let resources: Vec<_> = result["snapshots"].as_array().unwrap().iter().map(|s| &s["resource"]).collect();
    assert_eq!(resources, [ROOT, S]);
    speaker.run_script(S, "t", json!([{"say": "live"}])).await;
    let live = |client: &grove_testkit::Client| client.kinds().contains(&"session/turnComplete".to_owned());
    client.until(live).await;
    let seq = client.script(S, "u", json!([])).await;
    assert_eq!(client.answer_to(seq).await.origin.unwrap().client_id, "stranger");
}

#[tokio::test]
async fn a_number_above_the_hosts_is_answered_with_snapshots() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.settle().await;
    drop(client);
    for above in [1_000_000, u64::MAX] {
        let mut again = host.connect("a").await;
        let result = again.get("reconnect", params("a", above, &[S])).await;
        assert_eq!(result["type"], "snapshot");
        assert_eq!(result["snapshots"][0]["resource"], S);
    }
}

#[tokio::test]
async fn after_a_replay_the_subscriptions_are_live_and_only_those_asked_for() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    speaker.ready_session("scripted:/other").await;
    let mut client = host.connect("a").await;
    client.initialize(&[S, "scripted:/other"]).await;
    client.sessions.remove("scripted:/other");
    assert!(host.reconnect(&mut client).await);
    client.envelopes.clear();
    speaker.run_script("scripted:/other", "t", json!([{"say": "unheard"}])).await;
    speaker.run_script(S, "t", json!([{"say": "heard"}])).await;
    client.turn_end(S, "t").await;
    client.barrier().await;
    assert_eq!(client.kinds(), ["session/turnStarted", "session/delta", "session/turnComplete"]);
}

#[tokio::test]
async fn notifications_are_not_replayed() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    let client = host.subscriber("a").await;
    let seen = client.seen;
    drop(client);
    speaker.ready_session("scripted:/new").await;
    speaker.get("disposeSession", json!({"session": "scripted:/new"})).await;
    speaker.until(|speaker| matches!(speaker.notifications.last(), Some(Notification::SessionRemoved { .. }))).await;
    speaker.run_script(S, "t", json!([])).await;
    let mut again = host.connect("a").await;
    let result = again.get("reconnect", params("a", seen, &[S])).await;
    let kinds: Vec<_> = result["actions"].as_array().unwrap().iter().map(|e| &e["action"]["type"]).collect();
    assert_eq!(kinds, ["session/turnStarted", "session/titleChanged", "session/turnComplete"]);
    again.barrier().await;
    assert_eq!(again.notifications, []);
}

#[tokio::test]
async fn a_newer_connection_of_the_same_client_takes_over_with_4010() {
    let host = Host::start();
    let mut oldest = host.client_with_session("a").await;
    let mut older = host.subscriber("a").await;
    assert!(matches!(oldest.until_end().await, ConnectionEnd::Closed { code: 4010, .. }));
    let mut newest = host.connect("a").await;
    let result = newest.get("reconnect", params("a", older.seen, &[S])).await;
    assert_eq!(result["type"], "replay");
    assert!(matches!(older.until_end().await, ConnectionEnd::Closed { code: 4010, .. }));
    let seq = newest.script(S, "t", json!([])).await;
    newest.answer_to(seq).await;
    // Other clients are not affected.
    let mut other = host.subscriber("b").await;
    other.settle().await;
    newest.settle().await;
}

#[tokio::test]
async fn a_session_that_was_made_anew_meanwhile_is_not_mixed_with_the_old_one() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    let mut client = host.subscriber("a").await;
    client.run_script(S, "old", json!([{"say": "old"}])).await;
    speaker.turn_end(S, "old").await;
    speaker.get("disposeSession", json!({"session": S})).await;
    speaker.sessions.remove(S);
    speaker.ready_session(S).await;
    speaker.run_script(S, "new", json!([{"say": "new"}])).await;
    host.reconnect(&mut client).await;
    client.barrier().await;
    assert_eq!(client.session(S), speaker.session(S));
}

#[tokio::test]
async fn a_session_that_is_gone_is_left_out_of_a_replay() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    speaker.ready_session("scripted:/other").await;
    let mut client = host.connect("a").await;
    let seen = client.initialize(&[S, "scripted:/other"]).await.server_seq;
    drop(client);
    speaker.script("scripted:/other", "t", json!([{"hang": true}])).await;
    speaker.get("disposeSession", json!({"session": "scripted:/other"})).await;
    speaker.sessions.remove("scripted:/other");
    speaker.run_script(S, "t", json!([])).await;
    let mut again = host.connect("a").await;
    let result = again.get("reconnect", params("a", seen, &[S, "scripted:/other"])).await;
    let actions = result["actions"].as_array().unwrap();
    let kinds: Vec<_> = actions.iter().map(|envelope| &envelope["action"]["type"]).collect();
    assert_eq!(kinds, ["session/turnStarted", "session/titleChanged", "session/turnComplete"]);
    assert!(actions.iter().all(|envelope| envelope["action"]["session"] == S));
}

#[tokio::test]
async fn what_nobody_was_subscribed_to_counts_in_the_replays_bytes_too() {
    let host = TestHome::new().serve(&["--replay-bytes", "100000", "--spill-bytes", "8000000"]);
    let mut speaker = host.client("speaker").await;
    speaker.create_session(S).await.unwrap();
    let seen = host.connect("a").await.initialize(&[]).await.server_seq;
    let text = format!("script:[]{}", " ".repeat(1_000_000));
    speaker.start_turn(S, "t", &text).await;
    let deadline = Deadline::new("the turn does not end");
    while speaker.get("fetchTurns", json!({"session": S})).await["turns"] == json!([]) {
        deadline.check();
    }
    let mut again = host.connect("a").await;
    let result = again.get("reconnect", params("a", seen, &[S])).await;
    assert_eq!(result["type"], "snapshot", "a megabyte is not kept in a hundred kilobytes");
}
