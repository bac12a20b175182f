//! Questions to a person, and the answers.

use grove_core as core;

use crate::ahp::*;

pub fn input_request(request: &core::InputRequest) -> ChatInputRequest {
    let answers = answers(&request.answers);
    ChatInputRequest {
        id: request.id.to_string(),
        message: request.message.clone(),
        url: request.url.clone(),
        questions: Some(request.questions.iter().map(question).collect::<Vec<_>>()).filter(|all| !all.is_empty()),
        answers: Some(answers).filter(|answers| !answers.is_empty()),
    }
}

pub(super) fn question(question: &core::Question) -> ChatInputQuestion {
    let id = question.id.to_string();
    let (title, message, required) = (question.title.clone(), question.message.clone(), Some(question.required));
    let options = |options: &[core::Choice]| options.iter().map(choice).collect();
    match &question.kind {
        core::QuestionKind::Text { format, min, max, default } => ChatInputQuestion::Text(ChatInputTextQuestion {
            id,
            title,
            message,
            required,
            format: format.clone(),
            min: *min,
            max: *max,
            default_value: default.clone(),
        }),
        core::QuestionKind::Number { whole, min, max, default } => {
            let (min, max, default_value) = (min.clone(), max.clone(), default.clone());
            let question = ChatInputNumberQuestion { id, title, message, required, min, max, default_value };
            match whole {
                true => ChatInputQuestion::Integer(question),
                false => ChatInputQuestion::Number(question),
            }
        }
        core::QuestionKind::YesOrNo { default } => {
            let default_value = *default;
            ChatInputQuestion::Boolean(ChatInputBooleanQuestion { id, title, message, required, default_value })
        }
        core::QuestionKind::One { options: all, freeform } => {
            ChatInputQuestion::SingleSelect(ChatInputSingleSelectQuestion {
                id,
                title,
                message,
                required,
                options: options(all),
                allow_freeform_input: Some(*freeform),
            })
        }
        core::QuestionKind::Several { options: all, freeform, min, max } => {
            ChatInputQuestion::MultiSelect(ChatInputMultiSelectQuestion {
                id,
                title,
                message,
                required,
                options: options(all),
                allow_freeform_input: Some(*freeform),
                min: *min,
                max: *max,
            })
        }
    }
}

pub(super) fn choice(choice: &core::Choice) -> ChatInputOption {
    ChatInputOption {
        id: choice.id.clone(),
        label: choice.label.clone(),
        description: choice.description.clone(),
        recommended: choice.recommended.then_some(true),
    }
}

pub fn answers(answers: &core::Answers) -> indexmap::IndexMap<String, ChatInputAnswer> {
    answers.iter().map(|(question, answer)| (question.to_string(), self::answer(answer))).collect()
}

pub fn answer(answer: &core::Answer) -> ChatInputAnswer {
    match answer {
        core::Answer::Draft(value) => ChatInputAnswer::Draft(ChatInputAnswered { value: answer_value(value) }),
        core::Answer::Submitted(value) => ChatInputAnswer::Submitted(ChatInputAnswered { value: answer_value(value) }),
        core::Answer::Skipped { freeform } => {
            ChatInputAnswer::Skipped(ChatInputSkipped { freeform_values: some(freeform) })
        }
    }
}

pub(super) fn answer_value(value: &core::AnswerValue) -> ChatInputAnswerValue {
    match value {
        core::AnswerValue::Text(value) => ChatInputAnswerValue::Text(ChatInputTextAnswer { value: value.clone() }),
        core::AnswerValue::Number(value) => {
            ChatInputAnswerValue::Number(ChatInputNumberAnswer { value: value.clone() })
        }
        core::AnswerValue::YesOrNo(value) => ChatInputAnswerValue::Boolean(ChatInputBooleanAnswer { value: *value }),
        core::AnswerValue::One { id, freeform } => ChatInputAnswerValue::Selected(ChatInputSelectedAnswer {
            value: id.clone(),
            freeform_values: some(freeform),
        }),
        core::AnswerValue::Several { ids, freeform } => {
            ChatInputAnswerValue::SelectedMany(ChatInputSelectedManyAnswer {
                value: ids.clone(),
                freeform_values: some(freeform),
            })
        }
    }
}

pub(super) fn some(values: &[String]) -> Option<Vec<String>> {
    Some(values.to_vec()).filter(|values| !values.is_empty())
}

pub fn outcome(outcome: core::InputOutcome) -> ChatInputResponseKind {
    match outcome {
        core::InputOutcome::Accepted => ChatInputResponseKind::Accept,
        core::InputOutcome::Declined => ChatInputResponseKind::Decline,
        core::InputOutcome::Cancelled => ChatInputResponseKind::Cancel,
    }
}
