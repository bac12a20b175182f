//! The input that a tool call waits for: a permission, or a client's result.

use grove_core::{self as core, Part, ToolCallStatus};

use super::request_events;
use crate::copilot::events::{EventData, ExternalToolCompleted};

/// The pending question about a call.
#[derive(PartialEq)]
pub(super) enum PendingInput {
    No,
    Permission(core::RequestId),
    Client,
}

/// The input that a part waits for.
pub(super) fn pending_input(part: &Part) -> PendingInput {
    match part {
        Part::ToolCall(call) => match &call.status {
            ToolCallStatus::PendingConfirmation(request) => PendingInput::Permission(request.id.clone()),
            ToolCallStatus::Running if call.client.is_some() => PendingInput::Client,
            _ => PendingInput::No,
        },
        _ => PendingInput::No,
    }
}

/// The cancellation of a pending request.
pub(super) fn unanswered(part: &Part) -> Option<EventData> {
    match (part, pending_input(part)) {
        (Part::ToolCall(call), PendingInput::Permission(request)) => {
            Some(request_events::permission_cancelled(&call.id, &request).into())
        }
        (Part::ToolCall(call), PendingInput::Client) => {
            Some(ExternalToolCompleted { request_id: call.id.to_string() }.into())
        }
        (Part::InputRequest(request), _) if request.outcome.is_none() => {
            Some(request_events::user_input_completed(&request.id, &core::Answers::new()).into())
        }
        _ => None,
    }
}
