//! Pairs tool calls as the model made them with those that the person saw.
//!
//! VS Code keeps both and gives them different ids, so they are paired by order and by name, which differs in spelling.
//! A call that was never shown becomes a part of its own after the others.

use grove_transcript::{CallState, ToolInput, TranscriptPart, TranscriptToolCall, tools};
use serde_json::Value;

use super::invocation::parsed;
use super::results::output_of;
use crate::json::JsonMembers;

/// The maximum distance at which a shown call is searched.
const MAX_AHEAD: usize = 1_000;

/// A call of a round.
#[derive(Debug)]
pub(crate) struct ModelCall {
    pub id: String,
    pub name: String,
    pub arguments: Option<Value>,
}

impl ModelCall {
    pub(super) fn of(value: Value) -> Option<Self> {
        let mut members = JsonMembers::of(value).ok()?;
        Some(Self {
            id: members.string("id").unwrap_or_default(),
            name: members.string("name")?,
            arguments: members.any("arguments").map(parsed),
        })
    }
}

/// Adds calls and results to the parts. Results without a call stay in `results`.
pub(crate) fn pair(parts: &mut Vec<TranscriptPart>, calls: Vec<ModelCall>, results: &mut JsonMembers) {
    let mut shown: Vec<usize> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if matches!(part, TranscriptPart::ToolCall(_)) {
            shown.push(at);
        }
    }
    let mut next = 0;
    for call in calls {
        let found = shown[next..].iter().take(MAX_AHEAD).position(|at| match &parts[*at] {
            TranscriptPart::ToolCall(shown) => is_same(shown, &call),
            _ => false,
        });
        let result = results.any(&call.id);
        match found {
            Some(found) => {
                let at = shown[next + found];
                next += found + 1;
                if let TranscriptPart::ToolCall(shown) = &mut parts[at] {
                    complete(shown, call, result);
                }
            }
            None => {
                let mut unseen = TranscriptToolCall { id: call.id.clone(), ..TranscriptToolCall::default() };
                complete(&mut unseen, call, result);
                parts.push(TranscriptPart::ToolCall(Box::new(unseen)));
            }
        }
    }
}

fn is_same(shown: &TranscriptToolCall, call: &ModelCall) -> bool {
    if shown.model_id.is_some() {
        return false;
    }
    if !shown.id.is_empty() && call.id.split("__vscode-").next() == Some(shown.id.as_str()) {
        return true;
    }
    let kind = tools::tool_kind(&call.name);
    match &shown.shown_name {
        Some(name) => tools::canonical_tool_name(name) == tools::canonical_tool_name(&call.name),
        // It was named by its text, which tells only the kind.
        None => shown.kind == kind,
    }
}

fn complete(shown: &mut TranscriptToolCall, call: ModelCall, result: Option<Value>) {
    shown.kind = tools::tool_kind(&call.name);
    shown.name = call.name;
    shown.model_id = Some(call.id).filter(|id| *id != shown.id);
    if let Some(arguments) = call.arguments {
        if shown.input == ToolInput::Generic {
            shown.input = tools::input_of(shown.kind, &arguments);
        }
        shown.raw_input = Some(arguments);
    }
    if let Some(result) = result {
        // The model's result has more than the person saw.
        shown.output = Some(output_of(result));
        if shown.state == CallState::Interrupted {
            shown.state = CallState::Complete;
        }
    }
}
