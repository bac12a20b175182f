//! Tool calls, their results, and requests for permission.

use serde::{Deserialize, Serialize};

use super::{ContentRef, Extra};
use crate::event::NewToolCall;
use crate::ids::*;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub id: ToolCallId,
    pub name: String,
    pub display_name: String,
    pub kind: Option<ToolKind>,
    /// The language of the input, if it is code.
    pub language: Option<String>,
    pub invocation_message: String,
    /// The purpose of the call, if the agent gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intention: Option<String>,
    /// The client that runs this call; `None` means the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
    pub input: Option<String>,
    /// The reason why the call may run, once it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Confirmation>,
    /// The output so far, while the call runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ToolOutput>,
    pub status: ToolCallStatus,
    /// The call's rank among the turn's calls by when they became ready: the order in which they ran.
    pub ready_rank: Option<u32>,
    /// The call's description when it became ready, if that has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<Box<Invocation>>,
    /// Further data from the agent: places in files, its kind of tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
    /// When it began to run, by the host's clock; while a person is asked, it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Timestamp>,
    /// How many milliseconds it ran, where somebody saw its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
}

/// How long a call ran, and what it says of itself: a dialect may have to tell both in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRun {
    pub ran_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

/// The intended action of a call: a message and the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    pub message: String,
    pub input: Option<String>,
}

impl ToolCall {
    /// The names that the call started with and keeps.
    pub fn names(&self) -> NewToolCall {
        NewToolCall {
            id: self.id.clone(),
            name: self.name.clone(),
            display_name: self.display_name.clone(),
            kind: self.kind,
            language: self.language.clone(),
            client: self.client.clone(),
            extra: self.extra.clone(),
        }
    }

    /// How long the call will have run when it ends now; `None` where it does not run.
    pub(crate) fn run_until(&self, now: Timestamp) -> Option<CallRun> {
        let since = self.running_since?;
        Some(CallRun {
            ran_ms: now.0.saturating_sub(since.0),
            kind: self.kind,
            language: self.language.clone(),
            extra: self.extra.clone(),
        })
    }

    /// Describes the call again, and keeps the first description.
    pub(crate) fn restate(&mut self, message: Option<&String>, input: Option<&String>) {
        let was = Invocation { message: self.invocation_message.clone(), input: self.input.clone() };
        if let Some(message) = message {
            self.invocation_message.clone_from(message);
        }
        if let Some(input) = input {
            self.input = Some(input.clone());
        }
        if self.announced.is_none() && (self.invocation_message != was.message || self.input != was.input) {
            self.announced = Some(Box::new(was));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolKind {
    /// Runs a command.
    Terminal,
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Think,
    Fetch,
    SwitchMode,
}

/// The state of a tool call. Each state carries the data that exist only in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolCallStatus {
    /// The model is still writing the input.
    Streaming,
    /// The input is complete and a gate follows: exists only inside one batch.
    Ready,
    PendingConfirmation(PermissionRequest),
    Running,
    PendingResultConfirmation(ToolResult),
    Completed(ToolResult),
    Cancelled(Cancellation),
}

impl ToolCallStatus {
    /// True if a person is asked.
    pub fn waits_for_person(&self) -> bool {
        matches!(self, ToolCallStatus::PendingConfirmation(_) | ToolCallStatus::PendingResultConfirmation(_))
    }
}

/// The reason why a call did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancellation {
    pub reason: CancelReason,
    /// The chosen option, if there were options.
    pub option: Option<PermissionOption>,
    /// The person's further data on the answer, as the dialect has them.
    pub extra: Option<Extra>,
}

impl From<CancelReason> for Cancellation {
    fn from(reason: CancelReason) -> Self {
        Self { reason, option: None, extra: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CancelReason {
    Denied,
    /// Skipped rather than refused.
    Skipped,
    ResultDenied,
}

/// The reason why a call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    pub by: ConfirmationReason,
    /// The chosen option, if there were options.
    pub option: Option<PermissionOption>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConfirmationReason {
    /// No permission was needed.
    NotNeeded,
    /// A person allowed it.
    Person,
    /// A rule allowed it.
    Setting,
}

/// The output of a call: its text, and all of it if it is more than text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    pub text: String,
    /// Pieces of output in the dialect of the agent or client that ran the call.
    pub pieces: Option<Vec<serde_json::Value>>,
    /// Attachments beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<ToolAttachment>,
}

/// An attachment of a call's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolAttachment {
    /// A file before and after.
    Edit(FileChange),
    /// A stored body, such as a picture.
    Content(ContentRef),
}

/// A change of one file. Without `before` the file is new, without `after` it is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    pub path: String,
    pub before: Option<ContentRef>,
    pub after: Option<ContentRef>,
    /// Numbers of added and removed lines.
    pub added: u64,
    pub removed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    pub success: bool,
    pub past_tense_message: String,
    /// The output, or its beginning if all of it is stored as content.
    pub output: Option<String>,
    /// Attachments beside the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<ToolAttachment>,
    /// Further data of the result, in the dialect of the agent or client that ran the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

/// A request for a person's permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    pub id: RequestId,
    pub kind: PermissionKind,
    pub path: Option<String>,
    pub full_command_text: Option<String>,
    pub intention: Option<String>,
    /// The question in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The options; without any, yes and no.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<PermissionOption>,
    /// The changes that the call would make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<FileChange>,
    /// True if the person may edit the call's input before it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

/// An option of a permission request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    pub id: String,
    pub label: String,
    pub allows: bool,
    /// True if the answer holds for all later requests of the same subject.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PermissionKind {
    Shell,
    Write,
    Mcp,
    Read,
    Url,
}
