//! Events in the formats of earlier versions are read; an event without new fields is written as before.

use grove_core::*;
use serde_json::{Value, json};

/// An event of a chat, as it is stored in a journal.
fn in_chat(change: Value) -> Value {
    json!({"at": 7, "change": {"chat": ["s1", "main", change]}})
}

/// A call in the format before agents could add data to it.
fn call(status: Value) -> Value {
    json!({
        "id": "c1", "name": "shell", "displayName": "Run a command", "kind": "terminal", "language": "sh",
        "invocationMessage": "Running ls", "input": "ls", "status": status, "readyRank": 0,
    })
}

fn old_events() -> Vec<Value> {
    let new_call = json!({
        "id": "c1", "name": "shell", "displayName": "Run a command", "kind": "terminal", "language": null,
    });
    let result = json!({"success": true, "pastTenseMessage": "Ran ls", "output": "a b"});
    let request = json!({
        "id": "r1", "kind": "shell", "path": null, "fullCommandText": "ls", "intention": null,
        "options": [{"id": "always", "label": "Always", "allows": true}],
    });
    let needed = json!({
        "request": "r1", "chat": "main", "turn": "t1",
        "about": {"toolConfirmation": call(json!({"pendingConfirmation": request}))},
    });
    vec![
        in_chat(json!({"toolCallStarted": {"turn": "t1", "call": new_call}})),
        in_chat(json!({"toolCallReady": {
            "turn": "t1", "call": new_call, "invocationMessage": "Running ls", "input": "ls", "gate": "follows",
        }})),
        in_chat(json!({"toolCallGated": {"turn": "t1", "call": "c1", "request": request}})),
        in_chat(json!({"toolCallConfirmed": {
            "turn": "t1", "call": "c1", "request": "r1", "decision": "approved", "by": "person", "option": "always",
        }})),
        in_chat(json!({"toolCallOutput": {"turn": "t1", "call": "c1", "output": {"text": "a", "pieces": null}}})),
        in_chat(json!({"toolCallCompleted": {"turn": "t1", "call": "c1", "result": result}})),
        in_chat(json!({"usageReported": {"turn": "t1", "usage": {
            "inputTokens": 1, "outputTokens": null, "model": "small", "cacheReadTokens": null,
        }}})),
        in_chat(json!({"partAdded": {"turn": "t1", "part": {"toolCall": call(json!({"completed": result}))}}})),
        json!({"at": 7, "change": {"session": ["s1", {"inputNeededSet": needed}]}}),
    ]
}

#[test]
fn an_event_of_before_is_read_and_written_as_it_was() {
    for old in old_events() {
        let event: Event = serde_json::from_value(old.clone()).unwrap_or_else(|error| panic!("{error}: {old}"));
        assert_eq!(serde_json::to_value(&event).unwrap(), old);
    }
}

#[test]
fn what_is_known_of_a_session_may_be_told_without_what_there_is_not() {
    assert_eq!(serde_json::to_value(SessionDetails::default()).unwrap(), json!({}));
    assert_eq!(serde_json::from_value::<SessionDetails>(json!({})).unwrap(), SessionDetails::default());
}
