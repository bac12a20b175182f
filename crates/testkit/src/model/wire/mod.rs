//! The formats that agents speak with their models.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::Value;

use super::ask::Ask;
use super::reply::{Piece, Reply};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Google's Gemini.
    Gemini,
}

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Answer(Wire),
    /// Only how long the request is.
    Count(Wire),
    /// Which models there are.
    Models(Wire),
    /// Nothing that a model serves.
    Nothing,
}

/// Writes an answer in one format.
pub(super) trait Writer: Send {
    /// The events of the answer's next piece, which `reply` already has.
    fn write(&mut self, piece: &Piece, reply: &Reply, to: &mut Events);

    /// The whole answer as one object.
    fn whole(&self, reply: &Reply) -> Value;
}

/// Server-sent events.
#[derive(Debug, Default)]
pub(super) struct Events(String);

impl Events {
    pub(super) fn push(&mut self, data: &Value) {
        self.0.push_str(&format!("data: {data}\n\n"));
    }

    pub(super) fn push_named(&mut self, name: &str, data: &Value) {
        self.0.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }

    /// An event whose data are not JSON.
    pub(super) fn push_raw(&mut self, data: &str) {
        self.0.push_str(&format!("data: {data}\n\n"));
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl Wants {
    /// What a path asks for. Agents differ in what they put before the last words of it.
    pub(super) fn of(path: &str) -> Self {
        let last = |words: &str| path.ends_with(words);
        match path {
            _ if last("/chat/completions") => Self::Answer(Wire::Chat),
            _ if last("/responses") => Self::Answer(Wire::Responses),
            _ if last("/messages") => Self::Answer(Wire::Messages),
            _ if last("/messages/count_tokens") => Self::Count(Wire::Messages),
            _ if last(":streamGenerateContent") || last(":generateContent") => Self::Answer(Wire::Gemini),
            _ if last(":countTokens") => Self::Count(Wire::Gemini),
            _ if last("/v1beta/models") => Self::Models(Wire::Gemini),
            _ if last("/models") => Self::Models(Wire::Chat),
            _ => Self::Nothing,
        }
    }
}

impl Wire {
    /// Reads a request. What is missing is taken as empty: an agent that forgets a field is not this server's concern.
    pub(super) fn read(self, path: &str, body: &Value) -> Ask {
        match self {
            Self::Chat => chat::read(body),
            Self::Responses => responses::read(body),
            Self::Messages => messages::read(body),
            Self::Gemini => gemini::read(path, body),
        }
    }

    pub(super) fn writer(self, ask: &Ask) -> Box<dyn Writer> {
        match self {
            Self::Chat => Box::new(chat::Chat { wants_usage: ask.wants_usage }),
            Self::Responses => Box::new(responses::Responses::default()),
            Self::Messages => Box::new(messages::Messages),
            Self::Gemini => Box::new(gemini::Gemini),
        }
    }

    /// The body of an error.
    pub(super) fn error(self, status: u16, message: &str) -> Value {
        match self {
            Self::Chat | Self::Responses => chat::error(status, message),
            Self::Messages => messages::error(status, message),
            Self::Gemini => gemini::error(status, message),
        }
    }

    /// The answer to how long a request is.
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
