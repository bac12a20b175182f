//! The event log: reading events, and going back in them.

use crate::ahp::macros::{records, words};
use crate::copilot::Event;

/// The default number of events of one read.
pub const DEFAULT_EVENTS: u64 = 200;
/// The maximum number of events of one read; larger requests get this many.
pub const MAX_EVENTS: u64 = 1_000;
/// The maximum wait of a read, in milliseconds; longer requests wait this long.
pub const MAX_WAIT_MS: u64 = 30_000;

records! {
    /// The params of `sessions.readPersistedEvents`, and of `session.eventLog.read`, which has more of them.
    #[derive(Default, Eq)]
    pub struct ReadEventsParams {
        pub session_id: String,
        /// The end of an earlier read; absent means the beginning, or the end for a backward read.
        pub cursor: Option<String>,
        pub max: Option<u64>,
        pub wait_ms: Option<u64>,
        pub types: Option<EventTypes>,
        /// `primary` or `all`.
        pub agent_scope: Option<String>,
        pub agent_ids: Option<Vec<String>>,
        pub direction: Option<ReadDirection>,
        pub include_ephemeral: Option<bool>,
    }

    pub struct ReadEventsResult {
        pub events: Vec<Event>,
        pub cursor: String,
        pub has_more: bool,
        pub cursor_status: CursorStatus,
    }

    #[derive(Eq)]
    pub struct TailResult {
        pub cursor: String,
    }

    #[derive(Default, Eq)]
    pub struct RegisterInterestParams {
        pub session_id: String,
        pub event_type: String,
    }

    #[derive(Default, Eq)]
    pub struct RegisterInterestResult {
        pub handle: String,
    }

    #[derive(Default, Eq)]
    pub struct ReleaseInterestParams {
        pub session_id: String,
        pub handle: String,
    }

    #[derive(Default, Eq)]
    pub struct CompactParams {
        pub session_id: String,
        pub custom_instructions: Option<String>,
        /// `manual` or `model_switch`.
        pub trigger: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct CompactResult {
        pub success: bool,
        pub tokens_removed: u64,
        pub messages_removed: u64,
        pub summary_content: Option<String>,
        pub context_window: Option<ContextWindow>,
    }

    #[derive(Default, Eq)]
    pub struct ContextWindow {
        pub token_limit: u64,
        pub current_tokens: u64,
        pub messages_length: u64,
    }

    /// Removes that event and all later ones.
    #[derive(Default, Eq)]
    pub struct TruncateParams {
        pub session_id: String,
        pub event_id: String,
    }

    #[derive(Default, Eq)]
    pub struct TruncateResult {
        pub events_removed: u64,
        pub checkpoint_cleanup_failed: Option<bool>,
        pub checkpoint_cleanup_error: Option<String>,
    }

    #[derive(Eq)]
    pub struct RewindParams {
        pub session_id: String,
        pub event_id: String,
        pub mode: Option<RewindMode>,
    }

    #[derive(Eq)]
    pub struct RewindResult {
        pub outcome: RewindOutcome,
        pub events_removed: Option<u64>,
        pub restored_files: Vec<String>,
        pub skipped_files: Vec<SkippedFile>,
        pub error: Option<String>,
    }

    #[derive(Eq)]
    pub struct SkippedFile {
        pub path: String,
        pub reason: String,
    }

    #[derive(Eq)]
    pub struct RewindPointsResult {
        pub file_change_tracking_enabled: bool,
        pub unavailable_reason: Option<String>,
        pub points: Vec<RewindPoint>,
    }

    /// A user message to go back to.
    #[derive(Default, Eq)]
    pub struct RewindPoint {
        pub event_id: String,
        pub user_message: String,
        pub timestamp: String,
        pub can_restore_files: bool,
        pub file_count: u64,
        pub turn_changed_files: bool,
        pub lines_added: u64,
        pub lines_removed: u64,
        pub is_autopilot_continuation: bool,
    }
}

words! {
    pub enum ReadDirection {
        Forward = "forward",
        Backward = "backward",
    }

    pub enum CursorStatus {
        Ok = "ok",
        /// The cursor is not valid any more: the read started from the beginning.
        Expired = "expired",
    }

    pub enum RewindMode {
        Conversation = "conversation",
        ConversationAndFiles = "conversation-and-files",
    }

    pub enum RewindOutcome {
        Success = "success",
        SessionBusy = "session-busy",
        FileChangeTrackingDisabled = "file-change-tracking-disabled",
        TruncationFailed = "truncation-failed",
        CheckpointCleanupFailed = "checkpoint-cleanup-failed",
    }
}

/// The requested types of events: all, or some.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum EventTypes {
    These(Vec<String>),
    /// `*`.
    All(String),
}

impl ReadEventsParams {
    /// The number of requested events, within the limit.
    pub fn count(&self) -> usize {
        let count = self.max.unwrap_or(DEFAULT_EVENTS).clamp(1, MAX_EVENTS);
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// The maximum wait for new events, in milliseconds, within the limit. Backward reads do not wait.
    pub fn wait_ms(&self) -> u64 {
        if self.is_backward() { 0 } else { self.wait_ms.unwrap_or(0).min(MAX_WAIT_MS) }
    }

    pub fn is_backward(&self) -> bool {
        self.direction == Some(ReadDirection::Backward)
    }

    /// True if an event is requested.
    pub fn wants(&self, event: &Event) -> bool {
        let is_of_type = match &self.types {
            Some(EventTypes::These(types)) => types.iter().any(|kind| kind == event.kind()),
            Some(EventTypes::All(_)) | None => true,
        };
        let is_of_agent = match (&self.agent_ids, &event.agent_id) {
            (Some(agents), Some(agent)) => agents.contains(agent),
            (Some(_), None) => false,
            (None, Some(_)) => self.agent_scope.as_deref() != Some("primary"),
            (None, None) => true,
        };
        let is_kept_enough = !event.ephemeral || (self.include_ephemeral.unwrap_or(true) && !self.is_backward());
        is_of_type && is_of_agent && is_kept_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copilot::events::SessionIdle;

    fn read(params: serde_json::Value) -> ReadEventsParams {
        serde_json::from_value(params).unwrap()
    }

    #[test]
    fn a_read_stays_within_its_bounds() {
        let read = |max: u64, wait: u64| read(serde_json::json!({ "sessionId": "s", "max": max, "waitMs": wait }));
        assert_eq!((read(0, 0).count(), read(0, 0).wait_ms()), (1, 0));
        assert_eq!((read(10, 5).count(), read(10, 5).wait_ms()), (10, 5));
        assert_eq!((read(9_999, 99_999).count(), read(9_999, 99_999).wait_ms()), (1_000, 30_000));
        assert_eq!(self::read(serde_json::json!({ "sessionId": "s" })).count(), 200);
    }

    #[test]
    fn a_read_takes_the_events_that_it_names() {
        let idle = |agent: Option<&str>, ephemeral| Event {
            id: "e".into(),
            timestamp: String::new(),
            parent_id: None,
            ephemeral,
            agent_id: agent.map(str::to_owned),
            data: SessionIdle::default().into(),
        };
        let wants = |more: serde_json::Value, event: Event| {
            let mut params = serde_json::json!({ "sessionId": "s" });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(params).wants(&event)
        };
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        for (params, agent, ephemeral, wanted) in [
            ("{}", None, true, true),
            (r#"{"types":"*"}"#, None, true, true),
            (r#"{"types":["session.idle"]}"#, None, true, true),
            (r#"{"types":["user.message"]}"#, None, true, false),
            (r#"{"includeEphemeral":false}"#, None, true, false),
            (r#"{"includeEphemeral":false}"#, None, false, true),
            (r#"{"direction":"backward"}"#, None, true, false),
            (r#"{"agentScope":"primary"}"#, Some("a"), false, false),
            (r#"{"agentIds":["a"]}"#, Some("a"), false, true),
            (r#"{"agentIds":["a"]}"#, None, false, false),
        ] {
            assert_eq!(wants(json(params), idle(agent, ephemeral)), wanted, "{params}");
        }
    }
}
