//! The turn that runs at the moment, in the normal form. A session's log has it only when it is over.

use grove_core::Extra;
use grove_history::{ForeignMessage, ForeignPart, ForeignToolCall, ForeignTurn, Notice, TurnOutcome};
use serde_json::Value;

use crate::talk::{Content, Part, Tool, ToolState, Turn};

/// The member of a running turn's `raw` that tells it from one that was interrupted.
pub(crate) const RUNNING: &str = "running";

/// A running turn, as far as it has come.
pub(crate) fn running_turn(turn: &Turn<'_>) -> ForeignTurn {
    ForeignTurn {
        id: turn.id.to_owned(),
        message: ForeignMessage { text: turn.prompt.to_owned(), ..ForeignMessage::default() },
        parts: turn.parts.iter().filter_map(part).collect(),
        outcome: TurnOutcome::Interrupted,
        raw: [(RUNNING.to_owned(), Value::Bool(true))].into_iter().collect(),
        ..ForeignTurn::default()
    }
}

/// Whether a turn is one of these.
pub(crate) fn is_running(turn: &ForeignTurn) -> bool {
    turn.raw.get(RUNNING) == Some(&Value::Bool(true))
}

fn part(part: &Part<'_>) -> Option<ForeignPart> {
    let notice = |text: &str| {
        ForeignPart::Notice(Notice { kind: "notice".to_owned(), text: text.to_owned(), raw: Extra::new() })
    };
    Some(match &part.content {
        Content::Text("") | Content::Reasoning("") => return None,
        Content::Text(text) => ForeignPart::Text((*text).to_owned()),
        Content::Reasoning(text) => ForeignPart::Reasoning { text: (*text).to_owned(), title: None, duration_ms: None },
        Content::Tool(tool) => ForeignPart::ToolCall(Box::new(call(tool))),
        Content::Question { asks, .. } => notice(asks),
        Content::Notice(text) => notice(text),
        Content::Plan(plan) => notice(plan.text),
    })
}

fn call(tool: &Tool<'_>) -> ForeignToolCall {
    let state = match &tool.state {
        ToolState::NotYet => "not started",
        ToolState::Runs => "running",
        ToolState::Done { success: true, .. } => "done",
        ToolState::Done { success: false, .. } => "failed",
        ToolState::Cancelled { .. } => "denied",
    };
    ForeignToolCall {
        name: tool.does.to_owned(),
        summary: Some(state.to_owned()),
        raw_input: tool.input.map(Value::from),
        ..ForeignToolCall::default()
    }
}
