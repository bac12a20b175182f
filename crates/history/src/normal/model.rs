//! Which model answered, and what it used.

use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A model as a tool names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForeignModel {
    /// As the tool has it.
    pub id: String,
    /// What stands before the first `/` of the id, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// What stands behind it: what models are compared by over all tools.
    pub model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// How many requests of the person's allowance one request costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Number>,
}

/// What was used, as far as the tool says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForeignUsage {
    /// All that the model was given, what came out of a cache included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// In the tool's own unit, of which it has one: premium requests, credits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Number>,
}

/// Vendor and model of an id, split at the first `/`.
pub fn split_model_id(id: &str) -> (Option<&str>, &str) {
    match id.split_once('/') {
        Some((vendor, model)) if !vendor.is_empty() && !model.is_empty() => (Some(vendor), model),
        _ => (None, id),
    }
}

impl ForeignModel {
    pub fn new(id: &str) -> Self {
        let (vendor, model) = split_model_id(id);
        Self { id: id.to_owned(), vendor: vendor.map(str::to_owned), model: model.to_owned(), ..Self::default() }
    }
}

impl ForeignUsage {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes from `other` what is not known yet: a tool may tell the same in several places.
    pub fn fill(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.or(other.input_tokens);
        self.output_tokens = self.output_tokens.or(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.or(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.or(other.cache_write_tokens);
        self.reasoning_tokens = self.reasoning_tokens.or(other.reasoning_tokens);
        self.cost = self.cost.take().or(other.cost);
    }

    /// Adds what was used elsewhere. What neither says stays unsaid.
    pub fn add(&mut self, other: &Self) {
        let sum = |mine: &mut Option<u64>, other: Option<u64>| {
            if let Some(other) = other {
                *mine = Some(mine.unwrap_or(0).saturating_add(other));
            }
        };
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.cache_read_tokens, other.cache_read_tokens);
        sum(&mut self.cache_write_tokens, other.cache_write_tokens);
        sum(&mut self.reasoning_tokens, other.reasoning_tokens);
        self.cost = match (self.cost.take(), &other.cost) {
            (Some(mine), Some(other)) => added(&mine, other).or(Some(mine)),
            (mine, other) => mine.or_else(|| other.clone()),
        };
    }
}

/// Whole numbers stay whole, and what is too large for that is a float.
fn added(one: &Number, other: &Number) -> Option<Number> {
    match (one.as_u64(), other.as_u64()) {
        (Some(one), Some(other)) if one.checked_add(other).is_some() => Some((one + other).into()),
        _ => Number::from_f64(one.as_f64()? + other.as_f64()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_id_is_split_at_the_first_slash_into_vendor_and_model() {
        for (id, expected) in [
            ("copilot/claude-opus-4.5", (Some("copilot"), "claude-opus-4.5")),
            ("generic-copilot/litellm/anthropic/haiku", (Some("generic-copilot"), "litellm/anthropic/haiku")),
            ("gpt-4", (None, "gpt-4")),
            ("/gpt-4", (None, "/gpt-4")),
            ("copilot/", (None, "copilot/")),
            ("", (None, "")),
        ] {
            assert_eq!(split_model_id(id), expected, "{id}");
        }
    }

    #[test]
    fn what_nobody_said_of_usage_stays_unsaid() {
        let mut sum = ForeignUsage { input_tokens: Some(u64::MAX), ..ForeignUsage::default() };
        sum.add(&ForeignUsage { input_tokens: Some(5), cost: Some(1.into()), ..ForeignUsage::default() });
        assert_eq!(sum, ForeignUsage { input_tokens: Some(u64::MAX), cost: Some(1.into()), ..ForeignUsage::default() });
    }
}
