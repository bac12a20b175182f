//! Converts messages to turns: a person's begins one.

use std::collections::HashMap;

use grove_core::MessageOrigin;
use grove_transcript::{
    CallState, ContextBlock, EditKind, ToolOutput, TranscriptAgent, TranscriptAttachment, TranscriptAttachmentKind,
    TranscriptModel, TranscriptPart, TranscriptSession, TranscriptToolCall, TranscriptTurn, TranscriptUsage,
    TurnParent,
};
use serde_json::Value;

use super::replay::{ReplayedMessage, ReplayedSession};
use crate::json::{JsonMembers, text_of};
use crate::subagents::{SubagentChat, attach};
use crate::tail_index::{ByteRange, RequestOrigin, RequestRange, TurnHeader};
use crate::turn_builder::TurnBuilder;

/// The program's description of the environment, in the role of the user.
const CONTEXT: &str = "<session_context>";

/// Returns the turns of a session. `children` has the conversations of its subagents, by their ids; those that no call
/// names go to the last turn.
pub(super) fn tell(
    replayed: ReplayedSession,
    session: &mut TranscriptSession,
    mut children: HashMap<String, SubagentChat>,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> Vec<RequestRange> {
    // The header of each turn, and its messages' positions.
    let mut marks: Vec<TurnHeader> = Vec::new();
    let mut ranges: Vec<Option<ByteRange>> = Vec::with_capacity(replayed.messages.len());
    let mut turns = |turn: TranscriptTurn| {
        marks.push(TurnHeader::of(&turn));
        turns(turn);
    };
    // The turn of each message.
    let mut owners: Vec<Option<u32>> = Vec::with_capacity(replayed.messages.len());
    let mut open: Option<TurnAssembler> = None;
    let mut early = Vec::new();
    for ReplayedMessage { mut value, behind, range, .. } in replayed.messages {
        ranges.push(range);
        let kind = value.string("type").unwrap_or_default();
        let prompt = if kind == "user" { prompt_of(&mut value) } else { None };
        if let Some(prompt) = prompt {
            match prompt {
                UserPrompt::Context(text) => {
                    let block = ContextBlock { name: "session_context".to_owned(), text, ..ContextBlock::default() };
                    match &mut open {
                        Some(teller) => teller.draft.turn.context.push(block),
                        None => early.push(block),
                    }
                }
                UserPrompt::Words { text, attachments } => {
                    if let Some(teller) = open.take() {
                        turns(teller.finish(session, &mut children, false));
                    }
                    let number = session.turns;
                    let from = behind.and_then(|at| owners.get(at).copied().flatten());
                    let mut turn = new_turn(&mut value, session, TurnParent::of(number, from));
                    turn.message.text = text;
                    turn.message.attachments = attachments;
                    turn.context = std::mem::take(&mut early);
                    open = Some(TurnAssembler { draft: TurnBuilder::new(turn), agents: Vec::new() });
                }
            }
        } else {
            let teller = open.get_or_insert_with(|| {
                let mut turn = new_turn(&mut JsonMembers::default(), session, TurnParent::Previous);
                turn.message.origin = MessageOrigin::Automation;
                turn.context = std::mem::take(&mut early);
                TurnAssembler { draft: TurnBuilder::new(turn), agents: Vec::new() }
            });
            teller.tell(&kind, value);
        }
        owners.push(open.is_some().then_some(session.turns));
    }
    if let Some(teller) = open {
        turns(teller.finish(session, &mut children, true));
    }
    places_of(marks, &owners, &ranges)
}

/// The maximum number of turns with known positions, the newest ones, and of messages of each.
const MAX_TURNS: usize = 256;
const MAX_MESSAGES: usize = 256;

/// The positions of the newest turns. A turn whose messages are not all stored alone hides the earlier ones.
fn places_of(marks: Vec<TurnHeader>, owners: &[Option<u32>], ranges: &[Option<ByteRange>]) -> Vec<RequestRange> {
    let mut places: Vec<Option<Vec<ByteRange>>> = marks.iter().map(|_| Some(Vec::new())).collect();
    for (owner, range) in owners.iter().zip(ranges) {
        // Messages before the first turn belong to it.
        let Some(place) = places.get_mut(owner.unwrap_or(0) as usize) else { continue };
        match (place.as_mut().filter(|place| place.len() < MAX_MESSAGES), range) {
            (Some(place), Some(range)) => place.push(*range),
            _ => *place = None,
        }
    }
    let newest = marks.into_iter().zip(places).rev().take(MAX_TURNS).map_while(|(mark, place)| {
        let mut ranges = place?.into_iter();
        let origin = RequestOrigin::Value(ranges.next()?);
        Some(RequestRange { turn: Some(mark), origin, changes: ranges.collect() })
    });
    let mut newest: Vec<RequestRange> = newest.collect();
    newest.reverse();
    newest
}

enum UserPrompt {
    Words { text: String, attachments: Vec<TranscriptAttachment> },
    Context(String),
}

/// The contents of a user message; `None` if it only returns results to the model.
fn prompt_of(value: &mut JsonMembers) -> Option<UserPrompt> {
    let content = value.any("displayContent").or_else(|| value.peek("content").cloned())?;
    let parts = match &content {
        Value::Array(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    if !parts.is_empty() && parts.iter().all(|part| part.get("functionResponse").is_some()) {
        return None;
    }
    value.forget(&["content"]);
    let texts: Vec<&str> =
        parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect();
    let text = texts.join("\n");
    if text.trim_start().starts_with(CONTEXT) {
        return Some(UserPrompt::Context(text));
    }
    let others = parts.iter().filter(|part| part.get("inlineData").is_some() || part.get("fileData").is_some());
    let attachments = others.map(|part| TranscriptAttachment {
        kind: TranscriptAttachmentKind::Other,
        foreign_kind: "part".to_owned(),
        name: "attachment".to_owned(),
        raw: JsonMembers::of(part.clone()).unwrap_or_default().rest(),
        ..TranscriptAttachment::default()
    });
    Some(UserPrompt::Words { text, attachments: attachments.collect() })
}

fn new_turn(value: &mut JsonMembers, session: &TranscriptSession, follows: TurnParent) -> TranscriptTurn {
    let at = value.time("timestamp");
    let id = value.string("id").filter(|id| !id.is_empty());
    TranscriptTurn {
        id: id.unwrap_or_else(|| format!("turn-{}", session.turns.saturating_add(1))),
        follows,
        started_at: at,
        ended_at: at,
        agent: Some(TranscriptAgent {
            id: "gemini-cli".into(),
            name: "Gemini CLI".into(),
            ..TranscriptAgent::default()
        }),
        ..TranscriptTurn::default()
    }
}

struct TurnAssembler {
    draft: TurnBuilder,
    /// Subagents and the calls that started them.
    agents: Vec<(String, String)>,
}

impl TurnAssembler {
    fn tell(&mut self, kind: &str, mut value: JsonMembers) {
        let at = value.time("timestamp");
        match kind {
            "gemini" => self.answer(value),
            // Returned results: they are with their calls as well.
            "user" => {
                for part in value.list("content") {
                    let Some(response) = part.get("functionResponse") else { continue };
                    let id = response.get("id").and_then(Value::as_str);
                    let Some(call) = id.and_then(|id| self.draft.known_call(Some(id))) else {
                        self.draft.push(TranscriptPart::Raw(part));
                        continue;
                    };
                    if call.output.is_none() {
                        call.output = Some(output_of(response));
                    }
                }
            }
            "info" | "warning" | "error" => {
                let text = value.any("content").map(|content| content_text(&content)).unwrap_or_default();
                self.draft.moved(at);
                if kind == "error" {
                    self.draft.fail("agentFailed", text.clone());
                } else if text.starts_with("Request cancelled") {
                    self.draft.cancel();
                }
                value.forget(&["id"]);
                self.draft.notice(kind, text, value);
            }
            _ => {
                value.insert("type", Value::String(kind.to_owned()));
                self.draft.push(TranscriptPart::Raw(value.into_value()));
            }
        }
    }

    fn answer(&mut self, mut value: JsonMembers) {
        let draft = &mut self.draft;
        let at = value.time("timestamp");
        draft.answered(at);
        draft.turn.model_message_id = value.string("id");
        if let Some(model) = value.string("model") {
            draft.turn.model = Some(TranscriptModel::new(&model));
        }
        for thought in value.list("thoughts") {
            let Ok(mut thought) = JsonMembers::of(thought) else { continue };
            let (title, text) = (thought.string("subject"), thought.string("description").unwrap_or_default());
            draft.push(TranscriptPart::Reasoning {
                text,
                title: title.filter(|title| !title.is_empty()),
                duration_ms: None,
            });
        }
        if let Some(content) = value.any("content") {
            draft.say(content_text(&content));
        }
        if let Some(mut tokens) = value.object("tokens") {
            draft.add_usage(&TranscriptUsage {
                input_tokens: tokens.unsigned("input"),
                output_tokens: tokens.unsigned("output"),
                cache_read_tokens: tokens.unsigned("cached"),
                reasoning_tokens: tokens.unsigned("thoughts"),
                ..TranscriptUsage::default()
            });
        }
        for call in value.list("toolCalls") {
            match JsonMembers::of(call) {
                Ok(call) => self.call(call),
                Err(odd) => {
                    self.draft.push(TranscriptPart::Raw(odd));
                }
            }
        }
    }

    fn call(&mut self, mut members: JsonMembers) {
        let at = members.time("timestamp");
        let (id, name) = (members.string("id"), members.string("name"));
        let call = self.draft.begin_call(id, name, members.any("args"), at);
        let agent = members.string("agentId").map(|agent| (agent, call.id.clone()));
        call.ended_at = at;
        call.state = match members.string("status").as_deref() {
            Some("success") => CallState::Complete,
            Some("error") => CallState::Failed,
            Some("cancelled") => CallState::Refused,
            _ => CallState::Interrupted,
        };
        edited(call, members.peek("resultDisplay"));
        call.shown_name = members.string("displayName").filter(|shown| *shown != call.name);
        call.intention = members.string("description");
        let result = members.any("result");
        let first = result.as_ref().map(|result| result.get(0).unwrap_or(result));
        call.output = first.map(|first| output_of(first.get("functionResponse").unwrap_or(first)));
        members.forget(&["renderOutputAsMarkdown"]);
        call.raw.extend(members.rest());
        self.agents.extend(agent);
    }

    fn finish(
        self,
        session: &mut TranscriptSession,
        children: &mut HashMap<String, SubagentChat>,
        is_last: bool,
    ) -> TranscriptTurn {
        let mut turn = self.draft.finish();
        let mut named: Vec<SubagentChat> = Vec::new();
        for (agent, call) in self.agents {
            named.extend(children.remove(&agent).map(|child| SubagentChat { call, ..child }));
        }
        if is_last {
            let mut rest: Vec<SubagentChat> = children.drain().map(|(_, child)| child).collect();
            rest.sort_by(|one, other| one.call.cmp(&other.call));
            named.extend(rest);
        }
        attach(&mut turn.parts, named);
        session.count(&turn);
        turn
    }
}

/// Reads the program's data on an edited file: if it existed, and the changed lines.
fn edited(call: &mut TranscriptToolCall, shown: Option<&Value>) {
    let Some(shown) = shown else { return };
    let is_new =
        shown.get("isNewFile").and_then(Value::as_bool).or_else(|| Some(shown.get("originalContent")?.is_null()));
    let kind = is_new.map(|is_new| if is_new { EditKind::Create } else { EditKind::Edit });
    let lines = shown.get("diffStat").and_then(|stat| {
        let sum = |keys: [&str; 2]| keys.iter().filter_map(|key| stat.get(key)?.as_u64()).reduce(u64::saturating_add);
        Some((sum(["model_added_lines", "user_added_lines"])?, sum(["model_removed_lines", "user_removed_lines"])?))
    });
    call.input.set_edit_result(kind, lines);
}

/// The output of a call for the model.
fn output_of(response: &Value) -> ToolOutput {
    let inner = response.get("response").unwrap_or(response);
    let words = ["output", "error"].iter().find_map(|key| inner.get(key)?.as_str());
    match words {
        Some(words) => ToolOutput { text: words.to_owned(), raw: None },
        None => ToolOutput { text: text_of(inner), raw: (!inner.is_string()).then(|| inner.clone()) },
    }
}

fn content_text(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        other => text_of(other),
    }
}
