//! Truncated logs, files and journals: everything possible is restored, and the rest is reported.

mod logs;
mod records;

use grove_fs::SessionFs;
use grove_host::Config;
use grove_testkit::Client;
use serde_json::{Value, json};

use crate::harness::TestHost;

const URI: &str = "scripted:/s";
const LOG: &str = "s/events.jsonl";
const FILE: &str = "s/session.json";

/// A host that was killed after three turns, all of them in the session's folder.
async fn killed_after_three_turns() -> TestHost {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    for turn in ["t1", "t2", "t3"] {
        client.run_script(URI, turn, json!([{"say": format!("answer {turn}")}])).await;
    }
    settle(&host, &mut client, 3).await;
    host.kill().await;
    host
}

/// Waits until the session's file says that the log has so many turns.
async fn settle(host: &TestHost, client: &mut Client, turns: u64) {
    for _ in 0..1_000 {
        if file(host).await["chat"]["log"]["turns"] == turns {
            return;
        }
        client.must_agree(URI).await;
    }
    panic!("the session's file does not say that its log has {turns} turns: {}", file(host).await);
}

async fn file(host: &TestHost) -> Value {
    let bytes = host.sessions.read_file(FILE).await.unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

async fn turns(host: &TestHost) -> Vec<String> {
    let mut client = host.client("late").await;
    client.subscribe(URI).await.unwrap();
    client.session(URI).turns.iter().map(|turn| turn.id.clone()).collect()
}

/// Removes every event from the journal, as if its segments were deleted. The segment after them begins with their last number.
fn let_events_go(host: &TestHost) {
    let mut bytes = host.journal.bytes.lock().unwrap();
    let mut last = 0;
    let mut is_event = |line: &&[u8]| {
        let record: Value = serde_json::from_slice(&line[9..]).unwrap();
        last = last.max(record["event"]["seq"].as_u64().unwrap_or(0));
        record["event"].is_object() || record["mark"].is_object()
    };
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_event(line));
    let mut kept: Vec<u8> = lines.flatten().copied().collect();
    kept.extend(line(&format!(r#"{{"reserved":{last}}}"#)));
    *bytes = kept;
}

/// A line of a journal.
fn line(text: &str) -> Vec<u8> {
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())).into_bytes()
}
