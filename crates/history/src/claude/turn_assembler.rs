//! Assembles one turn: the model's messages from their lines, and the results of its calls.

use std::collections::HashMap;

use grove_core::{MessageOrigin, Timestamp};
use grove_transcript::{
    Approval, CallState, EditKind, ToolInput, ToolOutput, TranscriptModel, TranscriptPart, TranscriptToolCall,
    TranscriptTurn, TranscriptUsage,
};
use serde_json::Value;

use super::entry::LogEntry;
use super::sidecar::Sidecar;
use crate::json::{JsonMembers, text_of};
use crate::turn_builder::TurnBuilder;

/// The model of the program's own messages.
const SYNTHETIC: &str = "<synthetic>";
/// Beginnings of the results of refused calls.
const REFUSED: &[&str] = &["The user doesn't want to proceed", "User rejected tool use", "The user rejected"];

/// The maximum number of growing pieces of a message.
const NEAR: usize = 8;

/// A turn under construction, or a subagent's part in one.
#[derive(Debug, Default)]
pub(super) struct TurnAssembler {
    pub draft: TurnBuilder,
    /// By their ids: each block of a message has a line of its own, which repeats the usage.
    messages: HashMap<String, ModelMessage>,
}

#[derive(Debug, Default)]
struct ModelMessage {
    /// The positions of its texts.
    pieces: Vec<usize>,
    usage: TranscriptUsage,
}

/// The data of a result beside its text.
#[derive(Debug, Default)]
pub(super) struct ToolResultDetails {
    /// The subagent that a call started.
    pub agents: Vec<(String, String)>,
    /// The number of bytes read beside the log.
    pub weight: usize,
    /// True if a file beside the log was too large to read.
    pub is_too_large: bool,
}

impl TurnAssembler {
    pub(super) fn new(turn: TranscriptTurn) -> Self {
        Self { draft: TurnBuilder::new(turn), messages: HashMap::new() }
    }

    /// A turn without a prompt.
    pub(super) fn unasked(id: String, at: Option<Timestamp>) -> Self {
        let mut turn = TranscriptTurn { id, started_at: at, ..TranscriptTurn::default() };
        turn.message.origin = MessageOrigin::Automation;
        Self::new(turn)
    }

    pub(super) fn assistant(&mut self, mut entry: LogEntry) {
        let draft = &mut self.draft;
        draft.answered(entry.at);
        let is_error = entry.body.flag("isApiErrorMessage").unwrap_or(false);
        let is_aborted = entry.body.flag("isAbortedMidStream").unwrap_or(false);
        let Some(mut message) = entry.body.object("message") else {
            return draft.notice("assistant", String::new(), entry.body);
        };
        let model = message.string("model");
        if let Some(model) = model.as_deref().filter(|model| *model != SYNTHETIC) {
            draft.turn.model = Some(TranscriptModel::new(model));
        }
        let blocks = match message.string("content") {
            Some(text) => vec![serde_json::json!({"type": "text", "text": text})],
            None => message.list("content"),
        };
        if is_error || model.as_deref() == Some(SYNTHETIC) {
            let text = blocks_text(&blocks);
            if is_error {
                draft.fail("apiError", text.clone());
            }
            return draft.notice(if is_error { "api-error" } else { "synthetic" }, text, JsonMembers::default());
        }
        let id = message.string("id").or(entry.id.clone()).unwrap_or_default();
        draft.turn.model_message_id = Some(id.clone());
        let model_message = self.messages.entry(id).or_default();
        if let Some(mut usage) = message.object("usage") {
            model_message.usage = usage_of(&mut usage);
        }
        for block in blocks {
            let mut members = match JsonMembers::of(block) {
                Ok(members) => members,
                Err(Value::String(text)) => {
                    model_message.pieces.extend(draft.say(text));
                    continue;
                }
                Err(odd) => {
                    draft.push(TranscriptPart::Raw(odd));
                    continue;
                }
            };
            match members.peek("type").and_then(Value::as_str) {
                Some("text") => {
                    grown(draft, model_message, members.string("text").unwrap_or_default(), TurnBuilder::say)
                }
                Some("thinking") => {
                    grown(draft, model_message, members.string("thinking").unwrap_or_default(), TurnBuilder::think)
                }
                Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                    let (id, name) = (members.string("id"), members.string("name"));
                    let input = members.any("input");
                    let call = draft.begin_call(id, name, input, entry.at);
                    call.provider =
                        members.string("server_name").or(call.provider.take()).or_else(|| server_of(&call.name));
                }
                // The model's thoughts are hidden.
                Some("redacted_thinking") => {}
                _ => {
                    draft.push(TranscriptPart::Raw(members.into_value()));
                }
            }
        }
        if is_aborted {
            draft.cancel();
        }
    }

    /// Takes the results of calls out of a user line, and returns the rest.
    pub(super) fn results(
        &mut self,
        blocks: Vec<Value>,
        body: &mut JsonMembers,
        at: Option<Timestamp>,
        sidecar: &Sidecar,
    ) -> (Vec<Value>, ToolResultDetails) {
        let mut found = ToolResultDetails::default();
        let is_result = |block: &Value| block.get("type").and_then(Value::as_str) == Some("tool_result");
        let (results, rest): (Vec<_>, Vec<_>) = blocks.into_iter().partition(is_result);
        let tool_use_result = body.any("toolUseResult");
        let denied = body.string("toolDenialKind");
        let is_only = results.len() == 1;
        for result in results {
            let Ok(mut result) = JsonMembers::of(result) else { continue };
            let id = match result.string("tool_use_id") {
                Some(id) => id,
                // Some write no id: then it answers the last call.
                None => match self.draft.known_call(None) {
                    Some(call) => call.id.clone(),
                    None => {
                        self.draft.push(TranscriptPart::Raw(result.into_value()));
                        continue;
                    }
                },
            };
            let content = result.any("content");
            let mut text = content.as_ref().map(content_text).unwrap_or_default();
            let is_refused = denied.is_some() || REFUSED.iter().any(|words| text.starts_with(words));
            let state = match result.flag("is_error") {
                _ if is_refused => CallState::Refused,
                Some(true) => CallState::Failed,
                _ => CallState::Complete,
            };
            // The program's data on a line concern its only result.
            let tool_use_result = tool_use_result.as_ref().filter(|_| is_only);
            if let Some(agent) = tool_use_result.and_then(|tool_use_result| tool_use_result.get("agentId")?.as_str()) {
                found.agents.push((agent.to_owned(), id.clone()));
            }
            let mut raw = content.filter(|content| !is_words(content));
            if let Some(name) = spilled(tool_use_result, &text) {
                match sidecar.spilled(&name) {
                    Some(Ok(whole)) => {
                        found.weight += whole.len();
                        raw = Some(Value::String(std::mem::replace(&mut text, whole)));
                    }
                    Some(Err(_)) => found.is_too_large = true,
                    None => {}
                }
            }
            let call = self.draft.end_call(&id, state, at);
            if is_refused {
                // Rules and hooks refuse too, under kinds of their own.
                call.approval = match &denied {
                    Some(kind) if !kind.starts_with("user") => Approval::Setting { id: Some(kind.clone()) },
                    _ => Approval::Denied,
                };
            }
            if let Some(code) = text.strip_prefix("Exit code ").and_then(|text| text.lines().next()) {
                call.exit_code = code.trim().parse().ok();
            }
            edited(call, tool_use_result);
            tell(call, tool_use_result, &text);
            call.output = Some(ToolOutput { text, raw });
        }
        (rest, found)
    }

    /// The finished turn.
    pub(super) fn finish(mut self) -> TranscriptTurn {
        for message in self.messages.values() {
            self.draft.add_usage(&message.usage);
        }
        self.draft.finish()
    }
}

/// Adds text of a message. A stream may be written several times while it grows: then the longest counts.
fn grown(
    draft: &mut TurnBuilder,
    model_message: &mut ModelMessage,
    text: String,
    add: impl FnOnce(&mut TurnBuilder, String) -> Option<usize>,
) {
    for at in model_message.pieces.iter().rev().take(NEAR) {
        if let Some(known) = draft.text_at_mut(*at)
            && text.starts_with(known.as_str())
        {
            *known = text;
            return;
        }
    }
    model_message.pieces.extend(add(draft, text));
}

/// Reads the program's data on an edited file: if it existed, and the changed lines.
fn edited(call: &mut TranscriptToolCall, tool_use_result: Option<&Value>) {
    let Some(tool_use_result) = tool_use_result.filter(|_| matches!(call.input, ToolInput::Edits(_))) else { return };
    let kind = match tool_use_result.get("type").and_then(Value::as_str) {
        Some("create") => Some(EditKind::Create),
        Some("update") => Some(EditKind::Edit),
        _ => None,
    };
    let hunks = tool_use_result.get("structuredPatch").and_then(Value::as_array).filter(|hunks| !hunks.is_empty());
    let lines = hunks.map(|hunks| {
        let lines =
            || hunks.iter().filter_map(|hunk| hunk.get("lines")?.as_array()).flatten().filter_map(Value::as_str);
        let count = |mark: char| lines().filter(|line| line.starts_with(mark)).count() as u64;
        (count('+'), count('-'))
    });
    call.input.set_edit_result(kind, lines);
}

/// Adds the program's data on a result: only those that are not in the text.
fn tell(call: &mut TranscriptToolCall, tool_use_result: Option<&Value>, text: &str) {
    let Some(Value::Object(members)) = tool_use_result else { return };
    let mut members = members.clone();
    members.retain(|_, value| match value {
        Value::String(words) => !words.is_empty() && !text.contains(words.trim()),
        Value::Bool(flag) => *flag,
        Value::Null => false,
        _ => true,
    });
    // A subagent's answer and prompt are in its conversation.
    if members.contains_key("agentId") {
        members.retain(|key, _| key != "content" && key != "prompt");
    }
    if !members.is_empty() {
        call.raw.insert("toolUseResult".to_owned(), Value::Object(members));
    }
}

/// The file with the complete result.
fn spilled(tool_use_result: Option<&Value>, text: &str) -> Option<String> {
    let named = tool_use_result.and_then(|tool_use_result| tool_use_result.get("persistedOutputPath")?.as_str());
    let path = named.or_else(|| {
        let (_, path) = text.split_once("Full output saved to: ")?;
        path.lines().next()
    })?;
    path.trim().rsplit(['/', '\\']).next().map(str::to_owned)
}

/// The server of a tool that is called `mcp__server__tool`.
fn server_of(name: &str) -> Option<String> {
    name.strip_prefix("mcp__")?.split_once("__").map(|(server, _)| server.to_owned())
}

/// True if a content is only text.
fn is_words(content: &Value) -> bool {
    match content {
        Value::String(_) => true,
        Value::Array(blocks) => blocks.iter().all(|block| block.get("type").and_then(Value::as_str) == Some("text")),
        _ => false,
    }
}

/// A content as text: text unchanged, other kinds by their names.
pub(super) fn content_text(content: &Value) -> String {
    match content {
        Value::Array(blocks) => blocks_text(blocks),
        other => text_of(other),
    }
}

fn blocks_text(blocks: &[Value]) -> String {
    let texts = blocks.iter().map(|block| match (block, block.get("text").and_then(Value::as_str)) {
        (_, Some(text)) => text.to_owned(),
        (Value::String(text), None) => text.clone(),
        (block, None) => format!("[{}]", block.get("type").and_then(Value::as_str).unwrap_or("unknown")),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn usage_of(usage: &mut JsonMembers) -> TranscriptUsage {
    let fresh = usage.unsigned("input_tokens");
    let read = usage.unsigned("cache_read_input_tokens");
    let write = usage.unsigned("cache_creation_input_tokens");
    let given = [fresh, read, write].into_iter().flatten().reduce(u64::saturating_add);
    TranscriptUsage {
        input_tokens: given,
        output_tokens: usage.unsigned("output_tokens"),
        cache_read_tokens: read,
        cache_write_tokens: write,
        ..TranscriptUsage::default()
    }
}
