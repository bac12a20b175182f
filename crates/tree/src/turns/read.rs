//! Reads turns from entries.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;
use serde::Deserialize;
use serde_json::Value;

use super::{GroveFields, TURN_END, TurnEnd};
use crate::index::{EntryNo, LogIndex, Owner};
use crate::kind::EntryType;
use crate::log::Log;

/// The turns along the branch of a log's leaf, oldest first. One of Grove's own turns without an end is left out: its
/// rest is in the journal.
pub fn turns(log: &Log) -> Vec<Arc<Turn>> {
    let index = log.index();
    let branch = index.leaf().map(|leaf| index.branch(leaf)).unwrap_or_default();
    let own = index.entries().filter(|entry| index.owner(*entry) == Owner::Grove);
    let lines = branch.iter().map(|entry| (*entry, log.line(*entry)));
    turns_of(index, lines, own.map(|entry| log.line(entry)))
}

/// The turns of consecutive entries of a branch, given with their lines. `own` are the lines of Grove's own entries
/// that may concern them.
pub(crate) fn turns_of<'a>(
    index: &LogIndex,
    entries: impl Iterator<Item = (EntryNo, &'a [u8])>,
    own: impl Iterator<Item = &'a [u8]>,
) -> Vec<Arc<Turn>> {
    let ends = turn_ends(own);
    let mut turns: Vec<Arc<Turn>> = Vec::new();
    let mut open: Option<LoggedTurnBuilder> = None;
    for (entry, line) in entries {
        let Some(message) = LoggedMessage::read(index, entry, line) else { continue };
        if message.begins_turn() {
            turns.extend(open.take().and_then(|open| open.close(&ends)));
            open = Some(LoggedTurnBuilder::new(index, message));
        } else if let Some(open) = &mut open {
            open.add(message);
        }
    }
    turns.extend(open.and_then(|open| open.close(&ends)));
    turns
}

/// The turns of all branches, in the order of their first entries. Turns without an end are left out as by [`turns`].
///
/// A turn in which another program branched has the messages of all its branches. An entry whose parent comes after it
/// belongs to no turn.
pub fn turns_of_all_branches(log: &Log) -> Vec<Arc<Turn>> {
    let index = log.index();
    let own = index.entries().filter(|entry| index.owner(*entry) == Owner::Grove);
    let ends = turn_ends(own.map(|entry| log.line(entry)));
    let mut open: Vec<LoggedTurnBuilder> = Vec::new();
    // The turn of each entry, by its position in `open`.
    let mut turn_of: HashMap<EntryNo, usize> = HashMap::new();
    for entry in index.entries() {
        let turn = index.parent(entry).and_then(|parent| turn_of.get(&parent).copied());
        let message = LoggedMessage::read(index, entry, log.line(entry));
        let turn = match message {
            Some(message) if message.begins_turn() => {
                open.push(LoggedTurnBuilder::new(index, message));
                Some(open.len() - 1)
            }
            Some(message) => {
                if let Some(open) = turn.and_then(|turn| open.get_mut(turn)) {
                    open.add(message);
                }
                turn
            }
            None => turn,
        };
        if let Some(turn) = turn {
            turn_of.insert(entry, turn);
        }
    }
    open.into_iter().filter_map(|open| open.close(&ends)).collect()
}

/// The ends of turns among Grove's own lines.
fn turn_ends<'a>(own: impl Iterator<Item = &'a [u8]>) -> HashMap<TurnId, TurnEnd> {
    own.filter_map(end_in).map(|end| (end.turn.clone(), end)).collect()
}

/// The turn that a message written by Grove belongs to.
pub(crate) fn turn_id_in(line: &[u8]) -> Option<TurnId> {
    #[derive(Deserialize)]
    struct TurnIdLine {
        grove: GroveFields,
    }
    #[derive(Deserialize)]
    struct GroveFields {
        turn: TurnId,
    }
    let named = |line: &[u8]| serde_json::from_slice::<TurnIdLine>(line).map(|named| named.grove.turn);
    named(line).or_else(|_| named(&without_surrogates(line))).ok()
}

/// The turn that a line belongs to or ends, as Grove writes it.
pub(crate) fn turn_in(line: &[u8]) -> Option<TurnId> {
    turn_id_in(line).or_else(|| end_in(line).map(|end| end.turn))
}

/// Returns true if a line is a person's message, which begins a turn.
pub(crate) fn begins_turn(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct RoleLine {
        message: RoleField,
    }
    #[derive(Deserialize)]
    struct RoleField {
        role: String,
    }
    let role = |line: &[u8]| serde_json::from_slice::<RoleLine>(line).map(|head| head.message.role);
    role(line).or_else(|_| role(&without_surrogates(line))).is_ok_and(|role| role == "user")
}

/// The id and start time of the turn that a line ends, if it ends one.
pub fn parse_turn_end(line: &[u8]) -> Option<(TurnId, Timestamp)> {
    end_in(line).map(|end| (end.turn, end.started_at))
}

pub(super) fn end_in(line: &[u8]) -> Option<TurnEnd> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Custom {
        custom_type: String,
        data: TurnEnd,
    }
    let custom: Custom = serde_json::from_slice(line).ok()?;
    (custom.custom_type == TURN_END).then_some(custom.data)
}

#[derive(Deserialize)]
struct MessageLine {
    message: MessageBody,
    #[serde(default)]
    grove: Option<GroveFields>,
}

/// A message of the format, as far as it is known.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageBody {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(default)]
    usage: Option<Value>,
}

/// A message of a log.
struct LoggedMessage {
    entry: EntryNo,
    line: MessageLine,
    at: Timestamp,
}

impl LoggedMessage {
    /// `None` for an entry that is no message, or whose message cannot be read.
    fn read(index: &LogIndex, entry: EntryNo, line: &[u8]) -> Option<Self> {
        if index.kind(entry) != EntryType::Message {
            return None;
        }
        let at = Timestamp(index.time(entry).and_then(|time| u64::try_from(time).ok()).unwrap_or(0));
        Some(Self { entry, line: read_line(line)?, at })
    }

    fn begins_turn(&self) -> bool {
        self.line.message.role == "user"
    }
}

/// Reads a line. A lone surrogate is replaced.
fn read_line(line: &[u8]) -> Option<MessageLine> {
    serde_json::from_slice(line).ok().or_else(|| serde_json::from_slice(&without_surrogates(line)).ok())
}

fn without_surrogates(line: &[u8]) -> Vec<u8> {
    let mut repaired = line.to_vec();
    let is_escape = |at: usize, bytes: &[u8]| {
        bytes[at..].starts_with(b"\\u") && matches!(bytes.get(at + 2), Some(b'd' | b'D')) && at + 6 <= bytes.len()
    };
    let mut at = 0;
    while at < repaired.len() {
        if repaired[at] != b'\\' {
            at += 1;
        } else if is_escape(at, &repaired) && matches!(repaired[at + 3], b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F') {
            let high = matches!(repaired[at + 3], b'8' | b'9' | b'a' | b'b' | b'A' | b'B');
            let paired = high
                && at + 12 <= repaired.len()
                && is_escape(at + 6, &repaired)
                && matches!(repaired[at + 9], b'c'..=b'f' | b'C'..=b'F');
            if paired {
                at += 12;
            } else {
                repaired[at + 2..at + 6].copy_from_slice(b"fffd");
                at += 6;
            }
        } else {
            at += 2;
        }
    }
    repaired
}

/// A turn under construction.
struct LoggedTurnBuilder {
    id: TurnId,
    /// True for one of Grove's own turns, false for another program's.
    own: bool,
    message: Message,
    parts: Vec<Part>,
    started_at: Timestamp,
    ended_at: Timestamp,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

impl LoggedTurnBuilder {
    fn new(index: &LogIndex, message: LoggedMessage) -> Self {
        let LoggedMessage { entry, line, at } = message;
        let text = text_of(&line.message.content);
        let (id, message) = match line.grove {
            Some(GroveFields { turn, message, .. }) => (Some(turn), message),
            None => (None, None),
        };
        let message = message.unwrap_or_else(|| Message::user(String::new()));
        Self {
            own: id.is_some(),
            id: id.unwrap_or_else(|| (&*index.id(entry)).into()),
            message: Message { text, ..message },
            parts: Vec::new(),
            started_at: at,
            ended_at: at,
            stop_reason: None,
            usage: None,
        }
    }

    fn add(&mut self, message: LoggedMessage) {
        let LoggedMessage { line, at, .. } = message;
        self.ended_at = at;
        let MessageLine { message, grove } = line;
        match message.role.as_str() {
            "assistant" => {
                match grove {
                    Some(extra) => self.add_own(extra.parts, &message.content),
                    None => self.add_foreign(&message.content),
                }
                if let Some(error) = message.error_message.filter(|_| !self.own) {
                    self.parts.push(Part::Error(ErrorInfo::new("agent", error)));
                }
                self.stop_reason = message.stop_reason.or(self.stop_reason.take());
                self.usage = message.usage.as_ref().and_then(usage_of).or(self.usage.take());
            }
            "toolResult" => {
                let Some(id) = message.tool_call_id else { return };
                let output = text_of(&message.content);
                self.add_result(&id.into(), output, message.is_error);
            }
            _ => {}
        }
    }

    /// Adds the parts of a message, with its texts restored.
    fn add_own(&mut self, parts: Vec<Part>, content: &Value) {
        let mut texts = content.as_array().into_iter().flatten().filter_map(|block| {
            let text = block.get("text").or_else(|| block.get("thinking"))?;
            text.as_str().map(ToOwned::to_owned)
        });
        for mut part in parts {
            match &mut part {
                Part::Text(TextPart { content, .. }) | Part::Reasoning { content, .. } => {
                    *content = texts.next().unwrap_or_default();
                }
                Part::ToolCall(_)
                | Part::Content(_)
                | Part::Error(_)
                | Part::InputRequest(_)
                | Part::Plan(_)
                | Part::Notice(_) => {}
            }
            self.parts.push(part);
        }
    }

    fn add_foreign(&mut self, content: &Value) {
        let text_alone = content.as_str().map(|text| vec![serde_json::json!({"type": "text", "text": text})]);
        let blocks = text_alone.as_deref().or(content.as_array().map(Vec::as_slice)).unwrap_or_default();
        for block in blocks {
            let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let id = PartId::from(format!("part-{}", self.parts.len()));
            match block.get("type").and_then(Value::as_str) {
                Some("text") => {
                    let text = TextPart { id, content: text("text"), delivery: Delivery::Streamed };
                    self.parts.push(Part::Text(text));
                }
                Some("thinking") => self.parts.push(Part::Reasoning { id, content: text("thinking") }),
                Some("toolCall") => {
                    let rank = self.parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
                    self.parts.push(Part::ToolCall(Box::new(ToolCall {
                        id: text("id").into(),
                        name: text("name"),
                        display_name: text("name"),
                        kind: None,
                        language: None,
                        invocation_message: text("name"),
                        intention: None,
                        client: None,
                        input: block.get("arguments").map(Value::to_string),
                        confirmed: None,
                        output: None,
                        status: ToolCallStatus::Running,
                        ready_rank: u32::try_from(rank).ok(),
                        announced: None,
                        extra: None,
                        running_since: None,
                        ran_ms: None,
                    })));
                }
                Some(_) | None => {}
            }
        }
    }

    fn add_result(&mut self, id: &ToolCallId, output: String, is_error: bool) {
        let own = self.own;
        let call = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::ToolCall(call) if call.id == *id => Some(call),
            _ => None,
        });
        let Some(call) = call else { return };
        match &mut call.status {
            ToolCallStatus::Completed(ToolResult { output: Some(stored_output), .. })
            | ToolCallStatus::PendingResultConfirmation(ToolResult { output: Some(stored_output), .. })
                if own =>
            {
                *stored_output = output;
            }
            status if !own => {
                *status = ToolCallStatus::Completed(ToolResult {
                    success: !is_error,
                    past_tense_message: call.name.clone(),
                    output: Some(output),
                    attached: Vec::new(),
                    extra: None,
                });
            }
            _ => {}
        }
    }

    fn close(self, ends: &HashMap<TurnId, TurnEnd>) -> Option<Arc<Turn>> {
        let end = ends.get(&self.id);
        if self.own && end.is_none() {
            return None;
        }
        let outcome = end.map_or_else(
            || match self.stop_reason.as_deref() {
                Some("error") => Outcome::Error,
                Some("aborted") => Outcome::Cancelled,
                Some(_) | None => Outcome::Complete,
            },
            |end| end.outcome,
        );
        Some(Arc::new(Turn {
            id: self.id,
            message: self.message,
            parts: self.parts,
            usage: match end {
                Some(end) => end.usage.clone(),
                None => self.usage,
            },
            outcome,
            started_at: end.map_or(self.started_at, |end| end.started_at),
            ended_at: end.map_or(self.ended_at, |end| end.ended_at),
            derived: DerivedCache::default(),
        }))
    }
}

/// A message's text: a string, or the text blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("")
        }
        _ => String::new(),
    }
}

/// The usage in another program's message. Its cost is left out: theirs is for one message, Grove's for the session so
/// far.
fn usage_of(usage: &Value) -> Option<Usage> {
    let tokens = |key: &str| usage.get(key).and_then(Value::as_u64);
    Some(Usage {
        input_tokens: Some(tokens("input")?),
        output_tokens: tokens("output"),
        cache_read_tokens: tokens("cacheRead"),
        cache_write_tokens: tokens("cacheWrite").filter(|tokens| *tokens > 0),
        ..Usage::default()
    })
}
