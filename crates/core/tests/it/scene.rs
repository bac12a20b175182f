//! A session, its agent, and short names for what happens to them.

use std::sync::Arc;

use grove_core::*;

use crate::random;

pub(crate) const TURN: &str = "t1";

/// A session that is ready, with an agent that has two models. Time moves by one with every command.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) session: Session,
    pub(crate) agent: AgentInfo,
    pub(crate) now: u64,
}

impl Scene {
    pub(crate) fn creating() -> Self {
        let session = Session::new(&random::new_session(), Timestamp(1));
        Self { session, agent: random::agent(), now: 1 }
    }

    pub(crate) fn ready() -> Self {
        Self::creating().after_host(SessionEvent::Ready)
    }

    pub(crate) fn failed() -> Self {
        Self::creating().after_host(SessionEvent::CreationFailed(ErrorInfo::new("agentStart", "no such program")))
    }

    /// With turn `t1` running.
    pub(crate) fn in_turn() -> Self {
        Self::ready().after(start(TURN))
    }

    /// With turn `t1` running and these reports made.
    pub(crate) fn reported(events: impl IntoIterator<Item = ChatEvent>) -> Self {
        events.into_iter().fold(Self::in_turn(), Self::after_report)
    }

    pub(crate) fn after(mut self, command: ClientCommand) -> Self {
        self.act(command).unwrap();
        self
    }

    pub(crate) fn after_command_of_host(mut self, command: impl Into<HostCommand>) -> Self {
        self.host(command).unwrap();
        self
    }

    pub(crate) fn after_report(mut self, event: ChatEvent) -> Self {
        self.report(event).unwrap();
        self
    }

    pub(crate) fn after_host(mut self, event: SessionEvent) -> Self {
        self.host(EventReport::Session(event)).unwrap();
        self
    }

    /// Sends a client's command.
    pub(crate) fn act(&mut self, command: ClientCommand) -> Result<Vec<Change>, Rejection> {
        self.by(Command::Client(client(), command))
    }

    /// Sends a host's command.
    pub(crate) fn host(&mut self, command: impl Into<HostCommand>) -> Result<Vec<Change>, Rejection> {
        self.by(Command::Host(command.into()))
    }

    /// Sends an agent's report.
    pub(crate) fn report(&mut self, event: ChatEvent) -> Result<Vec<Change>, Rejection> {
        self.by(Command::Agent(EventReport::Chat { chat: main(), event }))
    }

    pub(crate) fn by(&mut self, command: Command) -> Result<Vec<Change>, Rejection> {
        self.now += 1;
        let batch = advance(&mut self.session, Some(&self.agent), command, Timestamp(self.now))?;
        assert!(batch.events.iter().all(|event| event.at == Timestamp(self.now)), "events bear the command's time");
        Ok(batch.events.into_iter().map(|event| event.change).collect())
    }

    pub(crate) fn chat(&self) -> &Chat {
        self.session.main_chat().unwrap()
    }

    pub(crate) fn active(&self) -> &ActiveTurn {
        self.chat().active.as_deref().unwrap()
    }

    pub(crate) fn last_turn(&self) -> &Turn {
        self.chat().turns.last().unwrap()
    }

    pub(crate) fn call(&self, id: &str) -> &ToolCall {
        self.active().tool_call(&id.into()).unwrap()
    }

    pub(crate) fn status_of(&self, call: &str) -> &ToolCallStatus {
        &self.call(call).status
    }

    pub(crate) fn input(&self, request: &str) -> &InputRequest {
        self.active().input_request(&request.into()).unwrap()
    }

    pub(crate) fn waiting(&self) -> Vec<&str> {
        self.chat().queued.iter().map(|queued| queued.id.as_str()).collect()
    }
}

/// The chat's changes, without the chat.
pub(crate) fn chat_events(changes: &[Change]) -> Vec<ChatEvent> {
    let own = |change: &Change| match change {
        Change::Chat(_, _, event) => Some(event.clone()),
        Change::Root(_) | Change::Session(..) => None,
    };
    changes.iter().filter_map(own).collect()
}

/// The session's changes, without the session.
pub(crate) fn session_events(changes: &[Change]) -> Vec<SessionEvent> {
    let own = |change: &Change| match change {
        Change::Session(_, event) => Some(event.clone()),
        Change::Root(_) | Change::Chat(..) => None,
    };
    changes.iter().filter_map(own).collect()
}

pub(crate) fn client() -> ClientId {
    "client".into()
}

pub(crate) fn main() -> ChatId {
    Session::MAIN_CHAT.into()
}

pub(crate) fn turn() -> TurnId {
    TURN.into()
}

pub(crate) fn start(turn: &str) -> ClientCommand {
    ClientCommand::StartTurn { chat: main(), turn: turn.into(), message: Message::user("go"), started_at: None }
}

pub(crate) fn cancel(turn: &str) -> ClientCommand {
    ClientCommand::CancelTurn { chat: main(), turn: turn.into() }
}

pub(crate) fn resolve(request: &str, decision: Decision) -> ClientCommand {
    resolve_with(request, decision.into())
}

pub(crate) fn resolve_with(request: &str, verdict: Verdict) -> ClientCommand {
    let question = PermissionTarget::Request(request.into());
    ClientCommand::ResolvePermission { chat: main(), turn: turn(), question, verdict, answered_by: None }
}

pub(crate) fn resolve_about(call: &str, decision: Decision) -> ClientCommand {
    let question = PermissionTarget::OfToolCall(call.into());
    ClientCommand::ResolvePermission {
        chat: main(),
        turn: turn(),
        question,
        verdict: decision.into(),
        answered_by: None,
    }
}

pub(crate) fn answer(request: &str, outcome: InputOutcome, answers: Answers) -> ClientCommand {
    ClientCommand::AnswerInput { chat: main(), request: request.into(), outcome, answers, answered_by: None }
}

pub(crate) fn decline(request: &str) -> ClientCommand {
    answer(request, InputOutcome::Declined, Answers::new())
}

pub(crate) fn draft_answer(request: &str, question: &str, answer: Option<Answer>) -> ClientCommand {
    ClientCommand::DraftAnswer { chat: main(), request: request.into(), question: question.into(), answer }
}

/// The id of the only question of [`asked`].
pub(crate) const QUESTION: &str = "answer";

/// An answer to the question of [`asked`].
pub(crate) fn answers(answer: Answer) -> Answers {
    Answers::from([(QUESTION.into(), answer)])
}

pub(crate) fn draft(text: &str) -> Answer {
    Answer::Draft(AnswerValue::Text(text.into()))
}

pub(crate) fn confirm_result(call: &str, decision: Decision) -> ClientCommand {
    ClientCommand::ConfirmResult { chat: main(), turn: turn(), call: call.into(), decision, answered_by: None }
}

pub(crate) fn complete(call: &str, ask: bool) -> ClientCommand {
    ClientCommand::CompleteClientCall { chat: main(), turn: turn(), call: call.into(), result: success(), ask }
}

pub(crate) fn report_output(call: &str, text: &str) -> ClientCommand {
    ClientCommand::ReportClientOutput { chat: main(), turn: turn(), call: call.into(), output: output(text) }
}

pub(crate) fn output(text: &str) -> ToolOutput {
    ToolOutput { text: text.into(), pieces: None, attached: Vec::new() }
}

pub(crate) fn stop() -> HostCommand {
    HostCommand::StopTurn { chat: main(), turn: turn(), error: ErrorInfo::new("hostStopped", "the host stopped") }
}

pub(crate) fn start_queued() -> HostCommand {
    HostCommand::StartQueued { chat: main() }
}

pub(crate) fn steer(id: &str) -> ClientCommand {
    ClientCommand::SetSteering { chat: main(), message: pending(id, id) }
}

pub(crate) fn add_chat(id: &str) -> HostCommand {
    HostCommand::AddChat { chat: id.into(), uri: format!("scripted:/s1/{id}") }
}

/// A chat that begins with the main chat's turns.
pub(crate) fn fork_chat(id: &str, kind: OriginKind, turns: Vec<Arc<Turn>>) -> HostCommand {
    HostCommand::ForkChat {
        chat: id.into(),
        uri: format!("scripted:/s1/{id}"),
        origin: origin(kind),
        turns,
        older: true,
    }
}

pub(crate) fn origin(kind: OriginKind) -> Arc<ChatOrigin> {
    let log = LogPart { boundary: 100, extent: LogScope::Branch, leaf: Some("a".into()), until: None };
    Arc::new(ChatOrigin {
        session: "s1".into(),
        store: StoreName::default(),
        chat: main(),
        uri: None,
        turn: Some(turn()),
        kind,
        log,
    })
}

/// A client that takes part, with a tool of its own.
pub(crate) fn taking_part(client: &str) -> ActiveClient {
    let tool = ClientTool { name: "browser".into(), description: None, input_schema: None, extra: None };
    ActiveClient { client: client.into(), display_name: None, tools: vec![tool], extra: None }
}

/// One member of a dialect's further data.
pub(crate) fn extra(name: &str, value: &str) -> Extra {
    Extra::from_iter([(name.to_owned(), value.into())])
}

pub(crate) fn pending(id: &str, text: &str) -> PendingMessage {
    PendingMessage { id: id.into(), message: Message::user(text) }
}

pub(crate) fn enqueue(id: &str) -> ClientCommand {
    ClientCommand::Enqueue { chat: main(), message: pending(id, id) }
}

pub(crate) fn new_call(id: &str) -> NewToolCall {
    NewToolCall {
        id: id.into(),
        name: "shell".into(),
        display_name: "Run a command".into(),
        kind: Some(ToolKind::Terminal),
        language: Some("sh".into()),
        client: None,
        extra: None,
    }
}

pub(crate) fn permission(id: &str) -> PermissionRequest {
    PermissionRequest {
        id: id.into(),
        kind: PermissionKind::Shell,
        path: None,
        full_command_text: Some("ls".into()),
        intention: None,
        title: None,
        options: Vec::new(),
        edits: vec![],
        editable: false,
    }
}

/// A request with an option that allows and one that denies, and with an editable input.
pub(crate) fn permission_with_options(id: &str) -> PermissionRequest {
    let option = |id: &str, allows| PermissionOption { id: id.into(), label: id.into(), allows, lasting: false };
    PermissionRequest {
        options: vec![option("always", true), option("never", false)],
        edits: vec![],
        editable: true,
        ..permission(id)
    }
}

pub(crate) fn success() -> ToolResult {
    ToolResult {
        success: true,
        past_tense_message: "Ran ls".into(),
        output: Some("a b".into()),
        attached: Vec::new(),
        extra: None,
    }
}

pub(crate) fn streamed(id: &str) -> ChatEvent {
    let part = Part::Text(TextPart { id: id.into(), content: String::new(), delivery: Delivery::Streamed });
    ChatEvent::PartAdded { turn: turn(), part }
}

pub(crate) fn whole(id: &str) -> ChatEvent {
    let part = Part::Text(TextPart { id: id.into(), content: "whole".into(), delivery: Delivery::Whole });
    ChatEvent::PartAdded { turn: turn(), part }
}

pub(crate) fn thought(id: &str) -> ChatEvent {
    ChatEvent::PartAdded { turn: turn(), part: Part::Reasoning { id: id.into(), content: String::new() } }
}

pub(crate) fn says(part: &str, content: &str) -> ChatEvent {
    ChatEvent::TextDelta { turn: turn(), part: part.into(), content: content.into() }
}

pub(crate) fn thinks(part: &str, content: &str) -> ChatEvent {
    ChatEvent::ReasoningDelta { turn: turn(), part: part.into(), content: content.into() }
}

pub(crate) fn started(call: &str) -> ChatEvent {
    ChatEvent::ToolCallStarted { turn: turn(), call: new_call(call) }
}

pub(crate) fn writes(call: &str, content: &str) -> ChatEvent {
    ChatEvent::ToolCallInputDelta { turn: turn(), call: call.into(), content: content.into() }
}

pub(crate) fn ready(call: &str, gate: Gate) -> ChatEvent {
    ChatEvent::ToolCallReady {
        turn: turn(),
        call: new_call(call),
        invocation_message: "Running ls".into(),
        input: Some("ls".into()),
        gate,
    }
}

pub(crate) fn gated(call: &str, request: &str) -> ChatEvent {
    gated_by(call, permission(request))
}

pub(crate) fn gated_by(call: &str, request: PermissionRequest) -> ChatEvent {
    let gated = ToolCallGate { call: call.into(), request, invocation_message: None, input: None, hook: None };
    ChatEvent::ToolCallGated { turn: turn(), gated: Box::new(gated) }
}

pub(crate) fn completed(call: &str) -> ChatEvent {
    ChatEvent::ToolCallCompleted { turn: turn(), call: call.into(), result: success(), run: None }
}

pub(crate) fn result_gated(call: &str) -> ChatEvent {
    ChatEvent::ToolCallResultGated { turn: turn(), call: call.into(), result: success(), run: None }
}

/// The end of call `c1` with how long it ran.
pub(crate) fn ran_for(ran_ms: u64, mut end: ChatEvent) -> ChatEvent {
    let NewToolCall { kind, language, extra, .. } = new_call("c1");
    if let ChatEvent::ToolCallCompleted { run, .. } | ChatEvent::ToolCallResultGated { run, .. } = &mut end {
        *run = Some(Box::new(CallRun { ran_ms, kind, language, extra }));
    }
    end
}

pub(crate) fn result_confirmed(call: &str, decision: Decision) -> ChatEvent {
    ChatEvent::ToolCallResultConfirmed { turn: turn(), call: call.into(), result: success(), decision, answer: None }
}

pub(crate) fn asked(request: &str) -> ChatEvent {
    ChatEvent::InputRequested { turn: turn(), request: Box::new(InputRequest::ask(request.into(), "Which one?")) }
}

pub(crate) fn put_out(call: &str, text: &str) -> ChatEvent {
    ChatEvent::ToolCallOutput { turn: turn(), call: call.into(), output: output(text) }
}

/// A running call that turns out to do something else.
pub(crate) fn restated(call: &str, input: Option<&str>, confirmed: ConfirmationReason) -> ChatEvent {
    let restated = InvocationUpdate {
        call: new_call(call),
        invocation_message: "Running it".into(),
        input: input.map(Into::into),
        confirmed,
    };
    ChatEvent::ToolCallRestated { turn: turn(), restated: Box::new(restated) }
}

pub(crate) fn busy(with: Option<&str>) -> ChatEvent {
    ChatEvent::ActivityChanged(with.map(Into::into))
}

/// The agent's own name for the conversation.
pub(crate) fn called(name: Option<&str>) -> ChatEvent {
    ChatEvent::AgentSessionChanged(name.map(Into::into))
}

pub(crate) fn ended() -> ChatEvent {
    ChatEvent::TurnCompleted { turn: turn(), duration: None }
}

pub(crate) fn cancelled() -> ChatEvent {
    ChatEvent::TurnCancelled { turn: turn(), duration: None }
}

pub(crate) fn failed(message: &str) -> ChatEvent {
    ChatEvent::TurnFailed { turn: turn(), duration: None, error: ErrorInfo::new("agent", message) }
}

/// The end of a turn with its duration.
pub(crate) fn lasting(end: ChatEvent, took: u64) -> ChatEvent {
    let duration = Some(took);
    match end {
        ChatEvent::TurnCompleted { turn, .. } => ChatEvent::TurnCompleted { turn, duration },
        ChatEvent::TurnCancelled { turn, .. } => ChatEvent::TurnCancelled { turn, duration },
        ChatEvent::TurnFailed { turn, error, .. } => ChatEvent::TurnFailed { turn, duration, error },
        other => panic!("{other:?} ends nothing"),
    }
}

/// The reports after which `call` waits for a person's answer to `request`.
pub(crate) fn asking(call: &str, request: &str) -> [ChatEvent; 3] {
    [started(call), ready(call, Gate::Follows), gated(call, request)]
}

/// The reports after which `call` runs.
pub(crate) fn running(call: &str) -> [ChatEvent; 2] {
    [started(call), ready(call, Gate::None)]
}

/// The reports after which `call` waits for an answer to `request`, which has options and an editable input.
pub(crate) fn asking_with_options(call: &str, request: &str) -> [ChatEvent; 3] {
    [started(call), ready(call, Gate::Follows), gated_by(call, permission_with_options(request))]
}

/// The reports after which `client` is to run `call`.
pub(crate) fn handed_to(client: &str, call: &str) -> [ChatEvent; 2] {
    let new = NewToolCall { client: Some(client.into()), ..new_call(call) };
    let mut ready = ready(call, Gate::None);
    if let ChatEvent::ToolCallReady { call, .. } = &mut ready {
        call.clone_from(&new);
    }
    [ChatEvent::ToolCallStarted { turn: turn(), call: new }, ready]
}
