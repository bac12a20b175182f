//! The formats between agents and their models.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::Value;

use super::model_request::ModelRequest;
use super::reply::{ModelReply, ReplyEvent};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelApi {
    /// OpenAI's chat completions.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Google's Gemini.
    Gemini,
}

/// The kind of a request, by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Answer(ModelApi),
    /// The length of a request.
    Count(ModelApi),
    /// The list of models.
    Models(ModelApi),
    /// Nothing that a model serves.
    Nothing,
}

/// Writes an answer in one format.
pub(super) trait ReplyWriter: Send {
    /// The events of the answer's next piece, which `reply` already has.
    fn write(&mut self, piece: &ReplyEvent, reply: &ModelReply, to: &mut SseEvents);

    /// The whole answer as one object.
    fn whole(&self, reply: &ModelReply) -> Value;
}

/// Server-sent events.
#[derive(Debug, Default)]
pub(super) struct SseEvents(String);

impl SseEvents {
    pub(super) fn push(&mut self, data: &Value) {
        self.0.push_str(&format!("data: {data}\n\n"));
    }

    pub(super) fn push_named(&mut self, name: &str, data: &Value) {
        self.0.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }

    /// An event whose data is not JSON.
    pub(super) fn push_raw(&mut self, data: &str) {
        self.0.push_str(&format!("data: {data}\n\n"));
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl Route {
    /// The route of a path. Agents differ in the parts before its last words.
    pub(super) fn of(path: &str) -> Self {
        let last = |words: &str| path.ends_with(words);
        match path {
            _ if last("/chat/completions") => Self::Answer(ModelApi::ChatCompletions),
            _ if last("/responses") => Self::Answer(ModelApi::Responses),
            _ if last("/messages") => Self::Answer(ModelApi::Messages),
            _ if last("/messages/count_tokens") => Self::Count(ModelApi::Messages),
            _ if last(":streamGenerateContent") || last(":generateContent") => Self::Answer(ModelApi::Gemini),
            _ if last(":countTokens") => Self::Count(ModelApi::Gemini),
            _ if last("/v1beta/models") => Self::Models(ModelApi::Gemini),
            _ if last("/models") => Self::Models(ModelApi::ChatCompletions),
            _ => Self::Nothing,
        }
    }
}

impl ModelApi {
    /// Reads a request. Missing members count as empty: checking requests is not this server's task.
    pub(super) fn read(self, path: &str, body: &Value) -> ModelRequest {
        match self {
            Self::ChatCompletions => chat::read(body),
            Self::Responses => responses::read(body),
            Self::Messages => messages::read(body),
            Self::Gemini => gemini::read(path, body),
        }
    }

    pub(super) fn writer(self, model_request: &ModelRequest) -> Box<dyn ReplyWriter> {
        match self {
            Self::ChatCompletions => Box::new(chat::ChatCompletions { wants_usage: model_request.wants_usage }),
            Self::Responses => Box::new(responses::Responses::default()),
            Self::Messages => Box::new(messages::Messages),
            Self::Gemini => Box::new(gemini::Gemini),
        }
    }

    /// The body of an error.
    pub(super) fn error(self, status: u16, message: &str) -> Value {
        match self {
            Self::ChatCompletions | Self::Responses => chat::error(status, message),
            Self::Messages => messages::error(status, message),
            Self::Gemini => gemini::error(status, message),
        }
    }

    /// The answer to a request for a length.
    pub(super) fn count(self, tokens: u64) -> Value {
        match self {
            Self::Gemini => serde_json::json!({"totalTokens": tokens}),
            _ => serde_json::json!({"input_tokens": tokens}),
        }
    }

    /// The list of models: one.
    pub(super) fn models(self, model: &str) -> Value {
        match self {
            Self::Gemini => gemini::models(model),
            _ => chat::models(model),
        }
    }
}
