//! Assembles a turn from events.

use std::collections::HashMap;

use grove_core::{ErrorInfo, Timestamp};
use grove_transcript::{
    Approval, CallState, Notice, ToolOutput, TranscriptModel, TranscriptPart, TranscriptToolCall, TranscriptTurn,
    TranscriptUsage, TurnOutcome, tools,
};
use serde_json::Value;

use super::event::LogEvent;
use crate::json::{JsonMembers, text_of};

/// A turn under construction, or a subagent's part in one.
#[derive(Debug, Default)]
pub(super) struct EventTurnBuilder {
    /// The turn without its parts.
    pub turn: TranscriptTurn,
    pieces: Vec<PartSlot>,
    calls: Vec<TranscriptToolCall>,
    /// The position of each call among the calls.
    places: HashMap<String, usize>,
    /// The call of each question.
    questions: HashMap<String, String>,
    /// Rounds that have not ended; a turn may have several.
    open_rounds: u32,
    has_rounds: bool,
    has_spoken: bool,
    /// The last error, as long as no answer follows.
    error: Option<ErrorInfo>,
    is_aborted: bool,
    /// True if another model was chosen after this turn's work, so that the choice does not concern it.
    is_past_choice: bool,
    /// Counted by messages, if there is no better source.
    output_tokens: u64,
}

/// A part, or a placeholder for a call.
#[derive(Debug)]
enum PartSlot {
    Part(TranscriptPart),
    Call(usize),
}

impl EventTurnBuilder {
    pub(super) fn new(turn: TranscriptTurn) -> Self {
        Self { turn, ..Self::default() }
    }

    pub(super) fn push(&mut self, part: TranscriptPart) {
        self.pieces.push(PartSlot::Part(part));
    }

    pub(super) fn notice(&mut self, kind: &str, text: String, data: JsonMembers) {
        self.push(TranscriptPart::Notice(Notice { kind: kind.to_owned(), text, raw: data.rest() }));
    }

    pub(super) fn round_begins(&mut self) {
        self.has_rounds = true;
        self.open_rounds = self.open_rounds.saturating_add(1);
    }

    pub(super) fn round_ends(&mut self, at: Option<Timestamp>) {
        self.open_rounds = self.open_rounds.saturating_sub(1);
        self.moved(at);
    }

    pub(super) fn abort(&mut self, at: Option<Timestamp>) {
        self.is_aborted = true;
        self.moved(at);
    }

    pub(super) fn fail(&mut self, error: ErrorInfo, at: Option<Timestamp>) {
        self.error = Some(error);
        self.moved(at);
    }

    pub(super) fn add_usage(&mut self, usage: &TranscriptUsage) {
        self.turn.usage.get_or_insert_default().add(usage);
    }

    /// Another model than `before` is chosen. The work so far was done by that one: a choice before the first round
    /// still counts for the turn.
    pub(super) fn model_changes(&mut self, before: Option<&str>) {
        let has_worked = self.has_rounds || self.has_spoken || !self.calls.is_empty();
        let is_over = self.is_aborted || self.error.is_some();
        if (has_worked || is_over) && !self.is_past_choice {
            self.is_past_choice = true;
            self.turn.model = self.turn.model.take().or_else(|| before.map(TranscriptModel::new));
        }
    }

    /// Extends the turn's duration to an event's time.
    fn moved(&mut self, at: Option<Timestamp>) {
        self.turn.ended_at = self.turn.ended_at.max(at);
    }

    /// Records work of the agent.
    fn answered(&mut self, at: Option<Timestamp>) {
        self.moved(at);
        self.error = None;
        if self.turn.first_response_ms.is_none() {
            self.turn.first_response_ms = self.turn.started_at.zip(at).map(|(from, to)| to.0.saturating_sub(from.0));
        }
    }

    pub(super) fn message(&mut self, event: LogEvent) {
        let LogEvent { at, id, mut data, .. } = event;
        self.answered(at);
        if let Some(text) = data.string("reasoningText") {
            self.think(text);
        }
        if let Some(text) = data.string("content").filter(|text| !text.is_empty()) {
            self.has_spoken = true;
            self.push(TranscriptPart::Text(text));
        }
        if let Some(model) = data.string("model") {
            self.turn.model = Some(TranscriptModel::new(&model));
        }
        self.output_tokens = self.output_tokens.saturating_add(data.unsigned("outputTokens").unwrap_or(0));
        self.turn.model_message_id = data.string("messageId").or(id).or(self.turn.model_message_id.take());
        for request in data.list("toolRequests") {
            match JsonMembers::of(request) {
                Ok(request) => self.requested(request),
                Err(odd) => self.push(TranscriptPart::Raw(odd)),
            }
        }
        data.forget(&["interactionId", "turnId", "apiCallId", "originatingMessageId", "parentToolCallId", "rte"]);
        let rest = data.rest();
        if !rest.is_empty() {
            self.push(TranscriptPart::Notice(Notice {
                kind: "assistant.message".into(),
                text: String::new(),
                raw: rest,
            }));
        }
    }

    /// Adds a thought, which comes with the message and by itself.
    pub(super) fn think(&mut self, text: String) {
        let is_known = self.pieces.iter().rev().take(4).any(
            |piece| matches!(piece, PartSlot::Part(TranscriptPart::Reasoning { text: known, .. }) if *known == text),
        );
        if !text.is_empty() && !is_known {
            self.push(TranscriptPart::Reasoning { text, title: None, duration_ms: None });
        }
    }

    fn requested(&mut self, mut request: JsonMembers) {
        let Some(id) = request.string("toolCallId") else {
            return self.push(TranscriptPart::Raw(request.into_value()));
        };
        let name = request.string("name");
        let arguments = request.any("arguments");
        let call = self.call(&id);
        call.intention =
            request.message("intentionSummary").or_else(|| request.message("toolTitle")).or(call.intention.take());
        describe(call, name, arguments);
        request.forget(&["type"]);
        call.raw.extend(request.rest());
    }

    pub(super) fn begin_call(&mut self, event: LogEvent) {
        let LogEvent { at, mut data, .. } = event;
        self.answered(at);
        let Some(id) = data.string("toolCallId") else {
            return self.notice("tool.execution_start", String::new(), data);
        };
        let name = data.string("toolName");
        let arguments = data.any("arguments");
        let call = self.call(&id);
        call.started_at = at;
        call.provider = data.string("mcpServerName").or(call.provider.take());
        describe(call, name, arguments);
    }

    pub(super) fn end_call(&mut self, event: LogEvent) {
        let LogEvent { at, mut data, .. } = event;
        self.answered(at);
        let Some(id) = data.string("toolCallId") else {
            return self.notice("tool.execution_complete", String::new(), data);
        };
        let call = self.call(&id);
        call.ended_at = at;
        let success = data.flag("success").unwrap_or(true);
        if call.state != CallState::Refused {
            call.state = if success { CallState::Complete } else { CallState::Failed };
        }
        if let Some(mut shell) = data.object("shellExecution") {
            call.exit_code = shell.signed("exitCode");
        }
        let result = data.any("result").or_else(|| data.any("error"));
        if let Some(result) = result {
            let content = ["content", "message"].iter().find_map(|key| result.get(key)).unwrap_or(&result);
            let text = text_of(content);
            // A result of only text has no further data as an object.
            let is_words = result.as_object().is_none_or(|members| members.len() == 1);
            call.output = Some(ToolOutput { text, raw: (!is_words).then_some(result) });
        }
        data.forget(&["model", "interactionId", "turnId", "rte", "toolTelemetry", "parentToolCallId"]);
        call.raw.extend(data.rest());
    }

    pub(super) fn permission_requested(&mut self, data: &mut JsonMembers) {
        let question = data.string("requestId");
        let call =
            data.peek("permissionRequest").and_then(|request| request.get("toolCallId")?.as_str()).map(str::to_owned);
        let Some(call) = call else { return };
        let intention =
            data.peek("permissionRequest").and_then(|request| request.get("intention")?.as_str()).map(str::to_owned);
        if let Some(question) = question {
            self.questions.insert(question, call.clone());
        }
        let call = self.call(&call);
        call.approval = Approval::Waiting;
        call.intention = call.intention.take().or(intention);
    }

    pub(super) fn decided(&mut self, data: &mut JsonMembers) {
        let question = data.string("requestId").and_then(|question| self.questions.remove(&question));
        let Some(call) = data.string("toolCallId").or(question) else { return };
        let kind = data.object("result").and_then(|mut result| result.string("kind")).unwrap_or_default();
        let call = self.call(&call);
        call.approval = approval_of(&kind);
        if is_denial(&kind) {
            call.state = CallState::Refused;
        }
    }

    /// The call of this id. An unknown one begins here.
    fn call(&mut self, id: &str) -> &mut TranscriptToolCall {
        let at = *self.places.entry(id.to_owned()).or_insert_with(|| {
            self.pieces.push(PartSlot::Call(self.calls.len()));
            self.calls.push(TranscriptToolCall { id: id.to_owned(), ..TranscriptToolCall::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// The finished turn.
    pub(super) fn finish(mut self, model: Option<&str>) -> TranscriptTurn {
        for call in self.calls.iter_mut().filter(|call| call.name.is_empty()) {
            call.name = "unnamed".to_owned();
        }
        let mut turn = self.turn;
        turn.parts = self
            .pieces
            .into_iter()
            .map(|piece| match piece {
                PartSlot::Part(part) => part,
                PartSlot::Call(at) => TranscriptPart::ToolCall(Box::new(std::mem::take(&mut self.calls[at]))),
            })
            .collect();
        turn.outcome = match self.error.take() {
            _ if self.is_aborted => TurnOutcome::Cancelled,
            Some(error) => TurnOutcome::Failed(error),
            None if self.has_rounds && self.open_rounds == 0 => TurnOutcome::Complete,
            None if !self.has_rounds && self.has_spoken => TurnOutcome::Complete,
            None => TurnOutcome::Interrupted,
        };
        turn.total_ms = turn.started_at.zip(turn.ended_at).map(|(from, to)| to.0.saturating_sub(from.0));
        if turn.model.is_none() && !self.is_past_choice {
            turn.model = model.map(TranscriptModel::new);
        }
        if self.output_tokens > 0 && turn.usage.is_none() {
            turn.usage =
                Some(TranscriptUsage { output_tokens: Some(self.output_tokens), ..TranscriptUsage::default() });
        }
        turn
    }
}

fn describe(call: &mut TranscriptToolCall, name: Option<String>, arguments: Option<Value>) {
    if let Some(name) = name {
        call.kind = tools::tool_kind(&name);
        call.name = name;
    }
    if let Some(arguments) = arguments {
        // Older versions have them as text.
        let parsed = match &arguments {
            Value::String(text) => serde_json::from_str(text).ok(),
            _ => None,
        };
        call.raw_input = Some(parsed.unwrap_or(arguments));
    }
    if let Some(input) = &call.raw_input {
        call.input = tools::input_of(call.kind, input);
    }
}

/// Reads the program's word for a decision.
fn approval_of(kind: &str) -> Approval {
    // Rules, and the absence of a person, also deny: no person has said no.
    let is_setting = ["rule", "auto", "policy", "hook", "not-available", "could-not-request"];
    if is_setting.iter().any(|word| kind.contains(word)) {
        Approval::Setting { id: Some(kind.to_owned()) }
    } else if is_denial(kind) {
        Approval::Denied
    } else if kind.starts_with("approve") {
        Approval::Person { button: Some(kind.to_owned()) }
    } else {
        Approval::Unknown
    }
}

fn is_denial(kind: &str) -> bool {
    ["denied", "reject", "not-available"].iter().any(|word| kind.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_person_denies_or_approves() {
        for kind in ["denied-interactively-by-user", "reject"] {
            assert_eq!(approval_of(kind), Approval::Denied, "{kind}");
        }
        for kind in [
            "denied-by-rules",
            "denied-by-content-exclusion-policy",
            "denied-by-permission-request-hook",
            "user-not-available",
            "denied-no-approval-rule-and-could-not-request-from-user",
        ] {
            assert_eq!(approval_of(kind), Approval::Setting { id: Some(kind.to_owned()) });
            assert!(is_denial(kind), "{kind}");
        }
        for kind in ["approved", "approve-once", "approve-for-session"] {
            assert_eq!(approval_of(kind), Approval::Person { button: Some(kind.to_owned()) });
            assert!(!is_denial(kind), "{kind}");
        }
    }
}
