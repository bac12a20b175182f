//! A turn: a user message and its results as an ordered list of parts.

mod active;
mod cache;
mod message;
mod part;
mod tool_call;
mod usage;

pub use active::*;
pub use cache::*;
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
    /// A cache for what others derive from this turn.
    #[serde(skip)]
    pub derived: DerivedCache,
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
