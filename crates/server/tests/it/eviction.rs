//! Idle sessions leave memory, and nobody notices.

use std::time::Duration;

use grove_host::{Config, Limits};
use grove_testkit::Client;
use grove_wire::v1::TurnState;
use serde_json::{Value, json};

use crate::harness::TestHost;

const URI: &str = "scripted:/s";
const IDLE: Duration = Duration::from_secs(10);

fn config() -> Config {
    // Silent connections stay, however long the test waits.
    let limits = Limits { session_idle: IDLE, connection_silence: Duration::from_secs(100_000), ..Limits::default() };
    Config { limits, ..Config::default() }
}

/// Long enough for the agent to stop, and then for the session to be evicted.
async fn a_while() {
    tokio::time::sleep(6 * IDLE).await;
}

async fn loaded(host: &TestHost) -> (usize, usize) {
    let status = host.host.status().await.unwrap();
    (status.loaded, status.sessions)
}

async fn rows(client: &mut Client) -> Value {
    client.call::<Value>("listSessions", json!({})).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_looks_at_leaves_memory_and_comes_back_as_it_was() {
    let host = TestHost::start(config()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.run_script(URI, "t1", json!([{"say": "one", "chunks": 3}, {"fail": "on purpose"}])).await;
    let before = client.session(URI).clone();
    let listed = rows(&mut client).await;
    client.cut().await;
    assert_eq!(loaded(&host).await, (1, 1));
    a_while().await;
    assert_eq!(loaded(&host).await, (0, 1), "it rests, and there it is");

    let mut other = host.client("b").await;
    assert_eq!(rows(&mut other).await, listed, "lists say the same");
    assert_eq!(loaded(&host).await, (0, 1), "a list opens nothing");
    other.subscribe(URI).await.unwrap();
    assert_eq!(*other.session(URI), before);
    let turn = other.run_script(URI, "t2", json!([{"say": "two"}])).await;
    assert_eq!(turn.state, TurnState::Complete, "its agent is back");

    assert!(host.bring_back(&mut client).await, "a replay, not snapshots: nothing was lost by resting");
    client.turn_end(URI, "t2").await;
    client.must_agree(URI).await;
    other.must_agree(URI).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_somebody_looks_at_stays() {
    let host = TestHost::start(config()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    a_while().await;
    assert_eq!(loaded(&host).await, (1, 1));
    client.must_agree(URI).await;

    let mut ahp = host.ahp("b").await;
    let chat = ahp.follow(URI).await;
    client.cut().await;
    ahp.unsubscribe(URI).await;
    a_while().await;
    assert_eq!(loaded(&host).await, (1, 1), "its chat is looked at");
    ahp.run_script(&chat, "t1", json!([{"say": "still here"}])).await;
    ahp.unsubscribe(&chat).await;
    a_while().await;
    assert_eq!(loaded(&host).await, (0, 1));
    // A client that stayed connected dispatches without subscribing.
    ahp.script(&chat, "t2", json!([{"say": "unseen"}])).await;
    ahp.follow(URI).await;
    ahp.turn_end(&chat, "t2").await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_runs_or_waits_keeps_its_session_although_nobody_looks() {
    let host = TestHost::start(config()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    let asks =
        json!([{"tool": {"name": "sh", "input": "ls", "output": "out", "permission": "shell"}}, {"say": "after"}]);
    client.script(URI, "t1", asks).await;
    let pending = |client: &Client| {
        let turn = client.session(URI).active_turn.as_ref()?;
        turn.pending_permissions.keys().next().cloned()
    };
    client.until(|client| pending(client).is_some()).await;
    client.cut().await;
    a_while().await;
    assert_eq!(loaded(&host).await, (1, 1));

    host.bring_back(&mut client).await;
    let request = pending(&client).unwrap();
    client
        .dispatch(json!({"type": "session/permissionResolved", "session": URI, "turnId": "t1", "requestId": request,
            "approved": true}))
        .await;
    assert_eq!(client.turn_end(URI, "t1").await.state, TurnState::Complete);
    client.cut().await;
    a_while().await;
    assert_eq!(loaded(&host).await, (0, 1), "and then it goes");
}

#[tokio::test(start_paused = true)]
async fn memory_follows_what_is_open_and_not_what_was() {
    let host = TestHost::start(config()).await;
    let mut client = host.client("a").await;
    for number in 0..50 {
        let uri = format!("scripted:/s{number}");
        client.ready_session(&uri).await;
        client.run_script(&uri, "t", json!([{"say": "x"}])).await;
    }
    assert_eq!(loaded(&host).await, (50, 50));
    client.cut().await;
    let mut one = host.client("b").await;
    one.subscribe("scripted:/s7").await.unwrap();
    a_while().await;
    assert_eq!(loaded(&host).await, (1, 50));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_killed_while_sessions_rest_has_them_all() {
    let mut host = TestHost::start(config()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.run_script(URI, "t1", json!([{"say": "kept"}])).await;
    let before = client.session(URI).clone();
    client.cut().await;
    a_while().await;
    assert_eq!(loaded(&host).await, (0, 1));
    host.kill_and_restart(config()).await;
    assert!(host.bring_back(&mut client).await);
    assert_eq!(*client.session(URI), before);
    client.run_script(URI, "t2", json!([{"say": "more"}])).await;
    client.must_agree(URI).await;
}

#[tokio::test(start_paused = true)]
async fn where_sessions_are_to_stay_they_do() {
    let mut config = config();
    config.limits.session_idle = Duration::ZERO;
    let host = TestHost::start(config).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.cut().await;
    a_while().await;
    assert_eq!(loaded(&host).await, (1, 1));
}
