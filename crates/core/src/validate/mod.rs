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
    if matches!(who, Actor::Client(_)) && command.is_host_only() {
        return Err(Rejection::NotPermitted);
    }
    let mut out = BatchBuilder::new(tip, who, now);
    match command {
        Command::StartTurn { chat, turn, message, started_at } => out.start_turn(&chat, turn, message, started_at),
        Command::CancelTurn { chat, turn } => out.cancel_turn(&chat, turn),
        Command::StopTurn { chat, turn, error } => out.stop_turn(&chat, turn, error),
        Command::StartQueued { chat } => out.start_oldest_queued(&chat),
        Command::TakeSteering { chat } => out.take_steering(&chat),
        Command::ResolvePermission { chat, turn, question, verdict } => {
            out.resolve_permission(&chat, turn, &question, verdict)
        }
        Command::ConfirmResult { chat, turn, call, decision } => out.confirm_result(&chat, turn, call, decision),
        Command::CompleteClientCall { chat, turn, call, result, ask } => {
            out.complete_client_call(&chat, turn, call, result, ask)
        }
        Command::ReportClientOutput { chat, turn, call, output } => out.report_client_output(&chat, turn, call, output),
        Command::AnswerInput { chat, request, outcome, answers } => out.answer_input(&chat, request, outcome, answers),
        Command::DraftAnswer { chat, request, question, answer } => out.draft_answer(&chat, request, question, answer),
        Command::ChangeModel(model) => out.change_model(model),
        Command::ChangeTitle(title) => out.change_title(&title),
        Command::SetRead(read) => out.set_read(read),
        Command::SetArchived(archived) => out.set_archived(archived),
        Command::SetChatRead { chat, read } => out.set_chat_read(&chat, read),
        Command::SetChatArchived { chat, archived } => out.set_chat_archived(&chat, archived),
        Command::RenameChat { chat, title } => out.rename_chat(&chat, &title),
        Command::AddChat { chat, uri } => out.add_chat(chat, uri),
        Command::ForkChat { chat, uri, origin, turns, older } => out.fork_chat(chat, uri, origin, turns, older),
        Command::RemoveChat(chat) => out.remove_chat(chat),
        Command::MoveLeaf { chat, turns, older, entries, settings } => {
            out.move_leaf(&chat, turns, older, entries, settings)
        }
        Command::AddEntries { chat, entries, resets_agent } => out.add_entries(&chat, entries, resets_agent),
        Command::SetActiveClient(client) => out.set_active_client(client),
        Command::RemoveActiveClient(client) => out.remove_active_client(client),
        Command::ChangeConfig { values, replace } => out.change_config(values, replace),
        Command::ChangePermissions(change) => out.change_permissions(change),
        Command::SetWorkingDirectory(directory) => out.set_working_directory(directory),
        Command::SetSteering { chat, message } => out.set_steering(&chat, message),
        Command::RemoveSteering { chat, id } => out.remove_steering(&chat, id),
        Command::Enqueue { chat, message } => out.enqueue(&chat, message),
        Command::Dequeue { chat, id } => out.dequeue(&chat, id),
        Command::ReorderQueue { chat, order } => out.reorder_queue(&chat, order),
        Command::SetDraft { chat, draft } => out.set_draft(&chat, draft),
        Command::Report { chat, event } => out.report(&chat, event),
        Command::ReportSession(event) => out.report_session(event),
    }?;
    Ok(EventBatch { events: out.events })
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
