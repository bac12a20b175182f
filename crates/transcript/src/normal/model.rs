//! The model of an answer, and its usage.

use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A model as a tool names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptModel {
    /// The tool's own id.
    pub id: String,
    /// The part before the first `/` of the id, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The rest of the id. [`model_key`] makes it comparable.
    pub model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The cost of one request, in requests of the person's allowance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Number>,
}

/// The usage, as far as the tool has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptUsage {
    /// The complete input of the model, cached tokens included.
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
    /// In the tool's own unit: premium requests, credits.
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

/// The name for comparing models over all tools and spellings: without vendor and trailing date, in lower case, with
/// the dots of its version as dashes. `copilot/claude-opus-4.5` and `claude-opus-4-5-20251101` are one model. It is
/// only for comparing; people see the tool's own name.
///
/// A gateway comes before the vendor, and both are left out: so an id has the same key as its model from
/// [`split_model_id`].
pub fn model_key(id: &str) -> String {
    let model = id.trim().trim_end_matches('/');
    let model = model.rsplit_once('/').map_or(model, |(_, model)| model).to_ascii_lowercase();
    let mut key = String::with_capacity(model.len());
    let mut rest = model.chars().peekable();
    while let Some(letter) = rest.next() {
        let is_version = letter == '.'
            && key.ends_with(|before: char| before.is_ascii_digit())
            && rest.peek().is_some_and(char::is_ascii_digit);
        key.push(if is_version { '-' } else { letter });
    }
    let length = undated(&key).len();
    key.truncate(length);
    key
}

/// A name without the date at its end: `-20251101`, `@20251101` or `-2025-11-01`. A name that is only a date stays.
fn undated(name: &str) -> &str {
    let is_date = |digits: &str| {
        let part = |from: usize, to: usize| digits.get(from..to).and_then(|digits| digits.parse::<u32>().ok());
        digits.len() == 8
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && part(0, 4).is_some_and(|year| (2000..2100).contains(&year))
            && part(4, 6).is_some_and(|month| (1..=12).contains(&month))
            && part(6, 8).is_some_and(|day| (1..=31).contains(&day))
    };
    for length in ["20251101".len(), "2025-11-01".len()] {
        let Some((head, date)) = name.len().checked_sub(length).and_then(|at| name.split_at_checked(at)) else {
            continue;
        };
        let digits = match length {
            8 => date.to_owned(),
            _ if date.as_bytes().get(4) == Some(&b'-') && date.as_bytes().get(7) == Some(&b'-') => {
                date.replace('-', "")
            }
            _ => continue,
        };
        if let Some(bare) = head.strip_suffix(['-', '@']).filter(|bare| !bare.is_empty() && is_date(&digits)) {
            return bare;
        }
    }
    name
}

impl TranscriptModel {
    pub fn new(id: &str) -> Self {
        let (vendor, model) = split_model_id(id);
        Self { id: id.to_owned(), vendor: vendor.map(str::to_owned), model: model.to_owned(), ..Self::default() }
    }
}

impl TranscriptUsage {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Fills unknown fields from `other`: a tool may have the same data in several places.
    pub fn fill(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.or(other.input_tokens);
        self.output_tokens = self.output_tokens.or(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.or(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.or(other.cache_write_tokens);
        self.reasoning_tokens = self.reasoning_tokens.or(other.reasoning_tokens);
        self.cost = self.cost.take().or(other.cost);
    }

    /// Adds further usage. Fields that neither has stay unknown.
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

/// Adds numbers: integers stay integers, unless they overflow to a float.
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
    fn one_model_has_one_name_to_compare_by_however_it_is_spelled() {
        for (key, spellings) in [
            (
                "claude-opus-4-5",
                &["claude-opus-4-5", "copilot/claude-opus-4.5", "claude-opus-4-5-20251101", "Claude-Opus-4.5"][..],
            ),
            ("claude-sonnet-4", &["claude-sonnet-4", "claude-sonnet-4-20250514", "anthropic/claude-sonnet-4@20250514"]),
            ("claude-sonnet-4-5", &["claude-sonnet-4-5-20250929", "copilot/claude-sonnet-4.5", "claude-sonnet-4.5"]),
            (
                "claude-haiku-4-5",
                &[
                    "generic-copilot/litellm/anthropic/claude-haiku-4.5",
                    "claude-haiku-4-5-20251001",
                    "claude-haiku-4.5",
                ],
            ),
            ("gpt-4-1", &["gpt-4.1", "openai/gpt-4.1-2025-04-14", "GPT-4.1"]),
            ("gpt-5-1-codex", &["gpt-5.1-codex", "copilot/gpt-5.1-codex"]),
            ("gemini-3-1-pro-preview-customtools", &["gemini-3.1-pro-preview-customtools"]),
            ("o3-mini", &["copilot/o3-mini", "o3-mini"]),
            // An invalid date is not a date, and the name stays.
            ("m-20259901", &["m-20259901"]),
            ("20251101", &["20251101"]),
            ("-20251101", &["-20251101"]),
            ("v1.beta", &["v1.beta"]),
            ("é-4-5", &["é-4.5-20251101"]),
            ("", &["", "/", " "]),
        ] {
            for spelling in spellings {
                assert_eq!(model_key(spelling), key, "{spelling}");
                assert_eq!(model_key(split_model_id(spelling).1), key, "{spelling}");
                assert_eq!(model_key(key), key);
            }
        }
        assert_ne!(model_key("claude-opus-4.5"), model_key("claude-opus-4"));
    }

    #[test]
    fn what_nobody_said_of_usage_stays_unsaid() {
        let mut sum = TranscriptUsage { input_tokens: Some(u64::MAX), ..TranscriptUsage::default() };
        sum.add(&TranscriptUsage { input_tokens: Some(5), cost: Some(1.into()), ..TranscriptUsage::default() });
        assert_eq!(
            sum,
            TranscriptUsage { input_tokens: Some(u64::MAX), cost: Some(1.into()), ..TranscriptUsage::default() }
        );
    }
}
