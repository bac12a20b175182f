//! The events of a host, as far as a person cares.

use grove_core::{
    Change, ChatEvent, ChatId, ChatStatus, InputNeeded, InputSubject, Session, SessionEvent, SessionId, Timestamp,
};
use grove_host::sequencer::PublishedState;
use grove_wire::ahp::uri::{SessionUris, Spelling};

use crate::notice::{Notice, NoticeKind};
use crate::planner::Happening;

/// The meaning of an event for a person, if it has one.
pub(crate) fn of_event(change: &Change, at: Timestamp, state: &PublishedState) -> Option<Happening> {
    match change {
        Change::Session(id, SessionEvent::InputNeededSet(needed)) => asked(state.state.sessions.get(id)?, needed, at),
        Change::Session(id, SessionEvent::InputNeededRemoved { chat, request }) => {
            Some(Happening::Answered { session: id.clone(), chat: chat.clone(), request: request.clone() })
        }
        Change::Session(id, SessionEvent::ReadChanged(true)) => Some(Happening::Read(id.clone())),
        Change::Session(id, SessionEvent::ArchivedChanged(true) | SessionEvent::Removed) => {
            Some(Happening::Removed(id.clone()))
        }
        Change::Session(id, SessionEvent::ChatRemoved(chat)) => {
            Some(Happening::Began { session: id.clone(), chat: chat.clone() })
        }
        Change::Chat(id, chat, event) => {
            let kind = match event {
                ChatEvent::TurnStarted { .. } => {
                    return Some(Happening::Began { session: id.clone(), chat: chat.clone() });
                }
                ChatEvent::TurnCompleted { .. } => NoticeKind::Finished,
                ChatEvent::TurnFailed { .. } => NoticeKind::Failed,
                // A person has stopped the turn, and knows it.
                _ => return None,
            };
            let session = state.state.sessions.get(id)?;
            Some(Happening::Ended(notice(session, chat, kind, None, at)))
        }
        _ => None,
    }
}

/// The turns that the end of the last host cut off: this host has ended them before anybody could listen.
pub(crate) fn cut_off(state: &PublishedState, started_at: Timestamp) -> Vec<Happening> {
    let is_cut_off = |chat: &grove_core::Chat| chat.status() == ChatStatus::Error && chat.touched_at >= started_at;
    let ended = |session: &Session| {
        let chats = session.chats.iter().filter(|chat| is_cut_off(chat));
        let ended =
            chats.map(|chat| Happening::Ended(notice(session, &chat.id, NoticeKind::Failed, None, chat.touched_at)));
        ended.collect::<Vec<_>>()
    };
    state.state.sessions.values().flat_map(ended).collect()
}

/// The requests that wait in all sessions.
pub(crate) fn waiting(state: &PublishedState, at: Timestamp) -> Vec<Happening> {
    let of_session = |session: &Session| {
        session.input_needed.iter().filter_map(|needed| asked(session, needed, at)).collect::<Vec<_>>()
    };
    state.state.sessions.values().flat_map(of_session).collect()
}

fn asked(session: &Session, needed: &InputNeeded, at: Timestamp) -> Option<Happening> {
    let text = match &needed.about {
        // The name alone: its input may contain anything.
        InputSubject::ToolConfirmation(call) => Some(call.display_name.clone()),
        InputSubject::Question(request) => {
            let question = request.questions.first().map(|question| question.message.clone());
            request.message.clone().or(question)
        }
        // A client runs it: nobody is asked.
        InputSubject::ClientExecution(_) => return None,
    };
    let notice = notice(session, &needed.chat, NoticeKind::Waiting, text, at);
    Some(Happening::Asked { request: needed.request.clone(), notice })
}

fn notice(session: &Session, chat: &ChatId, kind: NoticeKind, text: Option<String>, at: Timestamp) -> Notice {
    Notice {
        kind,
        session: session.id.clone(),
        uri: SessionUris::of(session).session(Spelling::Computed).to_owned(),
        chat: chat.clone(),
        title: session.title.clone(),
        text,
        at: at.0,
    }
}

/// Says whether a session counts as read.
pub(crate) fn is_read(state: &PublishedState, session: &SessionId) -> bool {
    state.state.sessions.get(session).is_some_and(|session| session.is_read)
}
