//! A session's metadata, usage and tools.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Nullable, SessionContext, Workspace};
use crate::ahp::macros::records;

/// The longest message of `session.log`, in bytes.
pub const MAX_LOG_MESSAGE: usize = 64 << 10;

records! {
    #[derive(Default)]
    pub struct MetadataSnapshot {
        pub session_id: String,
        pub start_time: String,
        pub modified_time: String,
        pub is_remote: bool,
        /// Always false: Grove's sessions are open to several programs.
        pub already_in_use: bool,
        #[serde(default)]
        pub workspace_path: Nullable<String>,
        pub initial_name: Option<String>,
        pub summary: Option<String>,
        pub working_directory: String,
        /// `interactive`, `plan` or `autopilot`.
        pub current_mode: String,
        pub selected_model: Option<String>,
        #[serde(default)]
        pub session_limits: Nullable<Value>,
        #[serde(default)]
        pub workspace: Nullable<Workspace>,
    }

    #[derive(Copy, Default, Eq)]
    pub struct SessionActivity {
        pub abortable: bool,
        pub has_active_work: bool,
    }

    #[derive(Eq)]
    pub struct WorkingDirectoryParams {
        pub session_id: String,
        pub working_directory: String,
    }

    #[derive(Default, Eq)]
    pub struct WorkingDirectoryResult {
        pub working_directory: String,
    }

    pub struct RecordContextParams {
        pub session_id: String,
        pub context: SessionContext,
    }

    /// A session's use of models and its changes of files, as far as its agent reports them.
    #[derive(Default)]
    pub struct UsageMetrics {
        pub total_premium_request_cost: u64,
        pub total_user_requests: u64,
        pub total_api_duration_ms: u64,
        pub session_start_time: String,
        pub code_changes: CodeChanges,
        pub model_metrics: BTreeMap<String, ModelMetric>,
        pub current_model: Option<String>,
        pub last_call_input_tokens: u64,
        pub last_call_output_tokens: u64,
    }

    #[derive(Default, Eq)]
    pub struct CodeChanges {
        pub lines_added: u64,
        pub lines_removed: u64,
        pub files_modified_count: u64,
        pub files_modified: Vec<String>,
    }

    #[derive(Copy, Default, Eq)]
    pub struct ModelMetric {
        pub requests: ModelRequests,
        pub usage: ModelUsage,
    }

    #[derive(Copy, Default, Eq)]
    pub struct ModelRequests {
        pub count: u64,
        pub cost: u64,
    }

    #[derive(Copy, Default, Eq)]
    pub struct ModelUsage {
        pub input_tokens: u64,
        pub output_tokens: u64,
        pub cache_read_tokens: u64,
        pub cache_write_tokens: u64,
        pub reasoning_tokens: Option<u64>,
    }

    /// The tools that clients offer to the agent. Its own are not known.
    #[derive(Default)]
    pub struct ToolMetadataResult {
        pub tools: Vec<ToolMetadata>,
    }

    #[derive(Default)]
    pub struct ToolMetadata {
        pub name: String,
        pub description: String,
        #[serde(rename = "input_schema")]
        pub input_schema: Option<Value>,
    }

    #[derive(Eq)]
    pub struct LogParams {
        pub session_id: String,
        pub message: String,
        /// `info`, `warning` or `error`.
        pub level: Option<String>,
        /// The category of the message.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        /// Sent once and not stored.
        pub ephemeral: Option<bool>,
        pub url: Option<String>,
        pub tip: Option<String>,
    }

    #[derive(Eq)]
    pub struct LogResult {
        pub event_id: String,
    }

    #[derive(Eq)]
    pub struct NameSetAutoParams {
        pub session_id: String,
        pub summary: String,
    }

    #[derive(Copy, Default, Eq)]
    pub struct NameSetAutoResult {
        /// False if a person has named the session.
        pub applied: bool,
    }

    #[derive(Default, Eq)]
    pub struct SqlTodosResult {
        pub rows: Vec<SqlTodo>,
    }

    #[derive(Default, Eq)]
    pub struct SqlTodosWithDependenciesResult {
        pub rows: Vec<SqlTodo>,
        pub dependencies: Vec<SqlTodoDependency>,
    }

    #[derive(Default, Eq)]
    pub struct SqlTodo {
        pub id: Option<String>,
        pub title: Option<String>,
        pub description: Option<String>,
        pub status: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SqlTodoDependency {
        pub todo_id: String,
        pub depends_on: String,
    }

    #[derive(Eq)]
    pub struct DiffParams {
        pub session_id: String,
        /// `session`, `unstaged` or `branch`.
        pub mode: String,
    }

    #[derive(Default)]
    pub struct DiffResult {
        pub requested_mode: String,
        pub mode: String,
        pub changes: Vec<Value>,
        pub is_fallback: bool,
        pub unavailable_reason: Option<String>,
    }

    #[derive(Copy, Default, Eq)]
    pub struct InterruptResult {
        pub interrupted: bool,
    }

    #[derive(Copy, Default, Eq)]
    pub struct AbortCompactionResult {
        pub aborted: bool,
    }
}
