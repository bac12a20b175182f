//! The channels to which agents report.

use grove_core::*;
use tokio::sync::{mpsc, oneshot};

use crate::agent::*;

/// The channel to which the agent of a chat reports. Clones share it.
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

    /// The sink of a turn of this chat.
    pub fn turn(&self, turn: TurnId) -> TurnSink {
        TurnSink { turn, chat: self.clone() }
    }

    /// Reports events that belong to no turn.
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

/// The channel to which a running turn reports.
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

    /// Reports several events that are stored together with the mark of the frames that they handle.
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

    /// Reports that the call runs without asking.
    pub async fn tool_runs(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
    ) -> Result<(), AgentError> {
        self.send(AgentEvent::ToolReady { call, invocation_message, input, permission: None, result: None }).await
    }

    /// Reports that a client runs the call, and waits for its result; `None` if a hook, or the person that it asks, denies
    /// the call. The call was started with that client's name.
    pub async fn client_runs(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
        hooks: Option<PermissionRequest>,
    ) -> Result<Option<ToolResult>, AgentError> {
        let (result, completed) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let asks_hooks = hooks.is_some();
        let permission = hooks.map(|request| PermissionPrompt { request, answer, asks: PromptedParty::Hooks });
        self.send(AgentEvent::ToolReady { call, invocation_message, input, permission, result: Some(result) }).await?;
        if asks_hooks && answered.await.map_err(|_| AgentError::TurnOver)?.decision == Decision::Denied {
            return Ok(None);
        }
        completed.await.map(Some).map_err(|_| AgentError::TurnOver)
    }

    /// Asks a person whether the call may run, and waits for the answer.
    pub async fn tool_asks(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
        request: PermissionRequest,
    ) -> Result<Verdict, AgentError> {
        self.asks(call, invocation_message, input, request, PromptedParty::Person).await
    }

    /// Asks the session's hooks whether the call may run, and waits for the answer.
    pub async fn hooks_ask(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
        request: PermissionRequest,
    ) -> Result<Verdict, AgentError> {
        self.asks(call, invocation_message, input, request, PromptedParty::Hooks).await
    }

    async fn asks(
        &self,
        call: ToolCallId,
        invocation_message: String,
        input: Option<String>,
        request: PermissionRequest,
        asks: PromptedParty,
    ) -> Result<Verdict, AgentError> {
        let (answer, answered) = oneshot::channel();
        let permission = Some(PermissionPrompt { request, answer, asks });
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

    /// Asks the person a question, and waits for the answer.
    pub async fn ask(&self, request: InputRequest) -> Result<InputResponse, AgentError> {
        let (answer, answered) = oneshot::channel();
        self.send(AgentEvent::InputNeeded { request: Box::new(request), answer }).await?;
        answered.await.map_err(|_| AgentError::TurnOver)
    }

    /// Reports the end of the turn; the caller of the prompt does so once, after all other reports.
    pub async fn ended(&self, result: Result<(), ErrorInfo>) -> Result<(), AgentError> {
        self.send(AgentEvent::Ended(result)).await
    }

    async fn send(&self, event: AgentEvent) -> Result<(), AgentError> {
        self.report(vec![event], None).await
    }
}
