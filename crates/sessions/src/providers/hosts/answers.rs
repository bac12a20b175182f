//! Answers to pending requests, as actions of the protocol.

use grove_wire::ahp::{
    Action, ChatAction, ChatInputCompleted, ChatToolCallConfirmed, ChatToolCallResultConfirmed, ConfirmationOptionKind,
    SessionInputRequest, ToolCallCancellationReason, ToolCallConfirmation, ToolCallConfirmationReason,
};

use crate::provider::{InputAnswer, ProviderError};

/// The action that gives an answer, and the chat that it belongs to. An answer of another kind than the request is
/// refused, and so is an option that the request does not have.
pub(super) fn action(request: &SessionInputRequest, answer: InputAnswer) -> Result<(&str, Action), ProviderError> {
    match (request, answer) {
        (SessionInputRequest::ToolConfirmation(request), InputAnswer::Permission { is_approved, option }) => {
            let action = decision(&request.turn_id, &request.tool_call, is_approved, option)?;
            Ok((&request.chat, Action::Chat(action)))
        }
        (SessionInputRequest::ChatInput(request), InputAnswer::Input { response, answers }) => {
            let request_id = request.request.id.clone();
            let completed = ChatInputCompleted { request_id, response, answers };
            Ok((&request.chat, Action::Chat(ChatAction::InputCompleted(completed))))
        }
        (SessionInputRequest::ToolConfirmation(_), InputAnswer::Input { .. }) => {
            Err(refused("the session waits for a permission: answer with `permission`"))
        }
        (_, _) => Err(refused("the session asks questions: answer with `input`")),
    }
}

/// The decision about a call, before it runs or about its result.
fn decision(
    turn_id: &str,
    call: &ToolCallConfirmation,
    is_approved: bool,
    option: Option<String>,
) -> Result<ChatAction, ProviderError> {
    let turn_id = turn_id.to_owned();
    match call {
        ToolCallConfirmation::PendingConfirmation(call) => {
            if let Some(id) = &option {
                let kind = match is_approved {
                    true => ConfirmationOptionKind::Approve,
                    false => ConfirmationOptionKind::Deny,
                };
                let is_offered = call.options.iter().flatten().any(|option| option.id == *id && option.kind == kind);
                if !is_offered {
                    return Err(refused("the request has no such option for this decision: choose one of its options"));
                }
            }
            Ok(ChatAction::ToolCallConfirmed(Box::new(ChatToolCallConfirmed {
                turn_id,
                tool_call_id: call.base.tool_call_id.clone(),
                meta: None,
                approved: is_approved,
                confirmed: is_approved.then_some(ToolCallConfirmationReason::UserAction),
                reason: (!is_approved).then_some(ToolCallCancellationReason::Denied),
                edited_tool_input: None,
                user_suggestion: None,
                reason_message: None,
                selected_option_id: option,
            })))
        }
        ToolCallConfirmation::PendingResultConfirmation(_) if option.is_some() => {
            Err(refused("the request for the use of a result has no options"))
        }
        ToolCallConfirmation::PendingResultConfirmation(call) => {
            Ok(ChatAction::ToolCallResultConfirmed(ChatToolCallResultConfirmed {
                turn_id,
                tool_call_id: call.base.tool_call_id.clone(),
                meta: None,
                approved: is_approved,
            }))
        }
        ToolCallConfirmation::Unknown(_) => {
            Err(refused("the request is of a newer kind: answer it in the session, on its host"))
        }
    }
}

fn refused(words: &str) -> ProviderError {
    ProviderError::Refused(words.to_owned())
}

#[cfg(test)]
mod tests {
    use grove_wire::ahp::ChatInputResponseKind;
    use serde_json::{Value, json};

    use super::*;

    fn request(value: Value) -> SessionInputRequest {
        serde_json::from_value(value).unwrap()
    }

    fn permission() -> SessionInputRequest {
        request(json!({"kind": "toolConfirmation", "id": "r", "chat": "ahp-chat:/c", "turnId": "t", "toolCall": {
            "status": "pending-confirmation", "toolCallId": "call", "toolName": "shell", "displayName": "Shell",
            "invocationMessage": "rm -r", "options": [
                {"id": "yes", "label": "Allow", "kind": "approve"}, {"id": "no", "label": "Deny", "kind": "deny"}]}}))
    }

    fn answered(is_approved: bool, option: Option<&str>) -> Result<Value, ProviderError> {
        let answer = InputAnswer::Permission { is_approved, option: option.map(ToOwned::to_owned) };
        let permission = permission();
        let (chat, action) = action(&permission, answer)?;
        assert_eq!(chat, "ahp-chat:/c");
        Ok(serde_json::to_value(action).unwrap())
    }

    #[test]
    fn a_decision_is_about_the_call_and_the_option_that_were_shown() {
        let approved = answered(true, Some("yes")).unwrap();
        assert_eq!(
            approved,
            json!({"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "call", "approved": true,
                "confirmed": "user-action", "selectedOptionId": "yes"})
        );
        assert_eq!(answered(false, None).unwrap()["reason"], "denied");
        // An option that denies never approves.
        for (is_approved, option) in [(true, "no"), (false, "yes"), (true, "other")] {
            assert!(matches!(answered(is_approved, Some(option)), Err(ProviderError::Refused(_))), "{option}");
        }
    }

    #[test]
    fn an_answer_of_another_kind_is_refused() {
        let questions = request(json!({"kind": "chatInput", "id": "q", "chat": "ahp-chat:/c",
            "request": {"id": "asked", "message": "Which?"}}));
        let decision = InputAnswer::Permission { is_approved: true, option: None };
        assert!(action(&questions, decision).is_err());
        let accept = || InputAnswer::Input { response: ChatInputResponseKind::Accept, answers: None };
        assert!(action(&permission(), accept()).is_err());
        let (_, answer) = action(&questions, accept()).unwrap();
        let answer = serde_json::to_value(answer).unwrap();
        assert_eq!((&answer["requestId"], &answer["response"]), (&json!("asked"), &json!("accept")));
    }
}
