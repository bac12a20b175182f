//! The role of a message's speaker.

use crate::fields::{MessageFields, has_visible_content, is};
use crate::scan::text_of;

/// The role of a `message` entry, as far as the tree's views need it. The index keeps it, so that they can filter
/// without reading bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    User = 1,
    Assistant = 2,
    /// An assistant's message without any text that did not fail: only tool calls and thoughts.
    SilentAssistant = 3,
    ToolResult = 4,
    /// A message of an extension (`custom`, or `hookMessage` in old logs).
    Custom = 5,
    /// Any other role.
    Other = 6,
}

impl Role {
    pub(crate) fn of(message: &MessageFields<'_>) -> Self {
        match message.role.and_then(text_of).as_deref() {
            Some(b"user") => Role::User,
            Some(b"assistant") if has_failed(message) || has_visible_content(message.content) => Role::Assistant,
            Some(b"assistant") => Role::SilentAssistant,
            Some(b"toolResult") => Role::ToolResult,
            Some(b"custom" | b"hookMessage") => Role::Custom,
            Some(_) | None => Role::Other,
        }
    }

    pub fn is_assistant(self) -> bool {
        matches!(self, Role::Assistant | Role::SilentAssistant)
    }

    /// The role's number in a side index: 0 for an entry that is not a message.
    pub(crate) fn number(role: Option<Self>) -> u8 {
        role.map_or(0, |role| role as u8)
    }

    pub(crate) fn from_number(number: u8) -> Option<Option<Self>> {
        let all = [Role::User, Role::Assistant, Role::SilentAssistant, Role::ToolResult, Role::Custom, Role::Other];
        match number {
            0 => Some(None),
            number => all.into_iter().find(|role| *role as u8 == number).map(Some),
        }
    }
}

/// True if an assistant's turn was aborted or failed.
fn has_failed(message: &MessageFields<'_>) -> bool {
    let ended = message.stop_reason.filter(|reason| reason.starts_with(b"\"") && *reason != b"\"\"");
    ended.is_some_and(|reason| !is(Some(reason), "stop") && !is(Some(reason), "toolUse"))
}
