//! The notices of a whole host, with their receivers and times.

use std::time::Duration;

use grove_core::Scope;
use grove_notify::http::PostAnswer;
use grove_testkit::host::TOKEN;
use grove_wire::ahp::ToolCallState;
use serde_json::json;

use crate::harness::*;

const PHONE: &str = "https://push.example/phone";

/// Starts a turn that asks for permission, from a client that is gone then.
async fn asked(host: &NotifyHost) -> String {
    let mut client = host.client(TOKEN, "maker").await;
    let chat = client.ready_session(URI).await;
    client.script(&chat, "t", ask()).await;
    client.call_that(&chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
    chat
}

/// Approves the pending permission request.
async fn approve(host: &NotifyHost, chat: &str, id: &str) {
    let mut client = host.client(TOKEN, id).await;
    client.follow(URI).await;
    let waits = |call: &ToolCallState| matches!(call, ToolCallState::PendingConfirmation(_));
    let call = client.call_that(chat, waits).await;
    let ToolCallState::PendingConfirmation(call) = call else { panic!("it waits") };
    let confirmed = json!({
        "type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": call.base.tool_call_id, "approved": true,
        "confirmed": "user-action",
    });
    client.dispatch(chat, confirmed).await;
    client.turn_end(chat, "t").await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_request_is_told_and_its_answer_closes_it() {
    let host = NotifyHost::start().await;
    let mut phone = host.client(&host.add_token("phone", &[Scope::Read]), "phone").await;
    phone.ask("x-grove/notify/subscribe", subscription(PHONE)).await.unwrap();
    let chat = asked(&host).await;
    seconds(40).await;
    assert_eq!(host.hooked().len(), 1, "{:?}", host.hooked());
    assert_eq!(host.pushed(PHONE), ["high"]);
    approve(&host, &chat, "person").await;
    seconds(60).await;
    // The close, and the end of the turn.
    assert_eq!(host.pushed(PHONE), ["high", "low", "normal"]);
    let events: Vec<_> = host.hooked().into_iter().map(|(_, event)| event).collect();
    assert_eq!(events, ["waiting", "finished"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_of_a_request_that_is_answered_by_somebody_who_has_the_session_open() {
    let host = NotifyHost::start().await;
    let mut client = host.client(TOKEN, "person").await;
    let chat = client.ready_session(URI).await;
    client.script(&chat, "t", ask()).await;
    seconds(15).await;
    assert_eq!(host.hooked(), [], "a person has the session open");
    approve(&host, &chat, "other").await;
    client.dispatch(URI, json!({"type": "session/isReadChanged", "isRead": true})).await;
    seconds(600).await;
    assert_eq!(host.hooked(), [], "and has read the end of the turn");
}

#[tokio::test(start_paused = true)]
async fn a_person_who_does_not_answer_is_told_after_a_while_on_other_devices() {
    let host = NotifyHost::start().await;
    let mut client = host.client(TOKEN, "person").await;
    let chat = client.ready_session(URI).await;
    client.script(&chat, "t", ask()).await;
    client.call_that(&chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
    seconds(30).await;
    assert_eq!(host.hooked(), [(20, "waiting".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn in_quiet_hours_the_webhook_is_told_in_the_morning() {
    let quiet = Some("11:00-13:00 UTC".parse().unwrap());
    let host = NotifyHost::with(grove_notify::NotifyConfig { quiet, ..config() }, &Disk::default()).await;
    asked(&host).await;
    seconds(50 * 60).await;
    assert_eq!(host.hooked(), []);
    seconds(11 * 60).await;
    assert_eq!(host.hooked(), [(60 * 60, "waiting".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_is_told_and_a_stopped_one_is_not() {
    let host = NotifyHost::start().await;
    let mut client = host.client(TOKEN, "maker").await;
    let chat = client.ready_session(URI).await;
    client.script(&chat, "stopped", json!([{"hang": true}])).await;
    client.dispatch(&chat, json!({"type": "chat/turnCancelled", "turnId": "stopped", "duration": 1})).await;
    client.turn_end(&chat, "stopped").await;
    seconds(60).await;
    assert_eq!(host.hooked(), []);
    client.run_script(&chat, "failed", json!([{"fail": "no credit"}])).await;
    drop(client);
    seconds(60).await;
    let events: Vec<_> = host.hooked().into_iter().map(|(_, event)| event).collect();
    assert_eq!(events, ["failed"]);
    let body = host.network.posts.lock().unwrap()[0].1.body.clone();
    assert!(!String::from_utf8_lossy(&body).contains("no credit"), "an agent's words are not sent");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_busy_is_asked_again_when_it_says_and_not_for_ever() {
    let host = NotifyHost::start().await;
    let busy = PostAnswer { status: 429, retry_after: Some(Duration::from_secs(100)) };
    host.network.answers.lock().unwrap().extend([status(503), busy]);
    asked(&host).await;
    seconds(600).await;
    let times: Vec<_> = host.hooked().into_iter().map(|(at, _)| at).collect();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [5, 100]);

    let host = NotifyHost::start().await;
    host.network.answers.lock().unwrap().extend([(); 100].map(|()| status(500)));
    asked(&host).await;
    seconds(24 * 60 * 60).await;
    assert_eq!(host.hooked().len(), 5);

    let host = NotifyHost::start().await;
    host.network.answers.lock().unwrap().extend([status(301), status(500)]);
    asked(&host).await;
    seconds(600).await;
    assert_eq!(host.hooked().len(), 1, "a redirect is not followed, and not tried again");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_signed_anew_for_each_attempt_under_one_id() {
    let host = NotifyHost::start().await;
    host.network.answers.lock().unwrap().push_back(status(500));
    asked(&host).await;
    seconds(60).await;
    let posts = host.network.posts.lock().unwrap();
    let [first, second] = posts.as_slice() else { panic!("two attempts: {posts:?}") };
    assert_eq!(first.1.body, second.1.body);
    let signature =
        |post: &grove_notify::http::Post| post.headers[grove_notify::SIGNATURE_HEADER].to_str().unwrap().to_owned();
    assert_ne!(signature(&first.1), signature(&second.1));
    let body: serde_json::Value = serde_json::from_slice(&first.1.body).unwrap();
    assert_eq!((&body["version"], &body["event"], &body["session"]), (&json!(1), &json!("waiting"), &json!(URI)));
}
