//! `validate`: the rules for commands. Everything that may be refused is refused here.
//!
//! An allowed command yields a batch of events. The first is the command's own echo; its consequences (the next queued
//! message becoming a turn, the session's catalogue) follow in the same batch.

use std::fmt;
use std::sync::Arc;

use crate::event::*;
use crate::ids::*;
use crate::input::*;
use crate::mirror;
use crate::origin::ChatOrigin;
use crate::permissions::*;
use crate::state::*;
use crate::title::*;
use crate::turn::*;

/// A command on a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    StartTurn {
        chat: ChatId,
        turn: TurnId,
        message: Message,
        /// The start time that the sender claims.
        started_at: Option<Timestamp>,
    },
    CancelTurn {
        chat: ChatId,
        turn: TurnId,
    },
    ResolvePermission {
        chat: ChatId,
        turn: TurnId,
        question: PermissionTarget,
        verdict: Verdict,
    },
    /// Decides if the agent may see a call's result.
    ConfirmResult {
        chat: ChatId,
        turn: TurnId,
        call: ToolCallId,
        decision: Decision,
    },
    /// Reports the result of a call that a client ran.
    CompleteClientCall {
        chat: ChatId,
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
        /// True if a person is to be asked before the agent sees it.
        ask: bool,
    },
    /// Reports the output so far of a call that a client runs.
    ReportClientOutput {
        chat: ChatId,
        turn: TurnId,
        call: ToolCallId,
        output: ToolOutput,
    },
    AnswerInput {
        chat: ChatId,
        request: RequestId,
        outcome: InputOutcome,
        answers: Answers,
    },
    DraftAnswer {
        chat: ChatId,
        request: RequestId,
        question: QuestionId,
        answer: Option<Answer>,
    },
    ChangeModel(ModelId),
    ChangeTitle(String),
    SetRead(bool),
    SetArchived(bool),
    SetChatRead {
        chat: ChatId,
        read: bool,
    },
    SetChatArchived {
        chat: ChatId,
        archived: bool,
    },
    /// Names a chat. The main one goes by its session's title.
    RenameChat {
        chat: ChatId,
        title: String,
    },
    AddChat {
        chat: ChatId,
        uri: String,
    },
    /// Adds a chat that begins with these newest turns of another one.
    ForkChat {
        chat: ChatId,
        uri: String,
        origin: Arc<ChatOrigin>,
        turns: Vec<Arc<Turn>>,
        older: bool,
    },
    /// Removes a chat in which no turn runs.
    RemoveChat(ChatId),
    SetActiveClient(ActiveClient),
    RemoveActiveClient(ClientId),
    ChangeConfig {
        values: Extra,
        replace: bool,
    },
    ChangePermissions(PermissionsChange),
    /// Has the agents work in another folder, where no turn runs.
    SetWorkingDirectory(String),
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
    /// Starts the oldest queued message if no turn runs.
    StartQueued {
        chat: ChatId,
    },
    /// Records that the agent has taken the steering message into its running turn.
    TakeSteering {
        chat: ChatId,
    },
    /// Moves the leaf and shows these newest turns on the path to it.
    MoveLeaf {
        chat: ChatId,
        turns: Vec<Arc<Turn>>,
        older: bool,
        entries: Vec<LogEntry>,
        /// The settings of that branch.
        settings: RestoredSettings,
    },
    /// Adds entries to a chat's log, after the last finished turn.
    AddEntries {
        chat: ChatId,
        entries: Vec<LogEntry>,
        /// The agent's conversation has to be rebuilt, since these entries change its context.
        resets_agent: bool,
    },
    /// Ends a turn because the host stops: queued messages stay queued.
    StopTurn {
        chat: ChatId,
        turn: TurnId,
        error: ErrorInfo,
    },
    /// Reports an event in a chat, from an agent or the host.
    Report {
        chat: ChatId,
        event: ChatEvent,
    },
    /// Reports an event of the session itself, from the host.
    ReportSession(SessionEvent),
}

impl Command {
    /// True if only agents and the host may send this.
    fn is_host_only(&self) -> bool {
        matches!(
            self,
            Command::Report { .. }
                | Command::ReportSession(_)
                | Command::StopTurn { .. }
                | Command::StartQueued { .. }
                | Command::TakeSteering { .. }
                | Command::AddChat { .. }
                | Command::ForkChat { .. }
                | Command::RemoveChat(_)
                | Command::MoveLeaf { .. }
                | Command::AddEntries { .. }
        )
    }
}

/// The settings that a branch continues with, as far as they differ from the session's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredSettings {
    pub model: Option<RestoredModel>,
    /// Values of the session's settings.
    pub values: Extra,
}

/// The model that a branch goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoredModel {
    Named(ModelId),
    /// The agent's own: the branch never had another one.
    Default,
}

impl RestoredModel {
    /// The model for a session; `None` is its agent's own.
    pub fn for_session(self) -> Option<ModelId> {
        match self {
            RestoredModel::Named(model) => Some(model),
            RestoredModel::Default => None,
        }
    }
}

/// How a question about a tool call is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionTarget {
    Request(RequestId),
    /// The current question about this call.
    OfToolCall(ToolCallId),
}

/// The sender of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    Client(ClientId),
    Agent,
    Host,
}

/// The input of `validate`: the session with everything accepted so far, and its agent as it is known now.
#[derive(Clone, Copy, Debug)]
pub struct ValidationContext<'a> {
    pub session: &'a Session,
    pub agent: Option<&'a AgentInfo>,
    pub queue: QueuePolicy,
}

/// Handling of queued messages at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePolicy {
    /// The oldest one starts the next turn.
    Start,
    /// They stay queued: a host that stops could not finish their turns.
    Hold,
}

/// The reason why a command is refused, in words for the person who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    CreationFailed(String),
    /// The session's agent is being started.
    BeingCreated,
    UnknownChat(ChatId),
    TurnInProgress(TurnId),
    TurnNotActive(TurnId),
    DuplicateTurn(TurnId),
    EmptyId,
    UnknownRequest(RequestId),
    AlreadyAnswered(RequestId),
    UnknownModel {
        model: ModelId,
        provider: ProviderId,
    },
    UnknownPending(PendingId),
    QueueFull,
    OnlyUserMessages,
    /// The message has neither text nor attachments.
    EmptyMessage,
    UnknownPart(PartId),
    PartClosed(PartId),
    DuplicatePart,
    ToolCall {
        call: ToolCallId,
        problem: &'static str,
    },
    UnknownQuestion(QuestionId),
    Unanswered(QuestionId),
    InvalidAnswer {
        question: QuestionId,
        why: String,
    },
    UnknownOption(String),
    DuplicateChat(ChatId),
    TooManyChats,
    MainChat,
    TooManyClients,
    NoConfig,
    TooManyRules,
    NotPermitted,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::CreationFailed(why) => {
                write!(f, "the session could not be created ({why}): dispose it and create another")
            }
            Rejection::BeingCreated => f.write_str("the session is still being created: try again in a moment"),
            Rejection::UnknownChat(chat) => write!(f, "the session has no chat {chat}"),
            Rejection::TurnInProgress(turn) => {
                write!(f, "turn {turn} is still in progress: wait for its end or cancel it")
            }
            Rejection::TurnNotActive(turn) => write!(f, "turn {turn} is not the active turn"),
            Rejection::DuplicateTurn(turn) => write!(f, "turn {turn} exists already: choose another id"),
            Rejection::EmptyId => f.write_str("an id must not be empty"),
            Rejection::UnknownRequest(request) => write!(f, "there is no open request {request}"),
            Rejection::AlreadyAnswered(request) => write!(f, "{request} has been answered already"),
            Rejection::UnknownModel { model, provider } => write!(f, "agent {provider} has no model {model}"),
            Rejection::UnknownPending(id) => write!(f, "there is no queued message {id}"),
            Rejection::QueueFull => write!(f, "{MAX_QUEUED} messages are queued already"),
            Rejection::OnlyUserMessages => f.write_str("a client may only send user messages"),
            Rejection::EmptyMessage => f.write_str("the message is empty: write a text or attach something"),
            Rejection::UnknownPart(part) => write!(f, "the turn has no part {part}"),
            Rejection::PartClosed(part) => write!(f, "part {part} accepts no more text"),
            Rejection::DuplicatePart => f.write_str("the turn has a part of this id already"),
            Rejection::ToolCall { call, problem } => write!(f, "tool call {call} {problem}"),
            Rejection::UnknownQuestion(question) => write!(f, "there is no question {question} in this request"),
            Rejection::Unanswered(question) => write!(f, "question {question} must be answered first"),
            Rejection::InvalidAnswer { question, why } => {
                write!(f, "the answer to question {question} does not fit: it {why}")
            }
            Rejection::UnknownOption(option) => write!(f, "{option} is none of the options"),
            Rejection::DuplicateChat(chat) => write!(f, "the session has a chat {chat} already"),
            Rejection::TooManyChats => write!(f, "the session has {MAX_CHATS} chats already"),
            Rejection::MainChat => f.write_str("the main chat cannot be removed: dispose the session instead"),
            Rejection::TooManyClients => write!(f, "{MAX_ACTIVE_CLIENTS} clients take part already"),
            Rejection::NoConfig => f.write_str("the session has no settings"),
            Rejection::TooManyRules => write!(
                f,
                "a session keeps {MAX_PERMISSION_RULES} rules and folders of up to {MAX_PERMISSION_ARGUMENT} bytes: \
                 remove some first"
            ),
            Rejection::NotPermitted => f.write_str("only the host may do this"),
        }
    }
}

impl std::error::Error for Rejection {}

/// The maximum number of queued messages of a chat.
pub const MAX_QUEUED: usize = 1_000;
/// The maximum number of chats of a session.
pub const MAX_CHATS: usize = 100;
/// The maximum number of clients that take part in a session.
pub const MAX_ACTIVE_CLIENTS: usize = 100;
/// The maximum number of answers that a session remembers. Beyond it the oldest is forgotten.
pub const MAX_REMEMBERED_PERMISSIONS: usize = 1_000;
/// The maximum length of a command, a path or a question whose answer is remembered. Longer ones are asked again each
/// time: every answer sends all that is remembered.
pub const MAX_REMEMBERED_SUBJECT_BYTES: usize = 4_096;

/// The events of an accepted command, in order. Empty if the state is already as the command asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventBatch {
    pub events: Vec<Event>,
}

/// Checks a command against the tip, applies its events to `session`, and returns them.
///
/// Checking and applying are one step because an event's consequences depend on the state after it; a refusal leaves
/// `session` as it was.
pub fn advance(
    session: &mut Session,
    agent: Option<&AgentInfo>,
    command: Command,
    who: &Actor,
    now: Timestamp,
) -> Result<EventBatch, Rejection> {
    advance_with(session, agent, QueuePolicy::Start, command, who, now)
}

/// [`advance`] with a choice of what happens to queued messages when a turn ends.
pub fn advance_with(
    session: &mut Session,
    agent: Option<&AgentInfo>,
    queue: QueuePolicy,
    command: Command,
    who: &Actor,
    now: Timestamp,
) -> Result<EventBatch, Rejection> {
    let mut batch = validate(ValidationContext { session, agent, queue }, command, who, now)?;
    let (mut mirrored, mut unread) = (false, false);
    for event in &batch.events {
        session.apply(event);
        let class = event.change.class();
        mirrored |= class.is_mirrored;
        unread |= class.makes_unread;
    }
    if let Some(title) = title_by_prompt(session, &batch) {
        let event = Event { at: now, change: Change::Session(session.id.clone(), SessionEvent::TitleChanged(title)) };
        session.apply(&event);
        batch.events.push(event);
    }
    if mirrored {
        let unread = (unread && session.is_read).then_some(SessionEvent::ReadChanged(false));
        for due in unread.into_iter().chain(mirror::pending_events(session)) {
            let event = Event { at: now, change: Change::Session(session.id.clone(), due) };
            session.apply(&event);
            batch.events.push(event);
        }
    }
    Ok(batch)
}

/// Checks a command against the tip and returns its events.
pub fn validate(
    tip: ValidationContext<'_>,
    command: Command,
    who: &Actor,
    now: Timestamp,
) -> Result<EventBatch, Rejection> {
    let session = tip.session;
    if matches!(who, Actor::Client(_)) && command.is_host_only() {
        return Err(Rejection::NotPermitted);
    }
    let mut out = BatchBuilder { session, queue: tip.queue, now, events: Vec::new() };
    match command {
        Command::StartTurn { chat, turn, message, started_at } => {
            out.require_created()?;
            let state = out.chat(&chat)?;
            if turn.as_str().is_empty() {
                return Err(Rejection::EmptyId);
            }
            require_user_origin(who, &message)?;
            require_content(who, &message)?;
            if let Some(active) = &state.active {
                return Err(Rejection::TurnInProgress(active.id.clone()));
            }
            if session.has_turn(&turn) {
                return Err(Rejection::DuplicateTurn(turn));
            }
            out.require_model(tip.agent, message.model.as_ref())?;
            out.chat_event(&chat, ChatEvent::TurnStarted { turn, message, started_at, queued: None });
        }
        Command::CancelTurn { chat, turn } => {
            let (state, active) = out.running(&chat, &turn)?;
            out.end_turn(&chat, active, ChatEvent::TurnCancelled { turn, duration: None });
            out.start_queued(&chat, state);
        }
        Command::StopTurn { chat, turn, error } => {
            let (_, active) = out.running(&chat, &turn)?;
            out.end_turn(&chat, active, ChatEvent::TurnFailed { turn, duration: None, error });
        }
        Command::StartQueued { chat } => {
            let state = out.chat(&chat)?;
            if state.active.is_none() {
                out.start_queued(&chat, state);
            }
        }
        Command::TakeSteering { chat } => {
            if let Some(steering) = &out.chat(&chat)?.steering {
                out.chat_event(&chat, ChatEvent::SteeringRemoved(steering.id.clone()));
            }
        }
        Command::ResolvePermission { chat, turn, question, verdict } => {
            let (_, active) = out.running(&chat, &turn)?;
            let (call, pending) = pending_permission(active, &question)?;
            if let Some(option) = &verdict.option {
                match pending.options.iter().find(|known| known.id == *option) {
                    Some(known) if known.allows == (verdict.decision == Decision::Approved) => {}
                    Some(_) | None => return Err(Rejection::UnknownOption(option.clone())),
                }
            }
            if verdict.edited_input.is_some() && !pending.editable {
                return Err(Rejection::ToolCall { call: call.id.clone(), problem: "does not accept an edited input" });
            }
            let remembered = remembered(session, pending, &verdict);
            let (call, request) = (call.id.clone(), pending.id.clone());
            out.chat_event(&chat, ChatEvent::ToolCallConfirmed { turn, call, request, verdict });
            if let Some(details) = remembered {
                out.session_event(SessionEvent::DetailsChanged(Box::new(details)));
            }
        }
        Command::ConfirmResult { chat, turn, call, decision } => {
            let (_, active) = out.running(&chat, &turn)?;
            let status = active.tool_call(&call).map(|call| &call.status);
            let Some(ToolCallStatus::PendingResultConfirmation(result)) = status else {
                return Err(Rejection::ToolCall { call, problem: "has no pending result" });
            };
            let result = result.clone();
            out.chat_event(&chat, ChatEvent::ToolCallResultConfirmed { turn, call, result, decision });
        }
        Command::CompleteClientCall { chat, turn, call, result, ask } => {
            out.require_running_client_call(&chat, &turn, &call, who)?;
            let run = out.running(&chat, &turn)?.1.run_of(&call, who, now);
            let event = match ask {
                true => ChatEvent::ToolCallResultGated { turn, call, result, run },
                false => ChatEvent::ToolCallCompleted { turn, call, result, run },
            };
            out.chat_event(&chat, event);
        }
        Command::ReportClientOutput { chat, turn, call, output } => {
            out.require_running_client_call(&chat, &turn, &call, who)?;
            out.chat_event(&chat, ChatEvent::ToolCallOutput { turn, call, output });
        }
        Command::AnswerInput { chat, request, outcome, answers } => {
            let (turn, input) = out.open_input(&chat, &request)?;
            if let Some(unknown) = answers.keys().find(|id| !input.questions.iter().any(|known| known.id == **id)) {
                return Err(Rejection::UnknownQuestion(unknown.clone()));
            }
            if outcome == InputOutcome::Accepted
                && let Some(question) = input.unanswered(&answers)
            {
                return Err(Rejection::Unanswered(question.id.clone()));
            }
            if outcome == InputOutcome::Accepted
                && let Some((question, why)) = input.answer_error(&answers)
            {
                return Err(Rejection::InvalidAnswer { question: question.id.clone(), why });
            }
            let turn = turn.clone();
            out.chat_event(&chat, ChatEvent::InputAnswered { turn, request, outcome, answers });
        }
        Command::DraftAnswer { chat, request, question, answer } => {
            let (turn, input) = out.open_input(&chat, &request)?;
            let Some(asked) = input.questions.iter().find(|known| known.id == question) else {
                return Err(Rejection::UnknownQuestion(question));
            };
            // A draft may be any text on the way to an answer.
            if let Some(Answer::Submitted(value)) = &answer
                && let Some(why) = asked.answer_error(value)
            {
                return Err(Rejection::InvalidAnswer { question, why });
            }
            if input.answers.get(&question) != answer.as_ref() {
                let turn = turn.clone();
                out.chat_event(&chat, ChatEvent::InputAnswerChanged { turn, request, question, answer });
            }
        }
        Command::ChangeModel(model) => {
            out.require_created()?;
            out.require_model(tip.agent, Some(&model))?;
            out.session_event(SessionEvent::ModelChanged(model));
        }
        Command::ChangeTitle(title) => {
            let given = SessionTitle::given(&title);
            // A client shows the text that it sent until it hears otherwise: it is told where that is not the title.
            if given != session.session_title() || title != given.text() {
                out.session_event(SessionEvent::TitleChanged(given));
            }
        }
        Command::SetRead(read) if read == session.is_read => {}
        Command::SetRead(read) => out.session_event(SessionEvent::ReadChanged(read)),
        Command::SetArchived(archived) if archived == session.is_archived => {}
        Command::SetArchived(archived) => out.session_event(SessionEvent::ArchivedChanged(archived)),
        Command::SetChatRead { chat, read } => {
            if out.chat(&chat)?.is_read != read {
                out.chat_event(&chat, ChatEvent::ChatReadChanged(read));
            }
        }
        Command::SetChatArchived { chat, archived } => {
            if out.chat(&chat)?.is_archived != archived {
                out.chat_event(&chat, ChatEvent::ChatArchivedChanged(archived));
            }
        }
        Command::RenameChat { chat, title } => {
            let state = out.chat(&chat)?;
            if session.main_chat().is_some_and(|main| main.id == chat) {
                return validate(tip, Command::ChangeTitle(title), who, now);
            }
            let given = normalized_title(&title).unwrap_or_default();
            if state.title != given || title != given {
                out.chat_event(&chat, ChatEvent::ChatTitleChanged(given));
            }
        }
        Command::AddChat { chat, uri } => {
            out.require_chat_slot(&chat)?;
            let row = Chat { uri: Some(uri), ..Chat::new(chat, now) }.row();
            out.session_event(SessionEvent::ChatAdded(row));
        }
        Command::ForkChat { chat, uri, origin, turns, older } => {
            out.require_chat_slot(&chat)?;
            let new = Chat { uri: Some(uri), origin: Some(origin.clone()), ..Chat::new(chat.clone(), now) };
            out.session_event(SessionEvent::ChatAdded(new.row()));
            out.chat_event(&chat, ChatEvent::TurnsInherited { origin, turns, older });
        }
        Command::RemoveChat(chat) => {
            let state = out.chat(&chat)?;
            if session.chats.first().is_some_and(|main| main.id == chat) {
                return Err(Rejection::MainChat);
            }
            if let Some(active) = &state.active {
                return Err(Rejection::TurnInProgress(active.id.clone()));
            }
            out.session_event(SessionEvent::ChatRemoved(chat));
        }
        Command::MoveLeaf { chat, turns, older, entries, settings } => {
            out.require_idle(&chat)?;
            let state = out.chat(&chat)?;
            let is_there = state.turns == turns && state.has_older_turns == (older && !turns.is_empty());
            let RestoredSettings { model, values } = settings;
            // A model that the agent does not have any more is not restored.
            let has_model = |model: &ModelId| tip.agent.is_none_or(|agent| agent.has_model(model));
            let model = model.map(RestoredModel::for_session);
            let model = model.filter(|model| session.model != *model && model.as_ref().is_none_or(has_model));
            let config = session.config.as_ref().filter(|config| config.changed(&values, false) != config.values);
            let are_kept = model.is_none() && config.is_none();
            if is_there && entries.is_empty() && state.agent_session.is_none() && are_kept {
                return Ok(EventBatch::default());
            }
            out.chat_event(&chat, ChatEvent::TurnsCleared);
            out.chat_event(&chat, ChatEvent::BranchTurnsLoaded { turns, older });
            // The agent remembers a different conversation.
            if out.chat(&chat)?.agent_session.is_some() {
                out.chat_event(&chat, ChatEvent::AgentSessionChanged(None));
            }
            entries.into_iter().for_each(|entry| out.chat_event(&chat, ChatEvent::EntryAdded(entry)));
            if let Some(model) = model {
                out.session_event(model.map_or(SessionEvent::ModelReset, SessionEvent::ModelChanged));
            }
            if config.is_some() {
                out.session_event(SessionEvent::ConfigChanged { values, replace: false });
            }
        }
        Command::AddEntries { chat, entries, resets_agent } => {
            if resets_agent && out.chat(&chat)?.agent_session.is_some() {
                out.chat_event(&chat, ChatEvent::AgentSessionChanged(None));
            }
            out.chat(&chat)?;
            entries.into_iter().for_each(|entry| out.chat_event(&chat, ChatEvent::EntryAdded(entry)));
        }
        Command::SetActiveClient(client) => {
            require_own_client(who, &client.client)?;
            match session.active_clients.iter().find(|mine| mine.client == client.client) {
                Some(mine) if *mine == client => {}
                None if session.active_clients.len() >= MAX_ACTIVE_CLIENTS => return Err(Rejection::TooManyClients),
                Some(_) | None => out.session_event(SessionEvent::ActiveClientSet(client)),
            }
        }
        Command::RemoveActiveClient(client) => {
            require_own_client(who, &client)?;
            if session.active_clients.iter().any(|mine| mine.client == client) {
                out.session_event(SessionEvent::ActiveClientRemoved(client));
            }
        }
        Command::ChangeConfig { values, replace } => {
            let config = session.config.as_ref().ok_or(Rejection::NoConfig)?;
            if config.changed(&values, replace) != config.values {
                out.session_event(SessionEvent::ConfigChanged { values, replace });
            }
        }
        Command::ChangePermissions(change) => {
            let details = change.apply(&session.details).ok_or(Rejection::TooManyRules)?;
            if details != session.details {
                out.session_event(SessionEvent::DetailsChanged(Box::new(details)));
            }
        }
        Command::SetWorkingDirectory(directory) => {
            out.require_created()?;
            for chat in &session.chats {
                out.require_idle(&chat.id)?;
            }
            if session.lifecycle == Lifecycle::Creating {
                return Err(Rejection::BeingCreated);
            }
            let previous = session.working_directories.first().cloned();
            if previous.as_ref() == Some(&directory) {
                return Ok(EventBatch::default());
            }
            out.session_event(SessionEvent::WorkingDirectoryChanged { previous, directory });
            // Agents keep their conversations by folder: the next turn begins a new one.
            for chat in session.chats.iter().filter(|chat| chat.agent_session.is_some()) {
                out.chat_event(&chat.id, ChatEvent::AgentSessionChanged(None));
            }
        }
        Command::SetSteering { chat, message } => {
            out.require_created()?;
            let state = out.chat(&chat)?;
            if message.id.as_str().is_empty() {
                return Err(Rejection::EmptyId);
            }
            require_user_origin(who, &message.message)?;
            require_content(who, &message.message)?;
            out.require_model(tip.agent, message.message.model.as_ref())?;
            if state.steering.as_ref() == Some(&message) {
                return Ok(EventBatch::default());
            }
            out.chat_event(&chat, ChatEvent::SteeringSet(message.clone()));
            // Without a running turn to steer, the message becomes a turn.
            if state.active.is_none() {
                out.chat_event(&chat, ChatEvent::SteeringRemoved(message.id.clone()));
                out.start_message(&chat, &message);
            }
        }
        Command::RemoveSteering { chat, id } => {
            if out.chat(&chat)?.steering.as_ref().is_none_or(|steering| steering.id != id) {
                return Err(Rejection::UnknownPending(id));
            }
            out.chat_event(&chat, ChatEvent::SteeringRemoved(id));
        }
        Command::Enqueue { chat, message } => {
            out.require_created()?;
            let state = out.chat(&chat)?;
            if message.id.as_str().is_empty() {
                return Err(Rejection::EmptyId);
            }
            require_user_origin(who, &message.message)?;
            require_content(who, &message.message)?;
            if state.queued.len() >= MAX_QUEUED && !state.queued.iter().any(|queued| queued.id == message.id) {
                return Err(Rejection::QueueFull);
            }
            out.require_model(tip.agent, message.message.model.as_ref())?;
            if state.queued.contains(&message) {
                return Ok(EventBatch::default());
            }
            out.chat_event(&chat, ChatEvent::QueuedSet(message.clone()));
            // It becomes a turn at once if nothing runs and nothing is queued before it.
            if state.active.is_none() && state.steering.is_none() && state.queued.is_empty() {
                out.chat_event(&chat, ChatEvent::QueuedRemoved(message.id.clone()));
                out.start_message(&chat, &message);
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
            // Messages that the order does not name come last, so only a prefix can be in order already.
            if !state.queued.iter().map(|queued| &queued.id).take(order.len()).eq(order.iter()) {
                out.chat_event(&chat, ChatEvent::QueueReordered(order));
            }
        }
        Command::SetDraft { chat, draft } => {
            if let Some(draft) = &draft {
                require_user_origin(who, draft)?;
            }
            if out.chat(&chat)?.draft != draft {
                out.chat_event(&chat, ChatEvent::DraftChanged(draft));
            }
        }
        Command::Report { chat, event } => {
            let (state, active) = match (event.turn(), &event) {
                (Some(turn), _) => out.running(&chat, turn)?,
                // Events that concern the chat, whether or not a turn runs.
                (None, ChatEvent::ActivityChanged(activity)) => {
                    if out.chat(&chat)?.activity != *activity {
                        out.chat_event(&chat, event);
                    }
                    return Ok(EventBatch { events: out.events });
                }
                (None, ChatEvent::AgentSessionChanged(name)) => {
                    if out.chat(&chat)?.agent_session != *name {
                        out.chat_event(&chat, event);
                    }
                    return Ok(EventBatch { events: out.events });
                }
                (None, _) => return Err(Rejection::NotPermitted),
            };
            check_report(active, &event)?;
            let event = completed(active, event, who, now);
            if event.ends_turn() {
                out.end_turn(&chat, active, event);
                out.start_queued(&chat, state);
            } else {
                out.chat_event(&chat, event);
            }
        }
        Command::ReportSession(event) => {
            match &event {
                SessionEvent::TitleChanged(title) if *who == Actor::Agent && !takes_agent_title(session, title) => {
                    return Ok(EventBatch::default());
                }
                // A failed creation has ended: clients keep its error.
                SessionEvent::Ready => out.require_created()?,
                // These follow from the chats and are never reported.
                SessionEvent::ChatRowChanged(_)
                | SessionEvent::InputNeededSet(_)
                | SessionEvent::InputNeededRemoved { .. }
                // It comes with a move of the leaf.
                | SessionEvent::ModelReset
                // Commands of their own check whether chats may come and go, and whether the folder may change.
                | SessionEvent::ChatAdded(_)
                | SessionEvent::ChatRemoved(_)
                | SessionEvent::WorkingDirectoryChanged { .. } => return Err(Rejection::NotPermitted),
                SessionEvent::Created(_)
                | SessionEvent::CreationFailed(_)
                | SessionEvent::Listed
                | SessionEvent::Removed
                | SessionEvent::TitleChanged(_)
                | SessionEvent::ModelChanged(_)
                | SessionEvent::ReadChanged(_)
                | SessionEvent::ArchivedChanged(_)
                | SessionEvent::ActiveClientSet(_)
                | SessionEvent::ActiveClientRemoved(_)
                | SessionEvent::ConfigChanged { .. }
                | SessionEvent::DetailsChanged(_)
                | SessionEvent::CheckoutChanged(_)
                | SessionEvent::Moved(_) => {}
            }
            out.session_event(event);
        }
    }
    Ok(EventBatch { events: out.events })
}

/// Decides if an agent's title replaces the current one.
///
/// A title that a person gave stays. An agent whose conversation began with a retelling of earlier turns, as after a
/// compaction, names it after the words of that retelling: such a title replaces none.
fn takes_agent_title(session: &Session, title: &SessionTitle) -> bool {
    let is_retold = session.main_chat().is_some_and(|main| main.is_agent_retold);
    let is_replaceable = match session.title_source {
        TitleSource::None => true,
        TitleSource::Prompt | TitleSource::Agent => !is_retold,
        TitleSource::Person => false,
    };
    is_replaceable && !title.is_none() && title.text() != session.title
}

/// The title from a session's first turn, if it has none yet.
fn title_by_prompt(session: &Session, batch: &EventBatch) -> Option<SessionTitle> {
    let main = session.main_chat().filter(|_| session.title_source == TitleSource::None)?;
    let message = batch.events.iter().find_map(|event| match &event.change {
        Change::Chat(_, chat, ChatEvent::TurnStarted { message, .. }) if *chat == main.id => Some(message),
        _ => None,
    })?;
    let first = main.turns.first().filter(|_| !main.has_older_turns).map_or(message, |turn| &turn.message);
    let said = Some(first).filter(|message| message.origin == MessageOrigin::User);
    Some(SessionTitle::new(&title_of_prompt(&said?.text)?, TitleSource::Prompt)).filter(|title| !title.is_none())
}

/// Requires that a client's message comes from a person, whichever way it is sent.
fn require_user_origin(who: &Actor, message: &Message) -> Result<(), Rejection> {
    match who {
        Actor::Client(_) if message.origin != MessageOrigin::User => Err(Rejection::OnlyUserMessages),
        Actor::Client(_) | Actor::Agent | Actor::Host => Ok(()),
    }
}

/// Requires a text or an attachment in a client's message: an agent cannot handle an empty prompt.
fn require_content(who: &Actor, message: &Message) -> Result<(), Rejection> {
    match who {
        Actor::Client(_) if message.is_empty() => Err(Rejection::EmptyMessage),
        Actor::Client(_) | Actor::Agent | Actor::Host => Ok(()),
    }
}

/// Requires that a client changes only its own entry.
fn require_own_client(who: &Actor, client: &ClientId) -> Result<(), Rejection> {
    match who {
        Actor::Client(who) if who != client => Err(Rejection::NotPermitted),
        Actor::Client(_) | Actor::Agent | Actor::Host => Ok(()),
    }
}

/// The session's details with an answer that holds for later requests, if this is one.
fn remembered(session: &Session, request: &PermissionRequest, verdict: &Verdict) -> Option<SessionDetails> {
    let option = request.options.iter().find(|option| Some(&option.id) == verdict.option.as_ref())?;
    let about = RememberedPermission::subject(request).filter(|about| about.len() <= MAX_REMEMBERED_SUBJECT_BYTES)?;
    if !option.lasting || verdict.by != ConfirmationReason::Person {
        return None;
    }
    let mut details = session.details.clone();
    details.remembered.retain(|known| !known.answers(request));
    if details.remembered.len() >= MAX_REMEMBERED_PERMISSIONS {
        details.remembered.remove(0);
    }
    details.remembered.push(RememberedPermission {
        kind: request.kind,
        about: about.to_owned(),
        option: option.clone(),
    });
    Some(details)
}

/// The call that a question is about, and the question.
fn pending_permission<'a>(
    active: &'a ActiveTurn,
    question: &PermissionTarget,
) -> Result<(&'a ToolCall, &'a PermissionRequest), Rejection> {
    let call = match question {
        PermissionTarget::Request(request) => match active.call_waiting_for(request) {
            Some(call) => call,
            None if active.knows_request(request) => return Err(Rejection::AlreadyAnswered(request.clone())),
            None => return Err(Rejection::UnknownRequest(request.clone())),
        },
        PermissionTarget::OfToolCall(call) => {
            active.tool_call(call).ok_or_else(|| Rejection::ToolCall { call: call.clone(), problem: "is unknown" })?
        }
    };
    match &call.status {
        ToolCallStatus::PendingConfirmation(pending) => Ok((call, pending)),
        _ => Err(Rejection::ToolCall { call: call.id.clone(), problem: "does not wait for an answer" }),
    }
}

/// Checks that an agent's report fits the running turn. An agent may be late or wrong; the state may not.
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
                Part::Content(_) | Part::Error(_) | Part::Plan(_) | Part::Notice(_) => false,
                // These have events of their own, which carry more data.
                Part::ToolCall(_) | Part::InputRequest(_) => return Err(Rejection::NotPermitted),
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
        ChatEvent::ToolCallInputDelta { call, .. } => {
            call_in(call, |status| *status == ToolCallStatus::Streaming, "has its input already")
        }
        ChatEvent::ToolCallReady { call, .. } => {
            call_in(&call.id, |status| *status == ToolCallStatus::Streaming, "has its input already")?;
            require_same_name(active, call)
        }
        ChatEvent::ToolCallRestated { restated, .. } => {
            call_in(&restated.call.id, |status| *status == ToolCallStatus::Running, "is not running")?;
            require_same_name(active, &restated.call)
        }
        ChatEvent::ToolCallGated { gated, .. } => {
            if active.knows_request(&gated.request.id) {
                return Err(Rejection::AlreadyAnswered(gated.request.id.clone()));
            }
            call_in(
                &gated.call,
                |status| matches!(status, ToolCallStatus::Ready | ToolCallStatus::Running),
                "cannot ask for permission now",
            )
        }
        ChatEvent::ToolCallCompleted { call, .. }
        | ChatEvent::ToolCallResultGated { call, .. }
        | ChatEvent::ToolCallOutput { call, .. } => {
            call_in(call, |status| *status == ToolCallStatus::Running, "is not running")
        }
        ChatEvent::ToolCallResultConfirmed { call, .. } => call_in(
            call,
            |status| matches!(status, ToolCallStatus::PendingResultConfirmation(_)),
            "has no pending result",
        ),
        ChatEvent::InputRequested { request, .. } => {
            if active.knows_request(&request.id) {
                Err(Rejection::DuplicatePart)
            } else {
                Ok(())
            }
        }
        ChatEvent::UsageReported { .. }
        | ChatEvent::TurnCompleted { .. }
        | ChatEvent::TurnFailed { .. }
        | ChatEvent::TurnCancelled { .. } => Ok(()),
        // Done by a person or the queue, with commands of their own.
        ChatEvent::TurnStarted { .. }
        | ChatEvent::ToolCallConfirmed { .. }
        | ChatEvent::InputAnswerChanged { .. }
        | ChatEvent::InputAnswered { .. }
        | ChatEvent::ChatReadChanged(_)
        | ChatEvent::ChatArchivedChanged(_)
        | ChatEvent::ChatTitleChanged(_)
        | ChatEvent::SteeringSet(_)
        | ChatEvent::SteeringRemoved(_)
        | ChatEvent::QueuedSet(_)
        | ChatEvent::QueuedRemoved(_)
        | ChatEvent::QueueReordered(_)
        | ChatEvent::DraftChanged(_)
        | ChatEvent::ActivityChanged(_)
        | ChatEvent::AgentSessionChanged(_)
        | ChatEvent::TurnsCleared
        | ChatEvent::BranchTurnsLoaded { .. }
        | ChatEvent::TurnsInherited { .. }
        | ChatEvent::EntryAdded(_) => Err(Rejection::NotPermitted),
    }
}

/// Requires that a repeated call has the name that it started with.
fn require_same_name(active: &ActiveTurn, call: &NewToolCall) -> Result<(), Rejection> {
    match active.tool_call(&call.id) {
        Some(begun) if !call.is(begun) => {
            Err(Rejection::ToolCall { call: call.id.clone(), problem: "has changed its name" })
        }
        Some(_) | None => Ok(()),
    }
}

/// An event with what is known already said again, so that a dialect can tell it without looking anything up.
fn completed(active: &ActiveTurn, mut event: ChatEvent, who: &Actor, now: Timestamp) -> ChatEvent {
    match &mut event {
        ChatEvent::ToolCallCompleted { call, run, .. } | ChatEvent::ToolCallResultGated { call, run, .. } => {
            *run = active.run_of(call, who, now);
        }
        ChatEvent::ToolCallGated { gated, .. } => {
            if let Some(call) = active.tool_call(&gated.call) {
                gated.invocation_message.get_or_insert_with(|| call.invocation_message.clone());
                gated.input = gated.input.take().or_else(|| call.input.clone());
            }
        }
        // The host decides why a call may run, whatever its agent reports.
        ChatEvent::ToolCallRestated { restated, .. } => {
            if let Some(confirmed) = active.tool_call(&restated.call.id).and_then(|call| call.confirmed.as_ref()) {
                restated.confirmed = confirmed.by;
            }
        }
        // The confirmed result is the pending one.
        ChatEvent::ToolCallResultConfirmed { call, result, .. } => {
            let status = active.tool_call(call).map(|call| &call.status);
            if let Some(ToolCallStatus::PendingResultConfirmation(waiting)) = status {
                result.clone_from(waiting);
            }
        }
        _ => {}
    }
    event
}

impl ActiveTurn {
    /// How long a call ran that ends now. A call that the host itself ends was cut off, perhaps long ago.
    fn run_of(&self, call: &ToolCallId, who: &Actor, now: Timestamp) -> Option<Box<CallRun>> {
        if *who == Actor::Host {
            return None;
        }
        self.tool_call(call)?.run_until(now).map(Box::new)
    }
}

/// A batch in the making.
struct BatchBuilder<'a> {
    session: &'a Session,
    queue: QueuePolicy,
    now: Timestamp,
    events: Vec<Event>,
}

impl<'a> BatchBuilder<'a> {
    fn chat(&self, id: &ChatId) -> Result<&'a Chat, Rejection> {
        self.session.chat(id).ok_or_else(|| Rejection::UnknownChat(id.clone()))
    }

    /// The chat in which this turn runs, and the turn.
    fn running(&self, chat: &ChatId, turn: &TurnId) -> Result<(&'a Chat, &'a ActiveTurn), Rejection> {
        let chat = self.chat(chat)?;
        let active = chat.active_turn(turn).ok_or_else(|| Rejection::TurnNotActive(turn.clone()))?;
        Ok((chat, active))
    }

    /// Requires that no turn runs: entries need a position in the log, which a running turn does not have yet.
    fn require_idle(&self, chat: &ChatId) -> Result<(), Rejection> {
        match &self.chat(chat)?.active {
            Some(active) => Err(Rejection::TurnInProgress(active.id.clone())),
            None => Ok(()),
        }
    }

    fn require_chat_slot(&self, chat: &ChatId) -> Result<(), Rejection> {
        self.require_created()?;
        if chat.as_str().is_empty() {
            return Err(Rejection::EmptyId);
        }
        if self.session.chat(chat).is_some() {
            return Err(Rejection::DuplicateChat(chat.clone()));
        }
        if self.session.chats.len() >= MAX_CHATS {
            return Err(Rejection::TooManyChats);
        }
        Ok(())
    }

    fn require_created(&self) -> Result<(), Rejection> {
        match &self.session.lifecycle {
            Lifecycle::Creating | Lifecycle::Ready => Ok(()),
            Lifecycle::CreationFailed(error) => Err(Rejection::CreationFailed(error.message.clone())),
        }
    }

    fn require_model(&self, agent: Option<&AgentInfo>, model: Option<&ModelId>) -> Result<(), Rejection> {
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

    /// Requires a running call that this client has to run.
    fn require_running_client_call(
        &self,
        chat: &ChatId,
        turn: &TurnId,
        call: &ToolCallId,
        who: &Actor,
    ) -> Result<(), Rejection> {
        let problem = |problem| Err(Rejection::ToolCall { call: call.clone(), problem });
        let (_, active) = self.running(chat, turn)?;
        match (active.tool_call(call), who) {
            (None, _) => problem("is unknown"),
            (Some(ToolCall { client: Some(owner), .. }), Actor::Client(client)) if owner != client => {
                problem("belongs to another client")
            }
            (Some(ToolCall { client: None, .. }), Actor::Client(_)) => problem("is run by the agent"),
            (Some(call), _) if call.status != ToolCallStatus::Running => problem("is not running"),
            (Some(_), _) => Ok(()),
        }
    }

    /// The open request of this id, and its turn.
    fn open_input(&self, chat: &ChatId, request: &RequestId) -> Result<(&'a TurnId, &'a InputRequest), Rejection> {
        let active = self.chat(chat)?.active.as_deref();
        match active.and_then(|active| Some((&active.id, active.input_request(request)?))) {
            Some((_, input)) if input.outcome.is_some() => Err(Rejection::AlreadyAnswered(request.clone())),
            Some(found) => Ok(found),
            None => Err(Rejection::UnknownRequest(request.clone())),
        }
    }

    /// Ends the turn and records its duration.
    fn end_turn(&mut self, chat: &ChatId, active: &ActiveTurn, mut end: ChatEvent) {
        if let ChatEvent::TurnCompleted { duration, .. }
        | ChatEvent::TurnCancelled { duration, .. }
        | ChatEvent::TurnFailed { duration, .. } = &mut end
        {
            *duration = Some(active.duration_at(self.now));
        }
        self.chat_event(chat, end);
        if self.session.chat(chat).is_some_and(|chat| chat.activity.is_some()) {
            self.chat_event(chat, ChatEvent::ActivityChanged(None));
        }
    }

    /// Starts a turn with the oldest waiting message, if there is an agent. A steering message that came too late for
    /// its turn goes first.
    fn start_queued(&mut self, id: &ChatId, chat: &Chat) {
        if self.require_created().is_err() || self.queue == QueuePolicy::Hold {
            return;
        }
        if let Some(steering) = &chat.steering {
            self.chat_event(id, ChatEvent::SteeringRemoved(steering.id.clone()));
            self.start_message(id, steering);
        } else if let Some(next) = chat.queued.first() {
            self.chat_event(id, ChatEvent::QueuedRemoved(next.id.clone()));
            self.start_message(id, next);
        }
    }

    fn start_message(&mut self, id: &ChatId, next: &PendingMessage) {
        // A turn needs an id of its own, and nothing here draws one: it takes the message's, with a suffix if a turn of
        // that id exists.
        let mut turn = TurnId::from(next.id.as_str());
        let mut attempt = 1;
        while self.session.has_turn(&turn) {
            attempt += 1;
            turn = TurnId::from(format!("{}-{attempt}", next.id));
        }
        let (message, queued) = (next.message.clone(), Some(next.id.clone()));
        self.chat_event(id, ChatEvent::TurnStarted { turn, message, started_at: None, queued });
    }
}
