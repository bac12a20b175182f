//! Reads the persisted events again.

use std::ops::Deref;

use grove_core::{LogEntry, Session, Turn, TurnId};

use super::entries;
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
    /// Outside of turns: the number of the entry. The turn is the one that follows.
    Entry(usize),
    /// The user message, and that the agent accepted it.
    UserMessage,
    /// The number of the part.
    Part(usize),
    /// The turn's end.
    End,
}

/// The persisted events of a session in order: its start, those of the given turns (all finished ones, oldest first),
/// those of the running turn, and those of the log's entries outside of turns, in the log's order.
pub fn history<'a, T>(
    session: &'a Session,
    turns: impl IntoIterator<Item = T> + 'a,
    entries: &'a [LogEntry],
) -> impl Iterator<Item = Event> + 'a
where
    T: Deref<Target = Turn> + 'a,
{
    let mut last = ids::start_id(&session.id);
    let before = entry_events(session, entries, None, &mut last);
    let mut turns = turns.into_iter();
    let mut running = session.main_chat().and_then(|chat| chat.active.as_deref());
    let of_turns = std::iter::from_fn(move || match turns.next() {
        Some(turn) => {
            let mut events = step_events(session, ProjectedTurn::of(&turn), &mut last);
            events.extend(entry_events(session, entries, Some(&turn.id), &mut last));
            Some(events)
        }
        None => running.take().map(|active| step_events(session, ProjectedTurn::running(active), &mut last)),
    });
    std::iter::once(turn_events::start(session)).chain(before).chain(of_turns.flatten())
}

/// The events of a turn.
fn step_events(session: &Session, turn: ProjectedTurn<'_>, last: &mut EventId) -> Vec<Event> {
    let mut events = Vec::with_capacity(turn.parts.len() + 4);
    for step in steps(turn) {
        let event = turn_events::event(&session.id, turn, step, last.clone());
        last.clone_from(&event.id);
        events.push(event);
    }
    events
}

/// The events of the entries behind a turn, or before the first one.
fn entry_events(session: &Session, entries: &[LogEntry], after: Option<&TurnId>, last: &mut EventId) -> Vec<Event> {
    let mut events = Vec::new();
    for entry in entries.iter().filter(|entry| entry.after.as_ref() == after) {
        if let Some(event) = entries::event(&session.id, &entry.line, last.clone()) {
            last.clone_from(&event.id);
            events.push(event);
        }
    }
    events
}

/// Finds the position of an event, among the same turns and entries. `None` if there is no such event.
pub fn locate<T>(
    session: &Session,
    turns: impl IntoIterator<Item = T>,
    entries: &[LogEntry],
    event: &str,
) -> Option<EventPosition>
where
    T: Deref<Target = Turn>,
{
    if *ids::start_id(&session.id) == *event {
        return Some(EventPosition { turn: 0, position: TurnPosition::SessionStart });
    }
    let is_it = |entry: &LogEntry| entries::entry_event_id(&session.id, &entry.line).is_some_and(|id| *id == *event);
    let found = entries.iter().position(is_it);
    let follows = |turn: usize| Some(EventPosition { turn, position: TurnPosition::Entry(found?) });
    let after = found.map(|found| entries[found].after.as_ref());
    if after == Some(None) {
        return follows(0);
    }
    let mut count = 0;
    for turn in turns {
        if after == Some(Some(&turn.id)) {
            return follows(count + 1);
        }
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
pub(super) fn last(session: &Session, entries: &[LogEntry]) -> EventId {
    let Some(chat) = session.main_chat() else { return ids::start_id(&session.id) };
    if let Some(active) = &chat.active {
        let turn = ProjectedTurn::running(active);
        if let Some(step) = steps(turn).last() {
            return ids::step(&session.id, turn, step);
        }
    }
    let newest = chat.turns.last();
    let mut behind = entries.iter().rev().filter(|entry| entry.after.as_ref() == newest.map(|turn| &turn.id));
    let entry = behind.find_map(|entry| entries::entry_event_id(&session.id, &entry.line));
    entry.unwrap_or_else(|| last_of(session, newest.map(Deref::deref)))
}

/// The last event of a finished turn, or the session's first.
pub(super) fn last_of(session: &Session, turn: Option<&Turn>) -> EventId {
    let last = turn
        .map(ProjectedTurn::of)
        .and_then(|turn| Some(ids::step(&session.id, turn, super::steps::of_end(turn).last()?)));
    last.unwrap_or_else(|| ids::start_id(&session.id))
}
