//! Clients of both protocols and of several versions on one session.

use grove_testkit::ahp::{Client, markdown, turn_started};
use grove_wire::ahp::ToolCallState;
use grove_wire::v1::ResponsePart;
use serde_json::{Value, json};

use crate::ahp_support::*;
use crate::support::*;

async fn confirm(client: &mut Client, turn: &str) {
    let asked = |call: &ToolCallState| matches!(call, ToolCallState::PendingConfirmation(_));
    client.call_that(CHAT, asked).await;
    client
        .dispatch(
            CHAT,
            json!({
                "type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": format!("{turn}-call-1"),
                "approved": true, "confirmed": "user-action",
            }),
        )
        .await;
}

#[tokio::test]
async fn clients_of_every_protocol_see_one_conversation_and_each_may_answer() {
    let host = Host::start();
    let mut old = host.client_with_session("v1").await;
    let mut earlier = host.ahp_connect("0.9").await;
    earlier.initialize_with(&["0.9.0"], &[S, CHAT]).await.unwrap();
    let mut newer = host.ahp_connect("1.0").await;
    newer.initialize_with(&["1.0.0"], &[S, CHAT]).await.unwrap();
    let script = json!([
        {"say": "before "}, {"tool": {"name": "sh", "input": "ls", "output": "x", "permission": "shell"}}, {"say": "after"},
    ]);
    for turn in ["by-v1", "by-0.9", "by-1.0"] {
        match turn {
            "by-v1" => {
                newer.script(CHAT, turn, script.clone()).await;
                let request = old.asked(S).await;
                old.approve(S, turn, &request).await;
            }
            "by-0.9" => {
                old.script(S, turn, script.clone()).await;
                confirm(&mut earlier, turn).await;
            }
            _ => {
                earlier.script(CHAT, turn, script.clone()).await;
                confirm(&mut newer, turn).await;
            }
        }
        let seen = newer.turn_end(CHAT, turn).await;
        assert_eq!(earlier.turn_end(CHAT, turn).await, seen);
        let theirs = old.turn_end(S, turn).await;
        let text = theirs.response_parts.iter().filter_map(|part| match part {
            ResponsePart::Markdown { content } => Some(content.as_str()),
            _ => None,
        });
        assert_eq!(text.collect::<String>(), markdown(&seen.response_parts));
        assert_eq!((theirs.tool_calls.len(), theirs.user_message.text.as_str()), (1, seen.message.text.as_str()));
        for client in [&mut earlier, &mut newer] {
            client.barrier().await;
            client.must_agree_on_all().await;
        }
        old.must_agree(S).await;
    }
}

#[tokio::test]
async fn a_refusal_of_one_protocol_is_nothing_to_the_other() {
    let host = Host::start();
    let mut old = host.client_with_session("v1").await;
    let mut newer = host.ahp_subscriber("1.0").await;
    newer.script(CHAT, "t", json!([{"hang": true}])).await;
    old.until(|old| old.session(S).active_turn.is_some()).await;
    newer.rejected(CHAT, turn_started("u", "x")).await;
    old.rejected(turn_started_v1("u")).await;
    for _ in 0..2 {
        old.barrier().await;
        newer.barrier().await;
    }
    assert_eq!(old.envelopes.iter().filter(|envelope| envelope.rejection_reason.is_some()).count(), 1);
    assert_eq!(newer.envelopes.iter().filter(|envelope| envelope.rejection_reason.is_some()).count(), 1);
}

fn turn_started_v1(turn: &str) -> Value {
    json!({"type": "session/turnStarted", "session": S, "turnId": turn, "userMessage": {"text": "x"}})
}

#[tokio::test]
async fn version_1_sees_a_sessions_main_chat_and_nothing_of_the_others() {
    let host = Host::start();
    let mut newer = host.ahp_with_session("1.0").await;
    let mut old = host.subscriber("v1").await;
    newer.get(grove_wire::ahp::Method::CreateChat, json!({"channel": S, "chat": "ahp-chat:/side"})).await;
    newer.subscribe("ahp-chat:/side").await.unwrap();
    newer.run_script("ahp-chat:/side", "aside", json!([{"say": "aside"}])).await;
    newer.run_script(CHAT, "t", json!([{"say": "for all"}])).await;
    old.turn_end(S, "t").await;
    old.barrier().await;
    assert!(old.kinds().iter().all(|kind| kind.starts_with("session/")));
    assert_eq!(old.session(S).turns.len(), 1);
    old.must_agree(S).await;
}

#[tokio::test]
async fn text_waits_for_more_of_it_where_a_subscriber_says_so() {
    let host = Host::start();
    let mut quick = host.ahp_with_session("quick").await;
    let mut patient = host.ahp("patient").await;
    patient.subscribe(S).await.unwrap();
    patient.subscribe_with(json!({"channel": CHAT, "delivery": {"maxLatencyMs": 5_000}})).await.unwrap();
    let script =
        json!([{"say": "x".repeat(300), "chunks": 300, "delayMs": 1}, {"tool": {"name": "ls"}}, {"say": "end"}]);
    quick.script(CHAT, "t", script).await;
    // Pending requests are sent before a response, so that they are in its state.
    for _ in 0..5 {
        quick.barrier().await;
        patient.subscribe_with(json!({"channel": CHAT, "delivery": {"maxLatencyMs": 5_000}})).await.unwrap();
    }
    let turn = quick.turn_end(CHAT, "t").await;
    assert_eq!(patient.turn_end(CHAT, "t").await, turn);
    let deltas = |client: &Client| client.kinds(CHAT).iter().filter(|kind| **kind == "chat/delta").count();
    assert!(deltas(&quick) > 100 && deltas(&patient) < 20, "{} and {}", deltas(&quick), deltas(&patient));
    patient.must_agree_on_all().await;
}
