//! The use of a model: tokens, context window, cost.

use serde::{Deserialize, Serialize};

use crate::ids::*;
use crate::input::Number;

#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub model: Option<ModelId>,
    pub cache_read_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The used and the available size of the model's context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUsage>,
    /// The cost of the session so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Usage {
    /// The usage after an update: fields that the update lacks stay.
    pub fn updated(&self, update: Usage) -> Usage {
        Usage {
            input_tokens: update.input_tokens.or(self.input_tokens),
            output_tokens: update.output_tokens.or(self.output_tokens),
            model: update.model.or_else(|| self.model.clone()),
            cache_read_tokens: update.cache_read_tokens.or(self.cache_read_tokens),
            cache_write_tokens: update.cache_write_tokens.or(self.cache_write_tokens),
            reasoning_tokens: update.reasoning_tokens.or(self.reasoning_tokens),
            context: update.context.or(self.context),
            cost: update.cost.or_else(|| self.cost.clone()),
        }
    }
}

impl Usage {
    /// The usage after one more call of a model: tokens add up, the rest is updated.
    pub fn added(&self, call: Usage) -> Usage {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Usage {
            input_tokens: sum(self.input_tokens, call.input_tokens),
            output_tokens: sum(self.output_tokens, call.output_tokens),
            cache_read_tokens: sum(self.cache_read_tokens, call.cache_read_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, call.cache_write_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, call.reasoning_tokens),
            model: call.model.or_else(|| self.model.clone()),
            context: call.context.or(self.context),
            cost: call.cost.or_else(|| self.cost.clone()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    pub used: u64,
    pub size: u64,
}

/// An amount as it was written: comparable for equality, unlike a float.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    pub amount: Number,
    /// An ISO 4217 code.
    pub currency: String,
}
