//! Keeps tool calls and their results together: models' APIs refuse one without the other.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::ControlFlow;

use super::Rules;
use super::messages::{ContextDraft, DraftRole};
use crate::fields::{each_block, is};
use crate::object::JsonObject;
use crate::scan::text_of;

/// The `customType` of the note in which oh-my-pi keeps the thoughts of an interrupted turn.
pub(super) const INTERRUPTED: &str = "interrupted-thinking";

/// The ids of the tool calls in a message's content.
pub(super) fn calls(content: Option<&[u8]>) -> Vec<Vec<u8>> {
    let mut calls = Vec::new();
    each_block(content, |_, block| {
        if is(block.kind, "toolCall") {
            calls.extend(block.id.and_then(text_of).map(Cow::into_owned));
        }
        ControlFlow::Continue(())
    });
    calls
}

/// True if drafts can be repaired without earlier ones. (Grove's begin where they can.)
pub(super) fn are_settled(rules: Rules, drafts: &[ContextDraft<'_>]) -> bool {
    if rules != Rules::Omp {
        return true;
    }
    let mut called = HashSet::new();
    let mut answered = HashSet::new();
    for draft in drafts {
        called.extend(draft.calls.iter());
        if let DraftRole::Result(call) = &draft.voice {
            if !called.contains(call) {
                return false;
            }
            answered.insert(call);
        }
    }
    // oh-my-pi accepts a result even before its call.
    called.iter().all(|call| answered.contains(*call))
}

/// Removes messages that a model's API would refuse, as far as the rules say so.
pub(super) fn repair_tool_calls(rules: Rules, mut drafts: Vec<ContextDraft<'_>>) -> Vec<ContextDraft<'_>> {
    match rules {
        Rules::Pi => drafts,
        Rules::Omp => {
            strip_calls_without_any_result(&mut drafts);
            drop_broken_turns(&mut drafts);
            drafts
        }
        Rules::Grove => pair_calls_and_results(drafts),
    }
}

/// oh-my-pi: removes every call without a result anywhere.
fn strip_calls_without_any_result(drafts: &mut Vec<ContextDraft<'_>>) {
    let answered: HashSet<Vec<u8>> = drafts.iter().filter_map(|draft| draft.voice.answers().cloned()).collect();
    drafts.retain_mut(|draft| {
        if draft.calls.iter().all(|call| answered.contains(call)) {
            return true;
        }
        strip(draft, &mut |call| answered.contains(call))
    });
}

/// Grove: a turn's calls are answered by the results that follow it, before the next message of the user or the
/// assistant. Other calls and results are removed, as are turns that were aborted or ended in an error. An extension's
/// messages in between move after the results.
fn pair_calls_and_results(drafts: Vec<ContextDraft<'_>>) -> Vec<ContextDraft<'_>> {
    let mut paired = ToolCallPairing { out: Vec::with_capacity(drafts.len()), open_turn: None, between: Vec::new() };
    for draft in drafts {
        match &draft.voice {
            DraftRole::User | DraftRole::Assistant => {
                paired.close();
                if !draft.is_gone && !draft.is_broken {
                    paired.open(draft);
                }
            }
            DraftRole::Result(_) | DraftRole::Other if draft.is_gone => {}
            DraftRole::Result(call) => {
                if paired.answer(call) {
                    paired.out.push(draft);
                }
            }
            DraftRole::Other if paired.waits() || !paired.between.is_empty() => paired.between.push(draft),
            DraftRole::Other => paired.out.push(draft),
        }
    }
    paired.close();
    paired.out
}

struct ToolCallPairing<'a> {
    out: Vec<ContextDraft<'a>>,
    /// The turn whose results may follow, and a flag for each answered call.
    open_turn: Option<(usize, Vec<bool>)>,
    /// Messages before the last result.
    between: Vec<ContextDraft<'a>>,
}

impl<'a> ToolCallPairing<'a> {
    fn open(&mut self, draft: ContextDraft<'a>) {
        if !draft.calls.is_empty() {
            self.open_turn = Some((self.out.len(), vec![false; draft.calls.len()]));
        }
        self.out.push(draft);
    }

    fn waits(&self) -> bool {
        self.open_turn.as_ref().is_some_and(|(_, answered)| answered.contains(&false))
    }

    /// Accepts a result if its call is open.
    fn answer(&mut self, call: &[u8]) -> bool {
        let Some((at, answered)) = &mut self.open_turn else { return false };
        let mut calls = self.out[*at].calls.iter().zip(answered);
        let wanted = calls.find(|(id, answered)| id.as_slice() == call && !**answered);
        wanted.map(|(_, answered)| *answered = true).is_some()
    }

    /// Ends the results of a turn.
    fn close(&mut self) {
        if let Some((at, answered)) = self.open_turn.take()
            && answered.contains(&false)
        {
            let mut answered = answered.into_iter();
            if !strip(&mut self.out[at], &mut |_| answered.next() == Some(true)) {
                self.out.remove(at);
            }
        }
        self.out.append(&mut self.between);
    }
}

/// Removes calls from a turn: `stays` decides on each call with an id, in order. The turn loses its signatures, which
/// would be invalid. Returns false if nothing is left.
fn strip(draft: &mut ContextDraft<'_>, stays: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    let Some(mut message) = JsonObject::parse(&draft.json) else { return true };
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    each_block(message.get("content"), |block, _| {
        blocks.extend(without_signature(block, stays));
        ControlFlow::Continue(())
    });
    if blocks.is_empty() {
        return false;
    }
    message.set("content", [b"[".as_slice(), &blocks.join(&b','), b"]"].concat());
    let json = message.render();
    draft.json = Cow::Owned(json);
    true
}

/// A block of a turn that loses calls, if the block stays.
fn without_signature(block: &[u8], stays: &mut dyn FnMut(&[u8]) -> bool) -> Option<Vec<u8>> {
    let Some(mut parsed) = JsonObject::parse(block) else { return Some(block.to_vec()) };
    if parsed.is("type", "redactedThinking") {
        return None;
    }
    if parsed.is("type", "toolCall") {
        return parsed.text("id").is_some_and(|id| stays(&id)).then(|| block.to_vec());
    }
    if parsed.is("type", "thinking") && parsed.get("thinkingSignature").is_some() {
        parsed.remove("thinkingSignature");
        return Some(parsed.render());
    }
    Some(block.to_vec())
}

/// oh-my-pi: removes turns that were aborted or ended in an error, with the results of their calls.
fn drop_broken_turns(drafts: &mut Vec<ContextDraft<'_>>) {
    let is_noted = |at: usize| drafts.get(at + 1).is_some_and(|next| next.is_note);
    let broken: HashSet<usize> = (0..drafts.len()).filter(|at| drafts[*at].is_broken && !is_noted(*at)).collect();
    if broken.is_empty() {
        return;
    }
    let calls: HashSet<Vec<u8>> = broken.iter().flat_map(|at| drafts[*at].calls.iter().cloned()).collect();
    let mut at = 0;
    drafts.retain(|draft| {
        let is_broken = broken.contains(&at);
        at += 1;
        !is_broken && draft.voice.answers().is_none_or(|call| !calls.contains(call))
    });
}
