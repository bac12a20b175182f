//! The statuses of a tool call:
//!
//! ```text
//! streaming ─> pending-confirmation <─> running <─> auth-required
//!                       │                  │               │
//!                       └──> pending-result-confirmation   │
//!                                          │               │
//!                           completed, or cancelled  <─────┘
//! ```
//!
//! A transition that does not start at a call's status changes nothing. A finished call stays unchanged.

use std::mem::take;

use super::super::ReduceOutcome;
use super::super::edit::{append, assign, assign_if_some, clear, set, set_if_some};
use super::{active, parts_from_end, refresh_status};
use crate::ahp::Object;
use crate::ahp::action::{
    ChatToolCallAuthRequired, ChatToolCallAuthResolved, ChatToolCallComplete, ChatToolCallConfirmed,
    ChatToolCallContentChanged, ChatToolCallDelta, ChatToolCallReady, ChatToolCallResultConfirmed, ChatToolCallStart,
};
use crate::ahp::state::{
    ChatState, ResponsePart, ToolCallAuthRequired, ToolCallBase, ToolCallCancellationReason, ToolCallCancelled,
    ToolCallCompleted, ToolCallConfirmationReason, ToolCallContributor, ToolCallParameters,
    ToolCallPendingConfirmation, ToolCallPendingResultConfirmation, ToolCallResponsePart, ToolCallResult,
    ToolCallRunning, ToolCallState, ToolCallStreaming, ToolInput,
};

pub(super) fn started(state: &mut ChatState, action: &ChatToolCallStart) -> ReduceOutcome {
    let Some(turn) = active(state, &action.turn_id) else { return ReduceOutcome::Unchanged };
    let call = ToolCallStreaming {
        base: ToolCallBase {
            tool_call_id: action.tool_call_id.clone(),
            tool_name: action.tool_name.clone(),
            display_name: action.display_name.clone(),
            intention: action.intention.clone(),
            contributor: action.contributor.clone(),
            meta: action.meta.clone(),
        },
        partial_input: None,
        invocation_message: None,
    };
    let part = ToolCallResponsePart { tool_call: ToolCallState::Streaming(call) };
    turn.response_parts.push(ResponsePart::ToolCall(Box::new(part)));
    ReduceOutcome::Changed
}

pub(super) fn streamed(state: &mut ChatState, action: &ChatToolCallDelta) -> ReduceOutcome {
    let Some(ToolCallState::Streaming(call)) = find(state, &action.turn_id, &action.tool_call_id) else {
        return ReduceOutcome::Unchanged;
    };
    let input = action.content.as_ref().map_or(ReduceOutcome::Unchanged, |content| match &mut call.partial_input {
        Some(input) => append(input, content),
        None => {
            call.partial_input = Some(content.clone());
            ReduceOutcome::Changed
        }
    });
    input
        | set_if_some(&mut call.invocation_message, &action.invocation_message)
        | set_if_some(&mut call.base.meta, &action.meta)
}

/// The input is complete, or replaced: with a decision the call runs, without one it waits for it.
pub(super) fn ready(state: &mut ChatState, action: &ChatToolCallReady) -> ReduceOutcome {
    on(state, &action.turn_id, &action.tool_call_id, |call| match (&mut *call, &action.confirmed) {
        (ToolCallState::PendingConfirmation(call), None) => {
            described(&mut call.base, &mut call.parameters, action) | set_confirmation(call, action)
        }
        (ToolCallState::Running(call), Some(confirmed)) => {
            described(&mut call.base, &mut call.parameters, action)
                | assign(&mut call.confirmed, confirmed)
                | clear(&mut call.selected_option)
                | clear(&mut call.content)
        }
        (
            ToolCallState::Streaming(_) | ToolCallState::PendingConfirmation(_) | ToolCallState::Running(_),
            confirmed,
        ) => {
            let Some((mut base, mut parameters)) = take_unfinished(call) else { return ReduceOutcome::Unchanged };
            described(&mut base, &mut parameters, action);
            *call = match confirmed {
                Some(confirmed) => ToolCallState::Running(ToolCallRunning {
                    base,
                    parameters,
                    confirmed: confirmed.clone(),
                    selected_option: None,
                    content: None,
                }),
                None => {
                    let mut call = ToolCallPendingConfirmation { base, parameters, ..Default::default() };
                    set_confirmation(&mut call, action);
                    ToolCallState::PendingConfirmation(call)
                }
            };
            ReduceOutcome::Changed
        }
        _ => ReduceOutcome::Unchanged,
    })
}

fn described(
    base: &mut ToolCallBase,
    parameters: &mut ToolCallParameters,
    action: &ChatToolCallReady,
) -> ReduceOutcome {
    assign(&mut parameters.invocation_message, &action.invocation_message)
        | set_if_some(&mut parameters.tool_input, &action.tool_input)
        | set_if_some(&mut base.intention, &action.intention)
        | set_if_some(&mut base.meta, &action.meta)
        | contributed(&mut base.contributor, &action.contributor)
}

/// Updates the contributor of a tool. A call never moves to a client or away from it: that client may be running it
/// already.
fn contributed(known: &mut Option<ToolCallContributor>, update: &Option<ToolCallContributor>) -> ReduceOutcome {
    let clients = [&*known, update].map(|contributor| match contributor {
        Some(ToolCallContributor::Client(client)) => Some(client.client_id.as_str()),
        _ => None,
    });
    let [known_client, new_client] = clients;
    if known_client == new_client { set_if_some(known, update) } else { ReduceOutcome::Unchanged }
}

fn set_confirmation(call: &mut ToolCallPendingConfirmation, action: &ChatToolCallReady) -> ReduceOutcome {
    set_if_some(&mut call.confirmation_title, &action.confirmation_title)
        | set_if_some(&mut call.risk_assessment, &action.risk_assessment)
        | set_if_some(&mut call.edits, &action.edits)
        | set_if_some(&mut call.editable, &action.editable)
        | set_if_some(&mut call.options, &action.options)
}

pub(super) fn confirmed(state: &mut ChatState, action: &ChatToolCallConfirmed) -> ReduceOutcome {
    on(state, &action.turn_id, &action.tool_call_id, |call| {
        let ToolCallState::PendingConfirmation(pending) = call else { return ReduceOutcome::Unchanged };
        let (mut base, mut parameters) = (take(&mut pending.base), take(&mut pending.parameters));
        set_if_some(&mut base.meta, &action.meta);
        let options = pending.options.iter().flatten();
        let selected_option = action
            .selected_option_id
            .as_ref()
            .and_then(|id| options.into_iter().find(|option| option.id == *id).cloned());
        *call = if action.approved {
            // An input that is stored elsewhere was not shown, so it cannot have been edited.
            if let (Some(ToolInput::Inline(input)), edited) = (&mut parameters.tool_input, &action.edited_tool_input) {
                assign_if_some(input, edited);
            }
            ToolCallState::Running(ToolCallRunning {
                base,
                parameters,
                confirmed: action.confirmed.clone().unwrap_or(ToolCallConfirmationReason::NotNeeded),
                selected_option,
                content: None,
            })
        } else {
            ToolCallState::Cancelled(ToolCallCancelled {
                base,
                parameters,
                reason: action.reason.unwrap_or(ToolCallCancellationReason::Denied),
                reason_message: action.reason_message.clone(),
                user_suggestion: action.user_suggestion.clone(),
                selected_option,
            })
        };
        ReduceOutcome::Changed
    })
}

pub(super) fn completed(state: &mut ChatState, action: &ChatToolCallComplete) -> ReduceOutcome {
    on(state, &action.turn_id, &action.tool_call_id, |call| {
        let mut result = action.result.clone();
        let mut is_asked_about = action.requires_result_confirmation == Some(true);
        let (confirmed, selected_option) = match call {
            ToolCallState::Running(call) => (call.confirmed.clone(), call.selected_option.take()),
            ToolCallState::PendingConfirmation(_) => (ToolCallConfirmationReason::NotNeeded, None),
            // Without a token the call cannot have succeeded. A failure means giving up, which needs no permission; the
            // call's earlier output stays.
            ToolCallState::AuthRequired(call) if !result.success => {
                is_asked_about = false;
                result.content = result.content.or_else(|| call.content.take());
                (call.confirmed.clone(), call.selected_option.take())
            }
            _ => return ReduceOutcome::Unchanged,
        };
        let Some((mut base, parameters)) = take_unfinished(call) else { return ReduceOutcome::Unchanged };
        set_if_some(&mut base.meta, &action.meta);
        *call = if is_asked_about {
            ToolCallState::PendingResultConfirmation(ToolCallPendingResultConfirmation {
                base,
                parameters,
                result,
                confirmed,
                selected_option,
            })
        } else {
            ToolCallState::Completed(ToolCallCompleted { base, parameters, result, confirmed, selected_option })
        };
        ReduceOutcome::Changed
    })
}

pub(super) fn result_confirmed(state: &mut ChatState, action: &ChatToolCallResultConfirmed) -> ReduceOutcome {
    on(state, &action.turn_id, &action.tool_call_id, |call| {
        let ToolCallState::PendingResultConfirmation(pending) = call else { return ReduceOutcome::Unchanged };
        let result: ToolCallResult = take(&mut pending.result);
        let (confirmed, selected_option) = (pending.confirmed.clone(), pending.selected_option.take());
        let (mut base, parameters) = (take(&mut pending.base), take(&mut pending.parameters));
        set_if_some(&mut base.meta, &action.meta);
        *call = if action.approved {
            ToolCallState::Completed(ToolCallCompleted { base, parameters, result, confirmed, selected_option })
        } else {
            ToolCallState::Cancelled(ToolCallCancelled {
                base,
                parameters,
                reason: ToolCallCancellationReason::ResultDenied,
                reason_message: None,
                user_suggestion: None,
                selected_option,
            })
        };
        ReduceOutcome::Changed
    })
}

pub(super) fn content_changed(state: &mut ChatState, action: &ChatToolCallContentChanged) -> ReduceOutcome {
    match find(state, &action.turn_id, &action.tool_call_id) {
        Some(ToolCallState::Running(call)) => {
            set(&mut call.content, &action.content) | set_if_some(&mut call.base.meta, &action.meta)
        }
        Some(_) | None => ReduceOutcome::Unchanged,
    }
}

/// Only calls of MCP servers need a token.
pub(super) fn auth_required(state: &mut ChatState, action: &ChatToolCallAuthRequired) -> ReduceOutcome {
    on(state, &action.turn_id, &action.tool_call_id, |call| match call {
        ToolCallState::Running(running) if matches!(running.base.contributor, Some(ToolCallContributor::Mcp(_))) => {
            *call = ToolCallState::AuthRequired(Box::new(ToolCallAuthRequired {
                base: with_meta(take(&mut running.base), &action.meta),
                parameters: take(&mut running.parameters),
                confirmed: running.confirmed.clone(),
                selected_option: running.selected_option.take(),
                auth: action.auth.clone(),
                content: running.content.take(),
            }));
            ReduceOutcome::Changed
        }
        _ => ReduceOutcome::Unchanged,
    })
}

pub(super) fn auth_resolved(state: &mut ChatState, action: &ChatToolCallAuthResolved) -> ReduceOutcome {
    on(state, &action.turn_id, &action.tool_call_id, |call| match call {
        ToolCallState::AuthRequired(waiting) => {
            *call = ToolCallState::Running(ToolCallRunning {
                base: with_meta(take(&mut waiting.base), &action.meta),
                parameters: take(&mut waiting.parameters),
                confirmed: waiting.confirmed.clone(),
                selected_option: waiting.selected_option.take(),
                content: waiting.content.take(),
            });
            ReduceOutcome::Changed
        }
        _ => ReduceOutcome::Unchanged,
    })
}

/// Cancels an unfinished call of a finished turn. A call with an unknown status is left alone: it may be finished.
pub(super) fn skip_unfinished(part: &mut ResponsePart) {
    let ResponsePart::ToolCall(part) = part else { return };
    if let Some((base, parameters)) = take_unfinished(&mut part.tool_call) {
        part.tool_call = ToolCallState::Cancelled(ToolCallCancelled {
            base,
            parameters,
            reason: ToolCallCancellationReason::Skipped,
            reason_message: None,
            user_suggestion: None,
            selected_option: None,
        });
    }
}

fn with_meta(mut base: ToolCallBase, meta: &Option<Object>) -> ToolCallBase {
    set_if_some(&mut base.meta, meta);
    base
}

/// Moves out the common data of an unfinished call, to be put into its next status. `None` if it is finished.
fn take_unfinished(call: &mut ToolCallState) -> Option<(ToolCallBase, ToolCallParameters)> {
    match call {
        ToolCallState::Streaming(call) => {
            let invocation_message = call.invocation_message.take().unwrap_or_default();
            Some((take(&mut call.base), ToolCallParameters { invocation_message, tool_input: None }))
        }
        ToolCallState::PendingConfirmation(call) => Some((take(&mut call.base), take(&mut call.parameters))),
        ToolCallState::Running(call) => Some((take(&mut call.base), take(&mut call.parameters))),
        ToolCallState::AuthRequired(call) => Some((take(&mut call.base), take(&mut call.parameters))),
        ToolCallState::PendingResultConfirmation(call) => Some((take(&mut call.base), take(&mut call.parameters))),
        ToolCallState::Completed(_) | ToolCallState::Cancelled(_) | ToolCallState::Unknown(_) => None,
    }
}

fn find<'a>(state: &'a mut ChatState, turn_id: &str, id: &str) -> Option<&'a mut ToolCallState> {
    parts_from_end(state, turn_id).find_map(|part| match part {
        ResponsePart::ToolCall(part) if part.tool_call.id() == Some(id) => Some(&mut part.tool_call),
        _ => None,
    })
}

/// Applies a change to a call, after which the chat may or may not wait for the user.
fn on(
    state: &mut ChatState,
    turn_id: &str,
    id: &str,
    change: impl FnOnce(&mut ToolCallState) -> ReduceOutcome,
) -> ReduceOutcome {
    let Some(call) = find(state, turn_id, id) else { return ReduceOutcome::Unchanged };
    change(call) | refresh_status(state)
}
