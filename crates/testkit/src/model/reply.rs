//! An answer, in terms that all formats share.

use serde_json::Value;

use super::model_request::{ModelRequest, ModelToolKind};
use super::script::TokenUsage;

/// The part of an answer that has been given so far.
#[derive(Clone, Debug)]
pub(super) struct ModelReply {
    /// A unique id; formats add their prefix.
    pub(super) id: String,
    pub(super) model: String,
    /// Seconds since 1970.
    pub(super) created: u64,
    pub(super) blocks: Vec<Block>,
    input_tokens: u64,
    fixed: Option<TokenUsage>,
}

/// A part of an answer.
#[derive(Clone, Debug)]
pub(super) enum Block {
    Text(String),
    Thought(String),
    Call(Call),
}

/// A tool call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) kind: ModelToolKind,
    pub(super) arguments: Value,
}

/// The next event of an answer. Text blocks are opened, added to and closed; calls come complete.
#[derive(Clone, Debug)]
pub(super) enum ReplyEvent {
    Start,
    Open(TextKind),
    Delta(String),
    Close,
    Call(Call),
    /// It ends here with an error.
    Error(Value),
    End,
}

/// The kind of a block's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Thought,
}

impl ModelReply {
    pub(super) fn new(id: String, created: u64, model_request: &ModelRequest, fixed: Option<TokenUsage>) -> Self {
        let model = model_request.model.clone();
        Self { id, model, created, blocks: Vec::new(), input_tokens: model_request.input_tokens, fixed }
    }

    /// Applies an event.
    pub(super) fn take(&mut self, piece: &ReplyEvent) {
        match piece {
            ReplyEvent::Open(TextKind::Text) => self.blocks.push(Block::Text(String::new())),
            ReplyEvent::Open(TextKind::Thought) => self.blocks.push(Block::Thought(String::new())),
            ReplyEvent::Call(call) => self.blocks.push(Block::Call(call.clone())),
            ReplyEvent::Delta(more) => {
                if let Some(Block::Text(text) | Block::Thought(text)) = self.blocks.last_mut() {
                    text.push_str(more);
                }
            }
            ReplyEvent::Start | ReplyEvent::Close | ReplyEvent::Error(_) | ReplyEvent::End => {}
        }
    }

    /// The index of the newest block.
    pub(super) fn at(&self) -> usize {
        self.blocks.len().saturating_sub(1)
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        })
    }

    pub(super) fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// All texts of a kind, one after the other.
    pub(super) fn texts(&self, kind: TextKind) -> String {
        let texts = self.blocks.iter().filter_map(|block| match (block, kind) {
            (Block::Text(text), TextKind::Text) | (Block::Thought(text), TextKind::Thought) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The token usage so far.
    pub(super) fn usage(&self) -> TokenUsage {
        let length = |block: &Block| match block {
            Block::Text(text) | Block::Thought(text) => text.len(),
            Block::Call(call) => call.tool.len() + call.arguments.to_string().len(),
        };
        let output = tokens(self.blocks.iter().map(length).sum());
        self.fixed.unwrap_or(TokenUsage { input: self.input_tokens, output })
    }
}

impl Call {
    /// The arguments for formats that carry JSON as text.
    pub(super) fn written(&self) -> String {
        match &self.arguments {
            Value::String(text) if self.kind == ModelToolKind::Custom => text.clone(),
            arguments => arguments.to_string(),
        }
    }
}

/// An estimate of the tokens of so many bytes.
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4).max(1)
}

/// The text in so many pieces of about the same length; fewer if it is too short.
pub(super) fn pieces(text: &str, many: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let many = many.clamp(1, letters.len().max(1));
    let start = |piece: usize| piece * letters.len() / many;
    (0..many).map(|piece| letters[start(piece)..start(piece + 1)].iter().collect()).collect()
}
