//! A turn: what a person said and what came of it, as an ordered list of parts.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::ids::*;

/// What a person, or something on a person's behalf, sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub origin: MessageOrigin,
    /// The model this message asks for; without one, the session's.
    pub model: Option<ModelId>,
}

impl Message {
    /// A plain message of a person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { text: text.into(), attachments: Vec::new(), origin: MessageOrigin::User, model: None }
    }
}

/// Who a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MessageOrigin {
    User,
    Agent,
    Tool,
    Automation,
    SystemNotification,
}

/// Something a message points at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    pub kind: AttachmentKind,
    pub path: String,
    pub display_name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AttachmentKind {
    File,
    Directory,
    Selection,
}

/// One piece of a turn, in the order in which it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Part {
    Text(TextPart),
    Reasoning {
        id: PartId,
        content: String,
    },
    ToolCall(Box<ToolCall>),
    /// A body that is stored elsewhere and named here.
    Content(ContentRef),
    Error(ErrorInfo),
    InputRequest(InputRequest),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPart {
    pub id: PartId,
    pub content: String,
    pub delivery: Delivery,
}

/// How a text came: version 1 gathers what was streamed in one place and lists the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Delivery {
    Streamed,
    Whole,
}

/// A body above the inline limit, or one that is not text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentRef {
    pub id: ContentId,
    pub size: u64,
    pub mime_type: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorInfo {
    /// A short machine-readable kind, such as `agentFailed`.
    pub kind: String,
    pub message: String,
    pub stack: Option<String>,
}

impl ErrorInfo {
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), stack: None }
    }
}

/// A question of the agent to the person, and the answer once there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequest {
    pub id: RequestId,
    pub question: String,
    pub response: Option<InputResponse>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InputResponse {
    Accept { text: String },
    Decline,
    Cancel,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub id: ToolCallId,
    pub name: String,
    pub display_name: String,
    pub kind: Option<ToolKind>,
    /// The language of the input, where it is code.
    pub language: Option<String>,
    pub invocation_message: String,
    pub input: Option<String>,
    pub status: ToolCallStatus,
    /// The how-manieth call of its turn to become ready: the order in which it ran.
    pub ready_rank: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolKind {
    Terminal,
}

/// Where a tool call stands. Each state carries what exists only in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolCallStatus {
    /// The model is still writing its input.
    Streaming,
    /// Its input is whole and a gate is about to be put before it: lives only inside one batch.
    Ready,
    PendingConfirmation(PermissionRequest),
    Running,
    PendingResultConfirmation(ToolResult),
    Completed(ToolResult),
    Cancelled(CancelReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CancelReason {
    Denied,
    ResultDenied,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    pub success: bool,
    pub past_tense_message: String,
    /// The output, or its beginning where the whole is stored as content.
    pub output: Option<String>,
}

/// What a person is asked to allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    pub id: RequestId,
    pub kind: PermissionKind,
    pub path: Option<String>,
    pub full_command_text: Option<String>,
    pub intention: Option<String>,
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

#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub model: Option<ModelId>,
    pub cache_read_tokens: Option<u64>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    Complete,
    Cancelled,
    Error,
}

/// A turn that is over and never changes again.
#[derive(Clone, Debug)]
pub struct Turn {
    pub id: TurnId,
    pub message: Message,
    pub parts: Vec<Part>,
    pub usage: Option<Usage>,
    pub outcome: Outcome,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// A place where each dialect may leave this turn's bytes; nothing here looks into it.
    pub encodings: Encodings,
}

impl PartialEq for Turn {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.message == other.message
            && self.parts == other.parts
            && self.usage == other.usage
            && self.outcome == other.outcome
            && self.started_at == other.started_at
            && self.ended_at == other.ended_at
    }
}

impl Eq for Turn {}

/// Bytes that a dialect computed from an immutable value, kept with the value so that they are made once.
#[derive(Clone, Debug, Default)]
pub struct Encodings([OnceLock<Arc<str>>; Encodings::SLOTS]);

impl Encodings {
    /// How many dialects can keep bytes here.
    pub const SLOTS: usize = 2;

    /// The bytes in `slot`, made by `encode` at the first call. A slot that does not exist keeps nothing.
    pub fn get_or_encode(&self, slot: usize, encode: impl FnOnce() -> String) -> Arc<str> {
        match self.0.get(slot) {
            Some(cell) => cell.get_or_init(|| encode().into()).clone(),
            None => encode().into(),
        }
    }
}

/// The turn that is running.
///
/// Its parts are indexed by id, so that a delta costs the same however long the turn is.
#[derive(Clone, Debug)]
pub struct ActiveTurn {
    pub id: TurnId,
    pub message: Message,
    pub usage: Option<Usage>,
    pub started_at: Timestamp,
    parts: Vec<Part>,
    part_index: HashMap<PartId, usize>,
    tool_index: HashMap<ToolCallId, usize>,
    request_index: HashMap<RequestId, usize>,
    /// Questions that a person has not answered yet.
    open_requests: usize,
    ready_calls: u32,
    newest_streamed: Option<usize>,
    newest_reasoning: Option<usize>,
}

/// Two running turns are the same when their content is; the indices follow from it.
impl PartialEq for ActiveTurn {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.message == other.message
            && self.parts == other.parts
            && self.usage == other.usage
            && self.started_at == other.started_at
    }
}

impl Eq for ActiveTurn {}

impl ActiveTurn {
    pub fn new(id: TurnId, message: Message, started_at: Timestamp) -> Self {
        Self {
            id,
            message,
            usage: None,
            started_at,
            parts: Vec::new(),
            part_index: HashMap::new(),
            tool_index: HashMap::new(),
            request_index: HashMap::new(),
            open_requests: 0,
            ready_calls: 0,
            newest_streamed: None,
            newest_reasoning: None,
        }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub fn has_part(&self, id: &PartId) -> bool {
        self.part_index.contains_key(id)
    }

    /// Whether part `id` takes more text. Only the newest of the streamed ones does: a dialect that keeps all streamed
    /// text in one place cannot say that something was added in the middle of it.
    pub fn takes_text(&self, id: &PartId) -> bool {
        self.newest_streamed.is_some_and(|newest| self.part_index.get(id) == Some(&newest))
    }

    /// Whether part `id` takes more reasoning: the newest one does, for the same reason.
    pub fn takes_reasoning(&self, id: &PartId) -> bool {
        self.newest_reasoning.is_some_and(|newest| self.part_index.get(id) == Some(&newest))
    }

    pub fn tool_call(&self, id: &ToolCallId) -> Option<&ToolCall> {
        match self.parts.get(*self.tool_index.get(id)?) {
            Some(Part::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    /// The tool call that waits for the answer to `request`.
    pub fn call_waiting_for(&self, request: &RequestId) -> Option<&ToolCall> {
        match self.parts.get(*self.request_index.get(request)?) {
            Some(Part::ToolCall(call)) => match &call.status {
                ToolCallStatus::PendingConfirmation(pending) if pending.id == *request => Some(call),
                _ => None,
            },
            _ => None,
        }
    }

    /// The input request with this id, answered or not.
    pub fn input_request(&self, request: &RequestId) -> Option<&InputRequest> {
        match self.parts.get(*self.request_index.get(request)?) {
            Some(Part::InputRequest(input)) => Some(input),
            _ => None,
        }
    }

    /// Whether `request` was ever asked in this turn.
    pub fn knows_request(&self, request: &RequestId) -> bool {
        self.request_index.contains_key(request)
    }

    /// Whether the turn waits for a person.
    pub fn waits_for_person(&self) -> bool {
        self.open_requests > 0
    }

    pub(crate) fn push(&mut self, part: Part) {
        let at = self.parts.len();
        match &part {
            Part::Text(text) => {
                self.part_index.insert(text.id.clone(), at);
                if text.delivery == Delivery::Streamed {
                    self.newest_streamed = Some(at);
                }
            }
            Part::Reasoning { id, .. } => {
                self.part_index.insert(id.clone(), at);
                self.newest_reasoning = Some(at);
            }
            Part::ToolCall(call) => {
                self.tool_index.insert(call.id.clone(), at);
                if let ToolCallStatus::PendingConfirmation(pending) = &call.status {
                    self.request_index.insert(pending.id.clone(), at);
                    self.open_requests += 1;
                }
            }
            Part::InputRequest(input) => {
                self.request_index.insert(input.id.clone(), at);
                if input.response.is_none() {
                    self.open_requests += 1;
                }
            }
            Part::Content(_) | Part::Error(_) => {}
        }
        self.parts.push(part);
    }

    pub(crate) fn text_mut(&mut self, id: &PartId) -> Option<&mut String> {
        match self.parts.get_mut(*self.part_index.get(id)?) {
            Some(Part::Text(text)) => Some(&mut text.content),
            _ => None,
        }
    }

    pub(crate) fn reasoning_mut(&mut self, id: &PartId) -> Option<&mut String> {
        match self.parts.get_mut(*self.part_index.get(id)?) {
            Some(Part::Reasoning { content, .. }) => Some(content),
            _ => None,
        }
    }

    pub(crate) fn tool_call_mut(&mut self, id: &ToolCallId) -> Option<&mut ToolCall> {
        match self.parts.get_mut(*self.tool_index.get(id)?) {
            Some(Part::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    pub(crate) fn next_ready_rank(&mut self) -> u32 {
        let rank = self.ready_calls;
        self.ready_calls += 1;
        rank
    }

    /// Puts a gate before a call and remembers the question.
    pub(crate) fn gate(&mut self, call: &ToolCallId, request: &PermissionRequest) {
        let Some(&at) = self.tool_index.get(call) else { return };
        let Some(Part::ToolCall(call)) = self.parts.get_mut(at) else { return };
        if !matches!(call.status, ToolCallStatus::Ready | ToolCallStatus::Running) {
            return;
        }
        call.status = ToolCallStatus::PendingConfirmation(request.clone());
        self.request_index.insert(request.id.clone(), at);
        self.open_requests += 1;
    }

    /// Moves a call off its gate.
    pub(crate) fn ungate(&mut self, call: &ToolCallId, request: &RequestId, next: ToolCallStatus) {
        let Some(call) = self.tool_call_mut(call) else { return };
        match &call.status {
            ToolCallStatus::PendingConfirmation(pending) if pending.id == *request => call.status = next,
            _ => return,
        }
        self.open_requests -= 1;
    }

    pub(crate) fn answer(&mut self, request: &RequestId, response: &InputResponse) {
        let Some(&at) = self.request_index.get(request) else { return };
        let Some(Part::InputRequest(input)) = self.parts.get_mut(at) else { return };
        if input.response.is_none() {
            input.response = Some(response.clone());
            self.open_requests -= 1;
        }
    }

    /// The turn as it stands when it is over.
    pub(crate) fn finish(mut self, outcome: Outcome, error: Option<&ErrorInfo>, ended_at: Timestamp) -> Turn {
        if let Some(error) = error {
            self.parts.push(Part::Error(error.clone()));
        }
        self.parts.shrink_to_fit();
        Turn {
            id: self.id,
            message: self.message,
            parts: self.parts,
            usage: self.usage,
            outcome,
            started_at: self.started_at,
            ended_at,
            encodings: Encodings::default(),
        }
    }
}
