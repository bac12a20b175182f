//! An agent's questions to a person, as forms of the editor.

use agent_client_protocol_schema::v1 as acp;
use grove_wire::ahp::{
    Action, ChatAction, ChatInputAnswer, ChatInputAnswerValue, ChatInputAnswered, ChatInputBooleanAnswer,
    ChatInputCompleted, ChatInputNumberAnswer, ChatInputOption, ChatInputQuestion, ChatInputRequest,
    ChatInputResponseKind, ChatInputSelectedAnswer, ChatInputSelectedManyAnswer, ChatInputTextAnswer,
    SessionChatInputRequest,
};
use serde_json::{Map, Value, json};

use crate::editor::Editor;
use crate::session::EditorSession;

/// The method that asks a person.
const ASK: &str = "elicitation/create";

/// Asks the editor, and gives its answers to the host. Dropping this withdraws the question.
pub(crate) async fn ask(session: &EditorSession, editor: &Editor, asked: SessionChatInputRequest) {
    let Some(form) = form(&session.id, &asked.request) else { return };
    let answer = match editor.ask(ASK, &form).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(%error, session = session.id, "the editor did not answer a question");
            return;
        }
    };
    let Ok(answer) = serde_json::from_str::<acp::CreateElicitationResponse>(answer.get()) else { return };
    let completed = ChatInputCompleted {
        request_id: asked.request.id.clone(),
        response: match &answer.action {
            acp::ElicitationAction::Accept(_) => ChatInputResponseKind::Accept,
            acp::ElicitationAction::Decline => ChatInputResponseKind::Decline,
            // The question stays open for other clients.
            _ => return,
        },
        answers: match &answer.action {
            acp::ElicitationAction::Accept(accepted) => {
                let given = serde_json::to_value(&accepted.content).ok();
                let given = given.and_then(|given| given.as_object().cloned()).unwrap_or_default();
                Some(answers(&asked.request, &given).into_iter().collect())
            }
            _ => None,
        },
    };
    session.answer_request(editor, &asked.id, &Action::Chat(ChatAction::InputCompleted(completed))).await;
}

/// The question in words, for an editor without forms.
pub(crate) fn words(session: &str, request: &ChatInputRequest) -> String {
    let mut text = String::from("The agent asks");
    if let Some(message) = &request.message {
        text.push_str(&format!(": {message}"));
    }
    if let Some(url) = &request.url {
        text.push_str(&format!(" {url}"));
    }
    for question in request.questions.iter().flatten() {
        if let Some((_, asked)) = parts(question) {
            text.push_str(&format!("\n- {}", asked.message));
        }
    }
    let short = session.get(..8).unwrap_or(session);
    text.push_str(&format!("\n\nThis editor shows no forms: answer with `grove answer {short}`, or on Grove's page."));
    text
}

/// The form of a request; `None` if it has no question that a form could have.
fn form(session: &str, request: &ChatInputRequest) -> Option<Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for question in request.questions.iter().flatten() {
        let Some((schema, asked)) = parts(question) else { continue };
        let mut schema = schema;
        if let Some(title) = asked.title {
            schema["title"] = json!(title);
        }
        schema["description"] = json!(asked.message);
        if asked.is_required {
            required.push(asked.id);
        }
        properties.insert(asked.id.to_owned(), schema);
    }
    if properties.is_empty() {
        return None;
    }
    let message = request.message.as_deref().unwrap_or("The agent asks");
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Some(json!({"mode": "form", "sessionId": session, "message": message, "requestedSchema": schema}))
}

/// The common members of a question.
struct AskedQuestion<'a> {
    id: &'a str,
    title: Option<&'a str>,
    message: &'a str,
    is_required: bool,
}

/// A question as a property of a schema.
fn parts(question: &ChatInputQuestion) -> Option<(Value, AskedQuestion<'_>)> {
    macro_rules! asked {
        ($question:expr) => {
            AskedQuestion {
                id: &$question.id,
                title: $question.title.as_deref(),
                message: &$question.message,
                is_required: $question.required == Some(true),
            }
        };
    }
    Some(match question {
        ChatInputQuestion::Text(text) => {
            let schema = json!({"type": "string"});
            (
                with(
                    schema,
                    [
                        ("minLength", text.min.map(Value::from)),
                        ("maxLength", text.max.map(Value::from)),
                        ("default", text.default_value.clone().map(Value::from)),
                    ],
                ),
                asked!(text),
            )
        }
        ChatInputQuestion::Number(number) => (with(json!({"type": "number"}), bounds(number)), asked!(number)),
        ChatInputQuestion::Integer(number) => (with(json!({"type": "integer"}), bounds(number)), asked!(number)),
        ChatInputQuestion::Boolean(boolean) => {
            let schema = json!({"type": "boolean"});
            (with(schema, [("default", boolean.default_value.map(Value::from))]), asked!(boolean))
        }
        ChatInputQuestion::SingleSelect(select) => {
            (json!({"type": "string", "oneOf": choices(&select.options)}), asked!(select))
        }
        ChatInputQuestion::MultiSelect(select) => {
            let schema = json!({"type": "array", "items": {"anyOf": choices(&select.options)}});
            (
                with(schema, [("minItems", select.min.map(Value::from)), ("maxItems", select.max.map(Value::from))]),
                asked!(select),
            )
        }
        ChatInputQuestion::Unknown(_) => return None,
    })
}

fn bounds(number: &grove_wire::ahp::ChatInputNumberQuestion) -> [(&'static str, Option<Value>); 3] {
    let value = |number: &Option<serde_json::Number>| number.clone().map(Value::Number);
    [("minimum", value(&number.min)), ("maximum", value(&number.max)), ("default", value(&number.default_value))]
}

fn with<const N: usize>(mut schema: Value, members: [(&str, Option<Value>); N]) -> Value {
    for (name, value) in members {
        if let Some(value) = value {
            schema[name] = value;
        }
    }
    schema
}

fn choices(options: &[ChatInputOption]) -> Vec<Value> {
    let choice = |option: &ChatInputOption| {
        let about = option.description.as_ref().map(|about| format!("{}: {about}", option.label));
        json!({"const": option.id, "title": about.unwrap_or_else(|| option.label.clone())})
    };
    options.iter().map(choice).collect()
}

/// The answers of a form, by question. Values of another type are left out.
fn answers(request: &ChatInputRequest, given: &Map<String, Value>) -> Vec<(String, ChatInputAnswer)> {
    let questions = request.questions.iter().flatten();
    let answer = |question: &ChatInputQuestion| {
        let id = parts(question)?.1.id.to_owned();
        let value = match (question, given.get(&id)?) {
            (ChatInputQuestion::Text(_), Value::String(text)) => {
                ChatInputAnswerValue::Text(ChatInputTextAnswer { value: text.clone() })
            }
            (ChatInputQuestion::Number(_) | ChatInputQuestion::Integer(_), Value::Number(number)) => {
                ChatInputAnswerValue::Number(ChatInputNumberAnswer { value: number.clone() })
            }
            (ChatInputQuestion::Boolean(_), Value::Bool(value)) => {
                ChatInputAnswerValue::Boolean(ChatInputBooleanAnswer { value: *value })
            }
            (ChatInputQuestion::SingleSelect(_), Value::String(id)) => {
                ChatInputAnswerValue::Selected(ChatInputSelectedAnswer { value: id.clone(), freeform_values: None })
            }
            (ChatInputQuestion::MultiSelect(_), Value::Array(ids)) => {
                let value = ids.iter().filter_map(|id| id.as_str().map(ToOwned::to_owned)).collect();
                ChatInputAnswerValue::SelectedMany(ChatInputSelectedManyAnswer { value, freeform_values: None })
            }
            _ => return None,
        };
        Some((id, ChatInputAnswer::Submitted(ChatInputAnswered { value })))
    };
    questions.filter_map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ChatInputRequest {
        let questions = json!([
            {"kind": "single-select", "id": "color", "message": "Which?", "required": true,
             "options": [{"id": "r", "label": "Red"}, {"id": "g", "label": "Green", "description": "calm"}]},
            {"kind": "integer", "id": "count", "message": "How many?", "min": 1},
        ]);
        serde_json::from_value(json!({"id": "q", "message": "Choose", "questions": questions})).unwrap()
    }

    #[test]
    fn a_question_is_a_form_that_the_protocol_knows() {
        let form = form("s", &request()).unwrap();
        let read: acp::CreateElicitationRequest = serde_json::from_value(form.clone()).unwrap();
        assert!(matches!(read.mode, acp::ElicitationMode::Form(_)), "{form}");
        assert_eq!(form["requestedSchema"]["properties"]["color"]["oneOf"][1]["title"], "Green: calm");
        assert_eq!(form["requestedSchema"]["required"], json!(["color"]));
    }

    #[test]
    fn answers_have_the_type_that_was_asked_for() {
        let given = json!({"color": "g", "count": "three", "other": 1});
        let answers = answers(&request(), given.as_object().unwrap());
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0].0, "color");
    }
}
