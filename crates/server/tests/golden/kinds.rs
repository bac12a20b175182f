//! The records and events that a journal can have, by their names on disk.

use std::collections::BTreeSet;

use serde_json::Value;

/// The records of the journal.
pub(crate) const RECORDS: &[&str] = &["client", "event", "jump", "mark", "reserved", "segment"];

/// The events that the scenarios write. Those that no host writes:
/// - `chat.toolCallInputDelta`: no report of an agent becomes one; they tell a call's input whole.
pub(crate) const EVENTS: &[&str] = &[
    "chat.activityChanged",
    "chat.agentSessionChanged",
    "chat.chatArchivedChanged",
    "chat.chatReadChanged",
    "chat.chatTitleChanged",
    "chat.draftChanged",
    "chat.entryAdded",
    "chat.inputAnswerChanged",
    "chat.inputAnswered",
    "chat.inputRequested",
    "chat.partAdded",
    "chat.queueReordered",
    "chat.queuedRemoved",
    "chat.queuedSet",
    "chat.reasoningDelta",
    "chat.steeringRemoved",
    "chat.steeringSet",
    "chat.textDelta",
    "chat.toolCallCompleted",
    "chat.toolCallConfirmed",
    "chat.toolCallGated",
    "chat.toolCallOutput",
    "chat.toolCallReady",
    "chat.toolCallRestated",
    "chat.toolCallResultConfirmed",
    "chat.toolCallResultGated",
    "chat.toolCallStarted",
    "chat.turnCancelled",
    "chat.turnCompleted",
    "chat.turnFailed",
    "chat.turnStarted",
    "chat.turnsInherited",
    "chat.turnsLeft",
    "chat.turnsTaken",
    "chat.usageReported",
    "root.activeSessionsChanged",
    "root.agentsChanged",
    "session.activeClientRemoved",
    "session.activeClientSet",
    "session.archivedChanged",
    "session.chatAdded",
    "session.chatRemoved",
    "session.chatRowChanged",
    "session.checkoutChanged",
    "session.configChanged",
    "session.created",
    "session.creationFailed",
    "session.detailsChanged",
    "session.inputNeededRemoved",
    "session.inputNeededSet",
    "session.listed",
    "session.modelChanged",
    "session.modelReset",
    "session.moved",
    "session.readChanged",
    "session.ready",
    "session.removed",
    "session.titleChanged",
    "session.workingDirectoryChanged",
];

/// The names of the records, and of the events in them.
pub(crate) fn seen(records: &[Value]) -> (BTreeSet<String>, BTreeSet<String>) {
    let names = records.iter().map(variant).collect();
    let events = records.iter().filter_map(|record| {
        let change = record.get("event")?.get("event")?.get("change")?;
        let place = variant(change);
        let event = match &change[&place] {
            Value::Array(parts) => parts.last()?,
            event => event,
        };
        Some(format!("{place}.{}", variant(event)))
    });
    (names, events.collect())
}

/// The name of an enum's variant: the only member, or the word itself.
fn variant(value: &Value) -> String {
    match value {
        Value::String(name) => name.clone(),
        value => value.as_object().unwrap().keys().next().unwrap().clone(),
    }
}
