//! `validate`: the rules for commands. Everything that may be refused is refused here.
//!
//! An allowed command yields a batch of events. The first is the command's own echo; its consequences (the next queued
//! message becoming a turn, the session's catalogue) follow in the same batch.
//!
//! Each module has the rules of one noun.

mod batch;
mod chats;
mod inputs;
mod queue;
mod rejection;
mod reports;
mod settings;
mod tool_calls;
mod tree;
mod turns;

pub use rejection::*;

use self::batch::BatchBuilder;
use crate::command::*;
use crate::event::*;
use crate::ids::*;
use crate::mirror;
use crate::state::*;
use crate::title::*;
use crate::turn::*;

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
    command: impl Into<Command>,
    now: Timestamp,
) -> Result<EventBatch, Rejection> {
    advance_with(session, agent, QueuePolicy::Start, command.into(), now)
}

/// [`advance`] with a choice of what happens to queued messages when a turn ends.
pub fn advance_with(
    session: &mut Session,
    agent: Option<&AgentInfo>,
    queue: QueuePolicy,
    command: Command,
    now: Timestamp,
) -> Result<EventBatch, Rejection> {
    let mut batch = validate(ValidationContext { session, agent, queue }, command, now)?;
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
pub fn validate(tip: ValidationContext<'_>, command: Command, now: Timestamp) -> Result<EventBatch, Rejection> {
    let who = command.sender();
    let mut out = BatchBuilder::new(tip, &who, now);
    match command {
        Command::Client(_, command) => out.client(command),
        Command::Host(command) => out.host(command),
        Command::Agent(report) => out.report(report),
    }?;
    Ok(EventBatch { events: out.events })
}

impl BatchBuilder<'_> {
    fn client(&mut self, command: ClientCommand) -> Result<(), Rejection> {
        match command {
            ClientCommand::StartTurn { chat, turn, message, started_at } => {
                self.start_turn(&chat, turn, message, started_at)
            }
            ClientCommand::CancelTurn { chat, turn } => self.cancel_turn(&chat, turn),
            ClientCommand::ResolvePermission { chat, turn, question, verdict, answered_by } => {
                self.resolve_permission(&chat, turn, &question, verdict, answered_by)
            }
            ClientCommand::ConfirmResult { chat, turn, call, decision, answered_by } => {
                self.confirm_result(&chat, turn, call, decision, answered_by)
            }
            ClientCommand::CompleteClientCall { chat, turn, call, result, ask } => {
                self.complete_client_call(&chat, turn, call, result, ask)
            }
            ClientCommand::ReportClientOutput { chat, turn, call, output } => {
                self.report_client_output(&chat, turn, call, output)
            }
            ClientCommand::AnswerInput { chat, request, outcome, answers, answered_by } => {
                self.answer_input(&chat, request, outcome, answers, answered_by)
            }
            ClientCommand::DraftAnswer { chat, request, question, answer } => {
                self.draft_answer(&chat, request, question, answer)
            }
            ClientCommand::ChangeModel(model) => self.change_model(model),
            ClientCommand::ChangeTitle(title) => self.change_title(&title),
            ClientCommand::SetRead(read) => self.set_read(read),
            ClientCommand::SetArchived(archived) => self.set_archived(archived),
            ClientCommand::SetChatRead { chat, read } => self.set_chat_read(&chat, read),
            ClientCommand::SetChatArchived { chat, archived } => self.set_chat_archived(&chat, archived),
            ClientCommand::RenameChat { chat, title } => self.rename_chat(&chat, &title),
            ClientCommand::SetActiveClient(client) => self.set_active_client(client),
            ClientCommand::RemoveActiveClient(client) => self.remove_active_client(client),
            ClientCommand::ChangeConfig { values, replace } => self.change_config(values, replace),
            ClientCommand::ChangePermissions(change) => self.change_permissions(change),
            ClientCommand::SetWorkingDirectory(directory) => self.set_working_directory(directory),
            ClientCommand::SetSteering { chat, message } => self.set_steering(&chat, message),
            ClientCommand::RemoveSteering { chat, id } => self.remove_steering(&chat, id),
            ClientCommand::Enqueue { chat, message } => self.enqueue(&chat, message),
            ClientCommand::Dequeue { chat, id } => self.dequeue(&chat, id),
            ClientCommand::ReorderQueue { chat, order } => self.reorder_queue(&chat, order),
            ClientCommand::SetDraft { chat, draft } => self.set_draft(&chat, draft),
        }
    }

    fn host(&mut self, command: HostCommand) -> Result<(), Rejection> {
        match command {
            HostCommand::AsClient(command) => self.client(command),
            HostCommand::Report(report) => self.report(report),
            HostCommand::StopTurn { chat, turn, error } => self.stop_turn(&chat, turn, error),
            HostCommand::StartQueued { chat } => self.start_oldest_queued(&chat),
            HostCommand::TakeSteering { chat } => self.take_steering(&chat),
            HostCommand::AddChat { chat, uri } => self.add_chat(chat, uri),
            HostCommand::ForkChat { chat, uri, origin, turns, older } => {
                self.fork_chat(chat, uri, origin, turns, older)
            }
            HostCommand::RemoveChat(chat) => self.remove_chat(chat),
            HostCommand::MoveLeaf { chat, turns, older, entries, settings } => {
                self.move_leaf(&chat, turns, older, entries, settings)
            }
            HostCommand::AddEntries { chat, entries, resets_agent } => self.add_entries(&chat, entries, resets_agent),
        }
    }

    fn report(&mut self, report: EventReport) -> Result<(), Rejection> {
        match report {
            EventReport::Chat { chat, event } => self.report_chat(&chat, event),
            EventReport::Session(event) => self.report_session(event),
        }
    }
}

/// The title from a session's first turn, if it has none yet.
fn title_by_prompt(session: &Session, batch: &EventBatch) -> Option<SessionTitle> {
    let main = session.main_chat().filter(|_| session.title_source == TitleSource::None)?;
    let message = batch.events.iter().find_map(|event| match &event.change {
        Change::Chat(_, chat, ChatEvent::TurnStarted { message, .. }) if *chat == main.id => Some(message),
        _ => None,
    })?;
    let first = main.turns.first().filter(|_| !main.has_older_turns).map_or(message, |turn| &turn.message);
    let user_message = Some(first).filter(|message| message.origin == MessageOrigin::User);
    Some(SessionTitle::new(&title_of_prompt(&user_message?.text)?, TitleSource::Prompt))
        .filter(|title| !title.is_none())
}
