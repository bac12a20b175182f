//! Queued and steering messages.

use super::super::ReduceOutcome;
use super::super::edit::{remove_some, reorder, set, upsert_some};
use crate::ahp::action::{ChatPendingMessageRemoved, ChatPendingMessageSet, ChatQueuedMessagesReordered};
use crate::ahp::state::{ChatState, PendingMessage, PendingMessageKind};

pub(super) fn set_message(state: &mut ChatState, action: &ChatPendingMessageSet) -> ReduceOutcome {
    let message = PendingMessage { id: action.id.clone(), message: action.message.clone() };
    match action.kind {
        PendingMessageKind::Steering => set(&mut state.steering_message, &message),
        PendingMessageKind::Queued => upsert_some(&mut state.queued_messages, &message, |known| known.id == message.id),
    }
}

pub(super) fn removed(state: &mut ChatState, action: &ChatPendingMessageRemoved) -> ReduceOutcome {
    match action.kind {
        PendingMessageKind::Steering => steering_removed(state, &action.id),
        PendingMessageKind::Queued => queued_removed(state, &action.id),
    }
}

/// Removes the message with which a turn began, of either kind.
pub(super) fn used_up(state: &mut ChatState, id: &str) {
    steering_removed(state, id);
    queued_removed(state, id);
}

fn steering_removed(state: &mut ChatState, id: &str) -> ReduceOutcome {
    ReduceOutcome::of(state.steering_message.take_if(|message| message.id == id).is_some())
}

/// Removes a queued message. An empty queue is absent.
fn queued_removed(state: &mut ChatState, id: &str) -> ReduceOutcome {
    let outcome = remove_some(&mut state.queued_messages, |message| message.id == id);
    state.queued_messages.take_if(|queue| outcome.is_changed() && queue.is_empty());
    outcome
}

pub(super) fn reordered(state: &mut ChatState, action: &ChatQueuedMessagesReordered) -> ReduceOutcome {
    let queue = state.queued_messages.as_deref_mut().unwrap_or_default();
    reorder(queue, &action.order, |message| &message.id)
}
