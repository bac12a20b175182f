//! A chat's channel and its row in the session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActiveTurn, ChangesSummary, Changeset, Message, Turn};
use crate::ahp::macros::{records, unions};
use crate::ahp::{Object, Uri};

records! {
    /// The state of a chat's channel.
    #[derive(Default)]
    pub struct ChatState {
        pub resource: Uri,
        pub title: String,
        /// See [`super::status`].
        pub status: u32,
        pub activity: Option<String>,
        pub modified_at: String,
        pub changes: Option<ChangesSummary>,
        pub origin: Option<ChatOrigin>,
        pub movable: Option<bool>,
        pub interactivity: Option<ChatInteractivity>,
        pub working_directories: Option<Vec<Uri>>,
        pub changesets: Option<Vec<Changeset>>,
        pub background_work: Option<Vec<BackgroundWork>>,
        /// Canvases are not supported: kept as raw JSON.
        pub canvases: Option<Value>,
        /// The newest turns. There are older ones if `turns_next_cursor` is set.
        pub turns: Vec<Turn>,
        pub turns_next_cursor: Option<String>,
        pub active_turn: Option<ActiveTurn>,
        pub steering_message: Option<PendingMessage>,
        pub queued_messages: Option<Vec<PendingMessage>>,
        pub draft: Option<Message>,
        pub meta: Option<Object>,
    }

    /// A chat's row in its session.
    #[derive(Default)]
    pub struct ChatSummary {
        pub resource: Uri,
        pub title: String,
        pub status: u32,
        pub activity: Option<String>,
        pub modified_at: String,
        pub changes: Option<ChangesSummary>,
        pub origin: Option<ChatOrigin>,
        pub movable: Option<bool>,
        pub interactivity: Option<ChatInteractivity>,
        pub working_directories: Option<Vec<Uri>>,
    }

    /// The changed fields of a row. It cannot clear a field.
    #[derive(Default)]
    pub struct PartialChatSummary {
        /// Never changes; it is here because the protocol's type has it.
        pub resource: Option<Uri>,
        pub title: Option<String>,
        pub status: Option<u32>,
        pub activity: Option<String>,
        pub modified_at: Option<String>,
        pub changes: Option<ChangesSummary>,
        pub origin: Option<ChatOrigin>,
        pub movable: Option<bool>,
        pub interactivity: Option<ChatInteractivity>,
        pub working_directories: Option<Vec<Uri>>,
    }

    /// A waiting message: for the running turn, or for the next one.
    #[derive(Default)]
    pub struct PendingMessage {
        pub id: String,
        pub message: Message,
    }

    /// The user created it. It has no further data.
    #[derive(Default, Eq)]
    pub struct UserChatOrigin {}

    #[derive(Default, Eq)]
    pub struct ForkChatOrigin {
        pub chat: Uri,
        pub turn_id: String,
    }

    #[derive(Default, Eq)]
    pub struct SideChatOrigin {
        pub chat: Uri,
        pub turn_id: String,
        pub selection: Option<SideChatSelection>,
    }

    #[derive(Default, Eq)]
    pub struct ToolChatOrigin {
        pub chat: Uri,
        pub tool_call_id: String,
    }

    /// The text that a side chat is about.
    #[derive(Default, Eq)]
    pub struct SideChatSelection {
        pub text: String,
        pub response_part_id: Option<String>,
    }

    #[derive(Default)]
    pub struct BackgroundShellWork {
        pub id: String,
        pub label: String,
        pub started_at: String,
        pub meta: Option<Object>,
        pub command: String,
        pub terminal: Option<Uri>,
    }

    #[derive(Default)]
    pub struct BackgroundSubagentWork {
        pub id: String,
        pub label: String,
        pub started_at: String,
        pub meta: Option<Object>,
        pub chat: Uri,
    }
}

unions! {
    /// The origin of a chat.
    pub enum ChatOrigin by "kind" {
        "user" => User(UserChatOrigin),
        "fork" => Fork(ForkChatOrigin),
        "sideChat" => SideChat(SideChatOrigin),
        "tool" => Tool(ToolChatOrigin),
    }

    /// Work of a chat that goes on after the turn.
    pub enum BackgroundWork by "kind" {
        "shell" => Shell(BackgroundShellWork),
        "subagent" => Subagent(BackgroundSubagentWork),
    }
}

impl BackgroundWork {
    /// The id for replacing and removing it, if its kind is known or it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            BackgroundWork::Shell(work) => Some(&work.id),
            BackgroundWork::Subagent(work) => Some(&work.id),
            BackgroundWork::Unknown(value) => value.get("id").and_then(Value::as_str),
        }
    }
}

/// The user's access to a chat: writable, read-only or hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ChatInteractivity {
    Full,
    ReadOnly,
    Hidden,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PendingMessageKind {
    Steering,
    Queued,
}
