//! A turn: a user message and its results as an ordered list of parts.

mod active;
mod message;
mod part;
mod tool_call;
mod usage;

use std::sync::{Arc, OnceLock};

pub use active::*;
pub use message::*;
pub use part::*;
use serde::{Deserialize, Serialize};
pub use tool_call::*;
pub use usage::*;

use crate::ids::*;

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    Complete,
    Cancelled,
    Error,
}

/// A finished, immutable turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub id: TurnId,
    pub message: Message,
    pub parts: Vec<Part>,
    pub usage: Option<Usage>,
    pub outcome: Outcome,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// A cache for each dialect's encoding of this turn; nothing here reads it.
    #[serde(skip)]
    pub encodings: EncodingCache,
}

impl PartialEq for Turn {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.message == other.message
            && self.parts == other.parts
            && self.usage == other.usage
            && self.outcome == other.outcome
            && self.started_at == other.started_at
            && self.ended_at == other.ended_at
    }
}

impl Eq for Turn {}

/// A cache for dialects' encodings of an immutable value, kept with the value so that each is made once.
#[derive(Clone, Debug, Default)]
pub struct EncodingCache([OnceLock<Arc<str>>; EncodingCache::SLOTS]);

impl EncodingCache {
    /// The number of dialects that can cache an encoding.
    pub const SLOTS: usize = 2;

    /// The bytes in `slot`, made by `encode` at the first call. A slot that does not exist caches nothing.
    pub fn get_or_encode(&self, slot: usize, encode: impl FnOnce() -> String) -> Arc<str> {
        match self.0.get(slot) {
            Some(cell) => cell.get_or_init(|| encode().into()).clone(),
            None => encode().into(),
        }
    }
}
