//! A line of `events.jsonl`.

use grove_core::Timestamp;
use serde_json::Value;

use crate::json::JsonMembers;

/// An event. Unread members stay in its data.
#[derive(Debug)]
pub(super) struct LogEvent {
    pub kind: String,
    pub id: Option<String>,
    pub at: Option<Timestamp>,
    /// The subagent that it comes from.
    pub agent: Option<String>,
    pub data: JsonMembers,
}

impl LogEvent {
    /// Converts a line's value to an event; any other value is returned as the error.
    pub(super) fn of(value: Value) -> Result<Self, Value> {
        let mut members = JsonMembers::of(value)?;
        let Some(kind) = members.string("type") else { return Err(members.into_value()) };
        Ok(Self {
            kind,
            id: members.string("id"),
            at: members.time("timestamp"),
            agent: members.string("agentId"),
            data: members.object("data").unwrap_or_default(),
        })
    }

    /// The tool call that the event belongs to, if it names one.
    pub(super) fn parent_call(&self) -> Option<&str> {
        self.data.peek("parentToolCallId").and_then(Value::as_str)
    }
}
