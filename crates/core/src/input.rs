//! An agent's questions to a person, and the answers.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::answerer::Answerer;
use crate::ids::*;

/// An agent's request for input: one or several questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequest {
    pub id: RequestId,
    /// The subject of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// An address to open instead of answering here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default)]
    pub questions: Vec<Question>,
    /// The answers so far, drafts included.
    #[serde(default)]
    pub answers: Answers,
    /// The outcome, once the request has ended.
    #[serde(default)]
    pub outcome: Option<InputOutcome>,
    /// The party that answered, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Box<Answerer>>,
}

/// Answers by question.
pub type Answers = BTreeMap<QuestionId, Answer>;

impl Question {
    /// The reason why a value does not answer this question, in words that follow "it"; `None` if it does.
    pub fn answer_error(&self, value: &AnswerValue) -> Option<String> {
        match (&self.kind, value) {
            (QuestionKind::Text { min, max, .. }, AnswerValue::Text(text)) => {
                let length = text.chars().count() as u64;
                outside(length, *min, *max).map(|bounds| format!("has {length} characters, but {bounds} are required"))
            }
            (QuestionKind::Number { whole, min, max, .. }, AnswerValue::Number(number)) => {
                number_error(number, *whole, min.as_ref(), max.as_ref())
            }
            (QuestionKind::YesOrNo { .. }, AnswerValue::YesOrNo(_)) => None,
            (QuestionKind::One { options, freeform }, AnswerValue::One { id, freeform: own }) => {
                if !own.is_empty() && !freeform {
                    return Some("is free text, but one of the options is required".to_owned());
                }
                // Free text replaces an option or comes with one.
                if id.is_empty() && !own.is_empty() { None } else { not_offered(options, id) }
            }
            (QuestionKind::Several { options, freeform, min, max }, AnswerValue::Several { ids, freeform: own }) => {
                if !own.is_empty() && !freeform {
                    return Some("is free text, but only options are allowed".to_owned());
                }
                if let Some(unknown) = ids.iter().find_map(|id| not_offered(options, id)) {
                    return Some(unknown);
                }
                if let Some((_, twice)) = ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id)) {
                    return Some(format!("names {twice:?} twice"));
                }
                let count = (ids.len() + own.len()) as u64;
                outside(count, *min, *max).map(|bounds| format!("has {count} choices, but {bounds} are required"))
            }
            (
                QuestionKind::One { freeform: true, .. } | QuestionKind::Several { freeform: true, .. },
                AnswerValue::Text(_),
            ) => None,
            (kind, _) => Some(format!("has the wrong type: {} is required", kind.words())),
        }
    }
}

fn number_error(number: &Number, whole: bool, min: Option<&Number>, max: Option<&Number>) -> Option<String> {
    if whole && !is_whole(number) {
        return Some("is not a whole number".to_owned());
    }
    let below = min.filter(|min| compare(number, min) == Some(Ordering::Less));
    let above = max.filter(|max| compare(number, max) == Some(Ordering::Greater));
    match (below, above) {
        (Some(min), _) => Some(format!("is less than {min}")),
        (None, Some(max)) => Some(format!("is more than {max}")),
        (None, None) => None,
    }
}

/// The bounds in words, if a count is outside of them.
fn outside(count: u64, min: Option<u64>, max: Option<u64>) -> Option<String> {
    let is_outside = min.is_some_and(|min| count < min) || max.is_some_and(|max| count > max);
    is_outside.then(|| match (min, max) {
        (Some(min), Some(max)) if min == max => format!("exactly {min}"),
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any number".to_owned(),
    })
}

fn not_offered(options: &[Choice], id: &str) -> Option<String> {
    let is_offered = options.iter().any(|option| option.id == id);
    (!is_offered).then(|| format!("names {id:?}, which is none of the options"))
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

impl InputRequest {
    /// The first of these answers that does not fit its question, and the reason.
    pub fn answer_error<'a>(&'a self, given: &Answers) -> Option<(&'a Question, String)> {
        self.questions.iter().find_map(|question| match given.get(&question.id)? {
            Answer::Submitted(value) => Some((question, question.answer_error(value)?)),
            Answer::Draft(_) | Answer::Skipped { .. } => None,
        })
    }

    /// The question's id in a request with a single question.
    const ONLY: &'static str = "answer";

    /// Creates a request with a single question to be answered in words.
    pub fn ask(id: RequestId, question: impl Into<String>) -> Self {
        let question = Question {
            id: QuestionId::from(Self::ONLY),
            title: None,
            message: question.into(),
            required: true,
            kind: QuestionKind::Text { format: None, min: None, max: None, default: None },
        };
        let questions = vec![question];
        Self { id, message: None, url: None, questions, answers: Answers::new(), outcome: None, answered_by: None }
    }

    /// The first required question without an answer, with `given` counted as answered.
    pub fn unanswered<'a>(&'a self, given: &Answers) -> Option<&'a Question> {
        self.questions.iter().filter(|question| question.required).find(|question| {
            let answer = given.get(&question.id).or_else(|| self.answers.get(&question.id));
            !matches!(answer, Some(Answer::Submitted(_)))
        })
    }
}

/// The outcome of an input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputOutcome {
    Accepted,
    Declined,
    Cancelled,
}

/// The outcome of a request with its answers, as the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputResponse {
    pub outcome: InputOutcome,
    pub answers: Answers,
}

impl InputResponse {
    /// The answer in words, if the request had a single question.
    pub fn text(&self) -> Option<&str> {
        match self.answers.values().next() {
            Some(Answer::Submitted(AnswerValue::Text(text))) => Some(text),
            _ => None,
        }
    }
}

/// A question of an input request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub id: QuestionId,
    pub title: Option<String>,
    pub message: String,
    pub required: bool,
    pub kind: QuestionKind,
}

/// The form and the bounds of an answer ([`Question::answer_error`]). The format of a text is for the client that asks
/// a person: nothing here checks an answer against it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum QuestionKind {
    Text { format: Option<String>, min: Option<u64>, max: Option<u64>, default: Option<String> },
    Number { whole: bool, min: Option<Number>, max: Option<Number>, default: Option<Number> },
    YesOrNo { default: Option<bool> },
    One { options: Vec<Choice>, freeform: bool },
    Several { options: Vec<Choice>, freeform: bool, min: Option<u64>, max: Option<u64> },
}

impl QuestionKind {
    fn words(&self) -> &'static str {
        match self {
            QuestionKind::Text { .. } => "a text",
            QuestionKind::Number { whole: true, .. } => "a whole number",
            QuestionKind::Number { whole: false, .. } => "a number",
            QuestionKind::YesOrNo { .. } => "yes or no",
            QuestionKind::One { .. } => "one of the options",
            QuestionKind::Several { .. } => "some of the options",
        }
    }
}

/// A number as it was written: comparable for equality, unlike a float.
pub type Number = serde_json::Number;

/// An option of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    pub id: String,
    pub label: String,
    pub description: Option<String>,
    pub recommended: bool,
}

/// The state of a question's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Answer {
    /// Being written, and shown to every client.
    Draft(AnswerValue),
    Submitted(AnswerValue),
    /// Skipped, perhaps with a comment.
    Skipped {
        freeform: Vec<String>,
    },
}

impl Answer {
    /// Creates an answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Answer::Submitted(AnswerValue::Text(text.into()))
    }
}

/// The value of an answer, in the form of its [`QuestionKind`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AnswerValue {
    Text(String),
    Number(Number),
    YesOrNo(bool),
    One { id: String, freeform: Vec<String> },
    Several { ids: Vec<String>, freeform: Vec<String> },
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn question(kind: QuestionKind) -> Question {
        Question { id: "q".into(), title: None, message: "?".to_owned(), required: true, kind }
    }

    fn options() -> Vec<Choice> {
        let option = |id: &str| Choice { id: id.into(), label: id.into(), description: None, recommended: false };
        ["a", "b", "c"].map(option).to_vec()
    }

    #[test]
    fn a_text_has_as_many_characters_as_its_bounds_say() {
        let question = question(QuestionKind::Text { format: None, min: Some(2), max: Some(3), default: None });
        let answer_error = |text: &str| question.answer_error(&AnswerValue::Text(text.to_owned()));
        assert_eq!(answer_error("x").as_deref(), Some("has 1 characters, but 2 to 3 are required"));
        assert!(answer_error("éé").is_none() && answer_error("ééé").is_none() && answer_error("éééé").is_some());
        let other = question.answer_error(&AnswerValue::YesOrNo(true));
        assert_eq!(other.as_deref(), Some("has the wrong type: a text is required"));
    }

    #[test]
    fn a_number_lies_within_its_bounds() {
        let kind = QuestionKind::Number { whole: true, min: Some(1.into()), max: Some(9.into()), default: None };
        let whole = question(kind);
        let answer_error = |number: Value| match number {
            Value::Number(number) => whole.answer_error(&AnswerValue::Number(number)),
            other => panic!("{other}"),
        };
        assert!(
            answer_error(json!(1)).is_none() && answer_error(json!(9)).is_none() && answer_error(json!(5.0)).is_none()
        );
        assert_eq!(answer_error(json!(0)).as_deref(), Some("is less than 1"));
        assert_eq!(answer_error(json!(u64::MAX)).as_deref(), Some("is more than 9"));
        assert_eq!(answer_error(json!(5.5)).as_deref(), Some("is not a whole number"));
        let any = question(QuestionKind::Number { whole: false, min: Number::from_f64(0.5), max: None, default: None });
        assert!(any.answer_error(&AnswerValue::Number(1.into())).is_none());
        assert!(any.answer_error(&AnswerValue::Number(0.into())).is_some());
    }

    #[test]
    fn choices_are_among_the_options_and_as_many_as_are_wanted() {
        let one = |freeform| question(QuestionKind::One { options: options(), freeform });
        let value = |id: &str, own: &[&str]| AnswerValue::One {
            id: id.to_owned(),
            freeform: own.iter().map(|own| (*own).to_owned()).collect(),
        };
        assert!(
            one(false).answer_error(&value("a", &[])).is_none()
                && one(true).answer_error(&value("", &["mine"])).is_none()
        );
        for bad in [value("x", &[]), value("", &[]), value("", &["mine"]), value("a", &["mine"])] {
            assert!(one(false).answer_error(&bad).is_some(), "{bad:?}");
        }
        let kind = QuestionKind::Several { options: options(), freeform: false, min: Some(1), max: Some(2) };
        let several = question(kind);
        let answer_error = |ids: &[&str]| {
            let ids = ids.iter().map(|id| (*id).to_owned()).collect();
            several.answer_error(&AnswerValue::Several { ids, freeform: vec![] })
        };
        assert!(answer_error(&["a"]).is_none() && answer_error(&["a", "c"]).is_none());
        assert_eq!(answer_error(&[]).as_deref(), Some("has 0 choices, but 1 to 2 are required"));
        assert!(
            answer_error(&["a", "b", "c"]).is_some()
                && answer_error(&["a", "a"]).is_some()
                && answer_error(&["x"]).is_some()
        );
    }
}
