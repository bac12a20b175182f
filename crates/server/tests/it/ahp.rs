//! Timing and limits of the Agent Host Protocol.

use std::time::Duration;

use grove_host::{Config, Limits};
use grove_testkit::ahp::{Client, ReconnectOutcome, markdown};
use grove_wire::ahp::{ToolCallState, TurnState};
use grove_wire::x_grove;
use grove_wire::x_grove::announcement::Announcement;
use serde_json::json;

use crate::harness::TestHost;

const URI: &str = "scripted:/s";
const CHAT: &str = "ahp-chat://default/c2NyaXB0ZWQ6L3M";

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// A quarter of a minute in which a client listens and nothing happens.
async fn quiet(client: &mut Client) {
    tokio::select! {
        frame = client.frame() => panic!("{frame:?}"),
        () = pass(15) => {}
    }
}

/// Two clients of one session, the first of which has to run a call of the turn `t`.
async fn waiting_for_a_client(host: &TestHost) -> (Client, Client) {
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    let tools = json!([{"name": "look"}]);
    owner
        .dispatch(
            URI,
            json!({"type": "session/activeClientSet", "activeClient": {"clientId": "owner", "tools": tools}}),
        )
        .await;
    owner.script(CHAT, "t", json!([{"clientTool": {"name": "look"}}])).await;
    owner.call_that(CHAT, |call| matches!(call, ToolCallState::Running(_))).await;
    let mut other = host.ahp("other").await;
    other.follow(URI).await;
    (owner, other)
}

async fn complete(owner: &mut Client) {
    let result =
        json!({"success": true, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": "a tree"}]});
    let action = json!({"type": "chat/toolCallComplete", "turnId": "t", "toolCallId": "t-call-0", "result": result});
    owner.dispatch(CHAT, action).await;
    let turn = owner.turn_end(CHAT, "t").await;
    assert_eq!((turn.state, markdown(&turn.response_parts).as_str()), (TurnState::Complete, "look gave: a tree\n"));
}

/// Checks that the turn has continued without the client that was to run its call.
async fn given_up(other: &mut Client) {
    let turn = other.turn_end(CHAT, "t").await;
    let call = serde_json::to_value(&turn.response_parts[0]).unwrap()["toolCall"].clone();
    assert_eq!((&call["status"], &call["success"]), (&json!("completed"), &json!(false)));
    assert_eq!((turn.state, markdown(&turn.response_parts).as_str()), (TurnState::Complete, "look gave: \n"));
    other.until(|other| other.session(URI).active_clients.is_empty()).await;
    other.until(|other| other.session(URI).input_needed.is_none()).await;
    other.must_agree_on_all().await;
}

fn still_waits(other: &Client) -> bool {
    other.chat(CHAT).active_turn.is_some()
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_client_through_the_grace_and_no_longer() {
    let host = TestHost::start(Config::default()).await;
    let (mut owner, mut other) = waiting_for_a_client(&host).await;
    owner.cut().await;
    pass(28).await;
    other.barrier().await;
    assert!(still_waits(&other) && other.session(URI).active_clients.len() == 1);
    pass(5).await;
    given_up(&mut other).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_in_time_runs_its_call() {
    let host = TestHost::start(Config::default()).await;
    let (mut owner, mut other) = waiting_for_a_client(&host).await;
    owner.cut().await;
    pass(20).await;
    assert_eq!(host.bring_back_ahp(&mut owner).await, ReconnectOutcome::Replay { missing: vec![] });
    quiet(&mut owner).await;
    other.barrier().await;
    assert!(still_waits(&other) && other.session(URI).active_clients.len() == 1);
    complete(&mut owner).await;
}

#[tokio::test(start_paused = true)]
async fn the_grace_runs_from_the_last_time_that_a_client_left() {
    let host = TestHost::start(Config::default()).await;
    let (mut owner, mut other) = waiting_for_a_client(&host).await;
    owner.cut().await;
    pass(25).await;
    host.bring_back_ahp(&mut owner).await;
    owner.cut().await;
    pass(20).await;
    other.barrier().await;
    assert!(still_waits(&other), "it left only twenty seconds ago");
    host.bring_back_ahp(&mut owner).await;
    owner.cut().await;
    pass(35).await;
    given_up(&mut other).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_outwait_a_client_that_took_its_leave() {
    let host = TestHost::start(Config::default()).await;
    let (mut owner, mut other) = waiting_for_a_client(&host).await;
    owner.dispatch(URI, json!({"type": "session/activeClientRemoved", "clientId": "owner"})).await;
    owner.until(|owner| owner.session(URI).active_clients.is_empty()).await;
    other.barrier().await;
    assert!(still_waits(&other), "it may still do what it began");
    owner.cut().await;
    pass(35).await;
    given_up(&mut other).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_back_keeps_the_place_of_a_client_through_the_grace() {
    let mut host = TestHost::start(Config::default()).await;
    let (mut owner, mut other) = waiting_for_a_client(&host).await;
    host.kill_and_restart(Config::default()).await;
    assert_eq!(host.bring_back_ahp(&mut other).await, ReconnectOutcome::Replay { missing: vec![] });
    // A call that ran when the host ended is interrupted with its turn.
    assert_eq!(other.turn_end(CHAT, "t").await.state, TurnState::Error);
    pass(28).await;
    other.barrier().await;
    assert_eq!(other.session(URI).active_clients.len(), 1);
    pass(5).await;
    other.until(|other| other.session(URI).active_clients.is_empty()).await;
    other.must_agree_on_all().await;

    host.bring_back_ahp(&mut owner).await;
    let active = json!({"clientId": "owner", "tools": []});
    owner.dispatch(URI, json!({"type": "session/activeClientSet", "activeClient": active})).await;
    owner.until(|owner| owner.session(URI).active_clients.len() == 1).await;
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(&mut owner).await;
    for _ in 0..3 {
        quiet(&mut owner).await;
    }
    assert_eq!(owner.session(URI).active_clients.len(), 1, "it came back in time");
    owner.must_agree_on_all().await;
}

#[tokio::test(start_paused = true)]
async fn deltas_that_are_merged_for_a_slow_client_fold_to_the_same_state() {
    let config = Config { limits: Limits { queue_messages: 100, ..Limits::default() }, ..Config::default() };
    let host = TestHost::start(config).await;
    let mut quick = host.ahp("quick").await;
    quick.ready_session(URI).await;
    let mut slow = host.ahp_over("slow", 1_024).await;
    slow.follow(URI).await;
    let text = "0123456789".repeat(500);
    let script = json!([{"say": text, "chunks": 1_000, "delayMs": 1}, {"reason": "hm"}]);
    quick.run_script(CHAT, "t", script).await;
    slow.turn_end(CHAT, "t").await;
    slow.barrier().await;
    slow.must_agree_on_all().await;
    let deltas = |client: &Client| client.kinds(CHAT).iter().filter(|kind| **kind == "chat/delta").count();
    assert_eq!(deltas(&quick), 1_000);
    assert!(deltas(&slow) < 500, "{} deltas", deltas(&slow));
    assert_eq!(slow.chat(CHAT).turns, quick.chat(CHAT).turns);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_holds_the_newest_turns_up_to_its_limits_and_fetch_turns_brings_the_others() {
    let limits = Limits { snapshot_turns: 5, snapshot_bytes: 3_000, ..Limits::default() };
    let host = TestHost::start(Config { limits, ..Config::default() }).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    for n in 0..8 {
        client.run_script(CHAT, &format!("small-{n}"), json!([{"say": "x"}])).await;
    }
    client.run_script(CHAT, "large", json!([{"say": "x".repeat(2_000)}])).await;
    let mut late = host.ahp("b").await;
    late.follow(URI).await;
    assert!(late.chat(CHAT).turns.len() < 5, "turns and bytes bound it");
    while let Some(cursor) = late.chat(CHAT).turns_next_cursor.clone() {
        late.get(grove_wire::ahp::Method::FetchTurns, json!({"channel": CHAT, "cursor": cursor})).await;
    }
    assert_eq!(late.chat(CHAT).turns, client.chat(CHAT).turns);
    late.must_agree_on_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_bounded_by_what_only_this_protocol_tells_too() {
    let limits = Limits { replay_bytes: 1 << 20, ..Limits::default() };
    let host = TestHost::start(Config { limits, ..Config::default() }).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    let mut other = host.ahp("b").await;
    other.follow(URI).await;
    other.cut().await;
    for n in 0..60 {
        let draft = grove_testkit::ahp::message(&format!("{n} {}", "x".repeat(20_000)));
        let seq = client.dispatch(CHAT, json!({"type": "chat/draftChanged", "draft": draft})).await;
        client.answer_to(seq).await;
    }
    assert_eq!(host.bring_back_ahp(&mut other).await, ReconnectOutcome::Snapshots, "more was said than is kept");
    other.must_agree_on_all().await;
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_takes_part_says_what_it_shows_and_others_are_not_asked() {
    let host = TestHost::start(Config::default()).await;
    let (path, session) = (std::path::Path::new("/w/a b.rs"), "s".into());
    let mut editor = Client::over(Box::new(host.dial(64 << 10)), &TestHost::url(), "editor").await;
    let begin = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "editor",
        "_meta": {"documents": true}});
    editor.get(grove_wire::ahp::Method::Initialize, begin).await;
    editor.ready_session(URI).await;
    assert_eq!(host.host.document(&session, path).await, None, "it does not take part yet");
    let taking_part = json!({"type": "session/activeClientSet", "activeClient": {"clientId": "editor", "tools": []}});
    editor.dispatch(URI, taking_part).await;
    editor.until(|editor| !editor.session(URI).active_clients.is_empty()).await;

    let answer = async |editor: &mut Client, answer: serde_json::Value| {
        let asked = editor.json().await;
        assert_eq!((&asked["method"], &asked["params"]["uri"]), (&json!("resourceRead"), &json!("file:///w/a%20b.rs")));
        let mut said = json!({"jsonrpc": "2.0", "id": asked["id"]});
        said.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        editor.send(said.to_string()).await;
    };
    let shown = json!({"result": {"data": "unsaved", "encoding": "utf-8"}});
    let (document, ()) = tokio::join!(host.host.document(&session, path), answer(&mut editor, shown));
    assert_eq!(document.as_deref(), Some("unsaved"));
    let not_open = json!({"error": {"code": -32001, "message": "not open"}});
    let (document, ()) = tokio::join!(host.host.document(&session, path), answer(&mut editor, not_open));
    assert_eq!(document, None);
    assert_eq!(host.host.document(&session, path).await, None, "one that does not answer is not waited for");
    editor.cut().await;
    assert_eq!(host.host.document(&session, path).await, None);
}

/// The extensions that a host announces in `initialize`.
async fn announced(host: &TestHost, name: &str) -> Vec<String> {
    let stream = Box::new(host.dial(1 << 16));
    let mut client = Client::over(stream, &TestHost::url(), name).await;
    let meta = client.initialize(&[]).await.meta.unwrap();
    let announced = Announcement::read(Some(&meta)).unwrap();
    for method in x_grove::Method::ALL {
        let answer = client.ask(method.as_str(), json!({})).await;
        let is_unknown = answer.is_err_and(|error| error.code == -32601);
        assert!(!announced.offers(method) || !is_unknown, "{method:?} is announced, and not known");
    }
    announced.methods
}

#[tokio::test]
async fn what_has_nothing_behind_it_is_not_announced() {
    let host = TestHost::start(Config::default()).await;
    let said = announced(&host, "a").await;
    let is_of = |family: &str| said.iter().any(|method| method.starts_with(family));
    assert!(is_of("x-grove/tree") && is_of("x-grove/handover/") && is_of("x-grove/import/"), "{said:?}");
    assert!(!is_of("x-grove/sessions/") && !is_of("x-grove/history/"), "{said:?}");
}

/// The requests in the first column of a table of `docs/ahp.md`, which follows this header.
fn requests_in_table(header: &str) -> Vec<&'static str> {
    const PAGE: &str = include_str!("../../../../docs/ahp.md");
    let table = PAGE.split(header).nth(1).unwrap_or_else(|| panic!("docs/ahp.md has no table with {header}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = |row: &'static str| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2);
    rows.flat_map(names).collect()
}

#[tokio::test]
async fn every_request_of_the_protocol_is_in_the_table_of_the_served_or_of_the_refused_ones() {
    let (served, refused) = (requests_in_table("| served | |"), requests_in_table("| refused | reason |"));
    let mut all: Vec<_> = served.iter().chain(&refused).copied().collect();
    let mut known: Vec<_> = grove_wire::ahp::Method::ALL.iter().map(|method| method.as_str()).collect();
    all.sort_unstable();
    known.sort_unstable();
    assert_eq!(all, known);
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    for method in known {
        let answer = client.ask(method, json!({"channel": "ahp-root://"})).await;
        let is_refused = answer.is_err_and(|error| error.code == -32601);
        assert_eq!(is_refused, refused.contains(&method), "{method}");
    }
}
