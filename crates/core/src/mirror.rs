//! What a session says of its chats, kept in line with them.
//!
//! Protocols mirror a chat's status and its open questions on the session's channel. Each such change is an
//! event of its own, so that it has its own number; this module finds the events that are due.

use crate::event::*;
use crate::ids::*;
use crate::state::*;
use crate::turn::*;

/// Whether an event can change what the session says of its chats. Deltas, above all, cannot.
pub fn may_concern(change: &Change) -> bool {
    match change {
        Change::Root(_) | Change::Session(..) => false,
        Change::Chat(_, _, event) => match event {
            ChatEvent::TurnStarted { .. }
            | ChatEvent::ToolCallGated { .. }
            | ChatEvent::ToolCallConfirmed { .. }
            | ChatEvent::InputRequested { .. }
            | ChatEvent::InputAnswered { .. }
            | ChatEvent::TurnCompleted { .. }
            | ChatEvent::TurnCancelled { .. }
            | ChatEvent::TurnFailed { .. } => true,
            ChatEvent::PartAdded { .. }
            | ChatEvent::TextDelta { .. }
            | ChatEvent::ReasoningDelta { .. }
            | ChatEvent::ToolCallStarted { .. }
            | ChatEvent::ToolCallInputDelta { .. }
            | ChatEvent::ToolCallReady { .. }
            | ChatEvent::ToolCallCompleted { .. }
            | ChatEvent::ToolCallResultGated { .. }
            | ChatEvent::ToolCallResultConfirmed { .. }
            | ChatEvent::UsageReported { .. }
            | ChatEvent::SteeringSet(_)
            | ChatEvent::SteeringRemoved(_)
            | ChatEvent::QueuedSet(_)
            | ChatEvent::QueuedRemoved(_)
            | ChatEvent::QueueReordered(_)
            | ChatEvent::DraftChanged(_) => false,
        },
    }
}

/// The events that bring `session`'s catalogue and open questions in line with its chats.
pub fn due(session: &Session) -> Vec<SessionEvent> {
    let open: Vec<InputNeeded> = session.chats.iter().flat_map(open_questions).collect();
    let mut events = Vec::new();
    for mine in &session.input_needed {
        if !open.iter().any(|input| input.request == mine.request) {
            events.push(SessionEvent::InputNeededRemoved(mine.request.clone()));
        }
    }
    for input in open {
        if !session.input_needed.contains(&input) {
            events.push(SessionEvent::InputNeededSet(input));
        }
    }
    for chat in &session.chats {
        let row = ChatRow {
            chat: chat.id.clone(),
            title: chat.title.clone(),
            status: chat.status(),
            modified_at: chat.modified_at,
        };
        if session.catalogue.iter().any(|mine| mine.chat == row.chat && *mine != row) {
            events.push(SessionEvent::ChatRowChanged(row));
        }
    }
    events
}

fn open_questions(chat: &Chat) -> impl Iterator<Item = InputNeeded> + '_ {
    chat.active.iter().flat_map(move |active| {
        let asked = move |request: &RequestId, about| InputNeeded {
            request: request.clone(),
            chat: chat.id.clone(),
            turn: active.id.clone(),
            about,
        };
        active.parts().iter().filter_map(move |part| match part {
            Part::ToolCall(call) => match &call.status {
                ToolCallStatus::PendingConfirmation(pending) => {
                    Some(asked(&pending.id, InputSubject::ToolConfirmation(call.id.clone())))
                }
                ToolCallStatus::Streaming
                | ToolCallStatus::Ready
                | ToolCallStatus::Running
                | ToolCallStatus::PendingResultConfirmation(_)
                | ToolCallStatus::Completed(_)
                | ToolCallStatus::Cancelled(_) => None,
            },
            Part::InputRequest(input) if input.response.is_none() => Some(asked(&input.id, InputSubject::Question)),
            Part::Text(_) | Part::Reasoning { .. } | Part::Content(_) | Part::Error(_) | Part::InputRequest(_) => None,
        })
    })
}
