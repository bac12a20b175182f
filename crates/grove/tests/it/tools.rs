//! Tool calls and their permission requests.

use grove_testkit::Client;
use grove_wire::v1::{PermissionKind, ToolCallStatus, ToolKind, TurnState};
use serde_json::{Value, json};

use crate::support::*;

/// The last received action of this type.
fn last(client: &Client, kind: &str) -> Value {
    client.envelopes.iter().rev().map(action_of).find(|action| action["type"] == kind).unwrap()
}

/// Starts a turn with one tool call that needs permission, and waits for it. Returns the request's id.
async fn asks(client: &mut Client, turn: &str, tool: Value) -> String {
    client.script(S, turn, json!([{"tool": tool}, {"say": "after"}])).await;
    client.asked(S).await
}

#[tokio::test]
async fn a_tool_call_without_a_permission_starts_and_completes() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.envelopes.clear();
    let tool = json!({"name": "grep", "input": {"pattern": "x"}, "output": "3 matches"});
    let turn = client.run_script(S, "t", json!([{"tool": tool}])).await;
    assert_eq!(
        client.kinds(),
        ["session/turnStarted", "session/toolStart", "session/toolComplete", "session/turnComplete"]
    );
    let started = last(&client, "session/toolStart");
    assert_eq!(
        started["toolCall"],
        json!({
            "toolCallId": "t-call-0", "toolName": "grep", "displayName": "grep",
            "invocationMessage": "Running grep", "toolInput": r#"{"pattern":"x"}"#, "status": "running",
        })
    );
    let completed = last(&client, "session/toolComplete");
    assert_eq!(completed["toolCallId"], "t-call-0");
    let result = json!({"success": true, "pastTenseMessage": "Ran grep", "toolOutput": "3 matches"});
    assert_eq!(completed["result"], result);
    assert_eq!(
        serde_json::to_value(&turn.tool_calls).unwrap(),
        json!([{
            "toolCallId": "t-call-0", "toolName": "grep", "displayName": "grep",
            "success": true, "pastTenseMessage": "Ran grep", "toolOutput": "3 matches",
        }])
    );
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn a_tool_call_that_fails_is_failed_and_the_turn_goes_on() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client
        .script(
            S,
            "t",
            json!([{"tool": {"name": "make", "output": "error", "success": false}}, {"say": "x"}, {"hang": true}]),
        )
        .await;
    client.streamed(S, "x").await;
    let call = &client.active(S).tool_calls["t-call-0"];
    assert_eq!(
        (call.status, call.success, call.tool_output.as_deref()),
        (ToolCallStatus::Failed, Some(false), Some("error"))
    );
    client.cancel(S, "t").await;
    let turn = client.turn_end(S, "t").await;
    assert_eq!((turn.tool_calls[0].success, turn.tool_calls[0].past_tense_message.as_str()), (false, "make failed"));
}

#[tokio::test]
async fn each_kind_of_permission_can_be_approved() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let kinds = [
        ("shell", PermissionKind::Shell),
        ("write", PermissionKind::Write),
        ("mcp", PermissionKind::Mcp),
        ("read", PermissionKind::Read),
        ("url", PermissionKind::Url),
    ];
    for (name, kind) in kinds {
        client.envelopes.clear();
        let tool = json!({"name": "tool", "input": "the input", "output": "done", "permission": name});
        let request_id = asks(&mut client, name, tool).await;
        let call_id = format!("{name}-call-0");
        let request = client.active(S).pending_permissions[&request_id].clone();
        assert_eq!((request.permission_kind, request.tool_call_id.as_ref()), (kind, Some(&call_id)));
        assert_eq!((request.request_id, request.intention.as_deref()), (request_id.clone(), Some("Run tool")));
        let input = Some("the input".to_owned());
        let names_path = matches!(kind, PermissionKind::Read | PermissionKind::Write);
        assert_eq!(request.path, input.clone().filter(|_| names_path), "{name}");
        assert_eq!(request.full_command_text, input.filter(|_| kind == PermissionKind::Shell), "{name}");
        let call = &client.active(S).tool_calls[&call_id];
        assert_eq!(call.status, ToolCallStatus::PendingPermission);
        let terminal = (kind == PermissionKind::Shell).then_some(ToolKind::Terminal);
        assert_eq!((call.tool_kind, call.language.is_some()), (terminal, terminal.is_some()));
        assert_eq!(host.snapshot(S).await, *client.session(S));

        let seq = client.approve(S, name, &request_id).await;
        assert_eq!(client.answer_to(seq).await.rejection_reason, None);
        let turn = client.turn_end(S, name).await;
        assert_eq!((turn.state, turn.tool_calls[0].success), (TurnState::Complete, true));
        assert_eq!(
            client.kinds(),
            [
                "session/turnStarted",
                "session/toolStart",
                "session/permissionRequest",
                "session/permissionResolved",
                "session/toolComplete",
                "session/delta",
                "session/turnComplete",
            ]
        );
    }
}

#[tokio::test]
async fn each_kind_of_permission_can_be_denied() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    for kind in ["shell", "write", "mcp", "read", "url"] {
        client.envelopes.clear();
        let request = asks(&mut client, kind, json!({"name": "tool", "output": "done", "permission": kind})).await;
        client.deny(S, kind, &request).await;
        let turn = client.turn_end(S, kind).await;
        assert_eq!(turn.state, TurnState::Complete, "the agent goes on without it");
        let call = &turn.tool_calls[0];
        assert_eq!((call.success, call.past_tense_message.as_str()), (false, "Running tool"));
        assert_eq!(call.tool_output, None);
        assert!(!client.kinds().contains(&"session/toolComplete".to_owned()));
        let resolved = last(&client, "session/permissionResolved");
        assert_eq!((&resolved["requestId"], &resolved["approved"]), (&json!(request), &json!(false)));
        assert_eq!(host.snapshot(S).await, *client.session(S));
    }
}

#[tokio::test]
async fn any_subscriber_may_answer_and_all_of_them_see_it() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    let request = asks(&mut client, "t", json!({"name": "tool", "permission": "shell"})).await;
    other.asked(S).await;
    let seq = other.approve(S, "t", &request).await;
    client.turn_end(S, "t").await;
    let resolved = client.envelopes.iter().find(|envelope| kind_of(envelope) == "session/permissionResolved").unwrap();
    let origin = resolved.origin.as_ref().unwrap();
    assert_eq!((origin.client_id.as_str(), origin.client_seq), ("b", seq));
}

#[tokio::test]
async fn a_call_that_never_completed_ends_unsuccessful_under_its_first_message() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client
        .script(
            S,
            "t",
            json!([{"tool": {"name": "first", "output": "o"}}, {"tool": {"name": "second", "permission": "write"}}]),
        )
        .await;
    client.asked(S).await;
    client.cancel(S, "t").await;
    let turn = client.turn_end(S, "t").await;
    let calls: Vec<_> = turn.tool_calls.iter().map(|call| (call.success, call.past_tense_message.as_str())).collect();
    assert_eq!(calls, [(true, "Ran first"), (false, "Running second")], "in the order of their start");
    assert_eq!(host.snapshot(S).await, *client.session(S));
}
