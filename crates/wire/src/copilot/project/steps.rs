//! The persisted steps of a turn, in order.
//!
//! A text is sent once it is complete: when another part follows, or at the turn's end. A call includes the text and
//! the reasoning right before it, as the message that requests it. Reasoning is sent with the text after it.

use grove_core::{Message, Outcome, Part, Timestamp, ToolCallStatus, Turn, TurnId};

/// A running or finished turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProjectedTurn<'a> {
    pub(super) id: &'a TurnId,
    pub(super) message: &'a Message,
    pub(super) parts: &'a [Part],
    pub(super) started_at: Timestamp,
    /// The outcome and the time of its end, once it has ended.
    pub(super) end: Option<(Outcome, Timestamp)>,
}

impl<'a> ProjectedTurn<'a> {
    pub(super) fn of(turn: &'a Turn) -> Self {
        Self {
            id: &turn.id,
            message: &turn.message,
            parts: &turn.parts,
            started_at: turn.started_at,
            end: Some((turn.outcome, turn.ended_at)),
        }
    }

    pub(super) fn running(turn: &'a grove_core::ActiveTurn) -> Self {
        let (id, message, parts) = (&turn.id, &turn.message, turn.parts());
        Self { id, message, parts, started_at: turn.started_at, end: None }
    }

    /// The error that ended the turn: it is sent at the end, and not in its place.
    pub(super) fn failure(&self) -> Option<usize> {
        match (self.end, self.parts.last()) {
            (Some((Outcome::Error, _)), Some(Part::Error(_))) => Some(self.parts.len() - 1),
            _ => None,
        }
    }
}

/// A step of a turn, which has one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TurnStep {
    pub(super) at: StepPosition,
    pub(super) what: StepKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepPosition {
    Beginning,
    Part(usize),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    UserMessage,
    TurnStart,
    /// A text without a call after it.
    Text,
    /// A call, with the text and reasoning before it.
    Request,
    Reasoning,
    ToolStart,
    ToolComplete,
    /// A notice, or a body that is stored elsewhere.
    Info,
    /// An error that did not end the turn.
    Warning,
    Abort,
    Failure,
    TurnEnd,
}

impl StepKind {
    /// A constant name: ids are derived from it.
    pub(super) fn name(self) -> &'static str {
        match self {
            StepKind::UserMessage => "user",
            StepKind::TurnStart => "start",
            StepKind::Text => "text",
            StepKind::Request => "request",
            StepKind::Reasoning => "reasoning",
            StepKind::ToolStart => "toolStart",
            StepKind::ToolComplete => "toolComplete",
            StepKind::Info => "info",
            StepKind::Warning => "warning",
            StepKind::Abort => "abort",
            StepKind::Failure => "failure",
            StepKind::TurnEnd => "end",
        }
    }
}

impl TurnStep {
    fn part(at: usize, what: StepKind) -> Self {
        Self { at: StepPosition::Part(at), what }
    }

    /// A number for its position.
    pub(super) fn place(self) -> usize {
        match self.at {
            StepPosition::Beginning | StepPosition::End => 0,
            StepPosition::Part(at) => at,
        }
    }
}

/// The steps before any part.
pub(super) const BEGINNING: [TurnStep; 2] = [
    TurnStep { at: StepPosition::Beginning, what: StepKind::UserMessage },
    TurnStep { at: StepPosition::Beginning, what: StepKind::TurnStart },
];

/// All steps of a turn so far.
pub(super) fn steps(turn: ProjectedTurn<'_>) -> impl Iterator<Item = TurnStep> + '_ {
    let parts = (0..turn.parts.len()).flat_map(move |at| of_part(turn, at));
    BEGINNING.into_iter().chain(parts).chain(of_end(turn))
}

/// The steps of a finished turn, after its parts.
pub(super) fn of_end(turn: ProjectedTurn<'_>) -> impl Iterator<Item = TurnStep> + use<> {
    let end = |what| TurnStep { at: StepPosition::End, what };
    let why = match turn.end {
        Some((Outcome::Cancelled, _)) => Some(end(StepKind::Abort)),
        Some((Outcome::Error, _)) => Some(end(StepKind::Failure)),
        Some((Outcome::Complete, _)) | None => None,
    };
    why.into_iter().chain(turn.end.map(|_| end(StepKind::TurnEnd)))
}

/// The steps of a part so far.
pub(super) fn of_part(turn: ProjectedTurn<'_>, at: usize) -> impl Iterator<Item = TurnStep> + use<> {
    let mut steps = [None; 3];
    match turn.parts.get(at) {
        Some(Part::Text(text)) if is_standalone(turn, at) => {
            steps[0] = match text.content.is_empty() {
                false => Some(TurnStep::part(at, StepKind::Text)),
                true => leading_parts(turn.parts, at)
                    .reasoning
                    .map(|reasoning| TurnStep::part(reasoning, StepKind::Reasoning)),
            };
        }
        Some(Part::Reasoning { content, .. }) if !content.is_empty() && is_standalone(turn, at) => {
            steps[0] = Some(TurnStep::part(at, StepKind::Reasoning));
        }
        Some(Part::ToolCall(call)) if call.status != ToolCallStatus::Streaming => {
            let is_done = matches!(call.status, ToolCallStatus::Completed(_) | ToolCallStatus::Cancelled(_));
            steps = [
                Some(TurnStep::part(at, StepKind::Request)),
                Some(TurnStep::part(at, StepKind::ToolStart)),
                (is_done || turn.end.is_some()).then_some(TurnStep::part(at, StepKind::ToolComplete)),
            ];
        }
        Some(Part::Content(_) | Part::Notice(_)) => steps[0] = Some(TurnStep::part(at, StepKind::Info)),
        Some(Part::Error(_)) if turn.failure() != Some(at) => steps[0] = Some(TurnStep::part(at, StepKind::Warning)),
        // Plans and questions are sent live only; a call with incomplete input is not sent yet.
        Some(
            Part::Text(_)
            | Part::Reasoning { .. }
            | Part::ToolCall(_)
            | Part::Error(_)
            | Part::InputRequest(_)
            | Part::Plan(_),
        )
        | None => {}
    }
    steps.into_iter().flatten()
}

/// True if a text or a thought is complete and not included in a later step.
fn is_standalone(turn: ProjectedTurn<'_>, at: usize) -> bool {
    let is_thought = matches!(turn.parts.get(at), Some(Part::Reasoning { .. }));
    match turn.parts.get(at + 1) {
        Some(Part::Text(_)) => !is_thought,
        // While a call's input is streamed, its outcome is open.
        Some(Part::ToolCall(call)) => call.status == ToolCallStatus::Streaming && turn.end.is_some(),
        Some(_) => true,
        None => turn.end.is_some(),
    }
}

/// The parts included with another: a text and a thought before a call, a thought before a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeadingParts {
    pub(super) text: Option<usize>,
    pub(super) reasoning: Option<usize>,
}

/// The parts included with part `at`, which is a call or a text.
pub(super) fn leading_parts(parts: &[Part], at: usize) -> LeadingParts {
    let is_text = |at: usize| matches!(parts.get(at), Some(Part::Text(_)));
    let text = match is_text(at) {
        true => Some(at),
        false => at.checked_sub(1).filter(|before| is_text(*before)),
    };
    let reasoning = text.unwrap_or(at).checked_sub(1).filter(|before| match parts.get(*before) {
        Some(Part::Reasoning { content, .. }) => !content.is_empty(),
        _ => false,
    });
    LeadingParts { text, reasoning }
}
