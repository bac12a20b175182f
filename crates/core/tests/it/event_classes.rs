//! The class of every event: what the host decides by its kind alone.

use std::collections::BTreeSet;

use grove_core::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Every event, by its name on disk, with its class in words. To change a word here is to change what the host writes, saves
/// or sends.
#[rustfmt::skip]
const CLASSES: &[(&str, &str)] = &[
    ("root.agentsChanged", ""),
    ("root.activeSessionsChanged", ""),
    ("session.created", "durable chat-set"),
    ("session.ready", "durable"),
    ("session.creationFailed", "durable"),
    ("session.listed", "row-added"),
    ("session.removed", "durable row-removed"),
    ("session.titleChanged", "durable row-changed mirrored in-file"),
    ("session.modelChanged", "durable in-file"),
    ("session.modelReset", "durable in-file"),
    ("session.readChanged", "durable row-changed"),
    ("session.archivedChanged", "durable row-changed in-file"),
    ("session.chatRowChanged", "row-changed"),
    ("session.inputNeededSet", ""),
    ("session.inputNeededRemoved", ""),
    ("session.chatAdded", "durable row-changed chat-set in-file"),
    ("session.chatRemoved", "durable row-changed chat-set in-file"),
    ("session.activeClientSet", "durable"),
    ("session.activeClientRemoved", "durable"),
    ("session.configChanged", "durable in-file"),
    ("session.detailsChanged", "durable"),
    ("session.checkoutChanged", "durable row-changed"),
    ("session.workingDirectoryChanged", "durable row-changed in-file"),
    ("session.moved", "durable in-file"),
    ("chat.turnStarted", "durable mirrored unread in-file turn-start"),
    ("chat.partAdded", ""),
    ("chat.textDelta", ""),
    ("chat.reasoningDelta", ""),
    ("chat.toolCallStarted", ""),
    ("chat.toolCallInputDelta", ""),
    ("chat.toolCallReady", "mirrored"),
    ("chat.toolCallRestated", "mirrored"),
    ("chat.toolCallGated", "durable mirrored"),
    ("chat.toolCallConfirmed", "durable mirrored in-log-later"),
    ("chat.toolCallOutput", "mirrored"),
    ("chat.toolCallCompleted", "durable mirrored"),
    ("chat.toolCallResultGated", "mirrored"),
    ("chat.toolCallResultConfirmed", "durable mirrored"),
    ("chat.usageReported", ""),
    ("chat.inputRequested", "durable mirrored unread"),
    ("chat.inputAnswerChanged", "mirrored"),
    ("chat.inputAnswered", "durable mirrored"),
    ("chat.turnCompleted", "durable mirrored in-log-later entry turn-end"),
    ("chat.turnCancelled", "durable mirrored in-log-later entry turn-end"),
    ("chat.turnFailed", "durable mirrored in-log-later entry turn-end"),
    ("chat.steeringSet", "durable in-file"),
    ("chat.steeringRemoved", "durable in-file"),
    ("chat.queuedSet", "durable in-file"),
    ("chat.queuedRemoved", "durable in-file"),
    ("chat.queueReordered", "durable in-file"),
    ("chat.draftChanged", ""),
    ("chat.chatReadChanged", "durable mirrored"),
    ("chat.chatArchivedChanged", "durable mirrored in-file"),
    ("chat.chatTitleChanged", "durable mirrored in-file"),
    ("chat.activityChanged", ""),
    ("chat.agentSessionChanged", "durable"),
    ("chat.turnsLeft", "durable mirrored in-log"),
    ("chat.turnsTaken", "durable mirrored in-log"),
    ("chat.turnsInherited", "durable mirrored in-log"),
    ("chat.entryAdded", "durable in-log entry"),
];

fn in_words(class: EventClass) -> String {
    let EventClass {
        is_durable,
        listed,
        is_mirrored,
        makes_unread,
        changes_chat_set,
        saved,
        completes_entry,
        boundary,
    } = class;
    assert_eq!(class.is_announced(), listed != ListChange::None);
    let words = [
        is_durable.then_some("durable"),
        match listed {
            ListChange::None => None,
            ListChange::Added => Some("row-added"),
            ListChange::Changed => Some("row-changed"),
            ListChange::Removed => Some("row-removed"),
        },
        is_mirrored.then_some("mirrored"),
        makes_unread.then_some("unread"),
        changes_chat_set.then_some("chat-set"),
        match saved {
            SaveTarget::None => None,
            SaveTarget::SessionFile => Some("in-file"),
            SaveTarget::Log => Some("in-log"),
            SaveTarget::LogLater => Some("in-log-later"),
        },
        completes_entry.then_some("entry"),
        boundary.map(|boundary| match boundary {
            TurnBoundary::Start => "turn-start",
            TurnBoundary::End => "turn-end",
        }),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// One event of each kind, as a journal has it.
fn samples() -> Vec<Value> {
    let message = json!({"text": "go", "attachments": [], "origin": "user", "model": null});
    let pending = json!({"id": "p", "message": message});
    let error = json!({"kind": "k", "message": "m", "stack": null});
    let row = json!({"chat": "c", "title": "", "status": "idle", "modifiedAt": 1});
    let call = json!({"id": "c", "name": "n", "displayName": "N", "kind": null, "language": null});
    let result = json!({"success": true, "pastTenseMessage": "", "output": null});
    let request = json!({"id": "r", "kind": "shell", "path": null, "fullCommandText": "ls", "intention": null});
    let new = json!({"id": "s", "uri": "scripted:/s", "provider": "scripted", "model": null, "workingDirectories": []});
    let client = json!({"client": "me", "displayName": null, "tools": [], "extra": null});
    let needed = json!({"request": "q", "chat": "c", "turn": "t", "about": {"question": {"id": "q"}}});
    let log = json!({"boundary": 0, "extent": "branch", "leaf": null});
    let origin = json!({"session": "s", "chat": "main", "kind": "fork", "log": log});
    let root = [json!({"agentsChanged": []}), json!({"activeSessionsChanged": 1})];
    let session = [
        json!({"created": new}),
        json!("ready"),
        json!({"creationFailed": error}),
        json!("listed"),
        json!("removed"),
        json!({"titleChanged": SessionTitle::new("a title", TitleSource::Person)}),
        json!({"modelChanged": "m"}),
        json!("modelReset"),
        json!({"readChanged": true}),
        json!({"archivedChanged": true}),
        json!({"chatRowChanged": row}),
        json!({"inputNeededSet": needed}),
        json!({"inputNeededRemoved": {"chat": "c", "request": "q"}}),
        json!({"chatAdded": row}),
        json!({"chatRemoved": "c"}),
        json!({"activeClientSet": client}),
        json!({"activeClientRemoved": "me"}),
        json!({"configChanged": {"values": {}, "replace": false}}),
        json!({"detailsChanged": {}}),
        json!({"checkoutChanged": Checkout::default()}),
        json!({"workingDirectoryChanged": {"previous": null, "directory": "/w"}}),
        json!({"moved": "local"}),
    ];
    let chat = [
        json!({"turnStarted": {"turn": "t", "message": message}}),
        json!({"partAdded": {"turn": "t", "part": {"notice": "n"}}}),
        json!({"textDelta": {"turn": "t", "part": "p", "content": "x"}}),
        json!({"reasoningDelta": {"turn": "t", "part": "p", "content": "x"}}),
        json!({"toolCallStarted": {"turn": "t", "call": call}}),
        json!({"toolCallInputDelta": {"turn": "t", "call": "c", "content": "x"}}),
        json!({"toolCallReady": {"turn": "t", "call": call, "invocationMessage": "", "input": null, "gate": "none"}}),
        json!({"toolCallRestated": {"turn": "t", "call": call, "invocationMessage": "", "confirmed": "person"}}),
        json!({"toolCallGated": {"turn": "t", "call": "c", "request": request}}),
        json!({"toolCallConfirmed": {"turn": "t", "call": "c", "request": "r", "decision": "approved"}}),
        json!({"toolCallOutput": {"turn": "t", "call": "c", "output": {"text": "", "pieces": null}}}),
        json!({"toolCallCompleted": {"turn": "t", "call": "c", "result": result}}),
        json!({"toolCallResultGated": {"turn": "t", "call": "c", "result": result}}),
        json!({"toolCallResultConfirmed": {"turn": "t", "call": "c", "result": result, "decision": "approved"}}),
        json!({"usageReported": {"turn": "t", "usage": Usage::default()}}),
        json!({"inputRequested": {"turn": "t", "request": {"id": "q"}}}),
        json!({"inputAnswerChanged": {"turn": "t", "request": "q", "question": "a", "answer": null}}),
        json!({"inputAnswered": {"turn": "t", "request": "q", "outcome": "accepted"}}),
        json!({"turnCompleted": {"turn": "t"}}),
        json!({"turnCancelled": {"turn": "t"}}),
        json!({"turnFailed": {"turn": "t", "error": error}}),
        json!({"steeringSet": pending}),
        json!({"steeringRemoved": "p"}),
        json!({"queuedSet": pending}),
        json!({"queuedRemoved": "p"}),
        json!({"queueReordered": []}),
        json!({"draftChanged": null}),
        json!({"chatReadChanged": true}),
        json!({"chatArchivedChanged": true}),
        json!({"chatTitleChanged": "a title"}),
        json!({"activityChanged": null}),
        json!({"agentSessionChanged": null}),
        json!("turnsLeft"),
        json!({"turnsTaken": {"turns": [], "older": false}}),
        json!({"turnsInherited": {"origin": origin, "older": false}}),
        json!({"entryAdded": {"line": "{}", "after": null}}),
    ];
    let root = root.into_iter().map(|event| json!({"root": event}));
    let session = session.into_iter().map(|event| json!({"session": ["s", event]}));
    let chat = chat.into_iter().map(|event| json!({"chat": ["s", "c", event]}));
    root.chain(session).chain(chat).collect()
}

/// The name of an enum's variant: the only member, or the word itself.
fn variant(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| value.as_object().unwrap().keys().next().unwrap())
}

fn name(change: &Value) -> String {
    let scope = variant(change);
    let event = match &change[scope] {
        Value::Array(parts) => parts.last().unwrap(),
        event => event,
    };
    format!("{scope}.{}", variant(event))
}

/// The names that an enum has on disk, as its own reader lists them.
fn variants<T: DeserializeOwned>(scope: &str) -> Vec<String> {
    let Err(error) = serde_json::from_value::<T>(json!("no such event")) else { panic!("{scope} has no variants") };
    let error = error.to_string();
    let (_, expected) = error.split_once("expected one of ").or_else(|| error.split_once("expected ")).unwrap();
    expected.split('`').skip(1).step_by(2).map(|name| format!("{scope}.{name}")).collect()
}

#[test]
fn every_event_has_the_class_that_the_table_says() {
    for ((named, class), sample) in CLASSES.iter().zip(samples()) {
        assert_eq!(name(&sample), *named, "the samples are in the table's order");
        let change: Change = serde_json::from_value(sample.clone()).unwrap_or_else(|error| panic!("{error}: {sample}"));
        assert_eq!(in_words(change.class()), *class, "{named}");
    }
}

#[test]
fn every_event_is_in_the_table() {
    let known = [variants::<RootEvent>("root"), variants::<SessionEvent>("session"), variants::<ChatEvent>("chat")];
    let known: BTreeSet<String> = known.concat().into_iter().collect();
    let classified: BTreeSet<String> = CLASSES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(classified, known);
    assert_eq!(samples().len(), CLASSES.len());
}

#[test]
fn a_chat_that_becomes_unread_leaves_something_to_read() {
    assert!(ChatEvent::ChatReadChanged(false).class().makes_unread);
    assert!(!ChatEvent::ChatReadChanged(true).class().makes_unread);
}

#[test]
fn the_boundaries_of_a_turn_concern_that_turn() {
    let changes = samples().into_iter().map(|sample| serde_json::from_value::<Change>(sample).unwrap());
    for change in changes.filter(|change| change.class().boundary.is_some()) {
        let Change::Chat(_, _, event) = change else { panic!("{change:?} belongs to no chat") };
        assert!(event.turn().is_some(), "{event:?}");
        assert_eq!(event.ends_turn(), event.class().boundary == Some(TurnBoundary::End));
    }
}
