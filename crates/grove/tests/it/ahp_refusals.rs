//! Rejected or ineffective actions in the Agent Host Protocol: only their sender gets an answer.

use grove_testkit::ahp::{message, turn_started};
use grove_wire::ahp::{Method, ROOT};
use serde_json::{Value, json};

use crate::ahp_support::*;
use crate::support::*;

fn with(mut action: Value, more: Value) -> Value {
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

#[tokio::test]
async fn what_may_not_be_is_refused_with_a_reason_and_nobody_else_hears_of_it() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let mut other = host.ahp_connect("b").await;
    other.initialize(&[ROOT, S, CHAT]).await;
    client.run_script(CHAT, "done", json!([{"tool": {"name": "ls"}}, {"fail": "on purpose"}])).await;
    client.script(CHAT, "t", json!([{"tool": {"name": "ls"}}, {"ask": "really?"}])).await;
    client.until(|client| client.session(S).input_needed.is_some()).await;
    other.until(|other| other.session(S).input_needed.is_some()).await;
    other.barrier().await;
    let heard = other.envelopes.len();

    let of_agent = json!({"text": "x", "origin": {"kind": "agent"}});
    let call = json!({"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "t-call-0", "approved": true});
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "t", "duration": 0});
    let start = |more: Value| with(turn_started("new", "x"), more);
    let queue = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message("x")});
    let answer = json!({"state": "submitted", "value": {"kind": "text", "value": "x"}});
    let cases = [
        // Calls that are not pending.
        (CHAT, call.clone(), "does not wait"),
        (CHAT, with(call.clone(), json!({"toolCallId": "none"})), "unknown"),
        (CHAT, with(call.clone(), json!({"turnId": "done"})), "not the active turn"),
        (
            CHAT,
            json!({"type": "chat/toolCallResultConfirmed", "turnId": "t", "toolCallId": "t-call-0", "approved": true}),
            "no pending result",
        ),
        (
            CHAT,
            json!({"type": "chat/toolCallComplete", "turnId": "t", "toolCallId": "t-call-0",
                "result": {"success": true, "pastTenseMessage": "did"}}),
            "run by the agent",
        ),
        // Turns that do not run, or must not.
        (CHAT, with(cancel.clone(), json!({"turnId": "done"})), "not the active turn"),
        (CHAT, with(cancel.clone(), json!({"duration": -1})), "negative"),
        (CHAT, json!({"type": "chat/turnResume", "turnId": "done"}), "cannot be resumed"),
        (CHAT, json!({"type": "chat/truncated"}), "still in progress"),
        (CHAT, start(json!({})), "still in progress"),
        (CHAT, start(json!({"startedAt": "yesterday"})), "RFC 3339"),
        (CHAT, start(json!({"startedAt": "9999-12-30T21:00:00Z"})), "too far in the future"),
        (CHAT, start(json!({"turnId": ""})), "empty"),
        (CHAT, start(json!({"turnId": "x".repeat(300)})), "256"),
        (CHAT, start(json!({"message": of_agent})), "only send user messages"),
        (CHAT, start(json!({"message": {"text": "x", "origin": {"kind": "oracle"}}})), "oracle"),
        (CHAT, start(json!({"queuedMessageId": "q"})), "by itself"),
        // Messages.
        (CHAT, with(queue.clone(), json!({"message": of_agent})), "only send user messages"),
        (CHAT, with(queue.clone(), json!({"kind": "steering", "message": of_agent})), "only send user messages"),
        (CHAT, with(queue.clone(), json!({"message": with(message("x"), json!({"model": {"id": "none"}}))})), "none"),
        (CHAT, json!({"type": "chat/draftChanged", "draft": of_agent}), "only send user messages"),
        // Questions.
        (CHAT, json!({"type": "chat/inputCompleted", "requestId": "none", "response": "decline"}), "none"),
        (
            CHAT,
            json!({"type": "chat/inputAnswerChanged", "requestId": "none", "questionId": "answer", "answer": answer}),
            "none",
        ),
        (
            CHAT,
            json!({"type": "chat/inputCompleted", "requestId": "t-ask-1", "response": "accept"}),
            "must be answered",
        ),
        // Actions that only the host may send, of another channel, or unknown.
        (S, json!({"type": "session/defaultChatChanged", "defaultChat": "ahp-chat:/none"}), "only the host"),
        (S, json!({"type": "session/ready"}), "only the host"),
        (CHAT, json!({"type": "chat/delta", "turnId": "t", "partId": "p", "content": "x"}), "only the host"),
        (S, cancel.clone(), "chat's channel"),
        (ROOT, json!({"type": "root/configChanged", "config": {}}), "channel"),
        (ROOT, json!({"type": "session/titleChanged", "title": "x"}), "channel"),
        (S, json!({"type": "session/activeClientSet", "activeClient": active_client("b", &[])}), "host"),
        (S, json!({"type": "session/configChanged", "config": {"a": 1}}), "no settings"),
        (S, json!({"type": "future/thing", "any": ["thing"]}), "is unknown"),
        (S, json!({"type": "nonsense"}), "is unknown"),
        // Known but malformed actions.
        (CHAT, json!({"type": "chat/turnCancelled", "turnId": "t"}), "duration"),
        (CHAT, with(cancel, json!({"duration": "long"})), "duration"),
        (S, json!({"type": "session/titleChanged", "title": 7}), "title"),
        (S, json!({"title": "x"}), "type"),
        (S, json!("session/ready"), ""),
    ];
    let mut others = Vec::new();
    for (channel, action, why) in cases {
        let reason = client.rejected(channel, action.clone()).await;
        if !reason.contains(why) {
            others.push(format!("{action}: {why:?} is not in {reason:?}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    client.must_agree_on_all().await;
    other.barrier().await;
    assert_eq!(other.envelopes.len(), heard);
    other.must_agree_on_all().await;
}

#[tokio::test]
async fn a_used_id_is_no_new_turns() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    client.run_script(CHAT, "t", json!([])).await;
    let reason = client.rejected(CHAT, turn_started("t", "script:[]")).await;
    assert!(reason.contains("choose another id"), "{reason}");
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "t", "duration": 0});
    assert!(client.rejected(CHAT, cancel).await.contains("not the active turn"));
}

#[tokio::test]
async fn an_action_for_a_channel_that_is_not_there_is_passed_over_in_silence() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    client.barrier().await;
    let heard = client.envelopes.len();
    for channel in ["scripted:/none", "ahp-session:/none", "ahp-chat:/none", "nonsense", "", "ahp-terminal:/s"] {
        client.dispatch(channel, json!({"type": "session/titleChanged", "title": "x"})).await;
        client.dispatch(channel, json!({"type": "nonsense"})).await;
    }
    client.notify("dispatchAction", json!({"channel": S})).await;
    client.notify("noSuchNotification", json!({"channel": S})).await;
    client.barrier().await;
    assert_eq!(client.envelopes.len(), heard);
    client.run_script(CHAT, "t", json!([])).await;
}

#[tokio::test]
async fn what_changes_nothing_is_echoed_to_its_sender_alone() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let mut other = host.ahp_subscriber("b").await;
    let draft = message("so far");
    let actions = [
        (S, json!({"type": "session/titleChanged", "title": "Named"})),
        (S, json!({"type": "session/isReadChanged", "isRead": false})),
        (S, json!({"type": "session/isArchivedChanged", "isArchived": true})),
        (S, json!({"type": "session/activeClientSet", "activeClient": active_client("a", &["x"])})),
        (CHAT, json!({"type": "chat/isReadChanged", "isRead": false})),
        (CHAT, json!({"type": "chat/draftChanged", "draft": draft})),
    ];
    for (channel, action) in &actions {
        let seq = client.dispatch(channel, action.clone()).await;
        client.answer_to(seq).await;
    }
    other.barrier().await;
    let heard = other.envelopes.len();
    assert!(heard >= actions.len());
    for (channel, action) in actions {
        let seq = client.dispatch(channel, action.clone()).await;
        let echo = client.answer_to(seq).await;
        assert_eq!((echo.action, echo.rejection_reason), (action, None), "its sender is done with it");
    }
    other.barrier().await;
    assert_eq!(other.envelopes.len(), heard);
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn what_an_action_says_beyond_what_is_known_is_echoed_to_all() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let mut other = host.ahp_subscriber("b").await;
    (client.strict, other.strict) = (false, false);
    let action = json!({
        "type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-10-10T10:00:00.000Z", "shade": {"deep": [1]},
        "message": {
            "text": "script:[]", "origin": {"kind": "user", "device": "phone"},
            "attachments": [{"type": "simple", "label": "a"}, {"type": "simple", "label": "b", "colour": "red"}],
        },
    });
    let seq = client.dispatch(CHAT, action.clone()).await;
    assert_eq!(client.answer_to(seq).await.action, action);
    other.turn_end(CHAT, "t").await;
    let echo = other.envelopes.iter().find(|envelope| envelope.action["type"] == "chat/turnStarted").unwrap();
    assert_eq!(echo.action, action);
    // And to a reconnecting client.
    let mut back = host.ahp("c").await;
    back.strict = false;
    drop(back);
    let mut back = host.ahp_connect("c").await;
    back.strict = false;
    let params =
        json!({"channel": ROOT, "clientId": "c", "lastSeenServerSeq": echo.server_seq - 1, "subscriptions": [CHAT]});
    let replay = back.ask("reconnect", params).await.unwrap();
    assert_eq!(replay["actions"][0]["action"], action);
    // Excess is dropped; the rest is echoed.
    let much = json!({"type": "session/titleChanged", "title": "T", "much": "x".repeat(70_000)});
    let seq = client.dispatch(S, much).await;
    assert_eq!(client.answer_to(seq).await.action, json!({"type": "session/titleChanged", "title": "T"}));
}

#[tokio::test]
async fn a_chat_cannot_begin_with_words_of_the_agent() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    let message = json!({"text": "x", "origin": {"kind": "agent"}});
    let params = json!({"channel": S, "chat": "ahp-chat:/side", "initialMessage": message});
    assert_eq!(client.refused(Method::CreateChat, params).await.code, -32602);
    client.barrier().await;
    assert_eq!(client.session(S).chats.len(), 1, "and there is no such chat");
}

#[tokio::test]
async fn a_start_before_all_calendars_and_one_in_another_zone_are_taken() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    for (turn, claimed, kept) in [
        ("old", "1960-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
        ("zone", "2026-10-10T10:00:00.123456+02:00", "2026-10-10T08:00:00.123Z"),
        ("late", "9998-12-31T23:59:59.999Z", "9998-12-31T23:59:59.999Z"),
    ] {
        client
            .dispatch(CHAT, with(turn_started(turn, "script:[{\"sleepMs\":5}]"), json!({"startedAt": claimed})))
            .await;
        assert_eq!(client.turn_end(CHAT, turn).await.started_at.as_deref(), Some(kept));
        client.must_agree_on_all().await;
    }
}
