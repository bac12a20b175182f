//! The traits of an agent backend, and what passes between it and the host.

use std::sync::Arc;

use async_trait::async_trait;
use grove_core::*;
use tokio::sync::{mpsc, oneshot};

/// A kind of agent.
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// How clients see this agent.
    fn info(&self) -> AgentInfo;

    /// Starts the agent for one chat. It may take long; the session of a main chat is `creating` meanwhile.
    async fn open(&self, session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError>;

    /// Whether its sessions can go on with a turn that waited for a person when the host ended
    /// ([`AgentSession::resume`]).
    fn can_resume(&self) -> bool {
        false
    }
}

/// An agent at work for one chat of a session.
#[async_trait]
pub trait AgentSession: Send + Sync + 'static {
    /// Runs one turn to its end. Returning completes the turn, an error ends it in error.
    ///
    /// The host drops the future of a turn that was cancelled, after [`AgentSession::cancel`].
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError>;

    /// Goes on with a turn that waited for a person when the host ended, and runs it to its end. Called only where the
    /// agent can ([`Agent::can_resume`]); what was reported before is there already and is not reported again.
    async fn resume(&self, _prompt: Prompt, _waiting: Vec<Waiting>, _turn: TurnSink) -> Result<(), AgentError> {
        Err(AgentError::Turn("this agent cannot go on with a turn".to_owned()))
    }

    /// Whether a running turn takes messages ([`AgentSession::steer`]). Those for an agent that does not become turns
    /// of their own.
    fn can_steer(&self) -> bool {
        false
    }

    /// A person has something to say to the running turn.
    async fn steer(&self, _turn: &TurnId, _message: Message) {}

    /// The turn was cancelled: whatever works for it elsewhere is to stop.
    async fn cancel(&self, turn: &TurnId);

    /// The chat is gone: the agent lets go of what it holds for it.
    async fn close(&self);
}

/// What an agent is told when a chat opens.
#[derive(Clone, Debug)]
pub struct OpenSession {
    pub session: SessionId,
    pub chat: ChatId,
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
}

/// What a turn begins with.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub message: Message,
    /// The model of this turn: the message's, else the session's.
    pub model: Option<ModelId>,
    /// Tools that clients would run.
    pub client_tools: Vec<OfferedTool>,
}

/// A tool, and the client that runs it.
#[derive(Clone, Debug)]
pub struct OfferedTool {
    pub client: ClientId,
    pub tool: ClientTool,
}

/// A question that was open when the host ended, and where its answer will come from.
#[derive(Debug)]
pub struct Waiting {
    pub request: RequestId,
    pub awaits: Awaits,
}

/// What is awaited.
#[derive(Debug)]
pub enum Awaits {
    /// Leave to run a tool call.
    Permission(ToolCallId, oneshot::Receiver<Verdict>),
    /// Leave to see the result of a call that a client ran, or that result.
    Result(ToolCallId, oneshot::Receiver<ToolResult>),
    /// A person's answer.
    Question(oneshot::Receiver<InputResponse>),
}

/// Why an agent could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the agent did not start: {0}")]
    Start(String),
    #[error("{0}")]
    Turn(String),
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
            AgentError::Turn(_) => "agent",
            AgentError::Script(_) => "script",
            AgentError::TurnOver => "turnOver",
        };
        ErrorInfo::new(kind, self.to_string())
    }
}

/// What happens in a turn, as the agent tells it.
#[derive(Debug)]
pub enum AgentEvent {
    /// More of the answer.
    Text {
        turn: TurnId,
        content: String,
    },
    Reasoning {
        turn: TurnId,
        content: String,
    },
    ToolStarted {
        turn: TurnId,
        call: NewToolCall,
    },
    /// The call's input is whole and it runs, or asks first.
    ToolReady {
        turn: TurnId,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
        permission: Option<PermissionAsked>,
        /// Where the result goes of a call that a client runs.
        result: Option<oneshot::Sender<ToolResult>>,
    },
    ToolCompleted {
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
    },
    /// A structured piece of the answer.
    Body {
        turn: TurnId,
        mime_type: String,
        body: Body,
    },
    Usage {
        turn: TurnId,
        usage: Usage,
    },
    Title {
        turn: TurnId,
        title: String,
    },
    Asked {
        turn: TurnId,
        request: Box<InputRequest>,
        answer: oneshot::Sender<InputResponse>,
    },
    /// The turn's last report: it has run to its end, or failed.
    Ended {
        turn: TurnId,
        result: Result<(), ErrorInfo>,
    },
}

impl AgentEvent {
    /// The turn this was reported for.
    pub fn turn(&self) -> &TurnId {
        match self {
            AgentEvent::Text { turn, .. }
            | AgentEvent::Reasoning { turn, .. }
            | AgentEvent::ToolStarted { turn, .. }
            | AgentEvent::ToolReady { turn, .. }
            | AgentEvent::ToolCompleted { turn, .. }
            | AgentEvent::Body { turn, .. }
            | AgentEvent::Usage { turn, .. }
            | AgentEvent::Title { turn, .. }
            | AgentEvent::Asked { turn, .. }
            | AgentEvent::Ended { turn, .. } => turn,
        }
    }
}

/// A permission asked for, and where its answer goes.
#[derive(Debug)]
pub struct PermissionAsked {
    pub request: PermissionRequest,
    pub answer: oneshot::Sender<Verdict>,
}

/// The content of a structured part.
#[derive(Debug)]
pub enum Body {
    Text(String),
    Bytes(Vec<u8>),
}

/// Where a running turn reports.
#[derive(Clone, Debug)]
pub struct TurnSink {
    turn: TurnId,
    events: mpsc::Sender<AgentEvent>,
}

impl TurnSink {
    /// A sink for one turn. The channel's capacity is how far an agent may run ahead of the host.
    pub fn new(turn: TurnId, events: mpsc::Sender<AgentEvent>) -> Self {
        Self { turn, events }
    }

    /// The turn that reports here.
    pub fn turn(&self) -> &TurnId {
        &self.turn
    }

    pub async fn text(&self, content: impl Into<String>) -> Result<(), AgentError> {
        self.send(AgentEvent::Text { turn: self.turn.clone(), content: content.into() }).await
    }

    pub async fn reasoning(&self, content: impl Into<String>) -> Result<(), AgentError> {
        self.send(AgentEvent::Reasoning { turn: self.turn.clone(), content: content.into() }).await
    }

    pub async fn tool_started(&self, call: NewToolCall) -> Result<(), AgentError> {
        self.send(AgentEvent::ToolStarted { turn: self.turn.clone(), call }).await
    }

    /// The call runs; nobody is asked.
    pub async fn tool_runs(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
    ) -> Result<(), AgentError> {
        let turn = self.turn.clone();
        self.send(AgentEvent::ToolReady { turn, call, invocation_message, input, permission: None, result: None }).await
    }

    /// A client runs the call, and its result is awaited. The call was started with that client's name.
    pub async fn client_runs(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
    ) -> Result<ToolResult, AgentError> {
        let (result, completed) = oneshot::channel();
        let (turn, result) = (self.turn.clone(), Some(result));
        self.send(AgentEvent::ToolReady { turn, call, invocation_message, input, permission: None, result }).await?;
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
        let permission = Some(PermissionAsked { request, answer });
        let turn = self.turn.clone();
        self.send(AgentEvent::ToolReady { turn, call, invocation_message, input, permission, result: None }).await?;
        answered.await.map_err(|_| AgentError::TurnOver)
    }

    pub async fn tool_completed(&self, call: ToolCallId, result: ToolResult) -> Result<(), AgentError> {
        self.send(AgentEvent::ToolCompleted { turn: self.turn.clone(), call, result }).await
    }

    pub async fn body(&self, mime_type: String, body: Body) -> Result<(), AgentError> {
        self.send(AgentEvent::Body { turn: self.turn.clone(), mime_type, body }).await
    }

    pub async fn usage(&self, usage: Usage) -> Result<(), AgentError> {
        self.send(AgentEvent::Usage { turn: self.turn.clone(), usage }).await
    }

    pub async fn title(&self, title: String) -> Result<(), AgentError> {
        self.send(AgentEvent::Title { turn: self.turn.clone(), title }).await
    }

    /// Asks the person something, and waits for the answer.
    pub async fn ask(&self, request: InputRequest) -> Result<InputResponse, AgentError> {
        let (answer, answered) = oneshot::channel();
        let request = Box::new(request);
        self.send(AgentEvent::Asked { turn: self.turn.clone(), request, answer }).await?;
        answered.await.map_err(|_| AgentError::TurnOver)
    }

    /// Says how the turn ended; whoever runs the prompt calls it once, behind all other reports.
    pub async fn ended(&self, result: Result<(), ErrorInfo>) -> Result<(), AgentError> {
        self.send(AgentEvent::Ended { turn: self.turn.clone(), result }).await
    }

    async fn send(&self, event: AgentEvent) -> Result<(), AgentError> {
        self.events.send(event).await.map_err(|_| AgentError::TurnOver)
    }
}
