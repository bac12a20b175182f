//! A host's notifications and requests to its clients.

use crate::ahp::macros::{records, words};
use crate::copilot::Event;

/// The notification of an event.
pub const SESSION_EVENT: &str = "session.event";
/// The notification that a session was created, changed or deleted.
pub const SESSION_LIFECYCLE: &str = "session.lifecycle";
/// The request to ask a person. The result is a [`super::UserInputResponse`].
pub const USER_INPUT_REQUEST: &str = "userInput.request";

records! {
    pub struct SessionEventParams {
        pub session_id: String,
        pub event: Event,
    }

    #[derive(Eq)]
    pub struct LifecycleParams {
        #[serde(rename = "type")]
        pub kind: LifecycleKind,
        pub session_id: String,
        /// Absent for a deleted session.
        pub metadata: Option<LifecycleMetadata>,
    }

    #[derive(Default, Eq)]
    pub struct LifecycleMetadata {
        pub start_time: String,
        pub modified_time: String,
        pub summary: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct UserInputParams {
        pub session_id: String,
        pub question: String,
        pub choices: Option<Vec<String>>,
        pub allow_freeform: Option<bool>,
    }
}

words! {
    pub enum LifecycleKind {
        Created = "session.created",
        Updated = "session.updated",
        Deleted = "session.deleted",
        Foreground = "session.foreground",
        Background = "session.background",
    }
}

impl LifecycleParams {
    /// The notification on an existing session.
    pub fn of(kind: LifecycleKind, session: &grove_core::Session) -> Self {
        let row = super::SessionMetadata::of(session);
        let metadata =
            LifecycleMetadata { start_time: row.start_time, modified_time: row.modified_time, summary: row.summary };
        Self { kind, session_id: row.session_id, metadata: Some(metadata) }
    }

    /// The notification on a deleted session.
    pub fn deleted(session: &grove_core::SessionId) -> Self {
        Self { kind: LifecycleKind::Deleted, session_id: session.to_string(), metadata: None }
    }
}
