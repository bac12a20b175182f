//! Reads the persisted events again.

use std::ops::Deref;

use grove_core::{Session, Turn};

use super::ids;
use super::steps::{ProjectedTurn, StepPosition, steps};
use super::turn_events;
use crate::copilot::{Event, EventId};

/// The position of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPosition {
    /// The number of the turn; the running one comes after all finished ones.
    pub turn: usize,
    pub position: TurnPosition,
}

/// The position of an event in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnPosition {
    /// Before everything else.
    SessionStart,
    /// The user message, and that the agent accepted it.
    UserMessage,
    /// The number of the part.
    Part(usize),
    /// The turn's end.
    End,
}

/// The persisted events of a session in order: its start, those of the given turns (all finished ones, oldest first),
/// and those of the running turn.
pub fn history<'a, T>(session: &'a Session, turns: impl IntoIterator<Item = T> + 'a) -> impl Iterator<Item = Event> + 'a
where
    T: Deref<Target = Turn> + 'a,
{
    let mut last = ids::start_id(&session.id);
    let mut events_of = move |turn: ProjectedTurn<'_>| {
        let mut events = Vec::with_capacity(turn.parts.len() + 4);
        for step in steps(turn) {
            let event = turn_events::event(&session.id, turn, step, last.clone());
            last = event.id.clone();
            events.push(event);
        }
        events
    };
    let mut turns = turns.into_iter();
    let mut running = session.main_chat().and_then(|chat| chat.active.as_deref());
    let of_turns = std::iter::from_fn(move || match turns.next() {
        Some(turn) => Some(events_of(ProjectedTurn::of(&turn))),
        None => running.take().map(|active| events_of(ProjectedTurn::running(active))),
    });
    std::iter::once(turn_events::start(session)).chain(of_turns.flatten())
}

/// Finds the position of an event, among the same turns. `None` if there is no such event.
pub fn locate<T>(session: &Session, turns: impl IntoIterator<Item = T>, event: &str) -> Option<EventPosition>
where
    T: Deref<Target = Turn>,
{
    if *ids::start_id(&session.id) == *event {
        return Some(EventPosition { turn: 0, position: TurnPosition::SessionStart });
    }
    let mut count = 0;
    for turn in turns {
        if let Some(position) = position(session, ProjectedTurn::of(&turn), event) {
            return Some(EventPosition { turn: count, position });
        }
        count += 1;
    }
    let running = session.main_chat().and_then(|chat| chat.active.as_deref())?;
    position(session, ProjectedTurn::running(running), event).map(|position| EventPosition { turn: count, position })
}

fn position(session: &Session, turn: ProjectedTurn<'_>, event: &str) -> Option<TurnPosition> {
    let step = steps(turn).find(|step| *ids::step(&session.id, turn, *step) == *event)?;
    Some(match step.at {
        StepPosition::Beginning => TurnPosition::UserMessage,
        StepPosition::Part(part) => TurnPosition::Part(part),
        StepPosition::End => TurnPosition::End,
    })
}

/// The last persisted event of a session in its current state.
pub(super) fn last(session: &Session) -> EventId {
    let Some(chat) = session.main_chat() else { return ids::start_id(&session.id) };
    if let Some(active) = &chat.active {
        let turn = ProjectedTurn::running(active);
        if let Some(step) = steps(turn).last() {
            return ids::step(&session.id, turn, step);
        }
    }
    last_of(session, chat.turns.last().map(Deref::deref))
}

/// The last event of a finished turn, or the session's first.
pub(super) fn last_of(session: &Session, turn: Option<&Turn>) -> EventId {
    let last = turn
        .map(ProjectedTurn::of)
        .and_then(|turn| Some(ids::step(&session.id, turn, super::steps::of_end(turn).last()?)));
    last.unwrap_or_else(|| ids::start_id(&session.id))
}
