//! The queue of a session: messages and commands that wait for the running turn.

use super::Attachment;
use crate::ahp::macros::{records, words};

records! {
    #[derive(Default, Eq)]
    pub struct PendingItemsResult {
        pub items: Vec<PendingItem>,
        /// The texts of messages for the running turn.
        pub steering_messages: Vec<String>,
    }

    #[derive(Eq)]
    pub struct PendingItem {
        pub id: String,
        pub message_id: Option<String>,
        pub kind: PendingItemKind,
        pub display_text: String,
        /// Always `interactive`: a mode is the session's.
        pub agent_mode: String,
    }

    #[derive(Copy, Default, Eq)]
    pub struct HasPendingResult {
        pub has_pending: bool,
    }

    pub struct QueueInsertParams {
        pub session_id: String,
        /// Counted from 0; past the end means at the end.
        pub position: u64,
        pub message: QueueInsertMessage,
    }

    #[derive(Default)]
    pub struct QueueInsertMessage {
        pub prompt: String,
        pub attachments: Option<Vec<Attachment>>,
    }

    /// The result of `insertAt` and `duplicateAt`: the new item.
    #[derive(Eq)]
    pub struct QueueItemResult {
        pub id: String,
    }

    /// The params of `removeAt`, `duplicateAt` and `sendNow`.
    #[derive(Eq)]
    pub struct QueueItemParams {
        pub session_id: String,
        pub id: String,
    }

    #[derive(Eq)]
    pub struct QueueMoveParams {
        pub session_id: String,
        pub id: String,
        /// Counted from 0; past the end means at the end.
        pub to_position: u64,
    }

    #[derive(Eq)]
    pub struct QueueUpdateParams {
        pub session_id: String,
        pub id: String,
        pub prompt: String,
    }

    #[derive(Copy, Default, Eq)]
    pub struct QueueChanged {
        pub changed: bool,
    }

    #[derive(Copy, Default, Eq)]
    pub struct QueueRemoved {
        pub removed: bool,
    }

    #[derive(Copy, Default, Eq)]
    pub struct QueueUpdated {
        pub updated: bool,
    }

    #[derive(Copy, Default, Eq)]
    pub struct QueueSteered {
        pub steered: bool,
    }
}

words! {
    pub enum PendingItemKind {
        Message = "message",
        Command = "command",
    }
}
