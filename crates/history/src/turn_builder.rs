//! A turn that is put together piece by piece, as its log tells it.

use std::collections::HashMap;

use grove_core::{ErrorInfo, Timestamp};
use serde_json::Value;

use crate::json::JsonMembers;
use crate::normal::{
    CallState, Notice, TranscriptPart, TranscriptToolCall, TranscriptTurn, TranscriptUsage, TurnOutcome,
};
use crate::tools;

/// A turn of which more may come.
#[derive(Debug, Default)]
pub(crate) struct TurnBuilder {
    /// What is known of it, but for its parts.
    pub turn: TranscriptTurn,
    pieces: Vec<PartSlot>,
    calls: Vec<TranscriptToolCall>,
    /// Where each call stands among the calls.
    places: HashMap<String, usize>,
    /// What went wrong, while nothing has been said since.
    error: Option<ErrorInfo>,
    is_cancelled: bool,
    /// Whether the log says that it came to its end.
    is_done: bool,
    /// Whether the last that is told of the agent is an answer, and no call.
    has_answered: bool,
}

/// A part, or the call that will stand in its place.
#[derive(Debug)]
enum PartSlot {
    Part(TranscriptPart),
    Call(usize),
}

/// How far back the same words are looked for. Tools that tell something twice do so at once.
const NEAR: usize = 6;

impl TurnBuilder {
    pub(crate) fn new(turn: TranscriptTurn) -> Self {
        Self { turn, ..Self::default() }
    }

    /// Whether nothing has come of it so far.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds a part and gives its place.
    pub(crate) fn push(&mut self, part: TranscriptPart) -> usize {
        self.pieces.push(PartSlot::Part(part));
        self.pieces.len() - 1
    }

    pub(crate) fn notice(&mut self, kind: &str, text: String, data: JsonMembers) {
        self.push(TranscriptPart::Notice(Notice { kind: kind.to_owned(), text, raw: data.rest() }));
    }

    /// The agent has said something.
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

    /// Whether the same was said, or thought, just before.
    pub(crate) fn has_recent(&self, wanted: &TranscriptPart) -> bool {
        self.pieces.iter().rev().take(NEAR).any(|piece| matches!(piece, PartSlot::Part(part) if part == wanted))
    }

    /// What was said or thought at this place, to be said anew: a stream may be written down several times as it grows.
    pub(crate) fn text_at_mut(&mut self, at: usize) -> Option<&mut String> {
        match self.pieces.get_mut(at)? {
            PartSlot::Part(TranscriptPart::Text(text) | TranscriptPart::Reasoning { text, .. }) => Some(text),
            _ => None,
        }
    }

    /// The call of this id. One that was not told of before begins here.
    pub(crate) fn call(&mut self, id: &str) -> &mut TranscriptToolCall {
        let at = *self.places.entry(id.to_owned()).or_insert_with(|| {
            self.pieces.push(PartSlot::Call(self.calls.len()));
            self.calls.push(TranscriptToolCall { id: id.to_owned(), ..TranscriptToolCall::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// The call of this id, or the last one where none is named, if it was told of.
    pub(crate) fn known_call(&mut self, id: Option<&str>) -> Option<&mut TranscriptToolCall> {
        match id {
            Some(id) => self.calls.get_mut(*self.places.get(id)?),
            None => self.calls.last_mut(),
        }
    }

    /// The agent calls a tool. What it calls without an id gets one.
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

    /// A call has come to its end.
    pub(crate) fn end_call(&mut self, id: &str, state: CallState, at: Option<Timestamp>) -> &mut TranscriptToolCall {
        self.has_answered = false;
        self.answered(at);
        let call = self.call(id);
        call.ended_at = at;
        call.state = state;
        call
    }

    /// Something happened, so the turn lasted at least until then.
    pub(crate) fn moved(&mut self, at: Option<Timestamp>) {
        self.turn.ended_at = self.turn.ended_at.max(at);
    }

    /// The agent has done something.
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

    /// The log says that the turn is over, and well.
    pub(crate) fn done(&mut self) {
        self.is_done = true;
    }

    pub(crate) fn add_usage(&mut self, usage: &TranscriptUsage) {
        if !usage.is_empty() {
            self.turn.usage.get_or_insert_default().add(usage);
        }
    }

    /// The turn, once nothing more of it comes.
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

/// Says of a call what its tool and its input are, as far as that is news.
pub(crate) fn describe(call: &mut TranscriptToolCall, name: Option<String>, input: Option<Value>) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        call.kind = tools::tool_kind(&name);
        call.name = name;
    }
    if let Some(input) = input {
        // Some models' interfaces have an object's text in place of the object.
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
