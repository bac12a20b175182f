//! Assembles a turn piece by piece from its log.

use std::collections::HashMap;

use grove_core::{ErrorInfo, Timestamp};
use grove_transcript::{
    CallState, Notice, TranscriptPart, TranscriptToolCall, TranscriptTurn, TranscriptUsage, TurnOutcome, tools,
};
use serde_json::Value;

use crate::json::JsonMembers;

/// A turn under construction.
#[derive(Debug, Default)]
pub(crate) struct TurnBuilder {
    /// The turn without its parts.
    pub turn: TranscriptTurn,
    pieces: Vec<PartSlot>,
    calls: Vec<TranscriptToolCall>,
    /// The position of each call among the calls.
    places: HashMap<String, usize>,
    /// The last error, as long as no answer follows.
    error: Option<ErrorInfo>,
    is_cancelled: bool,
    /// True if the log records its end.
    is_done: bool,
    /// True if the agent's last record is an answer, and not a call.
    has_answered: bool,
}

/// A part, or a placeholder for a call.
#[derive(Debug)]
enum PartSlot {
    Part(TranscriptPart),
    Call(usize),
}

/// The distance within which repeated text is found. Tools repeat at once.
const NEAR: usize = 6;

impl TurnBuilder {
    pub(crate) fn new(turn: TranscriptTurn) -> Self {
        Self { turn, ..Self::default() }
    }

    /// True if it has no results so far.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds a part and returns its position.
    pub(crate) fn push(&mut self, part: TranscriptPart) -> usize {
        self.pieces.push(PartSlot::Part(part));
        self.pieces.len() - 1
    }

    pub(crate) fn notice(&mut self, kind: &str, text: String, data: JsonMembers) {
        self.push(TranscriptPart::Notice(Notice { kind: kind.to_owned(), text, raw: data.rest() }));
    }

    /// Adds text of the agent.
    pub(crate) fn say(&mut self, text: String) -> Option<usize> {
        if text.is_empty() {
            return None;
        }
        self.has_answered = true;
        self.error = None;
        Some(self.push(TranscriptPart::Text(text)))
    }

    pub(crate) fn think(&mut self, text: String) -> Option<usize> {
        (!text.is_empty()).then(|| self.push(TranscriptPart::Reasoning { text, title: None, duration_ms: None }))
    }

    /// True if the same text or thought came just before.
    pub(crate) fn has_recent(&self, wanted: &TranscriptPart) -> bool {
        self.pieces.iter().rev().take(NEAR).any(|piece| matches!(piece, PartSlot::Part(part) if part == wanted))
    }

    /// The text or thought at this position, to be replaced: a stream may be written several times as it grows.
    pub(crate) fn text_at_mut(&mut self, at: usize) -> Option<&mut String> {
        match self.pieces.get_mut(at)? {
            PartSlot::Part(TranscriptPart::Text(text) | TranscriptPart::Reasoning { text, .. }) => Some(text),
            _ => None,
        }
    }

    /// The call of this id. An unknown one begins here.
    pub(crate) fn call(&mut self, id: &str) -> &mut TranscriptToolCall {
        let at = *self.places.entry(id.to_owned()).or_insert_with(|| {
            self.pieces.push(PartSlot::Call(self.calls.len()));
            self.calls.push(TranscriptToolCall { id: id.to_owned(), ..TranscriptToolCall::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// The known call of this id, or the last one if no id is given.
    pub(crate) fn known_call(&mut self, id: Option<&str>) -> Option<&mut TranscriptToolCall> {
        match id {
            Some(id) => self.calls.get_mut(*self.places.get(id)?),
            None => self.calls.last_mut(),
        }
    }

    /// Starts a call. A call without an id gets one.
    pub(crate) fn begin_call(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        input: Option<Value>,
        at: Option<Timestamp>,
    ) -> &mut TranscriptToolCall {
        self.has_answered = false;
        self.answered(at);
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call-{}", self.calls.len() + 1));
        let call = self.call(&id);
        call.started_at = call.started_at.or(at);
        describe(call, name, input);
        call
    }

    /// Ends a call.
    pub(crate) fn end_call(&mut self, id: &str, state: CallState, at: Option<Timestamp>) -> &mut TranscriptToolCall {
        self.has_answered = false;
        self.answered(at);
        let call = self.call(id);
        call.ended_at = at;
        call.state = state;
        call
    }

    /// Extends the turn's duration to an event's time.
    pub(crate) fn moved(&mut self, at: Option<Timestamp>) {
        self.turn.ended_at = self.turn.ended_at.max(at);
    }

    /// Records work of the agent.
    pub(crate) fn answered(&mut self, at: Option<Timestamp>) {
        self.moved(at);
        if self.turn.first_response_ms.is_none() {
            self.turn.first_response_ms = self.turn.started_at.zip(at).map(|(from, to)| to.0.saturating_sub(from.0));
        }
    }

    pub(crate) fn fail(&mut self, kind: &str, message: impl Into<String>) {
        self.error = Some(ErrorInfo::new(kind, message));
    }

    pub(crate) fn cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Records that the log has the turn's successful end.
    pub(crate) fn done(&mut self) {
        self.is_done = true;
    }

    pub(crate) fn add_usage(&mut self, usage: &TranscriptUsage) {
        if !usage.is_empty() {
            self.turn.usage.get_or_insert_default().add(usage);
        }
    }

    /// The finished turn.
    pub(crate) fn finish(mut self) -> TranscriptTurn {
        let is_waiting = self.calls.iter().any(|call| call.state == CallState::Interrupted);
        for call in self.calls.iter_mut().filter(|call| call.name.is_empty()) {
            call.name = "unnamed".to_owned();
        }
        let mut turn = self.turn;
        let calls = &mut self.calls;
        let parts = self.pieces.into_iter().map(|piece| match piece {
            PartSlot::Part(part) => part,
            PartSlot::Call(at) => TranscriptPart::ToolCall(Box::new(std::mem::take(&mut calls[at]))),
        });
        turn.parts = parts.collect();
        turn.outcome = match self.error.take() {
            _ if self.is_cancelled => TurnOutcome::Cancelled,
            Some(error) => TurnOutcome::Failed(error),
            None if self.is_done => TurnOutcome::Complete,
            None if self.has_answered && !is_waiting => TurnOutcome::Complete,
            None => TurnOutcome::Interrupted,
        };
        turn.total_ms = turn.started_at.zip(turn.ended_at).map(|(from, to)| to.0.saturating_sub(from.0));
        turn
    }
}

/// Sets a call's tool and input, as far as they are new.
pub(crate) fn describe(call: &mut TranscriptToolCall, name: Option<String>, input: Option<Value>) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        call.kind = tools::tool_kind(&name);
        call.name = name;
    }
    if let Some(input) = input {
        // Some models' APIs have an object as text.
        let parsed = match &input {
            Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
            _ => None,
        };
        call.raw_input = Some(parsed.unwrap_or(input));
    }
    if let Some(input) = &call.raw_input {
        call.input = tools::input_of(call.kind, input);
    }
}
