//! A turn: a user message and its results as an ordered list of parts.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::event::{Decision, InvocationUpdate, NewToolCall, ToolCallGate, Verdict};
use crate::ids::*;
use crate::input::*;

/// A message from a person, or from something on a person's behalf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub origin: MessageOrigin,
    /// The model that this message asks for; `None` means the session's.
    pub model: Option<ModelId>,
    /// Further data from its dialect, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

/// Members of a JSON object that are kept unread for those who understand them.
pub type Extra = serde_json::Map<String, serde_json::Value>;

impl Message {
    /// Creates a plain message of a person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { text: text.into(), attachments: Vec::new(), origin: MessageOrigin::User, model: None, extra: None }
    }

    /// True for a message without text and without attachments, those that only its dialect knows included.
    pub fn is_empty(&self) -> bool {
        let has_more = self
            .extra
            .as_ref()
            .and_then(|extra| extra.get("attachments")?.as_array())
            .is_some_and(|all| !all.is_empty());
        self.text.trim().is_empty() && self.attachments.is_empty() && !has_more
    }
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MessageOrigin {
    User,
    Agent,
    Tool,
    Automation,
    SystemNotification,
}

/// A resource that a message refers to.
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

/// A piece of a turn, in the order in which it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Part {
    Text(TextPart),
    Reasoning {
        id: PartId,
        content: String,
    },
    ToolCall(Box<ToolCall>),
    /// A body that is stored elsewhere, by reference.
    Content(ContentRef),
    Error(ErrorInfo),
    InputRequest(InputRequest),
    /// The agent's plan at this moment. A later plan replaces it in what is shown, not in the turn.
    Plan(Vec<PlanEntry>),
    /// A notice of the agent or the host on the turn: a retry, or an omission.
    Notice(String),
}

/// A step of a plan, or an item of a to-do list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanEntry {
    pub content: String,
    pub priority: PlanPriority,
    pub status: PlanStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanPriority {
    High,
    Medium,
    Low,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPart {
    pub id: PartId,
    pub content: String,
    pub delivery: Delivery,
}

/// The delivery of a text: version 1 gathers streamed texts in one place and lists the rest.
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
    /// The call's description when it became ready, if that has changed since: version 1 sends only that one.
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

#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub model: Option<ModelId>,
    pub cache_read_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The used and the available size of the model's context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUsage>,
    /// The cost of the session so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Usage {
    /// The usage after an update: fields that the update lacks stay.
    pub fn updated(&self, said: Usage) -> Usage {
        Usage {
            input_tokens: said.input_tokens.or(self.input_tokens),
            output_tokens: said.output_tokens.or(self.output_tokens),
            model: said.model.or_else(|| self.model.clone()),
            cache_read_tokens: said.cache_read_tokens.or(self.cache_read_tokens),
            cache_write_tokens: said.cache_write_tokens.or(self.cache_write_tokens),
            reasoning_tokens: said.reasoning_tokens.or(self.reasoning_tokens),
            context: said.context.or(self.context),
            cost: said.cost.or_else(|| self.cost.clone()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    pub used: u64,
    pub size: u64,
}

/// An amount as it was written: comparable for equality, unlike a float.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    pub amount: Number,
    /// An ISO 4217 code.
    pub currency: String,
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    Complete,
    Cancelled,
    Error,
}

/// A finished, immutable turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub id: TurnId,
    pub message: Message,
    pub parts: Vec<Part>,
    pub usage: Option<Usage>,
    pub outcome: Outcome,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// A cache for each dialect's encoding of this turn; nothing here reads it.
    #[serde(skip)]
    pub encodings: EncodingCache,
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

/// A cache for dialects' encodings of an immutable value, kept with the value so that each is made once.
#[derive(Clone, Debug, Default)]
pub struct EncodingCache([OnceLock<Arc<str>>; EncodingCache::SLOTS]);

impl EncodingCache {
    /// The number of dialects that can cache an encoding.
    pub const SLOTS: usize = 2;

    /// The bytes in `slot`, made by `encode` at the first call. A slot that does not exist caches nothing.
    pub fn get_or_encode(&self, slot: usize, encode: impl FnOnce() -> String) -> Arc<str> {
        match self.0.get(slot) {
            Some(cell) => cell.get_or_init(|| encode().into()).clone(),
            None => encode().into(),
        }
    }
}

/// The running turn.
///
/// Its parts are indexed by id, so that a delta costs the same however long the turn is.
#[derive(Clone, Debug)]
pub struct ActiveTurn {
    pub id: TurnId,
    pub message: Message,
    pub usage: Option<Usage>,
    /// The start time that the sender claims.
    pub started_at: Timestamp,
    /// The start time by the host's clock, from which the duration is measured.
    begun_at: Timestamp,
    parts: Vec<Part>,
    part_index: HashMap<PartId, usize>,
    tool_index: HashMap<ToolCallId, usize>,
    request_index: HashMap<RequestId, usize>,
    /// The number of unanswered questions to a person.
    open_requests: usize,
    ready_calls: u32,
    newest_streamed: Option<usize>,
    newest_reasoning: Option<usize>,
}

/// Two running turns are equal if their contents are; the indices follow from these.
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
    pub fn new(id: TurnId, message: Message, started_at: Timestamp, begun_at: Timestamp) -> Self {
        Self {
            id,
            message,
            usage: None,
            started_at,
            begun_at,
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

    /// The duration so far in milliseconds, by the host's clock.
    pub fn duration_at(&self, now: Timestamp) -> u64 {
        now.0.saturating_sub(self.begun_at.0)
    }

    pub fn has_part(&self, id: &PartId) -> bool {
        self.part_index.contains_key(id)
    }

    /// True if part `id` accepts more text. Only the newest streamed text does: a dialect that keeps all streamed text
    /// in one place cannot express an insertion in the middle of it.
    pub fn takes_text(&self, id: &PartId) -> bool {
        self.newest_streamed.is_some_and(|newest| self.part_index.get(id) == Some(&newest))
    }

    /// True if part `id` accepts more reasoning: only the newest one does, for the same reason.
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

    /// The input request of this id, answered or not.
    pub fn input_request(&self, request: &RequestId) -> Option<&InputRequest> {
        match self.parts.get(*self.request_index.get(request)?) {
            Some(Part::InputRequest(input)) => Some(input),
            _ => None,
        }
    }

    /// True if `request` was ever made in this turn.
    pub fn knows_request(&self, request: &RequestId) -> bool {
        self.request_index.contains_key(request)
    }

    /// True if the turn waits for a person.
    pub fn waits_for_person(&self) -> bool {
        self.open_requests > 0
    }

    /// True if a client has to run a call before the turn goes on.
    pub fn waits_for_client(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::ToolCall(call) => call.client.is_some() && call.status == ToolCallStatus::Running,
            _ => false,
        })
    }

    /// True if a tool call is running.
    pub fn runs_tool(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::ToolCall(call) => call.status == ToolCallStatus::Running,
            _ => false,
        })
    }

    /// The answered permission requests: the request, its call and the answer.
    pub fn permission_verdicts(&self) -> impl Iterator<Item = (RequestId, ToolCallId, Verdict)> + '_ {
        self.request_index.iter().filter_map(|(request, at)| {
            let Some(Part::ToolCall(call)) = self.parts.get(*at) else { return None };
            let (decision, option, skipped) = match &call.status {
                ToolCallStatus::PendingConfirmation(pending) if pending.id == *request => return None,
                ToolCallStatus::Cancelled(cancellation) => {
                    (Decision::Denied, &cancellation.option, cancellation.reason == CancelReason::Skipped)
                }
                _ => (Decision::Approved, call.confirmed.as_ref().map_or(&None, |confirmed| &confirmed.option), false),
            };
            let option = option.as_ref().map(|option| option.id.clone());
            Some((request.clone(), call.id.clone(), Verdict { option, skipped, ..decision.into() }))
        })
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
                }
                if call.status.waits_for_person() {
                    self.open_requests += 1;
                }
            }
            Part::InputRequest(input) => {
                self.request_index.insert(input.id.clone(), at);
                if input.outcome.is_none() {
                    self.open_requests += 1;
                }
            }
            Part::Content(_) | Part::Error(_) | Part::Plan(_) | Part::Notice(_) => {}
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

    /// Puts a gate before a call and indexes the question.
    pub(crate) fn gate(&mut self, gated: &ToolCallGate) {
        let Some(&at) = self.tool_index.get(&gated.call) else { return };
        let Some(Part::ToolCall(call)) = self.parts.get_mut(at) else { return };
        if !matches!(call.status, ToolCallStatus::Ready | ToolCallStatus::Running) {
            return;
        }
        call.restate(gated.invocation_message.as_ref(), gated.input.as_ref());
        if gated.request.intention.is_some() {
            call.intention.clone_from(&gated.request.intention);
        }
        call.confirmed = None;
        call.output = None;
        call.running_since = None;
        call.status = ToolCallStatus::PendingConfirmation(gated.request.clone());
        self.request_index.insert(gated.request.id.clone(), at);
        self.open_requests += 1;
    }

    /// Moves a call off its gate.
    pub(crate) fn ungate(&mut self, at: Timestamp, call: &ToolCallId, request: &RequestId, verdict: &Verdict) {
        let Some(call) = self.tool_call_mut(call) else { return };
        let option = match &call.status {
            ToolCallStatus::PendingConfirmation(pending) if pending.id == *request => {
                pending.options.iter().find(|option| Some(&option.id) == verdict.option.as_ref()).cloned()
            }
            _ => return,
        };
        call.status = match verdict.decision {
            Decision::Approved => {
                // A missing input cannot be edited.
                if call.input.is_some() {
                    call.restate(None, verdict.edited_input.as_ref());
                }
                call.confirmed = Some(Confirmation { by: verdict.by, option });
                call.running_since = Some(at);
                ToolCallStatus::Running
            }
            Decision::Denied => ToolCallStatus::Cancelled(Cancellation {
                reason: if verdict.skipped { CancelReason::Skipped } else { CancelReason::Denied },
                option,
                extra: verdict.extra.clone(),
            }),
        };
        self.open_requests -= 1;
    }

    /// Replaces the description of a running call.
    pub(crate) fn restate(&mut self, restated: &InvocationUpdate) {
        let Some(call) = self.tool_call_mut(&restated.call.id) else { return };
        if call.status != ToolCallStatus::Running {
            return;
        }
        call.restate(Some(&restated.invocation_message), restated.input.as_ref());
        if restated.call.extra.is_some() {
            call.extra.clone_from(&restated.call.extra);
        }
        call.confirmed = Some(Confirmation { by: restated.confirmed, option: None });
        call.output = None;
    }

    /// A call has run; its result waits for a person, or is there.
    pub(crate) fn complete(&mut self, call: &ToolCallId, next: ToolCallStatus, run: Option<&CallRun>) {
        let asks = next.waits_for_person();
        let Some(call) = self.tool_call_mut(call) else { return };
        if call.status == ToolCallStatus::Running {
            call.status = next;
            call.output = None;
            call.running_since = None;
            call.ran_ms = run.map(|run| run.ran_ms);
            self.open_requests += usize::from(asks);
        }
    }

    /// Records a person's decision on a result.
    pub(crate) fn release(&mut self, call: &ToolCallId, next: ToolCallStatus) {
        let Some(call) = self.tool_call_mut(call) else { return };
        if matches!(call.status, ToolCallStatus::PendingResultConfirmation(_)) {
            call.status = next;
            self.open_requests -= 1;
        }
    }

    /// The open input request of this id.
    pub(crate) fn open_input_mut(&mut self, request: &RequestId) -> Option<&mut InputRequest> {
        match self.parts.get_mut(*self.request_index.get(request)?) {
            Some(Part::InputRequest(input)) if input.outcome.is_none() => Some(input),
            _ => None,
        }
    }

    pub(crate) fn answer(&mut self, request: &RequestId, outcome: InputOutcome, answers: &Answers) {
        let Some(input) = self.open_input_mut(request) else { return };
        input.answers.extend(answers.iter().map(|(question, answer)| (question.clone(), answer.clone())));
        input.outcome = Some(outcome);
        self.open_requests -= 1;
    }

    /// The turn in its finished form.
    ///
    /// Its times count from the claimed start: a wrong clock shifts the turn and leaves its length.
    pub(crate) fn finish(mut self, outcome: Outcome, error: Option<&ErrorInfo>, duration: u64) -> Turn {
        let ended_at = Timestamp(self.started_at.0.saturating_add(duration));
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
            encodings: EncodingCache::default(),
        }
    }
}
