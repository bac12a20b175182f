//! The running turn as a transcript. A session's log has a turn only when it has ended.

use grove_core::Extra;
use grove_transcript::{Notice, TranscriptMessage, TranscriptPart, TranscriptToolCall, TranscriptTurn, TurnOutcome};
use serde_json::Value;

use crate::chat_client::{PartContent, PartView, ToolPart, ToolPartState, TurnView};

/// The member of a turn's `raw` that distinguishes a running turn from an interrupted one.
pub(crate) const RUNNING: &str = "running";

/// Converts a running turn, so far as it is complete.
pub(crate) fn running_turn(turn: &TurnView<'_>) -> TranscriptTurn {
    TranscriptTurn {
        id: turn.id.to_owned(),
        message: TranscriptMessage { text: turn.prompt.to_owned(), ..TranscriptMessage::default() },
        parts: turn.parts.iter().filter_map(part).collect(),
        outcome: TurnOutcome::Interrupted,
        raw: [(RUNNING.to_owned(), Value::Bool(true))].into_iter().collect(),
        ..TranscriptTurn::default()
    }
}

/// Returns whether a turn is running.
pub(crate) fn is_running(turn: &TranscriptTurn) -> bool {
    turn.raw.get(RUNNING) == Some(&Value::Bool(true))
}

fn part(part: &PartView<'_>) -> Option<TranscriptPart> {
    let notice = |text: &str| {
        TranscriptPart::Notice(Notice { kind: "notice".to_owned(), text: text.to_owned(), raw: Extra::new() })
    };
    Some(match &part.content {
        PartContent::Text("") | PartContent::Reasoning("") => return None,
        PartContent::Text(text) => TranscriptPart::Text((*text).to_owned()),
        PartContent::Reasoning(text) => {
            TranscriptPart::Reasoning { text: (*text).to_owned(), title: None, duration_ms: None }
        }
        PartContent::ToolPart(tool) => TranscriptPart::ToolCall(Box::new(call(tool))),
        PartContent::Question { asks, .. } => notice(asks),
        PartContent::Notice(text) => notice(text),
        PartContent::PlanPart(plan) => notice(plan.text),
    })
}

fn call(tool: &ToolPart<'_>) -> TranscriptToolCall {
    let state = match &tool.state {
        ToolPartState::NotYet => "not started",
        ToolPartState::Runs => "running",
        ToolPartState::Done { success: true, .. } => "done",
        ToolPartState::Done { success: false, .. } => "failed",
        ToolPartState::Cancelled { .. } => "denied",
    };
    TranscriptToolCall {
        name: tool.does.to_owned(),
        summary: Some(state.to_owned()),
        raw_input: tool.input.map(Value::from),
        ..TranscriptToolCall::default()
    }
}
