//! Tool calls and their results must stand together: providers refuse one without the other.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::messages::Draft;
use crate::object::Object;

/// The `customType` of the note with which oh-my-pi keeps what an interrupted turn thought.
const INTERRUPTED: &str = "interrupted-thinking";

/// The ids of an assistant's tool calls.
pub(super) fn calls(message: &Object<'_>) -> Vec<Vec<u8>> {
    let blocks = blocks(message);
    let calls = blocks.iter().filter_map(|block| Object::parse(block.get().as_bytes()));
    calls.filter(|block| block.is("type", "toolCall")).filter_map(|call| Some(call.text("id")?.into_owned())).collect()
}

/// Takes away every call that no result answers. What is changed loses its signatures, which would no longer hold, and
/// what is empty then goes.
pub(super) fn strip_dangling_calls(drafts: &mut Vec<Draft>) {
    let answered: HashSet<Vec<u8>> = drafts.iter().filter_map(|draft| answers(&draft.message())).collect();
    drafts.retain_mut(|draft| {
        let message = draft.message();
        if !message.is("role", "assistant") || calls(&message).iter().all(|call| answered.contains(call)) {
            return true;
        }
        let kept: Vec<Vec<u8>> =
            blocks(&message).iter().filter_map(|block| without_signature(block, &answered)).collect();
        if kept.is_empty() {
            return false;
        }
        let mut changed = message.clone();
        changed.set("content", [b"[".as_slice(), &kept.join(&b','), b"]"].concat());
        let json = changed.render();
        draft.replace(json);
        true
    });
}

/// A block of a turn that loses calls, where it stays.
fn without_signature(block: &RawValue, answered: &HashSet<Vec<u8>>) -> Option<Vec<u8>> {
    let raw = block.get().as_bytes();
    let Some(mut parsed) = Object::parse(raw) else { return Some(raw.to_vec()) };
    if parsed.is("type", "redactedThinking") {
        return None;
    }
    if parsed.is("type", "toolCall") {
        return parsed.text("id").is_some_and(|id| answered.contains(id.as_ref())).then(|| raw.to_vec());
    }
    if parsed.is("type", "thinking") && parsed.get("thinkingSignature").is_some() {
        parsed.remove("thinkingSignature");
        return Some(parsed.render());
    }
    Some(raw.to_vec())
}

/// Takes away turns that were aborted or ended in an error, with the results of their calls.
pub(super) fn drop_broken_turns(drafts: &mut Vec<Draft>) {
    let mut broken = HashSet::new();
    let mut calls_of_broken = HashSet::new();
    for (at, draft) in drafts.iter().enumerate() {
        let message = draft.message();
        let ended_badly = message.is("stopReason", "aborted") || message.is("stopReason", "error");
        let noted = || drafts.get(at + 1).is_some_and(|next| next.message().is("customType", INTERRUPTED));
        if message.is("role", "assistant") && ended_badly && !noted() {
            broken.insert(at);
            calls_of_broken.extend(calls(&message));
        }
    }
    if broken.is_empty() {
        return;
    }
    let mut at = 0;
    drafts.retain(|draft| {
        let is_broken = broken.contains(&at);
        at += 1;
        !is_broken && answers(&draft.message()).is_none_or(|call| !calls_of_broken.contains(&call))
    });
}

/// Takes away results whose call does not stand before them.
pub(super) fn drop_orphan_results(drafts: &mut Vec<Draft>) {
    let mut called = HashSet::new();
    drafts.retain(|draft| {
        let message = draft.message();
        if message.is("role", "assistant") {
            called.extend(calls(&message));
        }
        answers(&message).is_none_or(|call| called.contains(&call))
    });
}

/// The call that a message is the result of.
fn answers(message: &Object<'_>) -> Option<Vec<u8>> {
    if !message.is("role", "toolResult") {
        return None;
    }
    Some(message.text("toolCallId").map(|id| id.into_owned()).unwrap_or_default())
}

fn blocks<'a>(message: &'a Object<'_>) -> Vec<&'a RawValue> {
    message.get("content").and_then(|content| serde_json::from_slice(content).ok()).unwrap_or_default()
}
