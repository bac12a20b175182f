//! Keeps a session's catalogue and open questions in line with its chats.
//!
//! Protocols mirror a chat's status and its open questions on the session's channel. Each such change is an
//! event of its own, so that it has its own number; this module finds the events that are due.

use crate::event::*;
use crate::ids::*;
use crate::state::*;
use crate::turn::*;

/// The events that update `session`'s catalogue and open questions from its chats.
pub fn pending_events(session: &Session) -> Vec<SessionEvent> {
    let open: Vec<InputNeeded> = session.chats.iter().flat_map(open_questions).collect();
    let mut events = Vec::new();
    for mine in &session.input_needed {
        if !open.iter().any(|input| input.is(&mine.chat, &mine.request)) {
            let (chat, request) = (mine.chat.clone(), mine.request.clone());
            events.push(SessionEvent::InputNeededRemoved { chat, request });
        }
    }
    for input in open {
        if !session.input_needed.contains(&input) {
            events.push(SessionEvent::InputNeededSet(input));
        }
    }
    for chat in &session.chats {
        let row = chat.row();
        if session.catalogue.iter().any(|mine| mine.chat == row.chat && *mine != row) {
            events.push(SessionEvent::ChatRowChanged(row));
        }
    }
    events
}

fn open_questions(chat: &Chat) -> impl Iterator<Item = InputNeeded> + '_ {
    chat.active.iter().flat_map(move |active| {
        let input_needed = move |request: &RequestId, about| InputNeeded {
            request: request.clone(),
            chat: chat.id.clone(),
            turn: active.id.clone(),
            about,
        };
        active.parts().iter().filter_map(move |part| match part {
            Part::ToolCall(call) => match &call.status {
                ToolCallStatus::PendingConfirmation(pending) => {
                    Some(input_needed(&pending.id, InputSubject::ToolConfirmation(call.clone())))
                }
                // Such a request has no id of its own. The call's alone might be that of a question as well.
                ToolCallStatus::PendingResultConfirmation(_) => {
                    let request = RequestId::from(format!("{}/result", call.id));
                    Some(input_needed(&request, InputSubject::ToolConfirmation(call.clone())))
                }
                ToolCallStatus::Running if call.client.is_some() => {
                    let request = RequestId::from(format!("{}/run", call.id));
                    Some(input_needed(&request, InputSubject::ClientExecution(call.clone())))
                }
                ToolCallStatus::Streaming
                | ToolCallStatus::Ready
                | ToolCallStatus::Running
                | ToolCallStatus::Completed(_)
                | ToolCallStatus::Cancelled(_) => None,
            },
            Part::InputRequest(input) if input.outcome.is_none() => {
                Some(input_needed(&input.id, InputSubject::Question(Box::new(input.clone()))))
            }
            Part::Text(_)
            | Part::Reasoning { .. }
            | Part::Content(_)
            | Part::Error(_)
            | Part::InputRequest(_)
            | Part::Plan(_)
            | Part::Notice(_) => None,
        })
    })
}
