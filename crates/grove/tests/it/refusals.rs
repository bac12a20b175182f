//! Rejected actions: echoed to their sender with a reason, and to no other client.

use grove_testkit::Client;
use grove_wire::v1::{ActionType, TurnState};
use serde_json::{Value, json};

use crate::support::*;

/// A host with a session in which turn `t` hangs, its client, and another subscriber.
async fn hanging() -> (Host, Client, Client) {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    client.script(S, "t", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed(S, "x").await;
    other.streamed(S, "x").await;
    (host, client, other)
}

/// Checks that an action is rejected properly: to its sender alone, under its own number, without an effect.
///
/// Returns the reason.
async fn is_rejected(host: &Host, client: &mut Client, other: &mut Client, action: Value) -> String {
    other.barrier().await;
    let (told, before) = (other.envelopes.len(), host.snapshot(S).await);
    let seen = client.seen;
    let seq = client.dispatch(action.clone()).await;
    let answer = client.answer_to(seq).await;
    let reason = answer.rejection_reason.clone().unwrap_or_else(|| panic!("{action} was accepted"));
    assert!(!reason.is_empty());
    let origin = answer.origin.clone().unwrap();
    assert_eq!((origin.client_id, origin.client_seq), (client.client_id.clone(), seq));
    assert_eq!(action_of(&answer), action, "the action comes back as it was");
    assert!(answer.server_seq > seen, "it has a number of its own");
    other.barrier().await;
    assert_eq!(other.envelopes.len(), told, "nobody else hears of it");
    let after = host.snapshot(S).await;
    assert_eq!(after, before, "nothing changed");
    assert_eq!(*client.session(S), after, "and the sender's state is the host's");
    reason
}

#[tokio::test]
async fn a_turn_started_while_one_is_active_is_rejected() {
    let (host, mut client, mut other) = hanging().await;
    let reason = is_rejected(&host, &mut client, &mut other, turn_started(S, "u", &json!([]))).await;
    assert!(reason.contains("in progress"), "{reason}");
    is_rejected(&host, &mut client, &mut other, turn_started(S, "t", &json!([]))).await;
    other.cancel(S, "t").await;
    assert_eq!(client.turn_end(S, "t").await.state, TurnState::Cancelled);
}

#[tokio::test]
async fn a_second_cancel_is_rejected() {
    let (host, mut client, mut other) = hanging().await;
    let first = client.cancel(S, "t").await;
    assert_eq!(client.answer_to(first).await.rejection_reason, None);
    let again = json!({"type": "session/turnCancelled", "session": S, "turnId": "t"});
    let reason = is_rejected(&host, &mut client, &mut other, again.clone()).await;
    assert!(reason.contains("not the active turn"), "{reason}");
    is_rejected(&host, &mut other, &mut client, again).await;
}

#[tokio::test]
async fn of_two_clients_that_cancel_at_once_one_is_echoed_and_one_rejected() {
    let (_host, mut client, mut other) = hanging().await;
    let (mine, theirs) = (client.cancel(S, "t").await, other.cancel(S, "t").await);
    let reasons = [client.answer_to(mine).await.rejection_reason, other.answer_to(theirs).await.rejection_reason];
    assert_eq!(reasons.iter().filter(|reason| reason.is_none()).count(), 1, "{reasons:?}");
    assert_eq!(client.session(S).turns, other.session(S).turns);
}

#[tokio::test]
async fn a_second_answer_and_an_answer_to_nothing_are_rejected() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    let tool = json!([{"tool": {"name": "rm", "permission": "shell"}}, {"hang": true}]);
    client.script(S, "t", tool).await;
    client.asked(S).await;
    let unknown = permission_resolved(S, "t", "none-such", true);
    let reason = is_rejected(&host, &mut client, &mut other, unknown).await;
    assert!(reason.contains("none-such"), "{reason}");

    let completed = |client: &Client| client.kinds().contains(&"session/toolComplete".to_owned());
    client.approve(S, "t", "t-permission-0").await;
    client.until(completed).await;
    let reason =
        is_rejected(&host, &mut client, &mut other, permission_resolved(S, "t", "t-permission-0", false)).await;
    assert!(reason.contains("answered already"), "{reason}");

    let seq = client.cancel(S, "t").await;
    client.answer_to(seq).await;
    let late = permission_resolved(S, "t", "t-permission-0", true);
    let reason = is_rejected(&host, &mut client, &mut other, late).await;
    assert!(reason.contains("not the active turn"), "{reason}");
}

#[tokio::test]
async fn an_action_for_a_turn_that_is_not_active_is_rejected() {
    let (host, mut client, mut other) = hanging().await;
    let cancel = json!({"type": "session/turnCancelled", "session": S, "turnId": "none-such"});
    is_rejected(&host, &mut client, &mut other, cancel).await;
    is_rejected(&host, &mut client, &mut other, permission_resolved(S, "none-such", "r", true)).await;
}

#[tokio::test]
async fn a_turn_id_that_was_used_or_is_empty_is_rejected() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    client.run_script(S, "t", json!([])).await;
    is_rejected(&host, &mut client, &mut other, turn_started(S, "t", &json!([]))).await;
    is_rejected(&host, &mut client, &mut other, turn_started(S, "", &json!([]))).await;
}

#[tokio::test]
async fn every_action_that_only_the_host_may_dispatch_is_rejected() {
    let (host, mut client, mut other) = hanging().await;
    let error = json!({"errorType": "e", "message": "m"});
    let call = json!({
        "toolCallId": "c", "toolName": "n", "displayName": "d", "invocationMessage": "i", "status": "running",
    });
    let actions = [
        json!({"type": "session/ready"}),
        json!({"type": "session/creationFailed", "error": error}),
        json!({"type": "session/delta", "turnId": "t", "content": "c"}),
        json!({"type": "session/responsePart", "turnId": "t", "part": {"kind": "markdown", "content": "c"}}),
        json!({"type": "session/toolStart", "turnId": "t", "toolCall": call}),
        json!({
            "type": "session/toolComplete", "turnId": "t", "toolCallId": "c",
            "result": {"success": true, "pastTenseMessage": "p"},
        }),
        json!({
            "type": "session/permissionRequest", "turnId": "t",
            "request": {"requestId": "r", "permissionKind": "read"},
        }),
        json!({"type": "session/turnComplete", "turnId": "t"}),
        json!({"type": "session/error", "turnId": "t", "error": error}),
        json!({"type": "session/titleChanged", "title": "t"}),
        json!({"type": "session/usage", "turnId": "t", "usage": {}}),
        json!({"type": "session/reasoning", "turnId": "t", "content": "c"}),
    ];
    let mut tried: Vec<String> = vec!["root/agentsChanged".to_owned()];
    for mut action in actions {
        tried.push(action["type"].as_str().unwrap().to_owned());
        action["session"] = json!(S);
        let reason = is_rejected(&host, &mut client, &mut other, action).await;
        assert!(reason.contains("only the host"), "{reason}");
    }
    let agents = json!({"type": "root/agentsChanged", "agents": []});
    let reason = is_rejected(&host, &mut client, &mut other, agents).await;
    assert!(reason.contains("only the host"), "{reason}");

    let theirs: Vec<&str> =
        ActionType::ALL.iter().filter(|kind| !kind.client_may_dispatch()).map(|kind| kind.as_str()).collect();
    assert_eq!(tried, theirs, "none was forgotten");
}

#[tokio::test]
async fn an_action_of_an_unknown_type_is_rejected() {
    let (host, mut client, mut other) = hanging().await;
    for kind in ["session/dance", "", "root/dance"] {
        let action = json!({"type": kind, "session": S, "turnId": "t", "more": [1, {"a": null}]});
        is_rejected(&host, &mut client, &mut other, action).await;
    }
}

#[tokio::test]
async fn a_malformed_action_for_a_known_session_is_rejected() {
    let (host, mut client, mut other) = hanging().await;
    let actions = [
        json!({"session": S}),
        json!({"type": 5, "session": S}),
        json!({"type": null, "session": S}),
        json!({"type": "session/turnStarted", "session": S}),
        json!({"type": "session/turnStarted", "session": S, "turnId": "u"}),
        json!({"type": "session/turnStarted", "session": S, "turnId": "u", "userMessage": "hello"}),
        json!({"type": "session/turnStarted", "session": S, "turnId": 7, "userMessage": {"text": "hello"}}),
        json!({
            "type": "session/turnStarted", "session": S, "turnId": "u",
            "userMessage": {"text": "", "attachments": [{"type": "planet", "path": "/"}]},
        }),
        json!({"type": "session/turnCancelled", "session": S}),
        json!({"type": "session/permissionResolved", "session": S, "turnId": "t", "requestId": "r", "approved": "yes"}),
        json!({"type": "session/modelChanged", "session": S, "model": null}),
    ];
    for action in actions {
        is_rejected(&host, &mut client, &mut other, action).await;
    }
}

#[tokio::test]
async fn an_action_for_an_unknown_session_is_ignored_without_an_echo() {
    let (_host, mut client, _other) = hanging().await;
    let told = client.envelopes.len();
    client.dispatch(turn_started("scripted:/none-such", "t", &json!([]))).await;
    client.dispatch(json!({"type": "session/dance", "session": "scripted:/none-such"})).await;
    client.dispatch(json!({"type": "session/turnCancelled", "session": "elsewhere:/s", "turnId": "t"})).await;
    client.dispatch(json!({"type": "session/turnCancelled", "turnId": "t"})).await;
    client.dispatch(json!("an action")).await;
    client.barrier().await;
    let seq = client.dispatch(turn_started(S, "u", &json!([]))).await;
    client.answer_to(seq).await;
    assert_eq!(client.envelopes.len(), told + 1, "only what came last was answered");
}

#[tokio::test]
async fn an_action_for_a_session_that_is_not_subscribed_to_is_accepted() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut stranger = host.client("stranger").await;
    let seq = stranger.script(S, "t", json!([{"say": "from outside"}])).await;
    assert_eq!(client.turn_end(S, "t").await.state, TurnState::Complete);
    let started = client.envelopes.iter().find(|envelope| kind_of(envelope) == "session/turnStarted").unwrap();
    let origin = started.origin.as_ref().unwrap();
    assert_eq!((origin.client_id.as_str(), origin.client_seq), ("stranger", seq));
    stranger.barrier().await;
    assert_eq!(stranger.envelopes.len(), 0, "who is not subscribed does not see it");
    let reason = stranger.rejected(turn_started(S, "t", &json!([]))).await;
    assert!(reason.contains("another id"), "but a rejection reaches its sender: {reason}");
}

#[tokio::test]
async fn a_rejected_action_is_never_replayed() {
    let (host, mut client, mut other) = hanging().await;
    other.barrier().await;
    let seen = other.seen;
    drop(other);
    let seq = client.dispatch(turn_started(S, "u", &json!([]))).await;
    let rejected = client.answer_to(seq).await;
    let cancel = client.cancel(S, "t").await;
    let cancelled = client.answer_to(cancel).await;
    assert!(cancelled.server_seq > rejected.server_seq);
    for name in ["a", "b"] {
        let mut again = host.connect(name).await;
        let params = json!({"clientId": name, "lastSeenServerSeq": seen, "subscriptions": [S]});
        let result = again.get("reconnect", params).await;
        assert_eq!(result, json!({"type": "replay", "actions": [envelope_json(&cancelled)]}), "to {name}");
    }
}
