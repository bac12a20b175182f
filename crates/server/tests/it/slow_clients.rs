//! A slow client slows down only itself.

use grove_host::{Config, Limits};
use grove_testkit::{Client, ConnectionEnd};
use grove_wire::v1;
use serde_json::json;

use crate::harness::TestHost;

const URI: &str = "scripted:/s";

fn config(limits: Limits) -> Config {
    Config { limits, ..Config::default() }
}

/// A client with a tiny pipe: unread messages fill the host's queue at once.
async fn narrow_client(host: &TestHost, id: &str) -> Client {
    let mut client = Client::over(Box::new(host.dial(1_024)), &TestHost::url(), id).await;
    client.initialize(&[]).await;
    client
}

#[tokio::test(start_paused = true)]
async fn past_half_of_the_queue_deltas_are_merged_and_the_state_is_the_same() {
    let host = TestHost::start(config(Limits { queue_messages: 100, ..Limits::default() })).await;
    let mut quick = host.client("quick").await;
    quick.ready_session(URI).await;
    let mut slow = narrow_client(&host, "slow").await;
    slow.subscribe(URI).await.unwrap();

    let text = "0123456789".repeat(500);
    quick.run_script(URI, "t", json!([{"say": text, "chunks": 1_000, "delayMs": 1}])).await;
    slow.turn_end(URI, "t").await;
    slow.must_agree(URI).await;

    let deltas = |client: &Client| {
        let is_delta = |envelope: &&grove_testkit::Envelope| envelope.action.get().contains("session/delta");
        client.envelopes.iter().filter(is_delta).count()
    };
    assert_eq!(deltas(&quick), 1_000);
    assert!(deltas(&slow) < 500, "{} deltas", deltas(&slow));
    assert_eq!(slow.session(URI).turns, quick.session(URI).turns);
}

#[tokio::test(start_paused = true)]
async fn past_the_bound_the_connection_is_closed_and_reconnecting_brings_everything() {
    let host = TestHost::start(config(Limits { queue_bytes: 64 << 10, ..Limits::default() })).await;
    let mut quick = host.client("quick").await;
    quick.ready_session(URI).await;
    let mut slow = narrow_client(&host, "slow").await;
    slow.subscribe(URI).await.unwrap();

    // Tools do not merge. The pauses let the quick one keep up.
    let tool = json!({"tool": {"name": "cat", "output": "x", "repeat": 1_000}});
    let steps: Vec<_> = (0..200).flat_map(|_| [tool.clone(), json!({"sleepMs": 1})]).collect();
    let turn = quick.run_script(URI, "t", json!(steps)).await;
    assert_eq!(turn.tool_calls.len(), 200, "nobody else is harmed");

    assert_eq!(
        slow.until_end().await,
        ConnectionEnd::Closed { code: 4008, reason: "too far behind: reconnect".into() }
    );
    assert!(host.bring_back(&mut slow).await, "what was missed is still in the replay");
    slow.must_agree(URI).await;
    assert_eq!(slow.session(URI).turns, quick.session(URI).turns);
}

#[tokio::test(start_paused = true)]
async fn a_single_endless_delta_is_bounded_too() {
    // The prompt's own echo is as long as the text; both together exceed the queue.
    let host = TestHost::start(config(Limits { queue_bytes: 256 << 10, ..Limits::default() })).await;
    let mut quick = host.client("quick").await;
    quick.ready_session(URI).await;
    let mut slow = narrow_client(&host, "slow").await;
    slow.subscribe(URI).await.unwrap();
    let text = "x".repeat(200 << 10);
    quick.run_script(URI, "t", json!([{"sleepMs": 50}, {"say": text, "chunks": 1_024, "delayMs": 1}])).await;
    assert!(matches!(slow.until_end().await, ConnectionEnd::Closed { code: 4008, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_answers_waits_with_its_questions() {
    let limits = Limits { open_answers: 4, queue_messages: 16, ..Limits::default() };
    let host = TestHost::start(config(limits)).await;
    let mut client = narrow_client(&host, "flood").await;
    client.create_session(URI).await.unwrap();
    client.subscribe(URI).await.unwrap();
    // More requests than fit anywhere: if all answers went into the queue, it would overflow and close.
    let (asked, answered) = (500u64, std::cell::Cell::new(0u64));
    for id in 0..asked {
        let frame = grove_wire::jsonrpc::request(&(1_000 + id).into(), "listSessions", &json!({})).unwrap();
        tokio::select! {
            () = client.send(frame) => {}
            () = tokio::time::sleep(std::time::Duration::from_secs(1)) => break,
        }
        answered.set(id + 1);
    }
    assert!(answered.get() < asked, "the pipe and the host's bounds are full long before");
    let mut heard = 0;
    while heard + 1 < answered.get() {
        let text = client.frame().await.expect("the connection stays open");
        heard += u64::from(client.take(&text).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_too_large_a_message_is_closed_after_a_second() {
    let host = TestHost::start(config(Limits { message_bytes: 4 << 10, ..Limits::default() })).await;
    let mut other = host.client("other").await;
    other.ready_session(URI).await;
    let mut client = host.client("large").await;
    let began = tokio::time::Instant::now();
    client.send(" ".repeat(8 << 10)).await;
    let ended = client.until_end().await;
    assert!(matches!(ended, ConnectionEnd::Closed { code: 1009, .. }), "{ended:?}");
    assert_eq!(began.elapsed().as_secs(), 1);
    other.run_script(URI, "t", json!([{"say": "unharmed"}])).await;
    assert_eq!(began.elapsed().as_secs(), 1, "nobody else waits");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_shows_no_life_is_closed() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("silent").await;
    // A client that reads answers the host's pings, and stays.
    tokio::select! {
        _ = client.frame() => panic!("nothing should come"),
        () = tokio::time::sleep(std::time::Duration::from_secs(15)) => {}
    }
    client.settle().await;
    assert_eq!(host.host.status().await.unwrap().connections, 1);
    // One that does not read does not, and is disconnected.
    tokio::time::sleep(std::time::Duration::from_secs(200)).await;
    assert_eq!(host.host.status().await.unwrap().connections, 0);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_holds_the_newest_turns_up_to_its_limits_and_fetch_turns_the_others() {
    let limits = Limits { snapshot_turns: 5, snapshot_bytes: 3_000, ..Limits::default() };
    let host = TestHost::start(config(limits)).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    for n in 0..8 {
        client.run_script(URI, &format!("small-{n}"), json!([{"say": "x"}])).await;
    }
    let ids = |turns: &[v1::Turn]| turns.iter().map(|turn| turn.id.clone()).collect::<Vec<_>>();
    let mut late = host.client("b").await;
    late.subscribe(URI).await.unwrap();
    assert_eq!(ids(&late.session(URI).turns), ["small-3", "small-4", "small-5", "small-6", "small-7"]);

    client.run_script(URI, "large", json!([{"say": "x".repeat(2_000)}])).await;
    late.subscribe(URI).await.unwrap();
    assert!(late.session(URI).turns.len() < 5, "bytes bound it as well");
    assert_eq!(late.session(URI).turns.last().unwrap().id, "large");

    let oldest = late.session(URI).turns[0].id.clone();
    let older: v1::FetchTurnsResult =
        late.call("fetchTurns", json!({"session": URI, "before": oldest, "limit": 3})).await.unwrap();
    assert_eq!(older.turns.len(), 3);
    assert!(older.has_more);
}
