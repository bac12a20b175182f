//! The echo of a client's action: members beyond the action's type come back to every client.

use grove_core::*;
use grove_wire::ahp::uri::{SessionUris, Spelling};
use grove_wire::ahp::{Action, decode, encode};
use serde_json::{Value, json};

use crate::random;

#[test]
fn what_a_clients_action_says_beyond_its_type_comes_back_in_the_echo_at_any_depth() {
    let session = Session::new(&random::new_session(), Timestamp(1));
    let message = json!({
        "text": "go", "origin": {"kind": "user", "device": "phone"}, "mood": "good",
        "attachments": [
            {"type": "simple", "label": "a"},
            {"type": "resource", "label": "b", "uri": "file:///b", "colour": {"deep": [1, 2]}},
        ],
    });
    let clients = json!({
        "clientId": "c",
        "tools": [{"name": "t", "cost": 7, "inputSchema": {"type": "object", "anything": 1}}, {"name": "u"}],
    });
    let actions = [
        json!({
            "type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-10-01T00:00:00.000Z", "message": message,
            "priority": "high", "queuedMessageId": null,
        }),
        json!({"type": "session/activeClientSet", "activeClient": clients, "trace": {"span": [{"id": 1}]}}),
        json!({"type": "session/titleChanged", "title": "T", "language": "en"}),
        json!({"type": "chat/draftChanged", "draft": null, "keystrokes": 0}),
    ];
    for raw in actions {
        let action = Action::parse(&raw.to_string()).unwrap();
        let extra = encode::unknown(&raw, &serde_json::to_value(&action).unwrap());
        let chat = raw["type"].as_str().unwrap().starts_with("chat/").then(|| ChatId::from(Session::MAIN_CHAT));
        let command = decode::command(action, chat.as_ref()).unwrap();
        let mut before = session.clone();
        if raw["type"] == "chat/draftChanged" {
            before.chats[0].draft = Some(Message::user("something"));
        }
        let client = ClientId::from("c");
        let command = Command::Client(client.clone(), command);
        let batch = advance(&mut before, None, command, Timestamp(2)).unwrap();
        let echo = encode::Echo { client: &client, client_seq: 3, extra: extra.as_ref() };
        let names = SessionUris::of(&session);
        let (_, frame) = encode::frame(&batch.events[0], 9, Some(echo), Some(&names), Spelling::Plain).unwrap();
        let frame: Value = serde_json::from_str(&frame).unwrap();
        assert_eq!(frame["params"]["origin"], json!({"clientId": "c", "clientSeq": 3}));
        // `null` means absent.
        let mut sent = raw.as_object().unwrap().clone();
        sent.retain(|_, value| !value.is_null());
        assert_eq!(frame["params"]["action"], Value::Object(sent));
    }
}

#[test]
fn what_is_understood_is_echoed_as_it_was_understood() {
    let raw = json!({"type": "session/titleChanged", "title": "wrong", "more": 1});
    let extra = encode::unknown(&raw, &json!({"type": "session/titleChanged", "title": "right"}));
    assert_eq!(extra, json!({"more": 1}).as_object().cloned());
    let same = json!({"a": [{"b": 1}, null], "c": {"d": []}});
    assert_eq!(encode::unknown(&same, &same), None);
}
