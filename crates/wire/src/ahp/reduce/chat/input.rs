//! Questions to the user. They are parts of the answer, and open until they have a response.

use super::super::ReduceOutcome;
use super::super::edit::{assign, set};
use super::{flag, refresh_status};
use crate::ahp::action::{ChatInputAnswerChanged, ChatInputCompleted};
use crate::ahp::state::{ChatInputRequest, ChatState, InputRequestResponsePart, ResponsePart, status};

/// Adds or replaces a question; answers given meanwhile stay.
pub(super) fn requested(state: &mut ChatState, request: &ChatInputRequest) -> ReduceOutcome {
    let Some(turn) = &mut state.active_turn else { return ReduceOutcome::Unchanged };
    let outcome = match open(&mut turn.response_parts, &request.id) {
        Some(part) => asked_otherwise(&mut part.request, request),
        None => {
            let part = InputRequestResponsePart { request: request.clone(), response: None };
            turn.response_parts.push(ResponsePart::InputRequest(part));
            ReduceOutcome::Changed
        }
    };
    outcome | refresh_status(state) | flag(state, status::IS_READ, false)
}

fn asked_otherwise(known: &mut ChatInputRequest, request: &ChatInputRequest) -> ReduceOutcome {
    let mut request = request.clone();
    if request.answers.is_none() {
        request.answers.clone_from(&known.answers);
    }
    assign(known, &request)
}

pub(super) fn answer_changed(state: &mut ChatState, action: &ChatInputAnswerChanged) -> ReduceOutcome {
    let Some(part) = open_in(state, &action.request_id) else { return ReduceOutcome::Unchanged };
    let answers = part.request.answers.get_or_insert_default();
    let outcome = match &action.answer {
        Some(answer) => match answers.get_mut(&action.question_id) {
            Some(known) => assign(known, answer),
            None => {
                answers.insert(action.question_id.clone(), answer.clone());
                ReduceOutcome::Changed
            }
        },
        None => ReduceOutcome::of(answers.shift_remove(&action.question_id).is_some()),
    };
    part.request.answers.take_if(|answers| answers.is_empty());
    outcome
}

/// Closes a question. The answers of the action are added to the earlier ones.
pub(super) fn completed(state: &mut ChatState, action: &ChatInputCompleted) -> ReduceOutcome {
    let Some(part) = open_in(state, &action.request_id) else { return ReduceOutcome::Unchanged };
    let answers = part.request.answers.get_or_insert_default();
    for (question, answer) in action.answers.iter().flatten() {
        answers.insert(question.clone(), answer.clone());
    }
    part.request.answers.take_if(|answers| answers.is_empty());
    set(&mut part.response, &action.response) | refresh_status(state)
}

fn open_in<'a>(state: &'a mut ChatState, id: &str) -> Option<&'a mut InputRequestResponsePart> {
    open(&mut state.active_turn.as_mut()?.response_parts, id)
}

fn open<'a>(parts: &'a mut [ResponsePart], id: &str) -> Option<&'a mut InputRequestResponsePart> {
    parts.iter_mut().rev().find_map(|part| match part {
        ResponsePart::InputRequest(part) if part.response.is_none() && part.request.id == id => Some(part),
        _ => None,
    })
}
