//! A chat's reducer: the chat's own fields; submodules have the rest.

mod input;
mod pending;
mod tool_call;
mod turn;

use super::ReduceOutcome;
use super::edit::{append, assign, remove_some, set, upsert_some};
use crate::ahp::action::ChatAction;
use crate::ahp::state::{ActiveTurn, ChatState, ResponsePart, ToolCallState, status};

/// Applies an action to a chat.
pub fn chat(state: &mut ChatState, action: &ChatAction) -> ReduceOutcome {
    match action {
        ChatAction::Delta(action) => {
            let part = parts_from_end(state, &action.turn_id).find_map(|part| match part {
                ResponsePart::Markdown(part) if part.id == action.part_id => Some(part),
                _ => None,
            });
            part.map_or(ReduceOutcome::Unchanged, |part| append(&mut part.content, &action.content))
        }
        ChatAction::Reasoning(action) => {
            let part = parts_from_end(state, &action.turn_id).find_map(|part| match part {
                ResponsePart::Reasoning(part) if part.id == action.part_id => Some(part),
                _ => None,
            });
            part.map_or(ReduceOutcome::Unchanged, |part| append(&mut part.content, &action.content))
        }
        ChatAction::ResponsePart(action) => match (active(state, &action.turn_id), &action.part) {
            // An error always ends the turn, with `chat/error`.
            (Some(_), ResponsePart::Error(_)) | (None, _) => ReduceOutcome::Unchanged,
            (Some(turn), part) => {
                turn.response_parts.push(part.clone());
                ReduceOutcome::Changed
            }
        },
        ChatAction::Usage(action) => {
            active(state, &action.turn_id).map_or(ReduceOutcome::Unchanged, |turn| set(&mut turn.usage, &action.usage))
        }

        ChatAction::ToolCallStart(action) => tool_call::started(state, action),
        ChatAction::ToolCallDelta(action) => tool_call::streamed(state, action),
        ChatAction::ToolCallReady(action) => tool_call::ready(state, action),
        ChatAction::ToolCallConfirmed(action) => tool_call::confirmed(state, action),
        ChatAction::ToolCallComplete(action) => tool_call::completed(state, action),
        ChatAction::ToolCallResultConfirmed(action) => tool_call::result_confirmed(state, action),
        ChatAction::ToolCallContentChanged(action) => tool_call::content_changed(state, action),
        ChatAction::ToolCallAuthRequired(action) => tool_call::auth_required(state, action),
        ChatAction::ToolCallAuthResolved(action) => tool_call::auth_resolved(state, action),

        ChatAction::TurnStarted(action) => turn::started(state, action),
        ChatAction::TurnComplete(action) => turn::completed(state, action),
        ChatAction::TurnCancelled(action) => turn::cancelled(state, action),
        ChatAction::Error(action) => turn::failed(state, action),
        ChatAction::TurnResume(action) => turn::resumed(state, action),
        ChatAction::TurnsLoaded(action) => turn::loaded(state, action),
        ChatAction::Truncated(action) => turn::truncated(state, action),

        ChatAction::PendingMessageSet(action) => pending::set_message(state, action),
        ChatAction::PendingMessageRemoved(action) => pending::removed(state, action),
        ChatAction::QueuedMessagesReordered(action) => pending::reordered(state, action),
        ChatAction::DraftChanged(action) => assign(&mut state.draft, &action.draft),

        ChatAction::InputRequested(action) => input::requested(state, &action.request),
        ChatAction::InputAnswerChanged(action) => input::answer_changed(state, action),
        ChatAction::InputCompleted(action) => input::completed(state, action),

        ChatAction::IsReadChanged(action) => flag(state, status::IS_READ, action.is_read),
        ChatAction::IsArchivedChanged(action) => flag(state, status::IS_ARCHIVED, action.is_archived),
        ChatAction::ActivityChanged(action) => assign(&mut state.activity, &action.activity),
        ChatAction::MovableChanged(action) => set(&mut state.movable, &action.movable),
        ChatAction::ChangesetsChanged(action) => assign(&mut state.changesets, &action.changesets),
        ChatAction::CanvasesChanged(action) => assign(&mut state.canvases, &action.canvases),
        ChatAction::BackgroundWorkSet(action) => match action.work.id() {
            Some(id) => upsert_some(&mut state.background_work, &action.work, |known| known.id() == Some(id)),
            None => ReduceOutcome::Unchanged,
        },
        ChatAction::BackgroundWorkRemoved(action) => {
            remove_some(&mut state.background_work, |known| known.id() == Some(&action.id))
        }
        ChatAction::WorkingDirectorySet(action) => {
            upsert_some(&mut state.working_directories, &action.directory, |known| *known == action.directory)
        }
        ChatAction::WorkingDirectoryRemoved(action) => {
            remove_some(&mut state.working_directories, |known| *known == action.directory)
        }
    }
}

/// The running turn, if it has this id. Actions on another turn are late.
fn active<'a>(state: &'a mut ChatState, turn_id: &str) -> Option<&'a mut ActiveTurn> {
    state.active_turn.as_mut().filter(|turn| turn.id == turn_id)
}

/// The parts of the running turn, newest first, if it has this id.
fn parts_from_end<'a>(state: &'a mut ChatState, turn_id: &str) -> impl Iterator<Item = &'a mut ResponsePart> {
    active(state, turn_id).into_iter().flat_map(|turn| turn.response_parts.iter_mut().rev())
}

fn flag(state: &mut ChatState, flag: u32, is_set: bool) -> ReduceOutcome {
    let status = status::with_flag(state.status, flag, is_set);
    assign(&mut state.status, &status)
}

/// Updates `status` from the running turn.
fn refresh_status(state: &mut ChatState) -> ReduceOutcome {
    let activity = match &state.active_turn {
        Some(turn) if turn.response_parts.iter().any(waits_for_user) => status::INPUT_NEEDED,
        Some(_) => status::IN_PROGRESS,
        None => status::IDLE,
    };
    set_activity(state, activity)
}

fn set_activity(state: &mut ChatState, activity: u32) -> ReduceOutcome {
    let status = status::with_activity(state.status, activity);
    assign(&mut state.status, &status)
}

fn waits_for_user(part: &ResponsePart) -> bool {
    match part {
        ResponsePart::InputRequest(part) => part.response.is_none(),
        ResponsePart::ToolCall(part) => matches!(
            part.tool_call,
            ToolCallState::PendingConfirmation(_)
                | ToolCallState::PendingResultConfirmation(_)
                | ToolCallState::AuthRequired(_)
        ),
        ResponsePart::Markdown(_)
        | ResponsePart::ContentRef(_)
        | ResponsePart::Reasoning(_)
        | ResponsePart::SystemNotification(_)
        | ResponsePart::Error(_)
        | ResponsePart::Unknown(_) => false,
    }
}
