//! Questions of an agent to a person, and the answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::*;

/// Something that an agent wants to know, in one or several questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequest {
    pub id: RequestId,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A place to go to instead of answering here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default)]
    pub questions: Vec<Question>,
    /// What has been answered so far, drafts among it.
    #[serde(default)]
    pub answers: Answers,
    /// How it ended, once it has.
    #[serde(default)]
    pub outcome: Option<InputOutcome>,
}

/// Answers by question.
pub type Answers = BTreeMap<QuestionId, Answer>;

impl InputRequest {
    /// The id of the question in a request that has one.
    const ONLY: &'static str = "answer";

    /// A single question that is answered in words.
    pub fn ask(id: RequestId, question: impl Into<String>) -> Self {
        let question = Question {
            id: QuestionId::from(Self::ONLY),
            title: None,
            message: question.into(),
            required: true,
            kind: QuestionKind::Text { format: None, min: None, max: None, default: None },
        };
        let questions = vec![question];
        Self { id, message: None, url: None, questions, answers: Answers::new(), outcome: None }
    }

    /// The first question that must be answered and is not, counting these answers as given.
    pub fn unanswered<'a>(&'a self, given: &Answers) -> Option<&'a Question> {
        self.questions.iter().filter(|question| question.required).find(|question| {
            let answer = given.get(&question.id).or_else(|| self.answers.get(&question.id));
            !matches!(answer, Some(Answer::Submitted(_)))
        })
    }
}

/// How an input request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputOutcome {
    Accepted,
    Declined,
    Cancelled,
}

/// How a request ended, and with which answers: what the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputResponse {
    pub outcome: InputOutcome,
    pub answers: Answers,
}

impl InputResponse {
    /// The answer in words, where the request was one question.
    pub fn text(&self) -> Option<&str> {
        match self.answers.values().next() {
            Some(Answer::Submitted(AnswerValue::Text(text))) => Some(text),
            _ => None,
        }
    }
}

/// One of the things that a request wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub id: QuestionId,
    pub title: Option<String>,
    pub message: String,
    pub required: bool,
    pub kind: QuestionKind,
}

/// What an answer looks like, and within which bounds. They are for whoever asks a person: nothing here checks an answer
/// against them, and an agent has to look at what it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum QuestionKind {
    Text { format: Option<String>, min: Option<u64>, max: Option<u64>, default: Option<String> },
    Number { whole: bool, min: Option<Number>, max: Option<Number>, default: Option<Number> },
    YesOrNo { default: Option<bool> },
    One { options: Vec<Choice>, freeform: bool },
    Several { options: Vec<Choice>, freeform: bool, min: Option<u64>, max: Option<u64> },
}

/// A number as it was written: equal means equal, which a float does not promise.
pub type Number = serde_json::Number;

/// One of the answers to choose from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    pub id: String,
    pub label: String,
    pub description: Option<String>,
    pub recommended: bool,
}

/// How far a person has come with a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Answer {
    /// Being written, and shown to everybody.
    Draft(AnswerValue),
    Submitted(AnswerValue),
    /// Passed over, perhaps with a word to it.
    Skipped {
        freeform: Vec<String>,
    },
}

impl Answer {
    /// An answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Answer::Submitted(AnswerValue::Text(text.into()))
    }
}

/// What was answered, in the shape of its [`QuestionKind`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AnswerValue {
    Text(String),
    Number(Number),
    YesOrNo(bool),
    One { id: String, freeform: Vec<String> },
    Several { ids: Vec<String>, freeform: Vec<String> },
}
