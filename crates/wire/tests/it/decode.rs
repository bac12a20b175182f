//! Decoding of clients' actions, and refusals.

use grove_core::{self as core, ClientCommand, Decision, MessageOrigin};
use grove_wire::v1::decode::{self, NotDispatchable};
use grove_wire::v1::*;
use serde_json::json;
use serde_json::value::to_raw_value;

fn parse(action: serde_json::Value) -> Result<Action, ActionError> {
    Action::parse(&to_raw_value(&action).unwrap())
}

fn command(action: serde_json::Value) -> Result<ClientCommand, NotDispatchable> {
    decode::command(parse(action).unwrap())
}

fn main() -> core::ChatId {
    core::Session::MAIN_CHAT.into()
}

/// One action of each type.
fn all() -> Vec<serde_json::Value> {
    let error = json!({"errorType": "agent", "message": "broke"});
    let call = json!({
        "toolCallId": "c1", "toolName": "shell", "displayName": "Shell", "invocationMessage": "Running", "status": "running"
    });
    let of = |kind: &str, payload: serde_json::Value| {
        let mut action = json!({"type": kind, "session": "copilot:/1"});
        action.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        action
    };
    vec![
        json!({"type": "root/agentsChanged", "agents": []}),
        of("session/ready", json!({})),
        of("session/creationFailed", json!({"error": error})),
        of("session/turnStarted", json!({"turnId": "t1", "userMessage": {"text": "hi"}})),
        of("session/delta", json!({"turnId": "t1", "content": "a"})),
        of("session/responsePart", json!({"turnId": "t1", "part": {"kind": "markdown", "content": "a"}})),
        of("session/toolStart", json!({"turnId": "t1", "toolCall": call})),
        of(
            "session/toolComplete",
            json!({"turnId": "t1", "toolCallId": "c1", "result": {"success": true, "pastTenseMessage": "Ran"}}),
        ),
        of(
            "session/permissionRequest",
            json!({"turnId": "t1", "request": {"requestId": "r1", "permissionKind": "url"}}),
        ),
        of("session/permissionResolved", json!({"turnId": "t1", "requestId": "r1", "approved": true})),
        of("session/turnComplete", json!({"turnId": "t1"})),
        of("session/turnCancelled", json!({"turnId": "t1"})),
        of("session/error", json!({"turnId": "t1", "error": error})),
        of("session/titleChanged", json!({"title": "Name"})),
        of("session/usage", json!({"turnId": "t1", "usage": {}})),
        of("session/reasoning", json!({"turnId": "t1", "content": "hm"})),
        of("session/modelChanged", json!({"model": "gpt"})),
    ]
}

#[test]
fn a_clients_four_actions_are_commands_and_all_others_are_the_hosts() {
    let actions: Vec<Action> = all().into_iter().map(|action| parse(action).unwrap()).collect();
    let kinds: Vec<ActionType> = actions.iter().map(Action::kind).collect();
    assert_eq!(kinds, ActionType::ALL, "one of each");
    for action in actions {
        let kind = action.kind();
        match decode::command(action) {
            Ok(_) => assert!(kind.client_may_dispatch(), "{kind:?}"),
            Err(refused) => {
                assert!(!kind.client_may_dispatch());
                assert_eq!(refused, NotDispatchable(kind));
                assert_eq!(refused.to_string(), format!("only the host may dispatch {}", kind.as_str()));
            }
        }
    }
    assert_eq!(ActionType::ALL.iter().filter(|kind| kind.client_may_dispatch()).count(), 4);
}

#[test]
fn turn_started_is_a_persons_message_for_the_main_chat() {
    let started = command(json!({
        "type": "session/turnStarted", "session": "copilot:/1", "turnId": "t1",
        "userMessage": {"text": "hi", "attachments": [
            {"type": "file", "path": "/a"},
            {"type": "directory", "path": "/b", "displayName": "b"},
            {"type": "selection", "path": "/c"},
        ]},
    }));
    let attachment = |kind, path: &str, name: Option<&str>| core::Attachment {
        kind,
        path: path.into(),
        display_name: name.map(Into::into),
    };
    let message = core::Message {
        text: "hi".into(),
        attachments: vec![
            attachment(core::AttachmentKind::File, "/a", None),
            attachment(core::AttachmentKind::Directory, "/b", Some("b")),
            attachment(core::AttachmentKind::Selection, "/c", None),
        ],
        origin: MessageOrigin::User,
        model: None,
        extra: None,
    };
    assert_eq!(started, Ok(ClientCommand::StartTurn { chat: main(), turn: "t1".into(), message, started_at: None }));
}

#[test]
fn the_other_three_carry_their_ids_over() {
    let cancelled = command(json!({"type": "session/turnCancelled", "session": "copilot:/1", "turnId": "t1"}));
    assert_eq!(cancelled, Ok(ClientCommand::CancelTurn { chat: main(), turn: "t1".into() }));
    for (approved, decision) in [(true, Decision::Approved), (false, Decision::Denied)] {
        let resolved = command(json!({
            "type": "session/permissionResolved", "session": "copilot:/1",
            "turnId": "t1", "requestId": "r1", "approved": approved,
        }));
        let expected = ClientCommand::ResolvePermission {
            chat: main(),
            turn: "t1".into(),
            question: core::PermissionTarget::Request("r1".into()),
            verdict: decision.into(),
            answered_by: None,
        };
        assert_eq!(resolved, Ok(expected));
    }
    let changed = command(json!({"type": "session/modelChanged", "session": "copilot:/1", "model": "gpt"}));
    assert_eq!(changed, Ok(ClientCommand::ChangeModel("gpt".into())));
}

#[test]
fn an_unknown_type_and_a_malformed_action_are_told_apart() {
    let unknown = json!({"type": "session/unheardOf", "session": 5});
    assert!(matches!(parse(unknown), Err(ActionError::UnknownType(kind)) if kind == "session/unheardOf"));
    let malformed = [
        json!({}),
        json!({"type": 5}),
        json!(null),
        json!([]),
        json!("session/ready"),
        json!({"type": "session/ready"}),
        json!({"type": "session/ready", "session": 5}),
        json!({"type": "session/ready", "session": "copilot:/1", "timestamp": -1}),
        json!({"type": "session/turnStarted", "session": "copilot:/1", "turnId": "t1"}),
        json!({"type": "session/turnStarted", "session": "copilot:/1", "turnId": "t1", "userMessage": {}}),
        json!({"type": "session/turnStarted", "session": "copilot:/1", "turnId": 1, "userMessage": {"text": ""}}),
        json!({"type": "session/permissionResolved", "session": "copilot:/1", "turnId": "t1", "requestId": "r1"}),
        json!({"type": "root/agentsChanged"}),
    ];
    for action in malformed {
        assert!(matches!(parse(action.clone()), Err(ActionError::Malformed(_))), "{action}");
    }
}

#[test]
fn fields_that_this_version_does_not_know_are_passed_over() {
    for mut action in all() {
        action["fromTheFuture"] = json!({"a": [1]});
        assert!(parse(action).is_ok());
    }
}
