//! `validate`: who may do what, and when. Everything that may be refused is refused here.
//!
//! A command that is allowed yields a batch of events. The first is the command's own echo; what follows from it
//! (the next queued message becoming a turn, the session's catalogue) comes behind it in the same batch.

use std::fmt;

use crate::event::*;
use crate::ids::*;
use crate::mirror;
use crate::state::*;
use crate::turn::*;

/// Something that somebody wants done to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    StartTurn {
        chat: ChatId,
        turn: TurnId,
        message: Message,
    },
    CancelTurn {
        chat: ChatId,
        turn: TurnId,
    },
    ResolvePermission {
        chat: ChatId,
        turn: TurnId,
        request: RequestId,
        decision: Decision,
    },
    AnswerInput {
        chat: ChatId,
        request: RequestId,
        response: InputResponse,
    },
    ChangeModel(ModelId),
    ChangeTitle(String),
    SetRead(bool),
    SetArchived(bool),
    SetSteering {
        chat: ChatId,
        message: PendingMessage,
    },
    RemoveSteering {
        chat: ChatId,
        id: PendingId,
    },
    Enqueue {
        chat: ChatId,
        message: PendingMessage,
    },
    Dequeue {
        chat: ChatId,
        id: PendingId,
    },
    ReorderQueue {
        chat: ChatId,
        order: Vec<PendingId>,
    },
    SetDraft {
        chat: ChatId,
        draft: Option<Message>,
    },
    /// What an agent or the host reports to have happened in a chat.
    Report {
        chat: ChatId,
        event: ChatEvent,
    },
    /// What the host reports of the session itself.
    ReportSession(SessionEvent),
}

/// On whose behalf a command comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    Client(ClientId),
    Agent,
    Host,
}

/// What `validate` looks at: the session with everything accepted so far, and its agent as it is known now.
#[derive(Clone, Copy, Debug)]
pub struct Tip<'a> {
    pub session: &'a Session,
    pub agent: Option<&'a AgentInfo>,
}

/// Why a command is refused, in words for the person who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    CreationFailed(String),
    UnknownChat(ChatId),
    TurnInProgress(TurnId),
    TurnNotActive(TurnId),
    DuplicateTurn(TurnId),
    EmptyId,
    UnknownRequest(RequestId),
    AlreadyAnswered(RequestId),
    UnknownModel { model: ModelId, provider: ProviderId },
    UnknownPending(PendingId),
    QueueFull,
    OnlyUserMessages,
    UnknownPart(PartId),
    PartClosed(PartId),
    DuplicatePart,
    ToolCall { call: ToolCallId, problem: &'static str },
    NotYours,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::CreationFailed(why) => {
                write!(f, "the session could not be created ({why}): dispose it and create another")
            }
            Rejection::UnknownChat(chat) => write!(f, "the session has no chat {chat}"),
            Rejection::TurnInProgress(turn) => {
                write!(f, "turn {turn} is still in progress: wait for its end or cancel it")
            }
            Rejection::TurnNotActive(turn) => write!(f, "turn {turn} is not the active turn"),
            Rejection::DuplicateTurn(turn) => write!(f, "there was a turn {turn} before: choose another id"),
            Rejection::EmptyId => f.write_str("an id must not be empty"),
            Rejection::UnknownRequest(request) => write!(f, "nothing was asked under {request}"),
            Rejection::AlreadyAnswered(request) => write!(f, "{request} has been answered already"),
            Rejection::UnknownModel { model, provider } => write!(f, "agent {provider} has no model {model}"),
            Rejection::UnknownPending(id) => write!(f, "no message {id} is waiting"),
            Rejection::QueueFull => write!(f, "{MAX_QUEUED} messages are waiting already"),
            Rejection::OnlyUserMessages => f.write_str("a client may only send messages of a person"),
            Rejection::UnknownPart(part) => write!(f, "the turn has no such part {part}"),
            Rejection::PartClosed(part) => write!(f, "part {part} takes no more of this"),
            Rejection::DuplicatePart => f.write_str("the turn has a part of this id already"),
            Rejection::ToolCall { call, problem } => write!(f, "tool call {call} {problem}"),
            Rejection::NotYours => f.write_str("only the host may do this"),
        }
    }
}

impl std::error::Error for Rejection {}

/// How many messages may wait in one chat.
pub const MAX_QUEUED: usize = 1_000;

/// What an accepted command makes happen, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub events: Vec<Event>,
}

/// Checks a command against the tip, applies what it makes happen to `session`, and gives the events.
///
/// Checking and applying are one step because an event's consequences depend on the state behind it; a refusal
/// leaves `session` as it was.
pub fn advance(
    session: &mut Session,
    agent: Option<&AgentInfo>,
    command: Command,
    who: &Who,
    now: Timestamp,
) -> Result<Batch, Rejection> {
    let mut batch = validate(Tip { session, agent }, command, who, now)?;
    let mut mirrored = false;
    for event in &batch.events {
        session.apply(event);
        mirrored |= mirror::may_concern(&event.change);
    }
    if mirrored {
        for due in mirror::due(session) {
            let event = Event { at: now, change: Change::Session(session.id.clone(), due) };
            session.apply(&event);
            batch.events.push(event);
        }
    }
    Ok(batch)
}

/// Checks a command against the tip and gives what it makes happen.
pub fn validate(tip: Tip<'_>, command: Command, who: &Who, now: Timestamp) -> Result<Batch, Rejection> {
    let session = tip.session;
    let from_client = matches!(who, Who::Client(_));
    let mut out = Out { session, now, events: Vec::new() };
    match command {
        Command::StartTurn { chat, turn, message } => {
            out.must_be_usable()?;
            let state = out.chat(&chat)?;
            if turn.as_str().is_empty() {
                return Err(Rejection::EmptyId);
            }
            must_be_theirs(who, &message)?;
            if let Some(active) = &state.active {
                return Err(Rejection::TurnInProgress(active.id.clone()));
            }
            if state.has_turn(&turn) {
                return Err(Rejection::DuplicateTurn(turn));
            }
            out.must_have_model(tip.agent, message.model.as_ref())?;
            out.chat_event(&chat, ChatEvent::TurnStarted { turn, message });
        }
        Command::CancelTurn { chat, turn } => {
            let state = out.active_chat(&chat, &turn)?;
            out.end_turn(&chat, state, ChatEvent::TurnCancelled { turn });
        }
        Command::ResolvePermission { chat, turn, request, decision } => {
            let state = out.active_chat(&chat, &turn)?;
            let Some(active) = state.active_turn(&turn) else { return Err(Rejection::TurnNotActive(turn)) };
            match active.call_waiting_for(&request) {
                Some(call) => {
                    let call = call.id.clone();
                    out.chat_event(&chat, ChatEvent::ToolCallConfirmed { turn, call, request, decision });
                }
                None if active.knows_request(&request) => return Err(Rejection::AlreadyAnswered(request)),
                None => return Err(Rejection::UnknownRequest(request)),
            }
        }
        Command::AnswerInput { chat, request, response } => {
            let state = out.chat(&chat)?;
            let asked = state.active.as_deref().and_then(|active| Some((active, active.input_request(&request)?)));
            match asked {
                Some((_, input)) if input.response.is_some() => return Err(Rejection::AlreadyAnswered(request)),
                Some((active, _)) => {
                    let turn = active.id.clone();
                    out.chat_event(&chat, ChatEvent::InputAnswered { turn, request, response });
                }
                None => return Err(Rejection::UnknownRequest(request)),
            }
        }
        Command::ChangeModel(model) => {
            out.must_be_usable()?;
            out.must_have_model(tip.agent, Some(&model))?;
            out.session_event(SessionEvent::ModelChanged(model));
        }
        Command::ChangeTitle(title) => out.session_event(SessionEvent::TitleChanged(title)),
        Command::SetRead(read) => out.session_event(SessionEvent::ReadChanged(read)),
        Command::SetArchived(archived) => out.session_event(SessionEvent::ArchivedChanged(archived)),
        Command::SetSteering { chat, message } => {
            out.must_be_usable()?;
            out.chat(&chat)?;
            must_be_theirs(who, &message.message)?;
            out.chat_event(&chat, ChatEvent::SteeringSet(message));
        }
        Command::RemoveSteering { chat, id } => {
            if out.chat(&chat)?.steering.as_ref().is_none_or(|steering| steering.id != id) {
                return Err(Rejection::UnknownPending(id));
            }
            out.chat_event(&chat, ChatEvent::SteeringRemoved(id));
        }
        Command::Enqueue { chat, message } => {
            out.must_be_usable()?;
            let state = out.chat(&chat)?;
            if message.id.as_str().is_empty() {
                return Err(Rejection::EmptyId);
            }
            must_be_theirs(who, &message.message)?;
            if state.queued.len() >= MAX_QUEUED && !state.queued.iter().any(|queued| queued.id == message.id) {
                return Err(Rejection::QueueFull);
            }
            out.must_have_model(tip.agent, message.message.model.as_ref())?;
            let idle = state.active.is_none() && state.queued.is_empty();
            out.chat_event(&chat, ChatEvent::QueuedSet(message.clone()));
            if idle {
                out.start_queued(&chat, state, &message);
            }
        }
        Command::Dequeue { chat, id } => {
            if !out.chat(&chat)?.queued.iter().any(|queued| queued.id == id) {
                return Err(Rejection::UnknownPending(id));
            }
            out.chat_event(&chat, ChatEvent::QueuedRemoved(id));
        }
        Command::ReorderQueue { chat, order } => {
            let state = out.chat(&chat)?;
            if let Some(unknown) = order.iter().find(|id| !state.queued.iter().any(|queued| queued.id == **id)) {
                return Err(Rejection::UnknownPending(unknown.clone()));
            }
            out.chat_event(&chat, ChatEvent::QueueReordered(order));
        }
        Command::SetDraft { chat, draft } => {
            out.chat(&chat)?;
            out.chat_event(&chat, ChatEvent::DraftChanged(draft));
        }
        Command::Report { .. } | Command::ReportSession(_) if from_client => return Err(Rejection::NotYours),
        Command::Report { chat, event } => {
            let state = match event.turn() {
                Some(turn) => out.active_chat(&chat, turn)?,
                None => return Err(Rejection::NotYours),
            };
            if let Some(active) = state.active.as_deref() {
                check_report(active, &event)?;
            }
            match event {
                event if event.ends_turn() => out.end_turn(&chat, state, event),
                event => out.chat_event(&chat, event),
            }
        }
        Command::ReportSession(event) => {
            match &event {
                // A creation that failed has ended: clients keep its error.
                SessionEvent::Ready => out.must_be_usable()?,
                // They follow from the chats, and nobody reports them.
                SessionEvent::ChatRowChanged(_)
                | SessionEvent::InputNeededSet(_)
                | SessionEvent::InputNeededRemoved(_) => return Err(Rejection::NotYours),
                SessionEvent::Created(_)
                | SessionEvent::CreationFailed(_)
                | SessionEvent::Listed
                | SessionEvent::Removed
                | SessionEvent::TitleChanged(_)
                | SessionEvent::ModelChanged(_)
                | SessionEvent::ReadChanged(_)
                | SessionEvent::ArchivedChanged(_) => {}
            }
            out.session_event(event);
        }
    }
    Ok(Batch { events: out.events })
}

/// A client speaks for a person, whichever way its message takes.
fn must_be_theirs(who: &Who, message: &Message) -> Result<(), Rejection> {
    match who {
        Who::Client(_) if message.origin != MessageOrigin::User => Err(Rejection::OnlyUserMessages),
        Who::Client(_) | Who::Agent | Who::Host => Ok(()),
    }
}

/// Whether what an agent reports fits the running turn. An agent may be late or wrong; the state may not.
fn check_report(active: &ActiveTurn, event: &ChatEvent) -> Result<(), Rejection> {
    let call_in = |id: &ToolCallId, wanted: fn(&ToolCallStatus) -> bool, problem| match active.tool_call(id) {
        Some(call) if wanted(&call.status) => Ok(()),
        Some(_) => Err(Rejection::ToolCall { call: id.clone(), problem }),
        None => Err(Rejection::ToolCall { call: id.clone(), problem: "is unknown" }),
    };
    match event {
        ChatEvent::PartAdded { part, .. } => {
            let duplicate = match part {
                Part::Text(text) => active.has_part(&text.id),
                Part::Reasoning { id, .. } => active.has_part(id),
                Part::Content(_) | Part::Error(_) => false,
                // They have events of their own, which say how they came about.
                Part::ToolCall(_) | Part::InputRequest(_) => return Err(Rejection::NotYours),
            };
            if duplicate { Err(Rejection::DuplicatePart) } else { Ok(()) }
        }
        ChatEvent::TextDelta { part, .. } if active.takes_text(part) => Ok(()),
        ChatEvent::ReasoningDelta { part, .. } if active.takes_reasoning(part) => Ok(()),
        ChatEvent::TextDelta { part, .. } | ChatEvent::ReasoningDelta { part, .. } => {
            if active.has_part(part) {
                Err(Rejection::PartClosed(part.clone()))
            } else {
                Err(Rejection::UnknownPart(part.clone()))
            }
        }
        ChatEvent::ToolCallStarted { call, .. } => match active.tool_call(&call.id) {
            Some(_) => Err(Rejection::DuplicatePart),
            None => Ok(()),
        },
        ChatEvent::ToolCallInputDelta { call, .. }
        | ChatEvent::ToolCallReady { call: NewToolCall { id: call, .. }, .. } => {
            call_in(call, |status| *status == ToolCallStatus::Streaming, "is past its beginning")
        }
        ChatEvent::ToolCallGated { call, request, .. } => {
            if active.knows_request(&request.id) {
                return Err(Rejection::AlreadyAnswered(request.id.clone()));
            }
            call_in(
                call,
                |status| matches!(status, ToolCallStatus::Ready | ToolCallStatus::Running),
                "cannot be asked about now",
            )
        }
        ChatEvent::ToolCallCompleted { call, .. } | ChatEvent::ToolCallResultGated { call, .. } => {
            call_in(call, |status| *status == ToolCallStatus::Running, "is not running")
        }
        ChatEvent::ToolCallResultConfirmed { call, .. } => call_in(
            call,
            |status| matches!(status, ToolCallStatus::PendingResultConfirmation(_)),
            "has no result that waits",
        ),
        ChatEvent::InputRequested { request, .. } => {
            if active.knows_request(request) {
                Err(Rejection::DuplicatePart)
            } else {
                Ok(())
            }
        }
        ChatEvent::UsageReported { .. }
        | ChatEvent::TurnCompleted { .. }
        | ChatEvent::TurnFailed { .. }
        | ChatEvent::TurnCancelled { .. } => Ok(()),
        // A person's doing, or the queue's: they have commands of their own.
        ChatEvent::TurnStarted { .. }
        | ChatEvent::ToolCallConfirmed { .. }
        | ChatEvent::InputAnswered { .. }
        | ChatEvent::SteeringSet(_)
        | ChatEvent::SteeringRemoved(_)
        | ChatEvent::QueuedSet(_)
        | ChatEvent::QueuedRemoved(_)
        | ChatEvent::QueueReordered(_)
        | ChatEvent::DraftChanged(_) => Err(Rejection::NotYours),
    }
}

/// A batch in the making.
struct Out<'a> {
    session: &'a Session,
    now: Timestamp,
    events: Vec<Event>,
}

impl<'a> Out<'a> {
    fn chat(&self, id: &ChatId) -> Result<&'a Chat, Rejection> {
        self.session.chat(id).ok_or_else(|| Rejection::UnknownChat(id.clone()))
    }

    fn active_chat(&self, id: &ChatId, turn: &TurnId) -> Result<&'a Chat, Rejection> {
        let chat = self.chat(id)?;
        match chat.active_turn(turn) {
            Some(_) => Ok(chat),
            None => Err(Rejection::TurnNotActive(turn.clone())),
        }
    }

    fn must_be_usable(&self) -> Result<(), Rejection> {
        match &self.session.lifecycle {
            Lifecycle::Creating | Lifecycle::Ready => Ok(()),
            Lifecycle::CreationFailed(error) => Err(Rejection::CreationFailed(error.message.clone())),
        }
    }

    fn must_have_model(&self, agent: Option<&AgentInfo>, model: Option<&ModelId>) -> Result<(), Rejection> {
        match model {
            Some(model) if !agent.is_some_and(|agent| agent.has_model(model)) => {
                Err(Rejection::UnknownModel { model: model.clone(), provider: self.session.provider.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn session_event(&mut self, event: SessionEvent) {
        self.events.push(Event { at: self.now, change: Change::Session(self.session.id.clone(), event) });
    }

    fn chat_event(&mut self, chat: &ChatId, event: ChatEvent) {
        self.events.push(Event { at: self.now, change: Change::Chat(self.session.id.clone(), chat.clone(), event) });
    }

    /// Ends the turn; what waits longest becomes the next one, where there is an agent to take it.
    fn end_turn(&mut self, id: &ChatId, chat: &Chat, end: ChatEvent) {
        self.chat_event(id, end);
        if let Some(next) = chat.queued.first()
            && self.must_be_usable().is_ok()
        {
            self.start_queued(id, chat, next);
        }
    }

    fn start_queued(&mut self, id: &ChatId, chat: &Chat, next: &PendingMessage) {
        self.chat_event(id, ChatEvent::QueuedRemoved(next.id.clone()));
        // A turn needs an id of its own, and nothing here draws one: it takes the message's, told apart where a
        // turn of that id was before.
        let mut turn = TurnId::from(next.id.as_str());
        let mut attempt = 1;
        while chat.has_turn(&turn) {
            attempt += 1;
            turn = TurnId::from(format!("{}-{attempt}", next.id));
        }
        self.chat_event(id, ChatEvent::TurnStarted { turn, message: next.message.clone() });
    }
}
