//! What of a turn is told and kept, in order.
//!
//! A text is told once it is whole: when something else follows, or the turn is over. A call takes the text and the
//! reasoning right before it along, as the message that asks for it. Reasoning goes with the text behind it.

use grove_core::{Message, Outcome, Part, Timestamp, ToolCallStatus, Turn, TurnId};

/// A turn, running or over.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) id: &'a TurnId,
    pub(super) message: &'a Message,
    pub(super) parts: &'a [Part],
    pub(super) started_at: Timestamp,
    /// How it ended and when, once it has.
    pub(super) end: Option<(Outcome, Timestamp)>,
}

impl<'a> View<'a> {
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

    /// The error that ended the turn: it is told at the end, and not where it stands.
    pub(super) fn failure(&self) -> Option<usize> {
        match (self.end, self.parts.last()) {
            (Some((Outcome::Error, _)), Some(Part::Error(_))) => Some(self.parts.len() - 1),
            _ => None,
        }
    }
}

/// One event of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: At,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Beginning,
    Part(usize),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    UserMessage,
    TurnStart,
    /// A text that leads to no call.
    Text,
    /// A call, with what led to it.
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

impl What {
    /// A word for it that never changes: ids are made of it.
    pub(super) fn name(self) -> &'static str {
        match self {
            What::UserMessage => "user",
            What::TurnStart => "start",
            What::Text => "text",
            What::Request => "request",
            What::Reasoning => "reasoning",
            What::ToolStart => "toolStart",
            What::ToolComplete => "toolComplete",
            What::Info => "info",
            What::Warning => "warning",
            What::Abort => "abort",
            What::Failure => "failure",
            What::TurnEnd => "end",
        }
    }
}

impl Step {
    fn part(at: usize, what: What) -> Self {
        Self { at: At::Part(at), what }
    }

    /// A number for where it stands.
    pub(super) fn place(self) -> usize {
        match self.at {
            At::Beginning | At::End => 0,
            At::Part(at) => at,
        }
    }
}

/// What is told before any part.
pub(super) const BEGINNING: [Step; 2] =
    [Step { at: At::Beginning, what: What::UserMessage }, Step { at: At::Beginning, what: What::TurnStart }];

/// All that there is to tell of a turn by now.
pub(super) fn steps(turn: View<'_>) -> impl Iterator<Item = Step> + '_ {
    let parts = (0..turn.parts.len()).flat_map(move |at| of_part(turn, at));
    BEGINNING.into_iter().chain(parts).chain(of_end(turn))
}

/// What is told of a turn that is over, behind its parts.
pub(super) fn of_end(turn: View<'_>) -> impl Iterator<Item = Step> + use<> {
    let end = |what| Step { at: At::End, what };
    let why = match turn.end {
        Some((Outcome::Cancelled, _)) => Some(end(What::Abort)),
        Some((Outcome::Error, _)) => Some(end(What::Failure)),
        Some((Outcome::Complete, _)) | None => None,
    };
    why.into_iter().chain(turn.end.map(|_| end(What::TurnEnd)))
}

/// What there is to tell of a part by now.
pub(super) fn of_part(turn: View<'_>, at: usize) -> impl Iterator<Item = Step> + use<> {
    let mut steps = [None; 3];
    match turn.parts.get(at) {
        Some(Part::Text(text)) if is_told_alone(turn, at) => {
            steps[0] = match text.content.is_empty() {
                false => Some(Step::part(at, What::Text)),
                true => lead(turn.parts, at).reasoning.map(|reasoning| Step::part(reasoning, What::Reasoning)),
            };
        }
        Some(Part::Reasoning { content, .. }) if !content.is_empty() && is_told_alone(turn, at) => {
            steps[0] = Some(Step::part(at, What::Reasoning));
        }
        Some(Part::ToolCall(call)) if call.status != ToolCallStatus::Streaming => {
            let is_done = matches!(call.status, ToolCallStatus::Completed(_) | ToolCallStatus::Cancelled(_));
            steps = [
                Some(Step::part(at, What::Request)),
                Some(Step::part(at, What::ToolStart)),
                (is_done || turn.end.is_some()).then_some(Step::part(at, What::ToolComplete)),
            ];
        }
        Some(Part::Content(_) | Part::Notice(_)) => steps[0] = Some(Step::part(at, What::Info)),
        Some(Part::Error(_)) if turn.failure() != Some(at) => steps[0] = Some(Step::part(at, What::Warning)),
        // Plans and questions are told live only; a call whose input is not whole is nobody's business yet.
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

/// Whether a text, or a thought, is whole and goes with nothing that follows it.
fn is_told_alone(turn: View<'_>, at: usize) -> bool {
    let is_thought = matches!(turn.parts.get(at), Some(Part::Reasoning { .. }));
    match turn.parts.get(at + 1) {
        Some(Part::Text(_)) => !is_thought,
        // While the call's input is being written nobody knows what becomes of it.
        Some(Part::ToolCall(call)) => call.status == ToolCallStatus::Streaming && turn.end.is_some(),
        Some(_) => true,
        None => turn.end.is_some(),
    }
}

/// The parts that lead to another: a text and a thought before a call, a thought before a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lead {
    pub(super) text: Option<usize>,
    pub(super) reasoning: Option<usize>,
}

/// What goes with part `at`, which is a call or a text.
pub(super) fn lead(parts: &[Part], at: usize) -> Lead {
    let is_text = |at: usize| matches!(parts.get(at), Some(Part::Text(_)));
    let text = match is_text(at) {
        true => Some(at),
        false => at.checked_sub(1).filter(|before| is_text(*before)),
    };
    let reasoning = text.unwrap_or(at).checked_sub(1).filter(|before| match parts.get(*before) {
        Some(Part::Reasoning { content, .. }) => !content.is_empty(),
        _ => false,
    });
    Lead { text, reasoning }
}
