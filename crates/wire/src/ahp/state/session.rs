//! A session's channel, its row in the list, and its requests for input.

use super::{
    AnnotationsSummary, ChangesSummary, Changeset, ChatInputRequest, ChatInteractivity, ChatOrigin, ChatSummary,
    ClientPluginCustomization, Customization, ErrorInfo, SessionConfigState, ToolCallAuthRequired,
    ToolCallConfirmation, ToolCallRunning, ToolDefinition,
};
use crate::ahp::macros::{records, unions, words};
use crate::ahp::{Object, Uri};

/// The bits of `status`, of sessions and of chats. The lowest five are the activity, exactly one at a time; unknown
/// bits are kept.
pub mod status {
    pub const IDLE: u32 = 1;
    pub const ERROR: u32 = 2;
    pub const IN_PROGRESS: u32 = 8;
    /// In progress, but waiting for a person: contains [`IN_PROGRESS`].
    pub const INPUT_NEEDED: u32 = 16 | IN_PROGRESS;
    pub const IS_READ: u32 = 32;
    pub const IS_ARCHIVED: u32 = 64;

    /// The bits of the activity.
    pub const ACTIVITY: u32 = 31;

    /// `status` with another activity and all its other bits.
    pub const fn with_activity(status: u32, activity: u32) -> u32 {
        (status & !ACTIVITY) | activity
    }

    /// `status` with the bits of `flag` set or cleared.
    pub const fn with_flag(status: u32, flag: u32, set: bool) -> u32 {
        if set { status | flag } else { status & !flag }
    }
}

words! {
    #[derive(Default)]
    pub enum SessionLifecycle {
        #[default]
        Creating = "creating",
        Ready = "ready",
        Failed = "failed",
    }
}

records! {
    /// The state of a session's channel. The conversation is in its chats.
    #[derive(Default)]
    pub struct SessionState {
        pub provider: String,
        pub title: String,
        /// See [`status`].
        pub status: u32,
        pub activity: Option<String>,
        pub origin: Option<SessionOrigin>,
        pub project: Option<ProjectInfo>,
        pub working_directories: Option<Vec<Uri>>,
        pub annotations: Option<AnnotationsSummary>,
        pub lifecycle: SessionLifecycle,
        pub creation_error: Option<ErrorInfo>,
        pub server_tools: Option<Vec<ToolDefinition>>,
        pub active_clients: Vec<SessionActiveClient>,
        pub chats: Vec<ChatSummary>,
        pub default_chat: Option<Uri>,
        pub config: Option<SessionConfigState>,
        pub customizations: Option<Vec<Customization>>,
        pub changesets: Option<Vec<Changeset>>,
        pub input_needed: Option<Vec<SessionInputRequest>>,
        pub meta: Option<Object>,
    }

    /// A session's row in the list.
    #[derive(Default)]
    pub struct SessionSummary {
        pub provider: String,
        pub title: String,
        pub status: u32,
        pub activity: Option<String>,
        pub origin: Option<SessionOrigin>,
        pub project: Option<ProjectInfo>,
        pub working_directories: Option<Vec<Uri>>,
        pub annotations: Option<AnnotationsSummary>,
        pub resource: Uri,
        /// ISO 8601, like every other time of the protocol.
        pub created_at: String,
        pub modified_at: String,
        pub changes: Option<ChangesSummary>,
        pub meta: Option<Object>,
        pub chats: Option<Vec<SessionChatSummary>>,
        pub default_chat: Option<Uri>,
    }

    /// The changed fields of a row. It cannot clear a field.
    #[derive(Default)]
    pub struct PartialSessionSummary {
        pub provider: Option<String>,
        pub title: Option<String>,
        pub status: Option<u32>,
        pub activity: Option<String>,
        pub origin: Option<SessionOrigin>,
        pub project: Option<ProjectInfo>,
        pub working_directories: Option<Vec<Uri>>,
        pub annotations: Option<AnnotationsSummary>,
        /// Never changes; it is here because the protocol's type has it.
        pub resource: Option<Uri>,
        pub created_at: Option<String>,
        pub modified_at: Option<String>,
        pub changes: Option<ChangesSummary>,
        pub meta: Option<Object>,
        pub chats: Option<Vec<SessionChatSummary>>,
        pub default_chat: Option<Uri>,
    }

    /// A chat in a session's row: enough for navigation.
    #[derive(Default)]
    pub struct SessionChatSummary {
        pub resource: Uri,
        pub title: String,
        pub origin: Option<ChatOrigin>,
        pub interactivity: Option<ChatInteractivity>,
        pub status: Option<u32>,
        pub changes: Option<ChangesSummary>,
    }

    #[derive(Default, Eq)]
    pub struct ProjectInfo {
        pub uri: Uri,
        pub display_name: String,
    }

    /// A client that takes part in a session with tools or plugins of its own.
    #[derive(Default)]
    pub struct SessionActiveClient {
        pub client_id: String,
        pub display_name: Option<String>,
        pub tools: Vec<ToolDefinition>,
        pub customizations: Option<Vec<ClientPluginCustomization>>,
    }

    #[derive(Default, Eq)]
    pub struct AutomationSessionOrigin {
        pub automation: Uri,
        pub run: Uri,
    }

    pub struct SessionChatInputRequest {
        pub id: String,
        pub chat: Uri,
        pub request: ChatInputRequest,
    }

    pub struct SessionToolConfirmationRequest {
        pub id: String,
        pub chat: Uri,
        pub turn_id: String,
        pub tool_call: ToolCallConfirmation,
    }

    pub struct SessionToolClientExecutionRequest {
        pub id: String,
        pub chat: Uri,
        pub turn_id: String,
        pub client_id: String,
        pub tool_call: RunningToolCall,
    }

    pub struct SessionToolAuthenticationRequest {
        pub id: String,
        pub chat: Uri,
        pub turn_id: String,
        pub tool_call: AuthRequiredToolCall,
    }
}

unions! {
    /// The origin of a session that was not created by hand.
    pub enum SessionOrigin by "kind" {
        "automation" => Automation(AutomationSessionOrigin),
    }

    /// A request for input of a session, mirrored from its chats. The answer goes to the chat.
    pub enum SessionInputRequest by "kind" {
        "chatInput" => ChatInput(SessionChatInputRequest),
        "toolConfirmation" => ToolConfirmation(SessionToolConfirmationRequest),
        "toolClientExecution" => ToolClientExecution(SessionToolClientExecutionRequest),
        "toolAuthentication" => ToolAuthentication(Box<SessionToolAuthenticationRequest>),
    }
}

impl SessionInputRequest {
    /// The id for replacing and removing it, if its kind is known or it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            SessionInputRequest::ChatInput(request) => Some(&request.id),
            SessionInputRequest::ToolConfirmation(request) => Some(&request.id),
            SessionInputRequest::ToolClientExecution(request) => Some(&request.id),
            SessionInputRequest::ToolAuthentication(request) => Some(&request.id),
            SessionInputRequest::Unknown(value) => value.get("id").and_then(serde_json::Value::as_str),
        }
    }
}

/// A tool call that is always running, tagged like any other.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status")]
pub enum RunningToolCall {
    #[serde(rename = "running")]
    Running(ToolCallRunning),
}

/// A tool call that always waits for a token, tagged like any other.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status")]
pub enum AuthRequiredToolCall {
    #[serde(rename = "auth-required")]
    AuthRequired(ToolCallAuthRequired),
}
