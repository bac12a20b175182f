//! An agent's questions to a person (elicitations).
//!
//! They are read as JSON and not through the protocol's types: those lose the order of the questions, and the names
//! that older agents give to the choices.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1 as acp;
use grove_core::*;
use serde_json::Value;

/// The questions of an elicitation, by the params of its request. `id` names them in the turn. The error says which
/// part nobody could answer.
pub(crate) fn request(elicitation: &Value, id: RequestId) -> Result<InputRequest, String> {
    let message = text(elicitation, "message").map(str::to_owned);
    let mut request = InputRequest {
        id,
        message,
        url: None,
        questions: Vec::new(),
        answers: Answers::new(),
        outcome: None,
        answered_by: None,
    };
    match mode(elicitation) {
        "url" => {
            let url = text(elicitation, "url").ok_or("the elicitation has no \"url\"")?;
            request.url = Some(url.to_owned());
        }
        "form" => {
            for (name, schema) in properties(elicitation).filter(|(name, _)| chosen_by(elicitation, name).is_none()) {
                let required = is_required(elicitation, name);
                let kind = kind(schema).map(|kind| match own_answer(elicitation, name) {
                    Some(_) => with_freeform(kind),
                    None => kind,
                });
                match kind {
                    Some(kind) => request.questions.push(question(name, schema, required, kind)),
                    // An optional question of an unknown type is left unanswered.
                    None if !required => {}
                    None => return Err(format!("{name:?} cannot be answered: its type is not supported")),
                }
            }
        }
        other => return Err(format!("elicitations of mode {other:?} are not supported")),
    }
    Ok(request)
}

/// The answers, in the types that the questions asked for; without any, the turn was cancelled.
pub(crate) fn response(elicitation: &Value, answered: Option<&InputResponse>) -> acp::CreateElicitationResponse {
    let action = match answered.map(|answered| (answered.outcome, &answered.answers)) {
        None | Some((InputOutcome::Cancelled, _)) => acp::ElicitationAction::Cancel,
        Some((InputOutcome::Declined, _)) => acp::ElicitationAction::Decline,
        Some((InputOutcome::Accepted, answers)) => {
            let accepted = acp::ElicitationAcceptAction::new();
            acp::ElicitationAction::Accept(match mode(elicitation) {
                "form" => accepted.content(content(elicitation, answers)),
                _ => accepted,
            })
        }
    };
    acp::CreateElicitationResponse::new(action)
}

/// The mode; a form if none is given, as before modes existed.
fn mode(elicitation: &Value) -> &str {
    text(elicitation, "mode").unwrap_or("form")
}

fn properties(elicitation: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = elicitation.get("requestedSchema").and_then(|schema| schema.get("properties")?.as_object());
    properties.into_iter().flatten()
}

fn is_required(elicitation: &Value, name: &str) -> bool {
    let required = elicitation.get("requestedSchema").and_then(|schema| schema.get("required")?.as_array());
    required.is_some_and(|required| required.iter().any(|required| required == name))
}

/// The end of the name of a text field in which a person answers a choice in their own words.
const OWN_ANSWER: &str = "_custom";

/// The field for an own answer to a choice, which Claude Code's adapter adds to each of its questions. As a question of
/// its own it would look as if it needed an answer, too.
fn own_answer(elicitation: &Value, name: &str) -> Option<String> {
    let own = format!("{name}{OWN_ANSWER}");
    let has_choices =
        |schema: &Value| matches!(kind(schema), Some(QuestionKind::One { .. } | QuestionKind::Several { .. }));
    let is_text = |schema: &Value| matches!(kind(schema), Some(QuestionKind::Text { .. }));
    let schema = |wanted: &str| properties(elicitation).find(|(name, _)| *name == wanted).map(|(_, schema)| schema);
    (schema(name).is_some_and(has_choices) && schema(&own).is_some_and(is_text) && !is_required(elicitation, &own))
        .then_some(own)
}

/// The choice to which a field is the own answer.
fn chosen_by<'a>(elicitation: &Value, name: &'a str) -> Option<&'a str> {
    name.strip_suffix(OWN_ANSWER).filter(|choice| own_answer(elicitation, choice).is_some())
}

fn with_freeform(kind: QuestionKind) -> QuestionKind {
    match kind {
        QuestionKind::One { options, .. } => QuestionKind::One { options, freeform: true },
        QuestionKind::Several { options, min, max, .. } => QuestionKind::Several { options, freeform: true, min, max },
        other => other,
    }
}

fn question(name: &str, schema: &Value, required: bool, kind: QuestionKind) -> Question {
    let title = text(schema, "title");
    let message = text(schema, "description").or(title).unwrap_or(name);
    Question {
        id: QuestionId::from(name),
        title: title.map(str::to_owned),
        message: message.to_owned(),
        required,
        kind,
    }
}

/// The type of a property, also of an optional one.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

fn kind(schema: &Value) -> Option<QuestionKind> {
    let default = schema.get("default");
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    let number = |name: &str| match schema.get(name) {
        Some(Value::Number(number)) => Some(number.clone()),
        _ => None,
    };
    Some(match type_of(schema)? {
        "string" => match choices(schema, default) {
            Some(options) => QuestionKind::One { options, freeform: false },
            None => QuestionKind::Text {
                format: text(schema, "format").map(str::to_owned),
                min: count("minLength"),
                max: count("maxLength"),
                default: default.and_then(Value::as_str).map(str::to_owned),
            },
        },
        kind @ ("number" | "integer") => QuestionKind::Number {
            whole: kind == "integer",
            min: number("minimum"),
            max: number("maximum"),
            default: number("default"),
        },
        "boolean" => QuestionKind::YesOrNo { default: default.and_then(Value::as_bool) },
        "array" => QuestionKind::Several {
            options: choices(schema.get("items")?, default)?,
            freeform: false,
            min: count("minItems"),
            max: count("maxItems"),
        },
        _ => return None,
    })
}

/// The metadata of a choice of Claude Code's tool AskUserQuestion.
const OPTION_META: &str = "_claude/askUserQuestionOption";

/// The choices in any of the forms that a schema has for them. The default is recommended.
fn choices(schema: &Value, default: Option<&Value>) -> Option<Vec<Choice>> {
    let recommended = |id: &str| match default {
        Some(Value::Array(ids)) => ids.iter().any(|chosen| chosen == id),
        Some(chosen) => chosen == id,
        None => false,
    };
    let choice = |id: &str, label: Option<&str>, description: Option<&str>| Choice {
        id: id.to_owned(),
        label: label.unwrap_or(id).to_owned(),
        description: description.map(str::to_owned),
        recommended: recommended(id),
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let label = |at: usize| names.and_then(|names| names.get(at)?.as_str());
        let ids = values.iter().enumerate().filter_map(|(at, id)| Some((at, id.as_str()?)));
        return Some(ids.map(|(at, id)| choice(id, label(at), None)).collect());
    }
    let titled = ["oneOf", "anyOf"].iter().find_map(|name| schema.get(*name)?.as_array())?;
    let titled = titled.iter().filter_map(|one| {
        let id = one.get("const")?.as_str()?;
        // Claude Code's adapter repeats the description in the title, and has it alone in the metadata.
        Some(match one.get("_meta").and_then(|meta| text(meta.get(OPTION_META)?, "description")) {
            Some(description) => choice(id, None, Some(description)),
            None => choice(id, text(one, "title"), text(one, "description")),
        })
    });
    Some(titled.collect())
}

fn content(elicitation: &Value, answers: &Answers) -> BTreeMap<String, acp::ElicitationContentValue> {
    let submitted = |name: &str| match answers.get(&QuestionId::from(name))? {
        Answer::Submitted(value) => Some(value),
        _ => None,
    };
    let answered = properties(elicitation).filter_map(|(name, schema)| {
        let value = match chosen_by(elicitation, name) {
            Some(choice) => acp::ElicitationContentValue::String(own_words(submitted(choice)?)?),
            None => typed(type_of(schema)?, submitted(name)?)?,
        };
        Some((name.clone(), value))
    });
    answered.collect()
}

/// The answer to a choice in a person's own words. They count instead of the chosen options, so these are repeated.
fn own_words(value: &AnswerValue) -> Option<String> {
    let words: Vec<&str> = match value {
        AnswerValue::Text(text) => vec![text],
        AnswerValue::One { freeform, .. } => freeform.iter().map(String::as_str).collect(),
        AnswerValue::Several { ids, freeform } if !freeform.is_empty() => {
            ids.iter().chain(freeform).map(String::as_str).collect()
        }
        _ => return None,
    };
    Some(words.join(", ")).filter(|words| !words.trim().is_empty())
}

/// An answer in the type that was asked for; `None` if it does not fit.
fn typed(kind: &str, value: &AnswerValue) -> Option<acp::ElicitationContentValue> {
    use acp::ElicitationContentValue as Content;
    Some(match (kind, value) {
        ("string", AnswerValue::Text(text)) => Content::String(text.clone()),
        ("string", AnswerValue::One { id, .. }) if !id.is_empty() => Content::String(id.clone()),
        ("number", AnswerValue::Number(number)) => Content::Number(number.as_f64()?),
        ("integer", AnswerValue::Number(number)) => Content::Integer(whole(number)?),
        ("boolean", AnswerValue::YesOrNo(yes)) => Content::Boolean(*yes),
        ("array", AnswerValue::Several { ids, .. }) => Content::StringArray(ids.clone()),
        _ => return None,
    })
}

/// An integer, also if a client wrote it as `3.0`.
fn whole(number: &Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let written_as_float = || number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT);
    number.as_i64().or_else(|| written_as_float().map(|number| number as i64))
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(properties: Value, required: Value) -> Value {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"sessionId": "s", "mode": "form", "message": "Tell me", "requestedSchema": schema})
    }

    fn questions(properties: Value) -> Vec<Question> {
        request(&form(properties, json!([])), "q".into()).unwrap().questions
    }

    fn kind_of(schema: Value) -> QuestionKind {
        questions(json!({"x": schema})).remove(0).kind
    }

    fn option(id: &str, label: &str, recommended: bool) -> Choice {
        Choice { id: id.to_owned(), label: label.to_owned(), description: None, recommended }
    }

    fn accepted(answers: impl IntoIterator<Item = (&'static str, Answer)>) -> InputResponse {
        let answers = answers.into_iter().map(|(id, answer)| (id.into(), answer)).collect();
        InputResponse { outcome: InputOutcome::Accepted, answers }
    }

    fn answer(elicitation: &Value, answered: Option<&InputResponse>) -> Value {
        serde_json::to_value(response(elicitation, answered)).unwrap()
    }

    #[test]
    fn a_form_is_questions_in_their_order() {
        let elicitation = form(
            json!({
                "zip": {"type": "string", "title": "Zip", "description": "Where?"},
                "age": {"type": "integer", "title": "Age"},
                "ok": {"type": "boolean"},
            }),
            json!(["age"]),
        );
        let request = request(&elicitation, "q".into()).unwrap();
        assert_eq!((request.id.as_str(), request.message.as_deref(), request.url), ("q", Some("Tell me"), None));
        let questions: Vec<_> =
            request.questions.iter().map(|q| (q.id.as_str(), q.title.as_deref(), &*q.message, q.required)).collect();
        let wanted =
            [("zip", Some("Zip"), "Where?", false), ("age", Some("Age"), "Age", true), ("ok", None, "ok", false)];
        assert_eq!(questions, wanted);
    }

    #[test]
    fn every_type_of_answer_has_its_kind_of_question() {
        assert_eq!(
            kind_of(json!({"type": "string", "format": "date-time", "minLength": 1, "maxLength": 9, "default": "d"})),
            QuestionKind::Text {
                format: Some("date-time".into()),
                min: Some(1),
                max: Some(9),
                default: Some("d".into())
            }
        );
        let number = |number: f64| Number::from_f64(number);
        assert_eq!(
            kind_of(json!({"type": "number", "minimum": 0.5, "maximum": 1.5, "default": 1.0})),
            QuestionKind::Number { whole: false, min: number(0.5), max: number(1.5), default: number(1.0) }
        );
        assert_eq!(
            kind_of(json!({"type": ["null", "integer"], "minimum": 1})),
            QuestionKind::Number { whole: true, min: Some(1.into()), max: None, default: None }
        );
        assert_eq!(kind_of(json!({"type": "boolean", "default": true})), QuestionKind::YesOrNo { default: Some(true) });
    }

    #[test]
    fn choices_are_understood_in_every_way_of_saying_them() {
        let ab = |recommended| vec![option("a", "A", recommended), option("b", "B", false)];
        let one = |schema: Value, options: Vec<Choice>| {
            assert_eq!(kind_of(schema), QuestionKind::One { options, freeform: false });
        };
        one(json!({"type": "string", "enum": ["a"]}), vec![option("a", "a", false)]);
        one(json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "a"}), ab(true));
        let titled = json!([{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]);
        one(json!({"type": "string", "oneOf": titled}), ab(false));
        let several =
            |items: Value| json!({"type": "array", "items": items, "minItems": 1, "maxItems": 2, "default": ["a"]});
        let wanted = QuestionKind::Several { options: ab(true), freeform: false, min: Some(1), max: Some(2) };
        assert_eq!(kind_of(several(json!({"anyOf": titled}))), wanted);
        assert_eq!(kind_of(several(json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}))), wanted);
    }

    #[test]
    fn a_choice_with_a_field_for_own_words_is_one_question() {
        let detail = |words: &str| json!({"_claude/askUserQuestionOption": {"description": words}});
        let options = json!([
            {"const": "Red", "title": "Red — like blood", "_meta": detail("like blood")},
            {"const": "Blue", "title": "Blue"},
        ]);
        let other = json!({"type": "string", "title": "Other", "description": "Type your own answer (optional)."});
        let elicitation = form(
            json!({
                "question_0": {"type": "string", "title": "Color", "oneOf": options}, "question_0_custom": other,
                "question_1": {"type": "array", "title": "Colors", "items": {"anyOf": options}}, "question_1_custom": other,
                "lone_custom": other,
            }),
            json!([]),
        );
        let request = request(&elicitation, "q".into()).unwrap();
        let ids: Vec<_> = request.questions.iter().map(|question| (question.id.as_str(), question.required)).collect();
        assert_eq!(ids, [("question_0", false), ("question_1", false), ("lone_custom", false)]);
        let QuestionKind::One { options, freeform: true } = &request.questions[0].kind else {
            panic!("{:?}", request.questions[0])
        };
        let shown: Vec<_> = options.iter().map(|one| (one.label.as_str(), one.description.as_deref())).collect();
        assert_eq!(shown, [("Red", Some("like blood")), ("Blue", None)]);
        assert!(
            matches!(&request.questions[1].kind, QuestionKind::Several { options, freeform: true, .. } if options.len() == 2)
        );

        let one = |id: &str, own: &[&str]| {
            let freeform = own.iter().map(|own| (*own).to_owned()).collect();
            Answer::Submitted(AnswerValue::One { id: id.into(), freeform })
        };
        let several = |ids: &[&str], own: &[&str]| {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            Answer::Submitted(AnswerValue::Several { ids: texts(ids), freeform: texts(own) })
        };
        let content =
            |answers: Vec<(&'static str, Answer)>| answer(&elicitation, Some(&accepted(answers)))["content"].clone();
        assert_eq!(
            content(vec![("question_0", one("Red", &[]))]),
            json!({"question_0": "Red"}),
            "no other answer is owed"
        );
        assert_eq!(content(vec![("question_0", one("", &["Green"]))]), json!({"question_0_custom": "Green"}));
        assert_eq!(content(vec![("question_0", Answer::text("Green"))])["question_0_custom"], "Green");
        assert_eq!(content(vec![("question_1", several(&["Red"], &[]))]), json!({"question_1": ["Red"]}));
        assert_eq!(
            content(vec![("question_1", several(&["Red"], &["Green"]))]),
            json!({"question_1": ["Red"], "question_1_custom": "Red, Green"})
        );
        assert_eq!(content(vec![("question_0", Answer::Skipped { freeform: vec![] })]), json!({}));
    }

    #[test]
    fn what_nobody_could_answer_is_refused_where_it_must_be_answered() {
        for odd in [json!({"type": "object"}), json!({"type": "array", "items": {"type": "string"}}), json!(7)] {
            let request_with = |required: Value| request(&form(json!({"x": odd}), required), "q".into());
            assert!(request_with(json!([])).unwrap().questions.is_empty(), "{odd}");
            assert!(request_with(json!(["x"])).unwrap_err().contains("\"x\""), "{odd}");
        }
        assert!(request(&json!({"mode": "telepathy", "message": "?"}), "q".into()).unwrap_err().contains("telepathy"));
    }

    #[test]
    fn an_address_is_gone_to() {
        let elicitation =
            json!({"sessionId": "s", "mode": "url", "elicitationId": "e", "url": "https://x", "message": "Go"});
        let request = request(&elicitation, "q".into()).unwrap();
        assert_eq!((request.url.as_deref(), request.questions.len()), (Some("https://x"), 0));
        assert_eq!(answer(&elicitation, Some(&accepted([]))), json!({"action": "accept"}));
        assert!(super::request(&json!({"mode": "url", "message": "Go"}), "q".into()).is_err());
    }

    #[test]
    fn answers_have_the_types_that_were_asked_for() {
        let elicitation = form(
            json!({
                "text": {"type": "string"}, "one": {"type": "string", "enum": ["a"]}, "number": {"type": "number"},
                "whole": {"type": "integer"}, "yes": {"type": "boolean"},
                "several": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
                "draft": {"type": "string"}, "skipped": {"type": "string"}, "odd": {"type": "integer"},
            }),
            json!([]),
        );
        let number = |number: f64| Answer::Submitted(AnswerValue::Number(Number::from_f64(number).unwrap()));
        let several = AnswerValue::Several { ids: vec!["a".into(), "b".into()], freeform: vec![] };
        let answered = accepted([
            ("text", Answer::text("t")),
            ("one", Answer::Submitted(AnswerValue::One { id: "a".into(), freeform: vec![] })),
            ("number", number(1.5)),
            ("whole", number(3.0)),
            ("yes", Answer::Submitted(AnswerValue::YesOrNo(true))),
            ("several", Answer::Submitted(several)),
            ("draft", Answer::Draft(AnswerValue::Text("d".into()))),
            ("skipped", Answer::Skipped { freeform: vec![] }),
            ("odd", number(0.5)),
            ("unasked", Answer::text("u")),
        ]);
        let content = json!({"text": "t", "one": "a", "number": 1.5, "whole": 3, "yes": true, "several": ["a", "b"]});
        assert_eq!(answer(&elicitation, Some(&answered)), json!({"action": "accept", "content": content}));
    }

    #[test]
    fn a_no_and_a_cancelled_turn_are_told_apart() {
        let elicitation = form(json!({}), json!([]));
        let ended = |outcome| InputResponse { outcome, answers: Answers::new() };
        assert_eq!(answer(&elicitation, Some(&ended(InputOutcome::Declined))), json!({"action": "decline"}));
        assert_eq!(answer(&elicitation, Some(&ended(InputOutcome::Cancelled))), json!({"action": "cancel"}));
        assert_eq!(answer(&elicitation, None), json!({"action": "cancel"}));
    }

    #[test]
    fn what_is_answered_is_what_the_protocol_has() {
        let elicitation = form(json!({"x": {"type": "integer"}}), json!(["x"]));
        assert!(serde_json::from_value::<acp::CreateElicitationRequest>(elicitation.clone()).is_ok());
        let answered = accepted([("x", Answer::Submitted(AnswerValue::Number(7.into())))]);
        let response = answer(&elicitation, Some(&answered));
        assert!(serde_json::from_value::<acp::CreateElicitationResponse>(response).is_ok());
    }
}
