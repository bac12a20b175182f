//! Writes turns as entries.

use std::collections::HashSet;

use grove_core::*;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{GroveFields, TURN_END, TurnEnd};
use crate::entries::{self, Stamp};
use crate::settings::BranchSettings;
use crate::time;

/// The agent and model of a turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnAttribution<'a> {
    pub session: &'a SessionId,
    pub agent: &'a AgentId,
    /// The model of the turn, if it is known.
    pub model: Option<&'a ModelId>,
    /// The cost of the chat before the turn, if it is known.
    pub spent: Option<&'a Cost>,
    /// The end time by the host's clock, if it is known.
    pub seen_end: Option<Timestamp>,
}

/// Lines to append to a log, and the new leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLines {
    pub bytes: Vec<u8>,
    /// The new leaf.
    pub leaf: Option<String>,
}

/// The first line of a session's log.
pub fn header_line(session: &Session) -> Vec<u8> {
    let cwd = session.working_directories.first().map_or("/", String::as_str);
    line(&json!({
        "type": "session",
        "version": crate::VERSION,
        "id": session.id,
        "timestamp": time::iso(session.created_at),
        "cwd": cwd,
    }))
}

/// The line that names a session; an empty name removes it.
pub fn name_line(
    session: &SessionId,
    name: &str,
    at: Timestamp,
    parent: Option<&str>,
    is_taken: &dyn Fn(&str) -> bool,
) -> LogLines {
    let mut writer = TurnLineWriter::new(session, &format!("name {} {name}", at.0), parent, is_taken);
    writer.entry("session_info", at, json!({"name": name}));
    writer.finish()
}

/// The lines that record the current settings, if the branch has others. An unknown setting changes nothing.
pub fn settings_lines(
    session: &SessionId,
    known: &BranchSettings,
    current: &BranchSettings,
    at: Timestamp,
    parent: Option<&str>,
    is_taken: &dyn Fn(&str) -> bool,
) -> LogLines {
    let mut writer = TurnLineWriter::new(session, &format!("settings {}", at.0), parent, is_taken);
    let is_new = |now: &Option<String>, known: &Option<String>| now.is_some() && now != known;
    if let Some(model) = current.model.as_ref().filter(|model| Some(*model) != known.model.as_ref()) {
        let provider = model.provider.as_deref().unwrap_or_default();
        writer.entry_with(|stamp| entries::model_change(stamp, provider, &model.id), at);
    }
    if let Some(level) =
        current.thinking_level.as_ref().filter(|_| is_new(&current.thinking_level, &known.thinking_level))
    {
        writer.entry_with(|stamp| entries::thinking_level_change(stamp, level), at);
    }
    if let Some(mode) = current.mode.as_ref().filter(|_| is_new(&current.mode, &known.mode)) {
        writer.entry_with(|stamp| entries::mode_change(stamp, mode, None), at);
    }
    writer.finish()
}

/// The lines of a finished turn. The ids of its entries are derived from its own, so that a turn that is written twice,
/// as after a crash, is recognised; `is_taken` tells which ids the log has.
pub fn turn_lines(
    turn: &Turn,
    origin: TurnAttribution<'_>,
    parent: Option<&str>,
    is_taken: &dyn Fn(&str) -> bool,
) -> LogLines {
    let mut writer = TurnLineWriter::new(origin.session, turn.id.as_str(), parent, is_taken);
    writer.user(turn);
    let mut group = AssistantMessageParts::default();
    for part in &turn.parts {
        // A part after a tool call comes after its result, so the message ends with its calls. Parts that only Grove
        // reads do not end a message: other programs find the same messages with and without them.
        let goes_on = matches!(part, Part::ToolCall(_) | Part::Plan(_) | Part::Notice(_));
        if !group.calls.is_empty() && !goes_on {
            writer.assistant(&std::mem::take(&mut group), turn, origin, MessageEnd::Message);
        }
        group.add(part);
    }
    writer.assistant(&group, turn, origin, MessageEnd::Turn);
    let end = TurnEnd {
        turn: turn.id.clone(),
        outcome: turn.outcome,
        started_at: turn.started_at,
        ended_at: turn.ended_at,
        seen_end: origin.seen_end,
        usage: turn.usage.clone(),
    };
    writer.own(TURN_END, turn.ended_at, &end);
    writer.finish()
}

/// The parts of one assistant's message.
#[derive(Default)]
struct AssistantMessageParts<'a> {
    content: Vec<Value>,
    parts: Vec<Part>,
    calls: Vec<&'a ToolCall>,
}

/// The position of a message in its turn: the last one, or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageEnd {
    Message,
    Turn,
}

impl<'a> AssistantMessageParts<'a> {
    fn add(&mut self, part: &'a Part) {
        match part {
            Part::Text(text) => {
                self.content.push(json!({"type": "text", "text": text.content}));
                self.parts.push(Part::Text(TextPart { content: String::new(), ..text.clone() }));
            }
            Part::Reasoning { id, content } => {
                self.content.push(json!({"type": "thinking", "thinking": content}));
                self.parts.push(Part::Reasoning { id: id.clone(), content: String::new() });
            }
            Part::ToolCall(call) => {
                let arguments = arguments(call.input.as_deref());
                self.content
                    .push(json!({"type": "toolCall", "id": call.id, "name": call.name, "arguments": arguments}));
                let mut stored_call = call.clone();
                if let ToolCallStatus::Completed(result) | ToolCallStatus::PendingResultConfirmation(result) =
                    &mut stored_call.status
                    && let Some(output) = &mut result.output
                {
                    // The output is in the result's own entry.
                    output.clear();
                }
                self.parts.push(Part::ToolCall(stored_call));
                self.calls.push(call);
            }
            Part::Content(_) | Part::Error(_) | Part::InputRequest(_) | Part::Plan(_) | Part::Notice(_) => {
                self.parts.push(part.clone());
            }
        }
    }
}

/// The call's arguments. The format requires an object; another input is wrapped in one.
fn arguments(input: Option<&str>) -> Value {
    match input.map(serde_json::from_str::<Value>) {
        Some(Ok(object @ Value::Object(_))) => object,
        Some(_) => json!({"input": input}),
        None => json!({}),
    }
}

/// A call's result as a model is told, and true if it failed.
fn result_of(call: &ToolCall) -> (String, bool) {
    match &call.status {
        ToolCallStatus::Completed(result) | ToolCallStatus::PendingResultConfirmation(result) => {
            let text = result.output.as_ref().unwrap_or(&result.past_tense_message);
            (text.clone(), !result.success)
        }
        ToolCallStatus::Cancelled(cancellation) => {
            let text = match cancellation.reason {
                CancelReason::Denied => "The user did not allow this.",
                CancelReason::Skipped => "The user skipped this.",
                CancelReason::ResultDenied => "The user did not allow the result to be seen.",
            };
            (text.to_owned(), true)
        }
        ToolCallStatus::Streaming
        | ToolCallStatus::Ready
        | ToolCallStatus::PendingConfirmation(_)
        | ToolCallStatus::Running => ("The call was interrupted.".to_owned(), true),
    }
}

/// The cost of a turn in dollars, the format's currency; 0 if it was paid in another one.
///
/// The format has a cost on each message, and readers add them up; an agent reports the sum.
fn dollars(cost: &Cost, spent: Option<&Cost>) -> Number {
    const DOLLAR: &str = "USD";
    if cost.currency != DOLLAR {
        return 0.into();
    }
    let before = spent.filter(|spent| spent.currency == DOLLAR).and_then(|spent| spent.amount.as_f64());
    let more = cost.amount.as_f64().zip(before).map(|(after, before)| after - before);
    match more {
        // Rounded, since the difference of two fractions has spurious digits.
        Some(more) if more >= 0.0 => Number::from_f64((more * 1e9).round() / 1e9).unwrap_or_else(|| 0.into()),
        // Less than before: a restarted agent counts from zero.
        Some(_) | None => cost.amount.clone(),
    }
}

/// The hash from which entry ids are cut: of the session, the subject and the count.
pub(super) fn hash_of(session: &SessionId, what: &str, count: usize) -> String {
    hex::encode(Sha256::digest(format!("{session}\n{what}\n{count}")))
}

struct TurnLineWriter<'a> {
    session: &'a SessionId,
    what: String,
    count: usize,
    is_taken: &'a dyn Fn(&str) -> bool,
    /// The ids of these lines, which the log does not have yet.
    made: HashSet<String>,
    bytes: Vec<u8>,
    leaf: Option<String>,
}

impl<'a> TurnLineWriter<'a> {
    fn new(session: &'a SessionId, what: &str, parent: Option<&str>, is_taken: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            session,
            what: what.to_owned(),
            count: 0,
            is_taken,
            made: HashSet::new(),
            bytes: Vec::new(),
            leaf: parent.map(ToOwned::to_owned),
        }
    }

    fn user(&mut self, turn: &Turn) {
        let extra = GroveFields {
            turn: turn.id.clone(),
            message: Some(Message { text: String::new(), ..turn.message.clone() }),
            parts: Vec::new(),
        };
        let message = json!({"role": "user", "content": turn.message.text, "timestamp": turn.started_at});
        self.entry("message", turn.started_at, json!({"message": message, "grove": extra}));
    }

    fn assistant(
        &mut self,
        group: &AssistantMessageParts<'_>,
        turn: &Turn,
        origin: TurnAttribution<'_>,
        ends: MessageEnd,
    ) {
        if group.parts.is_empty() {
            return;
        }
        let error = group.parts.iter().find_map(|part| match part {
            Part::Error(error) => Some(error.message.clone()),
            _ => None,
        });
        let stop_reason = match (ends, turn.outcome) {
            (MessageEnd::Message, _) => "toolUse",
            (MessageEnd::Turn, Outcome::Complete) => "stop",
            (MessageEnd::Turn, Outcome::Cancelled) => "aborted",
            (MessageEnd::Turn, Outcome::Error) => "error",
        };
        // The turn's usage is written once, on its last message.
        let usage = turn.usage.clone().filter(|_| ends == MessageEnd::Turn).unwrap_or_default();
        let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
        let (read, written) = (usage.cache_read_tokens.unwrap_or(0), usage.cache_write_tokens.unwrap_or(0));
        let total = [input, output, read, written].into_iter().fold(0, u64::saturating_add);
        let cost = usage.cost.as_ref().map_or_else(|| 0.into(), |cost| dollars(cost, origin.spent));
        let model = origin.model.map_or("unknown", ModelId::as_str);
        let mut message = json!({
            "role": "assistant",
            "content": group.content,
            "api": "grove",
            "provider": origin.agent,
            "model": model,
            "usage": {
                "input": input, "output": output, "cacheRead": read, "cacheWrite": written,
                "totalTokens": total,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost},
            },
            "stopReason": stop_reason,
            "timestamp": turn.ended_at,
        });
        if let (Some(error), Some(message)) = (error, message.as_object_mut()) {
            message.insert("errorMessage".to_owned(), error.into());
        }
        let extra = GroveFields { turn: turn.id.clone(), message: None, parts: group.parts.clone() };
        self.entry("message", turn.ended_at, json!({"message": message, "grove": extra}));
        for call in &group.calls {
            let (text, is_error) = result_of(call);
            let message = json!({
                "role": "toolResult",
                "toolCallId": call.id,
                "toolName": call.name,
                "content": [{"type": "text", "text": text}],
                "isError": is_error,
                "timestamp": turn.ended_at,
            });
            self.entry("message", turn.ended_at, json!({"message": message, "grove": {"turn": turn.id}}));
        }
    }

    /// Adds an entry, which becomes the leaf.
    fn entry(&mut self, kind: &str, at: Timestamp, body: Value) {
        let id = self.next_id();
        self.line(kind, &id, at, body);
        self.leaf = Some(id);
    }

    /// Adds an entry made by one of the functions for entries, which becomes the leaf.
    fn entry_with(&mut self, make: impl FnOnce(Stamp<'_>) -> Vec<u8>, at: Timestamp) {
        let id = self.next_id();
        self.bytes.extend(make(Stamp { id: &id, parent: self.leaf.as_deref(), at }));
        self.bytes.push(b'\n');
        self.leaf = Some(id);
    }

    /// Adds an entry of Grove's own: a child of the leaf that never becomes the leaf.
    fn own(&mut self, custom_type: &str, at: Timestamp, data: &impl Serialize) {
        let id = self.next_id();
        self.line("custom", &id, at, json!({"customType": custom_type, "data": data}));
    }

    fn line(&mut self, kind: &str, id: &str, at: Timestamp, body: Value) {
        let mut entry = json!({"type": kind, "id": id, "parentId": self.leaf, "timestamp": time::iso(at)});
        if let (Some(entry), Value::Object(body)) = (entry.as_object_mut(), body) {
            entry.extend(body);
        }
        self.bytes.extend(line(&entry));
    }

    /// Eight digits of a hash, like the format's other writers, and more if those are taken. If all of a hash is taken,
    /// the next one is tried: an id is never used twice.
    fn next_id(&mut self) -> String {
        loop {
            let hash = hash_of(self.session, &self.what, self.count);
            self.count += 1;
            let ids = (8..=hash.len()).step_by(4).map(|length| &hash[..length]);
            for id in ids {
                if !(self.is_taken)(id) && self.made.insert(id.to_owned()) {
                    return id.to_owned();
                }
            }
        }
    }

    fn finish(self) -> LogLines {
        LogLines { bytes: self.bytes, leaf: self.leaf }
    }
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}
