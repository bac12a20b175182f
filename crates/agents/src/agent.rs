//! The traits of an agent backend, and what passes between it and the host.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_core::*;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::spills::SpillStore;

/// A kind of agent.
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// How clients see this agent.
    fn info(&self) -> AgentInfo;

    /// Opens the agent for one chat. It may take long; the session of a main chat is `creating` meanwhile. When an agent
    /// that is a process starts it, [`OpenSession::start`] says.
    async fn open(&self, session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError>;

    /// What can be set for a session before it begins, as far as that is known, and what is set if nobody chooses;
    /// `None` where nothing can be.
    fn settings(&self) -> Option<SessionConfig> {
        None
    }

    /// Whether it changes files in the session's working directories by itself, so that two of them there are in each
    /// other's way.
    fn edits_files(&self) -> bool {
        false
    }

    /// What of its turns goes on when the host ends in the middle of them ([`AgentSession::resume`]).
    fn turn_survival(&self) -> TurnSurvival {
        TurnSurvival::Nothing
    }

    /// Who summarizes for its sessions; `None` where it has no model to do so.
    fn summarizer(&self) -> Option<Arc<dyn Summarizer>> {
        None
    }

    /// Whether it keeps its conversations within its model's window by itself.
    fn manages_context_window(&self) -> bool {
        false
    }
}

/// Puts conversations into few words.
#[async_trait]
pub trait Summarizer: Send + Sync + 'static {
    /// The summary alone, as text. Whoever drops the future aborts it.
    async fn summarize(&self, wanted: SummaryRequest) -> Result<String, AgentError>;
}

/// A summary that is wanted.
#[derive(Clone, Debug)]
pub struct SummaryRequest {
    /// What a model is told: what is wanted, and the conversation in plain text.
    pub prompt: String,
    /// What a person wants the summary to look at; it is in the prompt as well.
    pub instructions: Option<String>,
    /// The session's.
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
    pub settings: Extra,
}

/// What of an agent's turns goes on when the host ends in the middle of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnSurvival {
    /// They end with the host.
    Nothing,
    /// Those that waited for a person or a client.
    PendingRequest,
    /// All of them: the agent works on without the host.
    Running,
}

/// An agent at work for one chat of a session.
#[async_trait]
pub trait AgentSession: Send + Sync + 'static {
    /// Runs one turn to its end. Returning completes the turn, an error ends it in error.
    ///
    /// The host drops the future of a turn that was cancelled, after [`AgentSession::cancel`].
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError>;

    /// Goes on with a turn from before the host's start, and runs it to its end. Called only where the agent can
    /// ([`Agent::turn_survival`]); what was reported before is there already and is not reported again.
    async fn resume(&self, _prompt: Prompt, _from: Resumption, _turn: TurnSink) -> Result<(), AgentError> {
        Err(AgentError::TurnFailed("this agent cannot go on with a turn".to_owned()))
    }

    /// Whether a running turn takes messages ([`AgentSession::steer`]). Those for an agent that does not become turns
    /// of their own.
    fn can_steer(&self) -> bool {
        false
    }

    /// A person has something to say to the running turn.
    async fn steer(&self, _turn: &TurnId, _message: Message) {}

    /// Makes a copy of the conversation as it is now, and gives how the agent calls it ([`OpenSession::agent_session_id`]);
    /// `None` where it cannot. Nothing that is said after this call is in the copy, so it may be given up for a turn.
    async fn fork(&self) -> Result<Option<String>, AgentError> {
        Ok(None)
    }

    /// A person has changed these settings of the session. What the agent makes of it, it reports.
    async fn configure(&self, _values: Extra) {}

    /// Everything up to this mark is stored: the agent need not keep it for another host.
    fn stored(&self, _mark: &FrameCursor) {}

    /// The turn was cancelled: whatever works for it elsewhere is to stop.
    async fn cancel(&self, turn: &TurnId);

    /// The agent lets go of what it holds for the chat.
    async fn close(&self, _why: CloseReason) {}
}

/// Why an agent is not needed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The chat is gone for good.
    Removed,
    /// Nobody looks after it for now: the host stops, or the session rests. A turn that can go on alone does.
    Detached,
    /// The conversation goes on from elsewhere, and begins anew for the agent.
    Replaced,
}

/// What an agent is told when a chat opens.
#[derive(Clone, Debug)]
pub struct OpenSession {
    pub session: SessionId,
    pub chat: ChatId,
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
    /// How the agent called this conversation ([`AgentEvent::AgentSessionId`]), where there was one before.
    pub agent_session_id: Option<String>,
    /// The session's settings, as they were chosen.
    pub settings: Extra,
    /// Where to report what belongs to no turn.
    pub reports: ChatSink,
    /// Where output goes that is too large for it.
    pub spills: Arc<dyn SpillStore>,
    pub start: AgentStart,
}

/// When the process of an agent starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStart {
    /// With the first turn.
    FirstTurn,
    /// At once: opening waits until the agent is initialised, and fails where it is not within this time.
    Now { within: Duration },
}

/// What a turn begins with.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub message: Message,
    /// The model of this turn: the message's, else the session's.
    pub model: Option<ModelId>,
    /// Tools that clients would run.
    pub client_tools: Vec<OfferedTool>,
    /// What was said before, for an agent that has forgotten it.
    pub memory: Arc<dyn ConversationHistory>,
}

/// What was said in a chat before a turn. Telling it costs: an agent that remembers does not ask.
#[async_trait]
pub trait ConversationHistory: Debug + Send + Sync + 'static {
    /// The conversation as a story, in at most about so many bytes; `None` where nothing was said.
    async fn retell(&self, most: usize) -> Result<Option<String>, AgentError>;
}

/// Nothing was said before.
#[async_trait]
impl ConversationHistory for () {
    async fn retell(&self, _most: usize) -> Result<Option<String>, AgentError> {
        Ok(None)
    }
}

/// A tool, and the client that runs it.
#[derive(Clone, Debug)]
pub struct OfferedTool {
    pub client: ClientId,
    pub tool: ClientTool,
}

/// Where a turn stood when the host ended.
#[derive(Debug, Default)]
pub struct Resumption {
    /// What it waits for.
    pub waiting: Vec<PendingRequest>,
    /// Up to where it was stored, where its agent marks its reports.
    pub mark: Option<FrameCursor>,
}

/// A question that was open when the host ended, and where its answer will come from.
#[derive(Debug)]
pub struct PendingRequest {
    pub request: RequestId,
    pub answer_from: PendingAnswer,
}

/// What is awaited.
#[derive(Debug)]
pub enum PendingAnswer {
    /// Leave to run a tool call.
    Permission(ToolCallId, oneshot::Receiver<Verdict>),
    /// Leave to see the result of a call that a client ran, or that result.
    Result(ToolCallId, oneshot::Receiver<ToolResult>),
    /// A person's answer.
    Question(oneshot::Receiver<InputResponse>),
}

/// Up to where an agent's words have been dealt with. It is stored together with what came of them, so that a host that
/// comes back goes on exactly there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCursor {
    /// Which of the agent's processes said the frames: numbers begin anew with each. 0 is none.
    #[serde(default)]
    pub process: u64,
    /// All frames up to this one have been dealt with,
    pub frame: u64,
    /// but for these, which still want an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<u64>,
}

impl FrameCursor {
    /// The largest number that is believed when it is read from a disk: no agent says so much.
    pub const MOST: u64 = 1 << 53;

    /// Returns false for numbers that no agent comes to.
    pub fn is_plausible(&self) -> bool {
        self.open.iter().chain([&self.process, &self.frame]).all(|number| *number <= Self::MOST)
    }
}

/// Why an agent could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the agent did not start: {0}")]
    Start(String),
    #[error("{0}")]
    TurnFailed(String),
    #[error("the agent ended in the middle of the turn: {0}")]
    Died(String),
    #[error("the host ended in the middle of the turn, and its agent with it: {0}")]
    Interrupted(String),
    #[error("the agent has forgotten the conversation and cannot be told it, since its log cannot be read: {0}")]
    ConversationHistory(String),
    #[error("the script cannot be run: {0}")]
    Script(String),
    #[error("the turn is over")]
    TurnOver,
}

impl AgentError {
    /// The error as the person sees it in the conversation.
    pub fn info(&self) -> ErrorInfo {
        let kind = match self {
            AgentError::Start(_) => "agentStart",
            AgentError::TurnFailed(_) => "agent",
            AgentError::Died(_) => "agentDied",
            AgentError::Interrupted(_) => "interrupted",
            AgentError::ConversationHistory(_) => "storage",
            AgentError::Script(_) => "script",
            AgentError::TurnOver => "turnOver",
        };
        ErrorInfo::new(kind, self.to_string())
    }
}

/// What an agent has to say, in the order in which it happened. It is stored whole or not at all.
#[derive(Debug)]
pub struct Report {
    pub chat: ChatId,
    /// The turn that it belongs to, where it belongs to one.
    pub turn: Option<TurnId>,
    pub events: Vec<AgentEvent>,
    /// Up to where the agent's words are dealt with when this is stored.
    pub mark: Option<FrameCursor>,
}

/// What happens, as the agent tells it.
#[derive(Debug)]
pub enum AgentEvent {
    /// More of the answer.
    Text(String),
    Reasoning(String),
    ToolStarted(NewToolCall),
    /// The call's input is whole and it runs, or asks first.
    ToolReady {
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
        permission: Option<PermissionPrompt>,
        /// Where the result goes of a call that a client runs.
        result: Option<oneshot::Sender<ToolResult>>,
    },
    ToolCompleted {
        call: ToolCallId,
        result: ToolResult,
    },
    /// What is new of a call, whether it was heard of before or not.
    Tool(Box<ToolUpdate>),
    /// A structured piece of the answer.
    PartContent {
        mime_type: String,
        body: PartContent,
    },
    /// What the agent means to do, from now on.
    Plan(Vec<PlanEntry>),
    /// Something about the turn that a person should see.
    Notice(String),
    Usage(Usage),
    InputNeeded {
        request: Box<InputRequest>,
        answer: oneshot::Sender<InputResponse>,
    },
    /// The turn's last report: it has run to its end, or failed.
    Ended(Result<(), ErrorInfo>),
    Title(String),
    /// The commands that the agent understands, all of them.
    Commands(Vec<AgentCommand>),
    /// What can be set, as a JSON schema of an object, and what is.
    AgentSettings {
        schema: Extra,
        values: Extra,
    },
    /// How the agent calls this conversation from now on.
    AgentSessionId(String),
}

impl AgentEvent {
    /// Whether it is told of the session as a whole, and holds whatever becomes of the turn.
    pub(crate) fn is_of_session(&self) -> bool {
        match self {
            AgentEvent::Commands(_)
            | AgentEvent::AgentSettings { .. }
            | AgentEvent::Title(_)
            | AgentEvent::AgentSessionId(_) => true,
            AgentEvent::Text(_)
            | AgentEvent::Reasoning(_)
            | AgentEvent::ToolStarted(_)
            | AgentEvent::ToolReady { .. }
            | AgentEvent::ToolCompleted { .. }
            | AgentEvent::Tool(_)
            | AgentEvent::PartContent { .. }
            | AgentEvent::Plan(_)
            | AgentEvent::Notice(_)
            | AgentEvent::Usage(_)
            | AgentEvent::InputNeeded { .. }
            | AgentEvent::Ended(_) => false,
        }
    }
}

/// What is new of a tool call. What is not said stays as it was.
#[derive(Debug)]
pub struct ToolUpdate {
    pub call: ToolCallId,
    pub name: Option<String>,
    pub kind: Option<ToolKind>,
    /// What it does, in words.
    pub title: Option<String>,
    pub input: Option<String>,
    pub stage: Option<ToolStage>,
    /// All that it has put out so far.
    pub output: Option<AccumulatedOutput>,
    /// The words of its result as data, for a call that has put out nothing else.
    pub result_text: Option<String>,
    /// Its result as data.
    pub structured: Option<Extra>,
    /// What else is said of it; names that are not said stay.
    pub extra: Option<Extra>,
    /// It asks first.
    pub permission: Option<PermissionPrompt>,
}

impl ToolUpdate {
    /// Nothing new of a call, but that it is there.
    pub fn of(call: ToolCallId) -> Self {
        Self {
            call,
            name: None,
            kind: None,
            title: None,
            input: None,
            stage: None,
            output: None,
            result_text: None,
            structured: None,
            extra: None,
            permission: None,
        }
    }
}

/// How far a tool call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolStage {
    Pending,
    Running,
    Completed,
    Failed,
}

/// What a tool call puts out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccumulatedOutput {
    pub text: String,
    pub pieces: Vec<ToolOutputPart>,
}

/// What a tool call puts out beside text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutputPart {
    /// A file as it was and as it is: without the first it is new, without the second it is gone.
    Edit {
        path: String,
        before: Option<String>,
        after: Option<String>,
    },
    Bytes {
        mime_type: String,
        bytes: Vec<u8>,
    },
}

/// A permission asked for, and where its answer goes.
#[derive(Debug)]
pub struct PermissionPrompt {
    pub request: PermissionRequest,
    pub answer: oneshot::Sender<Verdict>,
}

/// The content of a structured part.
#[derive(Debug)]
pub enum PartContent {
    Text(String),
    Bytes(Vec<u8>),
}

/// Where the agent of a chat reports. Clones are the same.
#[derive(Clone, Debug)]
pub struct ChatSink {
    chat: ChatId,
    reports: mpsc::Sender<Report>,
}

impl ChatSink {
    /// The channel's capacity is how far an agent may run ahead of the host.
    pub fn new(chat: ChatId, reports: mpsc::Sender<Report>) -> Self {
        Self { chat, reports }
    }

    /// Where a turn of this chat reports.
    pub fn turn(&self, turn: TurnId) -> TurnSink {
        TurnSink { turn, chat: self.clone() }
    }

    /// Reports what belongs to no turn.
    pub async fn report(&self, events: Vec<AgentEvent>, mark: Option<FrameCursor>) -> Result<(), AgentError> {
        self.send(None, events, mark).await
    }

    async fn send(
        &self,
        turn: Option<TurnId>,
        events: Vec<AgentEvent>,
        mark: Option<FrameCursor>,
    ) -> Result<(), AgentError> {
        let report = Report { chat: self.chat.clone(), turn, events, mark };
        self.reports.send(report).await.map_err(|_| AgentError::TurnOver)
    }
}

/// Where a running turn reports.
#[derive(Clone, Debug)]
pub struct TurnSink {
    turn: TurnId,
    chat: ChatSink,
}

impl TurnSink {
    /// The turn that reports here.
    pub fn turn(&self) -> &TurnId {
        &self.turn
    }

    /// Reports several things that are stored together, and up to where the agent's words are dealt with by them.
    pub async fn report(&self, events: Vec<AgentEvent>, mark: Option<FrameCursor>) -> Result<(), AgentError> {
        self.chat.send(Some(self.turn.clone()), events, mark).await
    }

    pub async fn text(&self, content: impl Into<String>) -> Result<(), AgentError> {
        self.send(AgentEvent::Text(content.into())).await
    }

    pub async fn reasoning(&self, content: impl Into<String>) -> Result<(), AgentError> {
        self.send(AgentEvent::Reasoning(content.into())).await
    }

    pub async fn tool_started(&self, call: NewToolCall) -> Result<(), AgentError> {
        self.send(AgentEvent::ToolStarted(call)).await
    }

    /// The call runs; nobody is asked.
    pub async fn tool_runs(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
    ) -> Result<(), AgentError> {
        self.send(AgentEvent::ToolReady { call, invocation_message, input, permission: None, result: None }).await
    }

    /// A client runs the call, and its result is awaited. The call was started with that client's name.
    pub async fn client_runs(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
    ) -> Result<ToolResult, AgentError> {
        let (result, completed) = oneshot::channel();
        let result = Some(result);
        self.send(AgentEvent::ToolReady { call, invocation_message, input, permission: None, result }).await?;
        completed.await.map_err(|_| AgentError::TurnOver)
    }

    /// Asks a person whether the call may run, and waits for the answer.
    pub async fn tool_asks(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
        request: PermissionRequest,
    ) -> Result<Verdict, AgentError> {
        let (answer, answered) = oneshot::channel();
        let permission = Some(PermissionPrompt { request, answer });
        self.send(AgentEvent::ToolReady { call, invocation_message, input, permission, result: None }).await?;
        answered.await.map_err(|_| AgentError::TurnOver)
    }

    pub async fn tool_completed(&self, call: ToolCallId, result: ToolResult) -> Result<(), AgentError> {
        self.send(AgentEvent::ToolCompleted { call, result }).await
    }

    pub async fn body(&self, mime_type: String, body: PartContent) -> Result<(), AgentError> {
        self.send(AgentEvent::PartContent { mime_type, body }).await
    }

    pub async fn usage(&self, usage: Usage) -> Result<(), AgentError> {
        self.send(AgentEvent::Usage(usage)).await
    }

    pub async fn title(&self, title: String) -> Result<(), AgentError> {
        self.send(AgentEvent::Title(title)).await
    }

    /// Asks the person something, and waits for the answer.
    pub async fn ask(&self, request: InputRequest) -> Result<InputResponse, AgentError> {
        let (answer, answered) = oneshot::channel();
        self.send(AgentEvent::InputNeeded { request: Box::new(request), answer }).await?;
        answered.await.map_err(|_| AgentError::TurnOver)
    }

    /// Says how the turn ended; whoever runs the prompt calls it once, behind all other reports.
    pub async fn ended(&self, result: Result<(), ErrorInfo>) -> Result<(), AgentError> {
        self.send(AgentEvent::Ended(result)).await
    }

    async fn send(&self, event: AgentEvent) -> Result<(), AgentError> {
        self.report(vec![event], None).await
    }
}
