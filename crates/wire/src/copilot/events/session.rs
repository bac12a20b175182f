//! The session itself: its start and end, its settings, its history.

use serde_json::Value;

use crate::ahp::macros::records;
use crate::copilot::methods::{SessionContext, UsageMetrics};

records! {
    /// The first event of every session. Without `producer` no client resumes it.
    #[derive(Eq)]
    pub struct SessionStart {
        pub session_id: String,
        pub version: u64,
        pub producer: String,
        pub copilot_version: String,
        pub start_time: String,
        pub selected_model: Option<String>,
        pub context: Option<SessionContext>,
    }

    #[derive(Default, Eq)]
    pub struct SessionResume {
        pub resume_time: String,
        pub event_count: u64,
        pub events_file_size_bytes: Option<u64>,
        pub selected_model: Option<String>,
        pub context: Option<SessionContext>,
        pub session_was_active: Option<bool>,
        /// True if the client wanted pending requests to stay pending, as they do anyway.
        pub continue_pending_work: Option<bool>,
    }

    /// Nothing runs and nothing is queued, and everything is stored.
    #[derive(Default, Eq)]
    pub struct SessionIdle {
        pub aborted: Option<bool>,
    }

    /// An error that ends a turn, or a problem before the next one. A client that waits for a turn's end stops waiting.
    #[derive(Default, Eq)]
    pub struct SessionError {
        pub error_type: String,
        pub message: String,
        pub stack: Option<String>,
        pub url: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SessionWarning {
        pub warning_type: String,
        pub message: String,
        pub url: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SessionInfo {
        pub info_type: String,
        pub message: String,
        pub url: Option<String>,
        pub tip: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct TitleChanged {
        pub title: String,
    }

    #[derive(Default, Eq)]
    pub struct ModelChange {
        pub previous_model: Option<String>,
        pub new_model: String,
        pub reasoning_effort: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ModeChanged {
        pub previous_mode: String,
        pub new_mode: String,
    }

    /// A custom agent was selected.
    #[derive(Default, Eq)]
    pub struct AgentSelected {
        pub agent_name: String,
        pub agent_display_name: String,
        /// The tools that it may use alone: always `null`, which means all.
        #[serde(default)]
        pub tools: crate::copilot::methods::Nullable<Vec<String>>,
    }

    #[derive(Copy, Default, Eq)]
    pub struct AgentDeselected {}

    #[derive(Default, Eq)]
    pub struct PlanChanged {
        /// `create`, `update` or `delete`.
        pub operation: String,
    }

    #[derive(Default, Eq)]
    pub struct PermissionsChanged {
        /// `manual` or `allow-all`.
        pub mode: String,
        pub previous_mode: String,
    }

    #[derive(Default, Eq)]
    pub struct WorkspaceFileChanged {
        pub path: String,
        /// `create` or `update`.
        pub operation: String,
    }

    #[derive(Default, Eq)]
    pub struct TodosChanged {}

    #[derive(Default, Eq)]
    pub struct CompactionStart {
        pub model: Option<String>,
        pub current_tokens: Option<u64>,
        pub token_limit: Option<u64>,
    }

    #[derive(Default, Eq)]
    pub struct CompactionComplete {
        pub success: bool,
        pub error: Option<String>,
        pub pre_compaction_tokens: Option<u64>,
        pub post_compaction_tokens: Option<u64>,
        pub pre_compaction_messages_length: Option<u64>,
        pub messages_removed: Option<u64>,
        pub tokens_removed: Option<u64>,
        pub summary_content: Option<String>,
        pub checkpoint_number: Option<u64>,
        pub checkpoint_path: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SnapshotRewind {
        pub up_to_event_id: String,
        pub events_removed: u64,
    }

    #[derive(Default, Eq)]
    pub struct UsageInfo {
        pub token_limit: u64,
        pub current_tokens: u64,
        pub messages_length: u64,
    }

    #[derive(Default)]
    pub struct SessionShutdown {
        /// `routine` or `error`.
        pub shutdown_type: Option<String>,
        pub error_reason: Option<String>,
        pub total_api_duration_ms: Option<u64>,
        /// Milliseconds since 1970.
        pub session_start_time: Option<u64>,
        pub code_changes: Option<Value>,
        pub model_metrics: Option<Value>,
        pub current_model: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct PendingMessagesModified {}
}

impl SessionShutdown {
    /// The event of a client that shuts a session down, with the session's counters.
    pub fn of(
        metrics: &UsageMetrics,
        started_at: grove_core::Timestamp,
        kind: Option<String>,
        reason: Option<String>,
    ) -> Self {
        let changes = &metrics.code_changes;
        Self {
            shutdown_type: Some(kind.unwrap_or_else(|| "routine".to_owned())),
            error_reason: reason,
            total_api_duration_ms: Some(metrics.total_api_duration_ms),
            session_start_time: Some(started_at.0),
            code_changes: Some(serde_json::json!({
                "linesAdded": changes.lines_added,
                "linesRemoved": changes.lines_removed,
                "filesModified": changes.files_modified,
            })),
            model_metrics: serde_json::to_value(&metrics.model_metrics).ok(),
            current_model: metrics.current_model.clone(),
        }
    }
}
