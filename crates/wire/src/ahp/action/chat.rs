//! Actions on a chat.

use indexmap::IndexMap;
use serde_json::Value;

use crate::ahp::macros::records;
use crate::ahp::state::{
    BackgroundWork, Changeset, ChatInputAnswer, ChatInputRequest, ChatInputResponseKind, ConfirmationOption,
    ErrorResponsePart, FileEditCollection, McpAuthRequirement, Message, PendingMessageKind, ResponsePart,
    StringOrMarkdown, ToolCallCancellationReason, ToolCallConfirmationReason, ToolCallContributor, ToolCallResult,
    ToolCallRiskAssessment, ToolInput, ToolResultContent, Turn, UsageInfo,
};
use crate::ahp::{Object, Uri};

actions! {
    pub enum ChatAction {
        "chat/turnStarted" Client => TurnStarted(ChatTurnStarted),
        "chat/delta" Host => Delta(ChatDelta),
        "chat/responsePart" Host => ResponsePart(ChatResponsePart),
        "chat/reasoning" Host => Reasoning(ChatReasoning),
        "chat/toolCallStart" Host => ToolCallStart(ChatToolCallStart),
        "chat/toolCallDelta" Host => ToolCallDelta(ChatToolCallDelta),
        "chat/toolCallReady" Host => ToolCallReady(Box<ChatToolCallReady>),
        "chat/toolCallConfirmed" Client => ToolCallConfirmed(Box<ChatToolCallConfirmed>),
        "chat/toolCallComplete" Client => ToolCallComplete(ChatToolCallComplete),
        "chat/toolCallResultConfirmed" Client => ToolCallResultConfirmed(ChatToolCallResultConfirmed),
        "chat/toolCallContentChanged" Client => ToolCallContentChanged(ChatToolCallContentChanged),
        "chat/toolCallAuthRequired" Host => ToolCallAuthRequired(Box<ChatToolCallAuthRequired>),
        "chat/toolCallAuthResolved" Host => ToolCallAuthResolved(ChatToolCallAuthResolved),
        "chat/usage" Host => Usage(ChatUsage),
        "chat/turnComplete" Host => TurnComplete(ChatTurnComplete),
        "chat/turnCancelled" Client => TurnCancelled(ChatTurnCancelled),
        "chat/error" Host => Error(ChatError),
        "chat/turnResume" Client => TurnResume(ChatTurnResume),
        "chat/turnsLoaded" Host => TurnsLoaded(ChatTurnsLoaded),
        "chat/truncated" Client => Truncated(ChatTruncated),
        "chat/pendingMessageSet" Client => PendingMessageSet(ChatPendingMessageSet),
        "chat/pendingMessageRemoved" Client => PendingMessageRemoved(ChatPendingMessageRemoved),
        "chat/queuedMessagesReordered" Client => QueuedMessagesReordered(ChatQueuedMessagesReordered),
        "chat/draftChanged" Client => DraftChanged(ChatDraftChanged),
        "chat/inputRequested" Host => InputRequested(ChatInputRequested),
        "chat/inputAnswerChanged" Client => InputAnswerChanged(ChatInputAnswerChanged),
        "chat/inputCompleted" Client => InputCompleted(ChatInputCompleted),
        "chat/isReadChanged" Client => IsReadChanged(ChatIsReadChanged),
        "chat/isArchivedChanged" Client => IsArchivedChanged(ChatIsArchivedChanged),
        "chat/activityChanged" Host => ActivityChanged(ChatActivityChanged),
        "chat/backgroundWorkSet" Host => BackgroundWorkSet(ChatBackgroundWorkSet),
        "chat/backgroundWorkRemoved" Host => BackgroundWorkRemoved(ChatBackgroundWorkRemoved),
        "chat/movableChanged" Host => MovableChanged(ChatMovableChanged),
        "chat/changesetsChanged" Host => ChangesetsChanged(ChatChangesetsChanged),
        "chat/canvasesChanged" Host => CanvasesChanged(ChatCanvasesChanged),
        "chat/workingDirectorySet" Client => WorkingDirectorySet(ChatWorkingDirectorySet),
        "chat/workingDirectoryRemoved" Client => WorkingDirectoryRemoved(ChatWorkingDirectoryRemoved),
    }
}

records! {
    pub struct ChatTurnStarted {
        pub turn_id: String,
        pub started_at: String,
        pub message: Message,
        /// The queued or steering message that became this turn.
        pub queued_message_id: Option<String>,
        pub meta: Option<Object>,
    }

    /// Appends text to an existing Markdown part.
    pub struct ChatDelta {
        pub turn_id: String,
        pub part_id: String,
        pub content: String,
        pub meta: Option<Object>,
    }

    pub struct ChatResponsePart {
        pub turn_id: String,
        pub part: ResponsePart,
        pub meta: Option<Object>,
    }

    /// Appends text to an existing reasoning part.
    pub struct ChatReasoning {
        pub turn_id: String,
        pub part_id: String,
        pub content: String,
        pub meta: Option<Object>,
    }

    /// A call begins. It is a part of the answer from now on, without a `chat/responsePart`.
    pub struct ChatToolCallStart {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
        pub tool_name: String,
        pub display_name: String,
        pub intention: Option<String>,
        pub contributor: Option<ToolCallContributor>,
    }

    pub struct ChatToolCallDelta {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
        pub content: Option<String>,
        pub invocation_message: Option<StringOrMarkdown>,
    }

    /// The input is complete. With `confirmed` the call runs; without, it waits for permission. A running call may
    /// return to this state to be asked about again.
    pub struct ChatToolCallReady {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
        pub contributor: Option<ToolCallContributor>,
        pub intention: Option<String>,
        pub invocation_message: StringOrMarkdown,
        pub tool_input: Option<ToolInput>,
        pub confirmation_title: Option<StringOrMarkdown>,
        pub risk_assessment: Option<ToolCallRiskAssessment>,
        pub edits: Option<FileEditCollection>,
        pub editable: Option<bool>,
        pub confirmed: Option<ToolCallConfirmationReason>,
        pub options: Option<Vec<ConfirmationOption>>,
    }

    /// The decision. An approval has `confirmed`, a refusal `reason`.
    pub struct ChatToolCallConfirmed {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
        pub approved: bool,
        pub confirmed: Option<ToolCallConfirmationReason>,
        pub reason: Option<ToolCallCancellationReason>,
        pub edited_tool_input: Option<String>,
        pub user_suggestion: Option<Message>,
        pub reason_message: Option<StringOrMarkdown>,
        pub selected_option_id: Option<String>,
    }

    pub struct ChatToolCallComplete {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
        pub result: ToolCallResult,
        pub requires_result_confirmation: Option<bool>,
    }

    pub struct ChatToolCallResultConfirmed {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
        pub approved: bool,
    }

    pub struct ChatToolCallContentChanged {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
        pub content: Vec<ToolResultContent>,
    }

    pub struct ChatToolCallAuthRequired {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
        pub auth: McpAuthRequirement,
    }

    pub struct ChatToolCallAuthResolved {
        pub turn_id: String,
        pub tool_call_id: String,
        pub meta: Option<Object>,
    }

    pub struct ChatUsage {
        pub turn_id: String,
        pub usage: UsageInfo,
        pub meta: Option<Object>,
    }

    /// Durations are milliseconds. They are signed, so that a client with a slow clock can still cancel.
    pub struct ChatTurnComplete {
        pub turn_id: String,
        pub duration: i64,
        pub meta: Option<Object>,
    }

    pub struct ChatTurnCancelled {
        pub turn_id: String,
        pub duration: i64,
        pub meta: Option<Object>,
    }

    pub struct ChatError {
        pub turn_id: String,
        pub duration: i64,
        pub part: ErrorPart,
        pub meta: Option<Object>,
    }

    /// Resumes the last turn, if it ended in a resumable error.
    pub struct ChatTurnResume {
        pub turn_id: String,
    }

    /// Older turns, to be inserted before the present ones.
    pub struct ChatTurnsLoaded {
        pub turns: Vec<Turn>,
        pub turns_next_cursor: Option<String>,
    }

    /// Removes every turn after `turn_id`, or all turns.
    pub struct ChatTruncated {
        pub turn_id: Option<String>,
    }

    pub struct ChatPendingMessageSet {
        pub kind: PendingMessageKind,
        pub id: String,
        pub message: Message,
    }

    pub struct ChatPendingMessageRemoved {
        pub kind: PendingMessageKind,
        pub id: String,
    }

    /// The ids in their new order; unnamed messages follow.
    pub struct ChatQueuedMessagesReordered {
        pub order: Vec<String>,
    }

    pub struct ChatDraftChanged {
        pub draft: Option<Message>,
    }

    pub struct ChatInputRequested {
        pub request: ChatInputRequest,
    }

    /// An absent answer clears the answer.
    pub struct ChatInputAnswerChanged {
        pub request_id: String,
        pub question_id: String,
        pub answer: Option<ChatInputAnswer>,
    }

    pub struct ChatInputCompleted {
        pub request_id: String,
        pub response: ChatInputResponseKind,
        pub answers: Option<IndexMap<String, ChatInputAnswer>>,
    }

    pub struct ChatIsReadChanged {
        pub is_read: bool,
    }

    pub struct ChatIsArchivedChanged {
        pub is_archived: bool,
    }

    pub struct ChatActivityChanged {
        pub activity: Option<String>,
    }

    pub struct ChatBackgroundWorkSet {
        pub work: BackgroundWork,
    }

    pub struct ChatBackgroundWorkRemoved {
        pub id: String,
    }

    pub struct ChatMovableChanged {
        pub movable: bool,
    }

    pub struct ChatChangesetsChanged {
        pub changesets: Option<Vec<Changeset>>,
    }

    /// Canvases are not supported: kept as raw JSON.
    pub struct ChatCanvasesChanged {
        pub canvases: Option<Value>,
    }

    pub struct ChatWorkingDirectorySet {
        pub directory: Uri,
    }

    pub struct ChatWorkingDirectoryRemoved {
        pub directory: Uri,
    }
}

/// A part that is always an error, tagged like any other.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind")]
pub enum ErrorPart {
    #[serde(rename = "error")]
    Error(ErrorResponsePart),
}
