//! The traits of an agent backend, and the messages between it and the host.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_core::*;
use tokio::sync::oneshot;

pub use crate::offered_tools::{ClientTools, OfferedTool};
use crate::setup::{AgentAbilities, AgentSetup};
use crate::sink::{ChatSink, TurnSink};
use crate::spills::SpillStore;

/// A kind of agent.
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// The agent's description for clients.
    fn info(&self) -> AgentInfo;

    /// Opens the agent for one chat. It may take long; the session of a main chat is `creating` meanwhile.
    /// [`OpenSession::start`] says when an agent that is a process starts it.
    async fn open(&self, session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError>;

    /// The settings of a session that has not begun yet, with their defaults, as far as they are known; `None` without
    /// any.
    fn settings(&self) -> Option<SessionConfig> {
        None
    }

    /// The parts of a session's setup that it can honour. A setup that asks for more is refused before the session is created.
    fn abilities(&self) -> AgentAbilities {
        AgentAbilities::default()
    }

    /// Returns whether it changes files in the session's working directories by itself, so that two agents there would
    /// conflict.
    fn edits_files(&self) -> bool {
        false
    }

    /// The part of its turns that goes on when the host ends in the middle of them ([`AgentSession::resume`]).
    fn turn_survival(&self) -> TurnSurvival {
        TurnSurvival::Nothing
    }

    /// The summarizer for its sessions; `None` if it has no model to summarize with.
    fn summarizer(&self) -> Option<Arc<dyn Summarizer>> {
        None
    }

    /// Returns whether it keeps its conversations within its model's context window by itself.
    fn manages_context_window(&self) -> bool {
        false
    }
}

/// Summarizes conversations.
#[async_trait]
pub trait Summarizer: Send + Sync + 'static {
    /// The summary alone, as text. Dropping the future aborts it.
    async fn summarize(&self, wanted: SummaryRequest) -> Result<String, AgentError>;
}

/// A request for a summary.
#[derive(Clone, Debug)]
pub struct SummaryRequest {
    /// The prompt for a model: the task, and the conversation in plain text.
    pub prompt: String,
    /// A person's instructions for the summary; the prompt contains them as well.
    pub instructions: Option<String>,
    /// The session's model.
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
    pub settings: Extra,
}

/// The part of an agent's turns that goes on when the host ends in the middle of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnSurvival {
    /// They end with the host.
    Nothing,
    /// Those that wait for a person or a client.
    PendingRequest,
    /// All of them: the agent works on without the host.
    Running,
}

/// The agent of one chat of a session.
#[async_trait]
pub trait AgentSession: Send + Sync + 'static {
    /// Runs one turn to its end. Returning completes the turn, an error ends it in error.
    ///
    /// The host drops the future of a turn that was cancelled, after [`AgentSession::cancel`].
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError>;

    /// Continues a turn from before the host's start, and runs it to its end. Called only if the agent can
    /// ([`Agent::turn_survival`]); earlier reports are stored already and are not repeated.
    async fn resume(&self, _prompt: Prompt, _from: Resumption, _turn: TurnSink) -> Result<(), AgentError> {
        Err(AgentError::TurnFailed("this agent cannot continue a turn".to_owned()))
    }

    /// Returns whether a running turn accepts messages ([`AgentSession::steer`]). If not, each message becomes its own
    /// turn.
    fn can_steer(&self) -> bool {
        false
    }

    /// Sends a person's message to the running turn.
    async fn steer(&self, _turn: &TurnId, _message: Message) {}

    /// Copies the conversation as it is now, and returns the agent's id of the copy
    /// ([`OpenSession::agent_session_id`]);
    /// `None` if the agent cannot. Later messages are not in the copy, so it may be given up for a turn.
    async fn fork(&self) -> Result<Option<String>, AgentError> {
        Ok(None)
    }

    /// Applies settings that a person has changed. The agent reports the result.
    async fn configure(&self, _values: Extra) {}

    /// Tells the agent the title that a person gave the session, if the agent keeps titles.
    async fn set_title(&self, _title: String) {}

    /// Notes that everything up to this mark is stored: the agent need not keep it for another host.
    fn stored(&self, _mark: &FrameCursor) {}

    /// Stops all work for a turn that was cancelled.
    async fn cancel(&self, turn: &TurnId);

    /// Releases all resources that the agent holds for the chat.
    async fn close(&self, _why: CloseReason) {}
}

/// The reason why an agent is not needed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The chat is deleted.
    Removed,
    /// The host stops, or the session is evicted. A turn that can go on alone does.
    Detached,
    /// The conversation continues from another point, and starts over for the agent.
    Replaced,
}

/// The parameters of opening a chat's agent.
#[derive(Clone, Debug)]
pub struct OpenSession {
    pub session: SessionId,
    pub chat: ChatId,
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
    /// The agent's id of this conversation ([`AgentEvent::AgentSessionId`]), if there was one before.
    pub agent_session_id: Option<String>,
    /// The chosen settings of the session.
    pub settings: Extra,
    /// Receives reports that belong to no turn.
    pub reports: ChatSink,
    /// Stores output that is too large for the agent.
    pub spills: Arc<dyn SpillStore>,
    pub start: AgentStart,
    /// The configuration by the session's creator. The agent can honour all of it ([`Agent::abilities`]).
    pub setup: Arc<AgentSetup>,
    /// The tools that clients offer at any time.
    pub client_tools: ClientTools,
}

/// When the process of an agent starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStart {
    /// With the first turn.
    FirstTurn,
    /// At once: opening waits until the agent is initialised, and fails if that takes longer than this.
    Now { within: Duration },
}

/// The beginning of a turn.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub message: Message,
    /// The model of this turn: the message's, else the session's.
    pub model: Option<ModelId>,
    /// Tools that clients would run.
    pub client_tools: Vec<OfferedTool>,
    /// The earlier conversation, for an agent that has forgotten it.
    pub memory: Arc<dyn ConversationHistory>,
}

/// The conversation of a chat before a turn. Reading it costs: an agent that remembers does not ask for it.
#[async_trait]
pub trait ConversationHistory: Debug + Send + Sync + 'static {
    /// The conversation as plain text, in at most about so many bytes; `None` if it is empty.
    async fn retell(&self, most: usize) -> Result<Option<String>, AgentError>;
}

/// An empty conversation.
#[async_trait]
impl ConversationHistory for () {
    async fn retell(&self, _most: usize) -> Result<Option<String>, AgentError> {
        Ok(None)
    }
}

/// The state of a turn when the host ended.
#[derive(Debug, Default)]
pub struct Resumption {
    /// The requests that it waits for.
    pub waiting: Vec<PendingRequest>,
    /// The last stored mark, if its agent marks its reports.
    pub mark: Option<FrameCursor>,
}

/// A question that was open when the host ended, and the receiver of its answer.
#[derive(Debug)]
pub struct PendingRequest {
    pub request: RequestId,
    pub answer_from: PendingAnswer,
}

/// The awaited answer.
#[derive(Debug)]
pub enum PendingAnswer {
    /// Permission to run a tool call.
    Permission(ToolCallId, oneshot::Receiver<Verdict>),
    /// The result of a call that a client ran, or permission to see it.
    Result(ToolCallId, oneshot::Receiver<ToolResult>),
    /// A person's answer.
    Question(oneshot::Receiver<InputResponse>),
}

/// Why an agent could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the agent did not start: {0}")]
    Start(String),
    #[error("{words}")]
    LoginRequired {
        words: String,
        /// The agent offers methods, of which a person can choose one.
        has_methods: bool,
    },
    #[error("{0}")]
    TurnFailed(String),
    #[error("the agent ended in the middle of the turn: {0}")]
    Died(String),
    #[error("the host ended in the middle of the turn, and its agent with it: {0}")]
    Interrupted(String),
    #[error("the agent has forgotten the conversation, and the log to retell it from cannot be read: {0}")]
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
            AgentError::LoginRequired { .. } => "loginRequired",
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

/// Events of an agent, in order. They are stored all together or not at all.
#[derive(Debug)]
pub struct Report {
    pub chat: ChatId,
    /// The turn that it belongs to, if any.
    pub turn: Option<TurnId>,
    pub events: Vec<AgentEvent>,
    /// The handled frames of the agent once this is stored.
    pub mark: Option<FrameCursor>,
}

/// An event that an agent reports.
#[derive(Debug)]
pub enum AgentEvent {
    /// More of the answer.
    Text(String),
    Reasoning(String),
    /// More of one message of the answer, for an agent that tells its messages apart.
    MessageText(MessageChunk),
    MessageReasoning(MessageChunk),
    ToolStarted(NewToolCall),
    /// The call's input is complete and it runs, or asks first.
    ToolReady {
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
        permission: Option<PermissionPrompt>,
        /// Receives the result of a call that a client runs.
        result: Option<oneshot::Sender<ToolResult>>,
    },
    ToolCompleted {
        call: ToolCallId,
        result: ToolResult,
    },
    /// Changes of a call, whether it is already known or not.
    Tool(Box<ToolUpdate>),
    /// A structured piece of the answer.
    PartContent {
        mime_type: String,
        body: PartContent,
    },
    /// The agent's plan from now on.
    Plan(Vec<PlanEntry>),
    /// A remark about the turn that a person should see.
    Notice(String),
    /// The usage of the turn so far.
    Usage(Usage),
    /// The usage of one call of a model, which adds to that of the turn.
    CallUsage(Usage),
    /// The reason why the turn waits, in words for a person, until the next report; `None`: it waits no more.
    Activity(Option<String>),
    InputNeeded {
        request: Box<InputRequest>,
        answer: oneshot::Sender<InputResponse>,
    },
    /// The turn's last report: it has completed, or failed.
    Ended(Result<(), ErrorInfo>),
    Title(String),
    /// The commands that the agent understands, all of them.
    Commands(Vec<AgentCommand>),
    /// The available settings, as a JSON schema of an object, and their values.
    AgentSettings {
        schema: Extra,
        values: Extra,
    },
    /// The agent's id of this conversation from now on.
    AgentSessionId(String),
}

impl AgentEvent {
    /// Returns whether it is about the session as a whole, and holds even if the turn is dropped.
    pub(crate) fn is_of_session(&self) -> bool {
        match self {
            AgentEvent::Commands(_)
            | AgentEvent::AgentSettings { .. }
            | AgentEvent::Title(_)
            | AgentEvent::AgentSessionId(_) => true,
            AgentEvent::Text(_)
            | AgentEvent::Reasoning(_)
            | AgentEvent::MessageText(_)
            | AgentEvent::MessageReasoning(_)
            | AgentEvent::ToolStarted(_)
            | AgentEvent::ToolReady { .. }
            | AgentEvent::ToolCompleted { .. }
            | AgentEvent::Tool(_)
            | AgentEvent::PartContent { .. }
            | AgentEvent::Plan(_)
            | AgentEvent::Notice(_)
            | AgentEvent::Usage(_)
            | AgentEvent::CallUsage(_)
            | AgentEvent::Activity(_)
            | AgentEvent::InputNeeded { .. }
            | AgentEvent::Ended(_) => false,
        }
    }
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageChunk {
    /// The agent's id of the message.
    pub message: String,
    pub content: String,
}

/// Changes of a tool call. Fields that are not set stay as they were.
#[derive(Debug)]
pub struct ToolUpdate {
    pub call: ToolCallId,
    pub name: Option<String>,
    pub kind: Option<ToolKind>,
    /// A description of the call.
    pub title: Option<String>,
    pub input: Option<String>,
    pub stage: Option<ToolStage>,
    /// All of its output so far.
    pub output: Option<AccumulatedOutput>,
    /// The text of its result as data, for a call without other output.
    pub result_text: Option<String>,
    /// Its result as data.
    pub structured: Option<Extra>,
    /// Further members; names that are not set stay.
    pub extra: Option<Extra>,
    /// Its permission request, if it asks first.
    pub permission: Option<PermissionPrompt>,
    /// The client that runs it, and the receiver of its result: for a new call, with a permission request.
    pub client: Option<ClientId>,
    pub result: Option<oneshot::Sender<ToolResult>>,
}

impl ToolUpdate {
    /// An update without changes, which only names the call.
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
            client: None,
            result: None,
        }
    }
}

/// The stage of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolStage {
    Pending,
    Running,
    Completed,
    Failed,
}

/// The output of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccumulatedOutput {
    pub text: String,
    pub pieces: Vec<ToolOutputPart>,
}

/// Output of a tool call beside text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutputPart {
    /// A file before and after a change: without the first it is new, without the second it is deleted.
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

/// A permission request, and the sender of its answer.
#[derive(Debug)]
pub struct PermissionPrompt {
    pub request: PermissionRequest,
    pub answer: oneshot::Sender<Verdict>,
    pub asks: PromptedParty,
}

/// The party that a permission request asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptedParty {
    /// A person, if neither a hook nor a rule decides.
    #[default]
    Person,
    /// The session's hooks: the call runs unless they object.
    Hooks,
    /// The session's hooks, about a call that the agent reports by itself: it is shown only if they object.
    HooksAlone,
    /// A person, about a call that the hooks have seen already.
    PersonAfterHooks,
    /// Nobody: a hook has decided.
    Nobody,
    /// A person, because a hook wants that.
    PersonByHook,
}

impl PromptedParty {
    /// The decision of a hook about the request.
    pub fn hook_gate(self) -> Option<HookGate> {
        match self {
            PromptedParty::Nobody => Some(HookGate::Resolved),
            PromptedParty::PersonByHook => Some(HookGate::Asks),
            PromptedParty::Person
            | PromptedParty::Hooks
            | PromptedParty::HooksAlone
            | PromptedParty::PersonAfterHooks => None,
        }
    }
}

impl PermissionPrompt {
    /// A request that asks a person.
    pub fn new(request: PermissionRequest, answer: oneshot::Sender<Verdict>) -> Self {
        Self { request, answer, asks: PromptedParty::Person }
    }
}

/// The content of a structured part.
#[derive(Debug)]
pub enum PartContent {
    Text(String),
    Bytes(Vec<u8>),
}
