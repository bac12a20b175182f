//! Limits per connection and per token: each is met on the wire, and costs only the connection that meets it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use grove_agents::scripted::ScriptedAgent;
use grove_core::Timestamp;
use grove_host::{Config, Env, Host, Limits, Rate, UsageLimitTable, UsageLimits};
use grove_testkit::host::{Dialer, PIPE_BYTES, PausedClock};
use grove_testkit::{Client, ahp};
use grove_wire::ahp::Method;
use grove_wire::jsonrpc::{self, ErrorObject};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::harness::TestHost;

const NONE: Rate = Rate { per_second: 0, burst: 0 };

/// A host whose clock is tokio's paused one.
async fn paced_host(limits: Limits) -> Dialer {
    let clock = Arc::new(PausedClock::new(Timestamp(1_000_000)));
    let config = Config { limits, ..Config::default() };
    let host = Host::in_memory(Env { clock, ..Env::in_memory() }, config, vec![Arc::new(ScriptedAgent)]).await.unwrap();
    grove_testkit::host::serve(&host).0
}

async fn v1_client(host: &Dialer, id: &str) -> Client {
    let mut client = Client::over(Box::new(host.dial(PIPE_BYTES).unwrap()), &TestHost::url(), id).await;
    client.initialize(&[]).await;
    client
}

async fn ahp_client(host: &Dialer, id: &str) -> ahp::Client {
    let mut client = ahp::Client::over(Box::new(host.dial(PIPE_BYTES).unwrap()), &TestHost::url(), id).await;
    client.initialize(&[]).await;
    client
}

/// Sends frames at once, and returns the time until as many answers have come.
async fn time_for(client: &mut Client, frames: Vec<String>) -> Duration {
    let (start, answers) = (Instant::now(), frames.len());
    for frame in frames {
        client.send(frame).await;
    }
    for _ in 0..answers {
        client.frame().await.expect("the connection stays open");
    }
    start.elapsed()
}

fn ping(id: u64) -> String {
    jsonrpc::request(&id.into(), "ping", &json!({})).unwrap()
}

fn reached(error: &ErrorObject) -> (i64, Value) {
    (error.code, error.data.clone().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_read_at_its_rate_and_slows_nobody_else_with_that_token() {
    let limits = Limits { requests: Rate { per_second: 10, burst: 21 }, token_requests: NONE, ..Limits::default() };
    let host = paced_host(limits).await;
    let (mut flood, mut good) = (v1_client(&host, "flood").await, v1_client(&host, "good").await);
    let flooding = async {
        let time = time_for(&mut flood, (100..140).map(ping).collect()).await;
        // `initialize` and 20 of them are the burst.
        assert!((Duration::from_millis(1_900)..=Duration::from_millis(2_100)).contains(&time), "{time:?}");
    };
    let working = async {
        let time = time_for(&mut good, (100..115).map(ping).collect()).await;
        assert!(time < Duration::from_millis(50), "{time:?}");
    };
    tokio::join!(flooding, working);
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_no_requests_and_the_messages_of_a_batch_count_too() {
    let limits = Limits { requests: Rate { per_second: 10, burst: 21 }, token_requests: NONE, ..Limits::default() };
    let host = paced_host(limits).await;
    let mut client = v1_client(&host, "batches").await;
    let batch = jsonrpc::batch(&(100..140).map(ping).collect::<Vec<_>>());
    let time = time_for(&mut client, vec![batch]).await;
    assert!((Duration::from_millis(1_900)..=Duration::from_millis(2_100)).contains(&time), "{time:?}");
    let mut client = v1_client(&host, "nonsense").await;
    let time = time_for(&mut client, vec!["{".to_owned(); 40]).await;
    assert!((Duration::from_millis(1_900)..=Duration::from_millis(2_100)).contains(&time), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn bytes_are_read_at_their_rate_in_ahp_as_well() {
    let limits = Limits { bytes: Rate { per_second: 10_000, burst: 20_000 }, token_bytes: NONE, ..Limits::default() };
    let host = paced_host(limits).await;
    let mut client = ahp_client(&host, "talker").await;
    let start = Instant::now();
    for _ in 0..4 {
        client.ask("ping", json!({"channel": "ahp-root://", "pad": "x".repeat(10_000)})).await.unwrap();
    }
    // The last frame is read only after the pause that the one before it caused.
    assert!(start.elapsed() >= Duration::from_millis(1_000), "{:?}", start.elapsed());
    let mut other = ahp_client(&host, "other").await;
    let start = Instant::now();
    other.ask("ping", json!({"channel": "ahp-root://"})).await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn subscriptions_beyond_the_bound_are_refused_with_the_name_of_the_limit() {
    let host = paced_host(Limits { subscriptions: 2, token_subscriptions: 3, ..Limits::default() }).await;
    let mut first = ahp_client(&host, "first").await;
    for id in ["a", "b", "c"] {
        first.create_session(&format!("ahp-session:/{id}")).await.unwrap();
    }
    first.subscribe("ahp-session:/a").await.unwrap();
    first.subscribe("ahp-session:/b").await.unwrap();
    let refused = first.subscribe("ahp-session:/c").await.unwrap_err();
    assert_eq!(reached(&refused), (-32029, json!({"limit": "subscriptions"})));
    let mut second = ahp_client(&host, "second").await;
    second.subscribe("ahp-session:/a").await.unwrap();
    let refused = second.subscribe("ahp-session:/b").await.unwrap_err();
    assert_eq!(reached(&refused), (-32029, json!({"limit": "token-subscriptions", "retryAfterMs": 1_000})));
    // The end of one makes room.
    first.unsubscribe("ahp-session:/b").await;
    first.barrier().await;
    second.subscribe("ahp-session:/b").await.unwrap();
    drop(first);
    let mut third = v1_client(&host, "third").await;
    while third.subscribe("agenthost:root").await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn watches_beyond_the_bound_are_refused_with_the_name_of_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let roots = grove_work::Roots {
        browse: vec![folder.path().to_owned()],
        read: vec![folder.path().to_owned()],
        ..grove_work::Roots::default()
    };
    let folders = grove_host::Folders { roots, ..grove_host::Folders::default() };
    let limits = Limits { watches: 2, token_subscriptions: 3, ..Limits::default() };
    let host = TestHost::start(Config { folders, limits, ..Config::default() }).await;
    let params = json!({"channel": "ahp-root://", "uri": grove_work::file_uri(folder.path())});
    let mut first = host.ahp("first").await;
    first.get(Method::CreateResourceWatch, params.clone()).await;
    let watch = first.get(Method::CreateResourceWatch, params.clone()).await;
    let refused = first.refused(Method::CreateResourceWatch, params.clone()).await;
    assert_eq!(reached(&refused), (-32029, json!({"limit": "watches"})));
    let mut second = host.ahp("second").await;
    second.get(Method::CreateResourceWatch, params.clone()).await;
    let refused = second.refused(Method::CreateResourceWatch, params.clone()).await;
    assert_eq!(refused.data.unwrap()["limit"], "token-subscriptions");
    first.unsubscribe(watch["channel"].as_str().unwrap()).await;
    first.barrier().await;
    second.get(Method::CreateResourceWatch, params).await;
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_bounds_of_a_token_are_refused_and_can_be_tried_again() {
    let limits = Limits { token_starts: Rate { per_second: 1, burst: 2 }, ..Limits::default() };
    let host = paced_host(limits).await;
    let (mut v1, mut ahp) = (v1_client(&host, "v1").await, ahp_client(&host, "ahp").await);
    v1.create_session("scripted:/a").await.unwrap();
    ahp.create_session("ahp-session:/b").await.unwrap();
    let expected = (-32029, json!({"limit": "token-starts", "retryAfterMs": 1_000}));
    assert_eq!(reached(&v1.create_session("scripted:/c").await.unwrap_err()), expected);
    assert_eq!(reached(&ahp.create_session("ahp-session:/c").await.unwrap_err()), expected);
    tokio::time::sleep(Duration::from_secs(1)).await;
    ahp.create_session("ahp-session:/c").await.unwrap();

    let host = paced_host(Limits { large_calls: 0, ..Limits::default() }).await;
    let mut v1 = v1_client(&host, "v1").await;
    let refused = v1.create_session("scripted:/a").await.unwrap_err();
    assert_eq!(reached(&refused), (-32029, json!({"limit": "large-calls", "retryAfterMs": 1_000})));
    v1.call::<Value>("listSessions", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unanswered_requests_of_a_token_are_bounded() {
    let host = paced_host(Limits { token_open_requests: 0, ..Limits::default() }).await;
    let mut client = Client::over(Box::new(host.dial(PIPE_BYTES).unwrap()), &TestHost::url(), "a").await;
    let refused = client.call::<Value>("ping", json!({})).await.unwrap_err();
    assert_eq!(reached(&refused), (-32029, json!({"limit": "token-open-requests", "retryAfterMs": 1_000})));
}

#[tokio::test(start_paused = true)]
async fn limits_of_a_named_token_count_for_its_connections_and_can_be_changed() {
    let clock = Arc::new(PausedClock::new(Timestamp(1_000_000)));
    let common = UsageLimits::from(&Limits::default());
    let few = UsageLimits { subscriptions: 1, token_subscriptions: 2, ..common };
    // The token of hosts on pipes.
    let token_limits = BTreeMap::from([("host".to_owned(), few)]);
    let config = Config { token_limits, ..Config::default() };
    let host = Host::in_memory(Env { clock, ..Env::in_memory() }, config, vec![Arc::new(ScriptedAgent)]).await.unwrap();
    let dialer = grove_testkit::host::serve(&host).0;
    let mut first = ahp_client(&dialer, "first").await;
    for id in ["a", "b", "c"] {
        first.create_session(&format!("ahp-session:/{id}")).await.unwrap();
    }
    first.subscribe("ahp-session:/a").await.unwrap();
    let refused = first.subscribe("ahp-session:/b").await.unwrap_err();
    assert_eq!(refused.data.unwrap()["limit"], "subscriptions");

    host.set_usage_limits(UsageLimitTable { common, tokens: BTreeMap::new(), ..Config::default().usage_limits() });
    let refused = first.subscribe("ahp-session:/b").await.unwrap_err();
    assert_eq!(refused.data.unwrap()["limit"], "subscriptions", "a connection keeps its limits");
    let mut second = ahp_client(&dialer, "second").await;
    for id in ["a", "b", "c"] {
        second.subscribe(&format!("ahp-session:/{id}")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_people_and_editors_do_meets_no_limit() {
    let host = paced_host(Limits::default()).await;
    let mut client = v1_client(&host, "editor").await;
    // The burst of the connection, then the pool of its token, which has ten times that.
    for hundred in 1..110 {
        let time = time_for(&mut client, (0..100).map(|id| ping(hundred * 100 + id)).collect()).await;
        assert!(time < Duration::from_millis(1), "{hundred}: {time:?}");
    }
}
