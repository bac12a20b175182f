//! The usage of models in metadata, where agents report it that have no place of the protocol for it.

use agent_client_protocol_schema::v1 as acp;
use grove_core::{ModelId, Usage};
use serde_json::Value;

use super::{JsonObject, text};

/// The usage of one model call (`_meta.usage` of a chunk). Two generations of names exist.
pub(super) fn of_call(usage: &JsonObject) -> Option<Usage> {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage.get(*name)?.as_u64());
    let usage = Usage {
        input_tokens: count(["inputTokens", "promptTokens"]),
        output_tokens: count(["outputTokens", "completionTokens"]),
        cache_read_tokens: count(["cachedReadTokens", "cachedTokens"]),
        cache_write_tokens: count(["cachedWriteTokens", "cachedWriteTokens"]),
        reasoning_tokens: count(["thoughtTokens", "thoughtsTokens"]),
        ..Usage::default()
    };
    (usage != Usage::default()).then_some(usage)
}

/// The usage of a turn: the protocol's, else that of the metadata (`_meta.quota`).
pub(super) fn of_turn(response: &acp::PromptResponse) -> Option<Usage> {
    if let Some(usage) = &response.usage {
        return Some(Usage {
            input_tokens: Some(usage.input_tokens),
            output_tokens: Some(usage.output_tokens),
            cache_read_tokens: usage.cached_read_tokens,
            cache_write_tokens: usage.cached_write_tokens,
            reasoning_tokens: usage.thought_tokens,
            ..Usage::default()
        });
    }
    quota(response.meta.as_ref()?.get("quota")?)
}

fn quota(quota: &Value) -> Option<Usage> {
    let tokens = quota.get("token_count")?;
    let count = |name: &str| tokens.get(name).and_then(Value::as_u64);
    // A turn that used several models has no single one.
    let model = match quota.get("model_usage").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.as_object().and_then(|only| text(only, "model")).map(ModelId::from),
        _ => None,
    };
    let usage =
        Usage { input_tokens: count("input_tokens"), output_tokens: count("output_tokens"), ..Usage::default() };
    (usage != Usage::default()).then_some(Usage { model, ..usage })
}
