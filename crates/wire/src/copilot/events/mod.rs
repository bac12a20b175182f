//! Events: the envelope, and the data of each type.
//!
//! A persisted event has the one before it as its parent, so that they form a chain. An ephemeral one has the last
//! persisted one as its parent and is no parent itself.

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::methods::{Attachment, SessionContext};
use crate::ahp::macros::records;

/// An event's id: a UUID, as text.
pub type EventId = Arc<str>;

/// An event of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: EventId,
    /// RFC 3339, in milliseconds.
    pub timestamp: String,
    /// The previous persisted event; the first has none.
    pub parent_id: Option<EventId>,
    /// Sent once and not persisted.
    pub ephemeral: bool,
    /// The agent beside the main one that it concerns.
    pub agent_id: Option<String>,
    pub data: EventData,
}

impl Event {
    /// Its type on the wire.
    pub fn kind(&self) -> &str {
        self.data.kind()
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let optional = usize::from(self.ephemeral) + usize::from(self.agent_id.is_some());
        let mut written = serializer.serialize_struct("Event", 5 + optional)?;
        written.serialize_field("type", self.kind())?;
        written.serialize_field("data", &self.data)?;
        written.serialize_field("id", &self.id)?;
        written.serialize_field("timestamp", &self.timestamp)?;
        written.serialize_field("parentId", &self.parent_id)?;
        if self.ephemeral {
            written.serialize_field("ephemeral", &true)?;
        }
        if let Some(agent) = &self.agent_id {
            written.serialize_field("agentId", agent)?;
        }
        written.end()
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct EventEnvelope {
            #[serde(rename = "type")]
            kind: String,
            #[serde(default)]
            data: Value,
            id: EventId,
            #[serde(default)]
            timestamp: String,
            #[serde(default)]
            parent_id: Option<EventId>,
            #[serde(default)]
            ephemeral: Option<bool>,
            #[serde(default)]
            agent_id: Option<String>,
        }
        let EventEnvelope { kind, data, id, timestamp, parent_id, ephemeral, agent_id } =
            EventEnvelope::deserialize(deserializer)?;
        let data = EventData::read(kind, data);
        Ok(Self { id, timestamp, parent_id, ephemeral: ephemeral.unwrap_or(false), agent_id, data })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Event {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Event".into()
    }

    /// Left open: the protocol has its own schema of events' data.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

macro_rules! events {
    ($($(#[$about:meta])* $kind:literal => $variant:ident($data:ty)),* $(,)?) => {
        /// The data of an event, by its type.
        #[derive(Clone, Debug, PartialEq)]
        pub enum EventData {
            $($(#[$about])* $variant($data),)*
            /// An event of an unknown type, or with data of another form, as it came: events of an older or a newer
            /// program must not make the whole log unreadable.
            Unknown { kind: String, data: Value },
        }

        impl EventData {
            /// The known types.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// The type on the wire.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Unknown { kind, .. } => kind,
                }
            }

            fn read(kind: String, data: Value) -> Self {
                match kind.as_str() {
                    $($kind => match crate::value_reader::from_value(&data) {
                        Ok(data) => Self::$variant(data),
                        Err(_) => Self::Unknown { kind, data },
                    },)*
                    _ => Self::Unknown { kind, data },
                }
            }
        }

        /// Serializes the data without its type.
        impl Serialize for EventData {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(data) => data.serialize(serializer),)*
                    Self::Unknown { data, .. } => data.serialize(serializer),
                }
            }
        }

        $(impl From<$data> for EventData {
            fn from(data: $data) -> Self {
                Self::$variant(data)
            }
        })*
    };
}

events! {
    "session.start" => SessionStart(SessionStart),
    "session.resume" => SessionResume(SessionResume),
    "session.idle" => SessionIdle(SessionIdle),
    "session.error" => SessionError(SessionError),
    "session.warning" => SessionWarning(SessionWarning),
    "session.info" => SessionInfo(SessionInfo),
    "session.title_changed" => TitleChanged(TitleChanged),
    "session.model_change" => ModelChange(ModelChange),
    "session.plan_changed" => PlanChanged(PlanChanged),
    "session.permissions_changed" => PermissionsChanged(PermissionsChanged),
    "session.workspace_file_changed" => WorkspaceFileChanged(WorkspaceFileChanged),
    "session.todos_changed" => TodosChanged(TodosChanged),
    "session.compaction_start" => CompactionStart(CompactionStart),
    "session.compaction_complete" => CompactionComplete(CompactionComplete),
    "session.snapshot_rewind" => SnapshotRewind(SnapshotRewind),
    "session.usage_info" => UsageInfo(UsageInfo),
    "session.shutdown" => SessionShutdown(Box<SessionShutdown>),
    "pending_messages.modified" => PendingMessagesModified(PendingMessagesModified),
    "user.message" => UserMessage(UserMessage),
    "assistant.turn_start" => TurnStart(TurnStart),
    "assistant.turn_end" => TurnEnd(TurnEnd),
    "assistant.message_start" => MessageStart(MessageStart),
    "assistant.message_delta" => MessageDelta(MessageDelta),
    "assistant.message" => AssistantMessage(AssistantMessage),
    "assistant.reasoning_delta" => ReasoningDelta(ReasoningDelta),
    "assistant.reasoning" => Reasoning(Reasoning),
    "assistant.tool_call_delta" => ToolCallDelta(ToolCallDelta),
    "assistant.usage" => Usage(Usage),
    "tool.execution_start" => ToolStart(ToolStart),
    "tool.execution_partial_result" => ToolPartialResult(ToolPartialResult),
    "tool.execution_complete" => ToolComplete(ToolComplete),
    "permission.requested" => PermissionRequested(Box<PermissionRequested>),
    "permission.completed" => PermissionCompleted(PermissionCompleted),
    "external_tool.requested" => ExternalToolRequested(ExternalToolRequested),
    "external_tool.completed" => ExternalToolCompleted(ExternalToolCompleted),
    "user_input.requested" => UserInputRequested(UserInputRequested),
    "user_input.completed" => UserInputCompleted(UserInputCompleted),
    "abort" => Abort(Abort),
}

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
    }

    #[derive(Default, Eq)]
    pub struct SessionWarning {
        pub warning_type: String,
        pub message: String,
    }

    #[derive(Default, Eq)]
    pub struct SessionInfo {
        pub info_type: String,
        pub message: String,
    }

    #[derive(Default, Eq)]
    pub struct TitleChanged {
        pub title: String,
    }

    #[derive(Default, Eq)]
    pub struct ModelChange {
        pub previous_model: Option<String>,
        pub new_model: String,
    }

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
    }

    #[derive(Default, Eq)]
    pub struct PendingMessagesModified {}

    #[derive(Default)]
    pub struct UserMessage {
        pub content: String,
        pub message_id: Option<String>,
        pub attachments: Option<Vec<Attachment>>,
        /// The sender, if it was not a person.
        pub source: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct TurnStart {
        pub turn_id: String,
        pub model: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct TurnEnd {
        pub turn_id: String,
    }

    #[derive(Default, Eq)]
    pub struct MessageStart {
        pub message_id: String,
    }

    #[derive(Default, Eq)]
    pub struct MessageDelta {
        pub message_id: String,
        pub delta_content: String,
    }

    /// A complete piece of an answer, with the calls that follow from it.
    #[derive(Default)]
    pub struct AssistantMessage {
        pub message_id: String,
        pub model: Option<String>,
        pub content: String,
        pub tool_requests: Option<Vec<ToolRequest>>,
        pub reasoning_text: Option<String>,
        pub turn_id: Option<String>,
    }

    pub struct ToolRequest {
        pub tool_call_id: String,
        pub name: String,
        pub arguments: Option<Value>,
        /// `function` or `custom`.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        pub tool_title: Option<String>,
        pub intention_summary: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ReasoningDelta {
        pub reasoning_id: String,
        pub delta_content: String,
    }

    #[derive(Default, Eq)]
    pub struct Reasoning {
        pub reasoning_id: String,
        pub content: String,
    }

    #[derive(Default, Eq)]
    pub struct ToolCallDelta {
        pub tool_call_id: String,
        pub tool_name: Option<String>,
        pub input_delta: String,
    }

    #[derive(Default)]
    pub struct Usage {
        pub model: String,
        pub input_tokens: Option<u64>,
        pub output_tokens: Option<u64>,
        pub cache_read_tokens: Option<u64>,
        pub cache_write_tokens: Option<u64>,
        pub reasoning_tokens: Option<u64>,
    }

    pub struct ToolStart {
        pub tool_call_id: String,
        pub tool_name: String,
        pub arguments: Option<Value>,
        pub turn_id: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ToolPartialResult {
        pub tool_call_id: String,
        /// The new part of the output.
        pub partial_output: String,
    }

    #[derive(Default, Eq)]
    pub struct ToolComplete {
        pub tool_call_id: String,
        pub success: bool,
        pub result: Option<ToolResult>,
        pub error: Option<ToolError>,
        pub turn_id: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ToolResult {
        pub content: String,
        pub detailed_content: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ToolError {
        pub message: String,
        pub code: Option<String>,
    }

    pub struct PermissionRequested {
        pub request_id: String,
        pub permission_request: PermissionRequest,
        /// The same request for display.
        pub prompt_request: Option<PromptRequest>,
        /// True if it is answered without the client: by a rule, or by an earlier answer.
        pub resolved_by_hook: Option<bool>,
    }

    /// An agent's permission request. The members depend on the kind; clients of some kinds require them all, so
    /// unknown ones are empty and not absent.
    #[derive(Default)]
    pub struct PermissionRequest {
        /// `shell`, `write`, `read`, `mcp`, `url`, and others that are not used here.
        pub kind: String,
        pub tool_call_id: Option<String>,
        pub intention: Option<String>,
        pub full_command_text: Option<String>,
        pub commands: Option<Vec<ShellCommand>>,
        pub possible_paths: Option<Vec<String>>,
        pub possible_urls: Option<Vec<Value>>,
        pub has_write_file_redirection: Option<bool>,
        pub can_offer_session_approval: Option<bool>,
        pub file_name: Option<String>,
        pub diff: Option<String>,
        pub path: Option<String>,
        pub url: Option<String>,
        pub server_name: Option<String>,
        pub tool_name: Option<String>,
        pub tool_title: Option<String>,
        pub args: Option<Value>,
        pub read_only: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct ShellCommand {
        pub identifier: String,
        pub read_only: bool,
    }

    /// A [`PermissionRequest`] for display: a command is of kind `commands` here.
    #[derive(Default)]
    pub struct PromptRequest {
        pub kind: String,
        pub tool_call_id: Option<String>,
        pub intention: Option<String>,
        pub full_command_text: Option<String>,
        pub command_identifiers: Option<Vec<String>>,
        pub can_offer_session_approval: Option<bool>,
        pub file_name: Option<String>,
        pub diff: Option<String>,
        pub path: Option<String>,
        pub url: Option<String>,
        pub server_name: Option<String>,
        pub tool_name: Option<String>,
        pub tool_title: Option<String>,
        pub args: Option<Value>,
    }

    #[derive(Default)]
    pub struct PermissionCompleted {
        pub request_id: String,
        pub tool_call_id: Option<String>,
        pub result: PermissionResult,
    }

    #[derive(Default)]
    pub struct PermissionResult {
        /// `approved`, `denied-interactively-by-user`, `denied-by-rules`, `cancelled`, and others.
        pub kind: String,
        pub feedback: Option<String>,
        pub reason: Option<String>,
        /// Only if rules denied it.
        pub rules: Option<Vec<Value>>,
    }

    /// Asks a client to run one of its own tools.
    pub struct ExternalToolRequested {
        pub request_id: String,
        pub session_id: String,
        pub tool_call_id: String,
        pub tool_name: String,
        pub arguments: Option<Value>,
        pub working_directory: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ExternalToolCompleted {
        pub request_id: String,
    }

    #[derive(Default, Eq)]
    pub struct UserInputRequested {
        pub request_id: String,
        pub question: String,
        pub choices: Option<Vec<String>>,
        pub allow_freeform: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct UserInputCompleted {
        pub request_id: String,
        pub answer: Option<String>,
        pub was_freeform: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct Abort {
        pub reason: String,
    }
}

impl SessionShutdown {
    /// The event of a client that shuts a session down. Required counters that Grove does not keep are zero.
    pub fn of(session: &grove_core::Session, kind: Option<String>, reason: Option<String>) -> Self {
        Self {
            shutdown_type: Some(kind.unwrap_or_else(|| "routine".to_owned())),
            error_reason: reason,
            total_api_duration_ms: Some(0),
            session_start_time: Some(session.created_at.0),
            code_changes: Some(serde_json::json!({ "linesAdded": 0, "linesRemoved": 0, "filesModified": [] })),
            model_metrics: Some(serde_json::json!({})),
        }
    }
}

impl SessionResume {
    /// The event of resuming a session.
    pub fn of(session: &grove_core::Session, at: grove_core::Timestamp) -> Self {
        let chat = session.main_chat();
        Self {
            resume_time: crate::ahp::time::text(at),
            event_count: chat.map_or(0, |chat| chat.turns.len() as u64),
            events_file_size_bytes: None,
            selected_model: session.model.as_ref().map(ToString::to_string),
            context: SessionContext::of(session),
            session_was_active: Some(chat.is_some_and(|chat| chat.active.is_some())),
        }
    }
}
