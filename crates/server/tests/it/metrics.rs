//! The host's numbers, as `/metrics` gives them after real traffic.

use grove_host::Config;
use grove_testkit::host::TOKEN;
use serde_json::json;

use crate::server::Served;

/// The value of a sample.
fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is missing in\n{text}")).parse().unwrap()
}

async fn scrape(host: &Served) -> String {
    let answer = host.http("GET /metrics", &[&format!("Authorization: Bearer {TOKEN}")]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.body
}

#[tokio::test(start_paused = true)]
async fn metrics_are_for_clients_with_the_token_and_wrong_ones_are_counted() {
    let host = Served::start(Config::default(), None).await;
    assert_eq!(host.http("GET /metrics", &[]).await.status, 403);
    assert_eq!(host.http("GET /metrics?tkn=wrong", &[]).await.status, 403);
    let text = scrape(&host).await;
    assert_eq!(sample(&text, "grove_wrong_tokens_total"), 1.0, "without a token none is wrong");
    assert_eq!(host.http(&format!("GET /metrics?tkn={TOKEN}"), &[]).await.status, 200);
}

#[tokio::test]
async fn connections_turns_tool_calls_and_refusals_are_counted() {
    let host = Served::start(Config::default(), None).await;
    let mut client = host.client("a").await;
    client.ready_session("scripted:/s").await;
    client.run_script("scripted:/s", "t", json!([{"say": "hello", "chunks": 5}, {"tool": {"name": "ls"}}])).await;
    client.run_script("scripted:/s", "u", json!([{"fail": "no"}])).await;
    client.subscribe("scripted:/unknown").await.unwrap_err();
    let text = scrape(&host).await;
    for (name, least) in [
        ("grove_connections{dialect=\"v1\"}", 1.0),
        ("grove_connections_opened_total{dialect=\"v1\"}", 1.0),
        ("grove_subscriptions", 2.0),
        ("grove_messages_received_total{transport=\"websocket\"}", 4.0),
        ("grove_messages_sent_total{transport=\"websocket\"}", 8.0),
        ("grove_sent_bytes_total{transport=\"websocket\"}", 1_000.0),
        ("grove_sessions", 1.0),
        ("grove_sessions_loaded", 1.0),
        ("grove_sessions_created_total", 1.0),
        ("grove_turns_started_total", 2.0),
        ("grove_turns_finished_total{outcome=\"completed\"}", 1.0),
        ("grove_turns_finished_total{outcome=\"failed\"}", 1.0),
        ("grove_tool_calls_total{outcome=\"succeeded\"}", 1.0),
        ("grove_agent_starts_total{kind=\"first\"}", 1.0),
        ("grove_journal_events_total", 10.0),
        ("grove_sequencer_batch_messages_count", 5.0),
        ("grove_request_seconds_count", 4.0),
    ] {
        assert!(sample(&text, name) >= least, "{name} is {}, not at least {least}", sample(&text, name));
    }
    assert_eq!(sample(&text, "grove_turns_running"), 0.0);
    drop(client);
    host.until_empty().await;
    let text = scrape(&host).await;
    assert_eq!(sample(&text, "grove_connections{dialect=\"v1\"}"), 0.0);
    assert_eq!(sample(&text, "grove_subscriptions"), 0.0, "they end with their connection");
    assert_eq!(sample(&text, "grove_connections_closed_total{reason=\"gone\"}"), 1.0);
}
