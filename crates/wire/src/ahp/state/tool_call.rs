//! Tools and tool calls. A call is streaming -> pending-confirmation -> running (<-> auth-required) ->
//! pending-result-confirmation -> completed, or cancelled on the way. A failed call is completed without success.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{
    ContentRef, FileEdit, FileEditCollection, McpAuthRequirement, Message, StringOrMarkdown, TerminalCommandResult,
};
use crate::ahp::macros::{records, unions, words};
use crate::ahp::{Object, Uri};

records! {
    #[derive(Default)]
    pub struct ToolDefinition {
        pub name: String,
        pub title: Option<String>,
        pub description: Option<String>,
        /// A JSON schema.
        pub input_schema: Option<Object>,
        /// A JSON schema.
        pub output_schema: Option<Object>,
        pub annotations: Option<ToolAnnotations>,
        pub meta: Option<Object>,
    }

    /// A tool's own claims, which are not verified.
    #[derive(Default, Eq)]
    pub struct ToolAnnotations {
        pub title: Option<String>,
        pub read_only_hint: Option<bool>,
        pub destructive_hint: Option<bool>,
        pub idempotent_hint: Option<bool>,
        pub open_world_hint: Option<bool>,
    }

    /// The common data of a tool call in every status.
    #[derive(Default)]
    pub struct ToolCallBase {
        pub tool_call_id: String,
        pub tool_name: String,
        pub display_name: String,
        pub intention: Option<String>,
        /// Absent if the host itself brings the tool.
        pub contributor: Option<ToolCallContributor>,
        pub meta: Option<Object>,
    }

    /// The data of a tool call with complete input.
    #[derive(Default)]
    pub struct ToolCallParameters {
        pub invocation_message: StringOrMarkdown,
        pub tool_input: Option<ToolInput>,
    }

    /// The result of a tool call.
    #[derive(Default)]
    pub struct ToolCallResult {
        pub success: bool,
        pub past_tense_message: StringOrMarkdown,
        pub content: Option<Vec<ToolResultContent>>,
        pub structured_content: Option<Object>,
        pub error: Option<ToolCallError>,
    }

    #[derive(Default, Eq)]
    pub struct ToolCallError {
        pub message: String,
        pub code: Option<String>,
    }

    /// The input is still being streamed.
    #[derive(Default)]
    pub struct ToolCallStreaming {
        #[serde(flatten)]
        pub base: ToolCallBase,
        pub partial_input: Option<String>,
        pub invocation_message: Option<StringOrMarkdown>,
    }

    /// The call waits for permission.
    #[derive(Default)]
    pub struct ToolCallPendingConfirmation {
        #[serde(flatten)]
        pub base: ToolCallBase,
        #[serde(flatten)]
        pub parameters: ToolCallParameters,
        pub confirmation_title: Option<StringOrMarkdown>,
        pub risk_assessment: Option<ToolCallRiskAssessment>,
        pub edits: Option<FileEditCollection>,
        pub editable: Option<bool>,
        pub options: Option<Vec<ConfirmationOption>>,
    }

    /// The call runs.
    pub struct ToolCallRunning {
        #[serde(flatten)]
        pub base: ToolCallBase,
        #[serde(flatten)]
        pub parameters: ToolCallParameters,
        pub confirmed: ToolCallConfirmationReason,
        pub selected_option: Option<ConfirmationOption>,
        pub content: Option<Vec<ToolResultContent>>,
    }

    /// The call waits for a token.
    pub struct ToolCallAuthRequired {
        #[serde(flatten)]
        pub base: ToolCallBase,
        #[serde(flatten)]
        pub parameters: ToolCallParameters,
        pub confirmed: ToolCallConfirmationReason,
        pub selected_option: Option<ConfirmationOption>,
        pub auth: McpAuthRequirement,
        pub content: Option<Vec<ToolResultContent>>,
    }

    /// The call has run, and its result waits for permission to be used.
    pub struct ToolCallPendingResultConfirmation {
        #[serde(flatten)]
        pub base: ToolCallBase,
        #[serde(flatten)]
        pub parameters: ToolCallParameters,
        #[serde(flatten)]
        pub result: ToolCallResult,
        pub confirmed: ToolCallConfirmationReason,
        pub selected_option: Option<ConfirmationOption>,
    }

    /// The call has ended, with or without success.
    pub struct ToolCallCompleted {
        #[serde(flatten)]
        pub base: ToolCallBase,
        #[serde(flatten)]
        pub parameters: ToolCallParameters,
        #[serde(flatten)]
        pub result: ToolCallResult,
        pub confirmed: ToolCallConfirmationReason,
        pub selected_option: Option<ConfirmationOption>,
    }

    /// The call was not allowed to run, or its result not to be used.
    pub struct ToolCallCancelled {
        #[serde(flatten)]
        pub base: ToolCallBase,
        #[serde(flatten)]
        pub parameters: ToolCallParameters,
        pub reason: ToolCallCancellationReason,
        pub reason_message: Option<StringOrMarkdown>,
        pub user_suggestion: Option<Message>,
        pub selected_option: Option<ConfirmationOption>,
    }

    /// A button of a confirmation.
    #[derive(Eq)]
    pub struct ConfirmationOption {
        pub id: String,
        pub label: String,
        pub kind: ConfirmationOptionKind,
        /// Buttons of a group are shown together.
        pub group: Option<i64>,
    }

    #[derive(Eq)]
    pub struct ToolCallRiskAssessmentLoading {
        pub kind: ToolCallRiskAssessmentKind,
    }

    #[derive(Eq)]
    pub struct ToolCallRiskAssessmentComplete {
        pub kind: ToolCallRiskAssessmentKind,
        pub reason: StringOrMarkdown,
        /// From 0, dangerous, to 1, safe. A number as it is written, so that 1 does not become 1.0.
        pub safety: Number,
    }

    #[derive(Default, Eq)]
    pub struct ToolCallClientContributor {
        pub client_id: String,
    }

    #[derive(Default, Eq)]
    pub struct ToolCallMcpContributor {
        pub customization_id: String,
    }

    #[derive(Default, Eq)]
    pub struct ToolResultTextContent {
        pub text: String,
    }

    #[derive(Default, Eq)]
    pub struct ToolResultEmbeddedResourceContent {
        /// Base64.
        pub data: String,
        pub content_type: String,
    }

    #[derive(Default)]
    pub struct ToolResultTerminalContent {
        pub resource: Uri,
        pub title: String,
        pub is_pty: Option<bool>,
        pub result: Option<TerminalCommandResult>,
    }

    #[derive(Default, Eq)]
    pub struct ToolResultSubagentContent {
        pub resource: Uri,
        pub title: String,
        pub agent_name: Option<String>,
        pub description: Option<String>,
    }
}

unions! {
    pub enum ToolCallState by "status" {
        "streaming" => Streaming(ToolCallStreaming),
        "pending-confirmation" => PendingConfirmation(ToolCallPendingConfirmation),
        "running" => Running(ToolCallRunning),
        "auth-required" => AuthRequired(Box<ToolCallAuthRequired>),
        "pending-result-confirmation" => PendingResultConfirmation(ToolCallPendingResultConfirmation),
        "completed" => Completed(ToolCallCompleted),
        "cancelled" => Cancelled(ToolCallCancelled),
    }

    /// A tool call that waits for a decision, before or after it runs.
    pub enum ToolCallConfirmation by "status" {
        "pending-confirmation" => PendingConfirmation(ToolCallPendingConfirmation),
        "pending-result-confirmation" => PendingResultConfirmation(ToolCallPendingResultConfirmation),
    }

    /// The contributor of a tool, which has to run it.
    pub enum ToolCallContributor by "kind" {
        "client" => Client(ToolCallClientContributor),
        "mcp" => Mcp(ToolCallMcpContributor),
    }

    /// The assessed risk of a call.
    pub enum ToolCallRiskAssessment by "status" {
        "loading" => Loading(ToolCallRiskAssessmentLoading),
        "complete" => Complete(ToolCallRiskAssessmentComplete),
    }

    pub enum ToolResultContent by "type" {
        "text" => Text(ToolResultTextContent),
        "embeddedResource" => EmbeddedResource(ToolResultEmbeddedResourceContent),
        "resource" => Resource(ContentRef),
        "fileEdit" => FileEdit(FileEdit),
        "terminal" => Terminal(ToolResultTerminalContent),
        "subagent" => Subagent(ToolResultSubagentContent),
    }
}

impl ToolCallState {
    /// The common data of the call; `None` for an unknown status.
    pub fn base(&self) -> Option<&ToolCallBase> {
        match self {
            ToolCallState::Streaming(call) => Some(&call.base),
            ToolCallState::PendingConfirmation(call) => Some(&call.base),
            ToolCallState::Running(call) => Some(&call.base),
            ToolCallState::AuthRequired(call) => Some(&call.base),
            ToolCallState::PendingResultConfirmation(call) => Some(&call.base),
            ToolCallState::Completed(call) => Some(&call.base),
            ToolCallState::Cancelled(call) => Some(&call.base),
            ToolCallState::Unknown(_) => None,
        }
    }

    /// The call's id, if its status is known or it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            ToolCallState::Unknown(value) => value.get("toolCallId").and_then(serde_json::Value::as_str),
            known => known.base().map(|base| base.tool_call_id.as_str()),
        }
    }
}

words! {
    /// The reason why a call may run.
    pub enum ToolCallConfirmationReason {
        NotNeeded = "not-needed",
        UserAction = "user-action",
        Setting = "setting",
    }

    pub enum ConfirmationOptionKind {
        Approve = "approve",
        Deny = "deny",
    }

    /// The assessor.
    pub enum ToolCallRiskAssessmentKind {
        Judge = "judge",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolCallCancellationReason {
    Denied,
    Skipped,
    ResultDenied,
}

/// A tool's input: inline, or by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ToolInput {
    Inline(String),
    Ref(ContentRef),
}
