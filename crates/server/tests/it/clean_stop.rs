//! A clean stop keeps at least what a crash keeps.

use std::time::Duration;

use grove_host::Config;
use grove_testkit::ahp::{Client, markdown};
use grove_wire::ahp::{ResponsePart, SessionLifecycle, ToolCallState, TurnState};
use serde_json::{Value, json};

use crate::harness::TestHost;

const URI: &str = "scripted:/s";
const CHAT: &str = "ahp-chat://default/c2NyaXB0ZWQ6L3M";

/// The ways in which a host ends.
#[derive(Clone, Copy, Debug)]
enum StopKind {
    CleanStop,
    Kill,
}

/// Ends a host, starts the next one, and reconnects the client.
async fn restart(host: &mut TestHost, client: &mut Client, end: StopKind) {
    if matches!(end, StopKind::CleanStop) {
        let begun = tokio::time::Instant::now();
        host.host.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(1), "a turn that only waits costs no grace");
        client.until_end().await;
    }
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(client).await;
    client.must_agree_on_all().await;
}

/// Runs a turn until it waits, restarts the host twice, answers, and returns the agent's final answer.
async fn survives(
    end: StopKind,
    steps: Value,
    waits: impl Fn(&Client) -> bool,
    answer: impl Fn(&Client) -> Value,
) -> String {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    let tools = json!({"clientId": "a", "tools": [{"name": "look"}]});
    client.dispatch(URI, json!({"type": "session/activeClientSet", "activeClient": tools})).await;
    client.script(CHAT, "t", steps).await;
    if client.chat(CHAT).active_turn.is_none() {
        client.until(|client| client.chat(CHAT).active_turn.is_some()).await;
    }
    for _ in 0..2 {
        client.until(&waits).await;
        restart(&mut host, &mut client, end).await;
        assert!(waits(&client), "{end:?}: {:?}", client.chat(CHAT));
    }
    let answer = answer(&client);
    client.dispatch(CHAT, answer).await;
    let turn = client.turn_end(CHAT, "t").await;
    assert_eq!(turn.state, TurnState::Complete, "{end:?}");
    client.barrier().await;
    client.must_agree_on_all().await;
    markdown(&turn.response_parts)
}

fn has_call(client: &Client, fits: impl Fn(&ToolCallState) -> bool) -> bool {
    let parts = client.chat(CHAT).active_turn.iter().flat_map(|turn| &turn.response_parts);
    parts
        .filter_map(|part| if let ResponsePart::ToolCall(part) = part { Some(&part.tool_call) } else { None })
        .any(fits)
}

#[tokio::test(start_paused = true)]
async fn a_clean_stop_keeps_a_turn_that_waits_for_a_permission() {
    for end in [StopKind::Kill, StopKind::CleanStop] {
        let steps = json!([{"say": "before "}, {"tool": {"name": "sh", "permission": "shell"}}, {"say": "after"}]);
        let waits = |client: &Client| has_call(client, |call| matches!(call, ToolCallState::PendingConfirmation(_)));
        let answer = |_: &Client| {
            json!({"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "t-call-1", "approved": true,
                "confirmed": "user-action"})
        };
        assert_eq!(survives(end, steps, waits, answer).await, "before after", "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_stop_keeps_a_turn_that_waits_for_an_answer_to_a_question() {
    for end in [StopKind::Kill, StopKind::CleanStop] {
        let steps = json!([{"say": "before "}, {"ask": "go on?"}, {"say": "after"}]);
        let waits = |client: &Client| format!("{:?}", client.session(URI).input_needed).contains("ChatInput(");
        let answer = |_: &Client| {
            let answer = json!({"state": "submitted", "value": {"kind": "text", "value": "yes"}});
            json!({"type": "chat/inputCompleted", "requestId": "t-ask-1", "response": "accept",
                "answers": {"answer": answer}})
        };
        assert_eq!(survives(end, steps, waits, answer).await, "before after", "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_stop_keeps_a_turn_whose_result_waits_for_confirmation() {
    for end in [StopKind::Kill, StopKind::CleanStop] {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        client.ready_session(URI).await;
        let tools = json!({"clientId": "a", "tools": [{"name": "look"}]});
        client.dispatch(URI, json!({"type": "session/activeClientSet", "activeClient": tools})).await;
        client.script(CHAT, "t", json!([{"clientTool": {"name": "look"}}, {"say": "after"}])).await;
        client.call_that(CHAT, |call| matches!(call, ToolCallState::Running(_))).await;
        let result = json!({"success": true, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": "x"}]});
        let done = json!({"type": "chat/toolCallComplete", "turnId": "t", "toolCallId": "t-call-0", "result": result,
            "requiresResultConfirmation": true});
        client.dispatch(CHAT, done).await;
        client.call_that(CHAT, |call| matches!(call, ToolCallState::PendingResultConfirmation(_))).await;
        restart(&mut host, &mut client, end).await;
        client.call_that(CHAT, |call| matches!(call, ToolCallState::PendingResultConfirmation(_))).await;
        let confirm = json!({"type": "chat/toolCallResultConfirmed", "turnId": "t", "toolCallId": "t-call-0",
            "approved": true});
        client.dispatch(CHAT, confirm).await;
        let turn = client.turn_end(CHAT, "t").await;
        assert_eq!((turn.state, markdown(&turn.response_parts)), (TurnState::Complete, "after".to_owned()), "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_stop_keeps_a_turn_that_its_agent_has_not_seen_yet() {
    for end in [StopKind::Kill, StopKind::CleanStop] {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        let mut creator = host.client("b").await;
        let create = json!({"session": URI, "model": "scripted/slow-start"});
        creator.call::<()>("createSession", create).await.unwrap();
        client.subscribe(URI).await.unwrap();
        client.subscribe(CHAT).await.unwrap();
        client.script(CHAT, "t", json!([{"say": "at last"}])).await;
        client.until(|client| client.chat(CHAT).active_turn.is_some()).await;
        assert_eq!(client.session(URI).lifecycle, SessionLifecycle::Creating);
        restart(&mut host, &mut client, end).await;
        let turn = client.turn_end(CHAT, "t").await;
        assert_eq!(
            (turn.state, markdown(&turn.response_parts)),
            (TurnState::Complete, "at last".to_owned()),
            "{end:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_stop_starts_no_queued_message_that_it_would_have_to_cut_off() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    client.script(CHAT, "t", json!([{"sleepMs": 1_000}, {"say": "in time"}])).await;
    client.until(|client| client.chat(CHAT).active_turn.is_some()).await;
    let message = json!({"text": format!("script:{}", json!([{"sleepMs": 15_000}, {"say": "later"}])),
        "origin": {"kind": "user"}});
    let queued = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message});
    client.dispatch(CHAT, queued).await;
    client.until(|client| client.chat(CHAT).queued_messages.as_ref().is_some_and(|all| !all.is_empty())).await;
    host.host.stop().await;
    client.until_end().await;
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(&mut client).await;
    let turn = client.turn_end(CHAT, "q").await;
    assert_eq!((turn.state, markdown(&turn.response_parts)), (TurnState::Complete, "later".to_owned()));
    let states: Vec<_> = client.chat(CHAT).turns.iter().map(|turn| turn.state).collect();
    assert_eq!(states, [TurnState::Complete, TurnState::Complete]);
}
