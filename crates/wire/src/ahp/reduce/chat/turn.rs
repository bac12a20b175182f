//! The start and the end of turns, and the finished turns.

use std::collections::HashSet;

use super::super::ReduceOutcome;
use super::super::edit::{assign, clear};
use super::super::time;
use super::{flag, pending, refresh_status, set_activity, tool_call};
use crate::ahp::action::{
    ChatError, ChatTruncated, ChatTurnCancelled, ChatTurnComplete, ChatTurnResume, ChatTurnStarted, ChatTurnsLoaded,
    ErrorPart,
};
use crate::ahp::state::{ActiveTurn, ChatState, ResponsePart, Turn, TurnState, status};

/// Starts a turn. A running or finished one is not started again, even if a client sent it twice.
pub(super) fn started(state: &mut ChatState, action: &ChatTurnStarted) -> ReduceOutcome {
    let is_active = state.active_turn.as_ref().is_some_and(|turn| turn.id == action.turn_id);
    if is_active || state.turns.iter().rev().any(|turn| turn.id == action.turn_id) {
        return ReduceOutcome::Unchanged;
    }
    state.active_turn = Some(ActiveTurn {
        id: action.turn_id.clone(),
        started_at: action.started_at.clone(),
        message: action.message.clone(),
        response_parts: Vec::new(),
        usage: None,
    });
    state.modified_at.clone_from(&action.started_at);
    refresh_status(state);
    flag(state, status::IS_READ, false);
    if let Some(id) = &action.queued_message_id {
        pending::used_up(state, id);
    }
    ReduceOutcome::Changed
}

pub(super) fn completed(state: &mut ChatState, action: &ChatTurnComplete) -> ReduceOutcome {
    ended(state, &action.turn_id, action.duration, TurnState::Complete, None)
}

pub(super) fn cancelled(state: &mut ChatState, action: &ChatTurnCancelled) -> ReduceOutcome {
    ended(state, &action.turn_id, action.duration, TurnState::Cancelled, None)
}

pub(super) fn failed(state: &mut ChatState, action: &ChatError) -> ReduceOutcome {
    let ErrorPart::Error(part) = &action.part;
    ended(state, &action.turn_id, action.duration, TurnState::Error, Some(ResponsePart::Error(part.clone())))
}

/// Moves the running turn to the finished ones, if it has this id. `last` is its final part.
fn ended(
    state: &mut ChatState,
    turn_id: &str,
    duration: i64,
    turn_state: TurnState,
    last: Option<ResponsePart>,
) -> ReduceOutcome {
    let Some(mut turn) = state.active_turn.take_if(|turn| turn.id == turn_id) else { return ReduceOutcome::Unchanged };
    turn.response_parts.iter_mut().for_each(tool_call::skip_unfinished);
    turn.response_parts.extend(last);

    let duration = duration.max(0);
    // The start time is a client's and may be invalid. The turn ends all the same.
    state.modified_at = time::later(&turn.started_at, duration).unwrap_or_else(|| turn.started_at.clone());
    state.turns.push(Turn {
        id: turn.id,
        started_at: Some(turn.started_at),
        duration: Some(duration),
        message: turn.message,
        response_parts: turn.response_parts,
        usage: turn.usage,
        state: turn_state,
    });
    set_activity(state, if turn_state == TurnState::Error { status::ERROR } else { status::IDLE });
    ReduceOutcome::Changed
}

/// Resumes the last turn, if it ended in a resumable error. The error stays among its parts.
pub(super) fn resumed(state: &mut ChatState, action: &ChatTurnResume) -> ReduceOutcome {
    if state.active_turn.is_some() {
        return ReduceOutcome::Unchanged;
    }
    let Some(turn) = state.turns.pop_if(|turn| turn.id == action.turn_id && is_resumable(turn)) else {
        return ReduceOutcome::Unchanged;
    };
    state.active_turn = Some(ActiveTurn {
        id: turn.id,
        started_at: turn.started_at.unwrap_or_else(|| state.modified_at.clone()),
        message: turn.message,
        response_parts: turn.response_parts,
        usage: turn.usage,
    });
    refresh_status(state);
    flag(state, status::IS_READ, false);
    ReduceOutcome::Changed
}

fn is_resumable(turn: &Turn) -> bool {
    turn.state == TurnState::Error
        && matches!(turn.response_parts.last(), Some(ResponsePart::Error(part)) if part.resumable == Some(true))
}

/// Inserts older turns before the others, and sets the cursor for still older ones.
pub(super) fn loaded(state: &mut ChatState, action: &ChatTurnsLoaded) -> ReduceOutcome {
    let known: HashSet<&str> = state.turns.iter().map(|turn| turn.id.as_str()).collect();
    let older: Vec<Turn> = action.turns.iter().filter(|turn| !known.contains(turn.id.as_str())).cloned().collect();
    let outcome = ReduceOutcome::of(!older.is_empty());
    state.turns.splice(..0, older);
    outcome | assign(&mut state.turns_next_cursor, &action.turns_next_cursor)
}

/// Removes the turns after `turn_id`, the running one included. Without a `turn_id` it removes everything, and no older
/// turns are left to load.
pub(super) fn truncated(state: &mut ChatState, action: &ChatTruncated) -> ReduceOutcome {
    let keep = match &action.turn_id {
        None => 0,
        Some(id) => match state.turns.iter().position(|turn| turn.id == *id) {
            Some(at) => at + 1,
            None => return ReduceOutcome::Unchanged,
        },
    };
    let mut outcome = ReduceOutcome::of(keep < state.turns.len());
    state.turns.truncate(keep);
    if action.turn_id.is_none() {
        outcome |= clear(&mut state.turns_next_cursor);
    }
    outcome | clear(&mut state.active_turn) | refresh_status(state)
}
