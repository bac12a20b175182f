//! Folds entries into turns: a person's message begins one. A session is a tree, and an entry with a parent in an
//! earlier turn than the open one begins one too.

use std::mem;

use grove_core::{MessageOrigin, Timestamp};
use grove_transcript::{
    CallState, DamageKind, DamageLocation, FileLocation, Notice, ToolOutput, TranscriptAgent, TranscriptAttachment,
    TranscriptAttachmentKind, TranscriptModel, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptTurn,
    TranscriptUsage, TurnParent,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::append_log::{self, LineEffect, Preamble};
use crate::json::{JsonMembers, text_of};
use crate::json_lines::JsonlRecord;
use crate::limits::MAX_STATE;
use crate::parent_index::{ParentIndex, ParentTurn};
use crate::turn_builder::TurnBuilder;

/// The newest known version of the format.
const VERSION: u64 = 3;

/// The state between two turns beside the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReaderState {
    pub title: Option<String>,
    pub has_start: bool,
    /// The program's name for display.
    product: String,
    /// The last chosen model.
    model: Option<String>,
    /// The parent of the newest turn.
    follows: TurnParent,
}

pub(super) type FoldState = append_log::FoldState<ReaderState>;

impl FoldState {
    pub(super) fn initial(id: &str, product: &str) -> Self {
        Self::new(
            TranscriptSession::new(TranscriptSource::Pi, id),
            ReaderState { product: product.to_owned(), ..ReaderState::default() },
        )
    }
}

#[derive(Debug)]
pub(super) struct TurnFold {
    known: FoldState,
    chain: ParentIndex,
    /// True if the next line is the one at which an earlier read stopped.
    is_resumed: bool,
    current: Option<TurnBuilder>,
    preamble: Preamble<TranscriptPart>,
    weight: usize,
}

impl TurnFold {
    pub(super) fn new(known: FoldState, is_resumed: bool) -> Self {
        Self {
            known,
            chain: ParentIndex::new(is_resumed),
            is_resumed,
            current: None,
            preamble: Preamble::default(),
            weight: 0,
        }
    }
}

impl append_log::LogFold for TurnFold {
    type ReaderState = ReaderState;

    fn take(&mut self, record: JsonlRecord) -> LineEffect {
        let (length, place) = (record.length, record.place(format!("a turn of more than {MAX_STATE} bytes")));
        let no_entry = |value, place| (value, DamageLocation { what: "no entry".to_owned(), ..place });
        let parsed = match JsonMembers::of(record.value) {
            Ok(mut entry) => match entry.string("type") {
                Some(kind) => Ok((kind, entry)),
                None if entry.peek("kind").and_then(Value::as_str) == Some("header") => {
                    Ok(("session".to_owned(), entry))
                }
                // Newer versions keep records of another kind beside entries.
                None if entry.has("kind") => {
                    self.push(TranscriptPart::Raw(entry.into_value()));
                    return LineEffect::Continues;
                }
                None => Err(no_entry(entry.into_value(), place.clone())),
            },
            Err(odd) => Err(no_entry(odd, place.clone())),
        };
        let (kind, mut entry) = match parsed {
            Ok(parsed) => parsed,
            Err((odd, place)) => {
                self.known.session.damage.add(DamageKind::Damaged, place);
                self.push(TranscriptPart::Raw(odd));
                return LineEffect::Continues;
            }
        };
        if kind == "session" {
            self.start(entry);
            return LineEffect::Continues;
        }
        let (id, at) = (entry.string("id"), entry.time("timestamp"));
        self.known.session.modified_at = self.known.session.modified_at.max(at);
        let is_resumed = mem::take(&mut self.is_resumed);
        let is_root = entry.peek("parentId").is_some_and(Value::is_null);
        let parent_turn = match entry.string("parentId") {
            _ if is_resumed => ParentTurn::Missing,
            Some(parent) => self.chain.find(&parent),
            None if is_root => ParentTurn::Of(None),
            None => ParentTurn::Missing,
        };
        if parent_turn == ParentTurn::Unknown {
            return LineEffect::NeedsFullRead;
        }
        let here = self.current.is_some().then_some(self.known.session.turns);
        let begins = is_resumed || begins(&kind, &entry, parent_turn, here);
        let ended = begins.then(|| {
            let ended = self.end_turn();
            let number = self.known.session.turns;
            self.known.own.follows = match parent_turn {
                _ if is_resumed => self.known.own.follows,
                ParentTurn::Of(turn) => TurnParent::of(number, turn),
                ParentTurn::Missing | ParentTurn::Unknown => TurnParent::Previous,
            };
            self.weight = 0;
            self.begin(id.as_deref(), at);
            ended
        });
        if let Some(id) = &id {
            let turn = match parent_turn {
                ParentTurn::Of(turn) if !begins => turn,
                _ => self.current.is_some().then_some(self.known.session.turns),
            };
            self.chain.add(id, turn);
        }
        self.weight = self.weight.saturating_add(length);
        if self.weight > MAX_STATE {
            self.known.session.damage.add(DamageKind::TooLarge, place);
        } else {
            self.tell(kind, entry, id, at);
        }
        match ended {
            Some(ended) => LineEffect::StartsTurn(ended.map(Box::new)),
            None => LineEffect::Continues,
        }
    }

    fn end(&mut self) -> Option<TranscriptTurn> {
        self.end_turn()
    }

    fn has_preamble(&self) -> bool {
        !self.preamble.is_empty()
    }

    fn known(&mut self) -> &mut FoldState {
        &mut self.known
    }

    fn follows(&self) -> TurnParent {
        self.known.own.follows
    }

    fn may_go_back(&mut self, line: &[u8], number: u32) -> bool {
        append_log::texts_of(line, "parentId").any(|parent| self.chain.is_before(parent, number))
    }

    fn chain(&mut self) -> Option<&mut ParentIndex> {
        Some(&mut self.chain)
    }
}

/// True if an entry begins a turn: a person's words, or anything outside the open turn.
fn begins(kind: &str, entry: &JsonMembers, parent_turn: ParentTurn, here: Option<u32>) -> bool {
    if kind != "message" {
        return false;
    }
    let role = entry.peek("message").and_then(|message| message.get("role")?.as_str());
    match role {
        Some("user" | "bashExecution" | "pythonExecution") => true,
        _ => matches!((parent_turn, here), (ParentTurn::Of(turn), Some(_)) if turn != here),
    }
}

impl TurnFold {
    fn start(&mut self, mut header: JsonMembers) {
        let known = &mut self.known;
        if mem::replace(&mut known.own.has_start, true) {
            return;
        }
        if let Some(version) = header.unsigned("version").filter(|version| *version > VERSION) {
            known.session.damage.mark(DamageKind::NewerVersion { version });
        }
        if let Some(id) = header.string("id").filter(|id| !id.is_empty() && *id != known.session.source_id) {
            let file = mem::replace(&mut known.session.source_id, id);
            known.session.aliases.push(file);
        }
        known.session.created_at = header.time("timestamp").or_else(|| header.time("createdAt"));
        known.session.workspace.folders = header.string("cwd").map(FileLocation::local).into_iter().collect();
        let more = header.list("additionalDirectories");
        known.session.workspace.folders.extend(more.iter().filter_map(Value::as_str).map(FileLocation::local));
        // A path in some places and an id in others.
        let parent = ["parentSession", "parentSessionId", "branchedFrom"].iter().find_map(|key| header.string(key));
        known.session.parent = parent.map(|parent| session_of(&parent).to_owned());
        known.own.title = header.string("title");
        let model = header.string("modelId");
        known.own.model = model.map(|model| model_id(header.string("provider"), &model));
    }

    fn begin(&mut self, id: Option<&str>, at: Option<Timestamp>) {
        let number = self.known.session.turns;
        let name = self.known.own.product.clone();
        let mut turn = TranscriptTurn {
            id: id
                .filter(|id| !id.is_empty())
                .map_or_else(|| format!("turn-{}", number.saturating_add(1)), str::to_owned),
            follows: self.known.own.follows,
            started_at: at,
            ended_at: at,
            agent: Some(TranscriptAgent { id: "pi".into(), name, ..TranscriptAgent::default() }),
            ..TranscriptTurn::default()
        };
        turn.message.origin = MessageOrigin::Automation;
        let mut draft = TurnBuilder::new(turn);
        for part in self.preamble.give() {
            draft.push(part);
        }
        self.current = Some(draft);
    }

    fn end_turn(&mut self) -> Option<TranscriptTurn> {
        let mut draft = self.current.take()?;
        draft.turn.model =
            draft.turn.model.take().or_else(|| self.known.own.model.as_deref().map(TranscriptModel::new));
        let turn = draft.finish();
        self.known.session.count(&turn);
        Some(turn)
    }

    /// The open turn. An agent's work without a prompt begins a turn without a message.
    fn open(&mut self, at: Option<Timestamp>) -> &mut TurnBuilder {
        if self.current.is_none() {
            self.known.own.follows = TurnParent::Previous;
            self.begin(None, at);
        }
        self.current.get_or_insert_default()
    }

    fn push(&mut self, part: TranscriptPart) {
        match &mut self.current {
            Some(draft) => {
                draft.push(part);
            }
            None => self.preamble.push(part, &mut self.known.session.damage),
        }
    }

    fn notice(&mut self, kind: &str, text: String, data: JsonMembers) {
        self.push(TranscriptPart::Notice(Notice { kind: kind.to_owned(), text, raw: data.rest() }));
    }

    fn tell(&mut self, kind: String, mut entry: JsonMembers, id: Option<String>, at: Option<Timestamp>) {
        match kind.as_str() {
            "message" => match entry.object("message") {
                Some(message) => self.message(message, id, at),
                None => self.notice("message", String::new(), entry),
            },
            "model_change" => {
                let model = entry.string("modelId").or_else(|| entry.string("model"));
                if let Some(model) = model {
                    self.known.own.model = Some(model_id(entry.string("provider"), &model));
                }
            }
            "session_info" => {
                let name = entry.string("name").unwrap_or_default();
                self.known.own.title = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
            }
            "title_change" => self.known.own.title = entry.string("title").or(self.known.own.title.take()),
            "thinking_level_change" | "mode_change" | "service_tier_change" => {}
            "compaction" | "branch_summary" => {
                let text = entry.string("summary").unwrap_or_default();
                self.notice(&kind, text, entry);
            }
            "custom_message" => {
                let text = entry.any("content").map(|content| content_text(&content)).unwrap_or_default();
                let name = entry.string("customType").unwrap_or(kind);
                self.notice(&name, text, entry);
            }
            "label" => {
                let text = entry.string("label").unwrap_or_default();
                self.notice("label", text, entry);
            }
            _ => {
                entry.insert("type", Value::String(kind));
                self.push(TranscriptPart::Raw(entry.into_value()));
            }
        }
    }

    fn message(&mut self, mut message: JsonMembers, id: Option<String>, at: Option<Timestamp>) {
        // The message's own time, in milliseconds; the entry's time is the time of writing.
        let at = message.time("timestamp").filter(|at| at.0 > 1_000_000_000_000).or(at);
        let role = message.string("role").unwrap_or_default();
        let draft = self.open(at);
        match role.as_str() {
            "user" => {
                let content = message.any("content").unwrap_or_default();
                draft.turn.message.origin = MessageOrigin::User;
                draft.turn.message.text = content_text(&content);
                draft.turn.message.attachments = images(&content);
                draft.turn.message.raw = message.rest();
            }
            "assistant" => assistant(draft, message, at),
            "toolResult" => {
                let Some(call) = message.string("toolCallId") else {
                    return self.push(TranscriptPart::Raw(message.into_value()));
                };
                let failed = message.flag("isError").unwrap_or(false);
                let content = message.any("content").unwrap_or_default();
                let call = draft.end_call(&call, if failed { CallState::Failed } else { CallState::Complete }, at);
                if call.name.is_empty() {
                    crate::turn_builder::describe(call, message.string("toolName"), None);
                }
                let is_words =
                    content.as_array().is_some_and(|parts| parts.iter().all(|part| part.get("text").is_some()));
                let text = content_text(&content);
                call.output = Some(ToolOutput { text, raw: (!is_words && !content.is_string()).then_some(content) });
                message.forget(&["toolName"]);
                call.raw.extend(message.rest());
            }
            // The person ran it.
            "bashExecution" | "pythonExecution" => {
                let command = message.string("command").or_else(|| message.string("code")).unwrap_or_default();
                draft.turn.message.origin = MessageOrigin::User;
                draft.turn.message.text = format!("! {command}");
                let name = if role == "bashExecution" { "bash" } else { "python" };
                let id = id.unwrap_or_else(|| "run".to_owned());
                draft.begin_call(Some(id.clone()), Some(name.into()), Some(json!({"command": command})), at);
                let call = draft.end_call(&id, CallState::Complete, at);
                call.exit_code = message.signed("exitCode");
                let text = message.string("output").unwrap_or_default();
                call.output = Some(ToolOutput { text, raw: None });
                if message.flag("cancelled").unwrap_or(false) {
                    draft.cancel();
                }
                draft.done();
            }
            _ => {
                let text = message.any("content").map(|content| content_text(&content)).unwrap_or_default();
                draft.moved(at);
                let kind = message.string("customType").unwrap_or(role);
                self.notice(&kind, text, message);
            }
        }
    }
}

fn assistant(draft: &mut TurnBuilder, mut message: JsonMembers, at: Option<Timestamp>) {
    draft.answered(at);
    if let Some(model) = message.string("model") {
        draft.turn.model = Some(TranscriptModel::new(&model_id(message.string("provider"), &model)));
    }
    draft.turn.model_message_id = message.string("responseId").or(draft.turn.model_message_id.take());
    let blocks = match message.string("content") {
        Some(text) => vec![json!({"type": "text", "text": text})],
        None => message.list("content"),
    };
    for block in blocks {
        let mut block = match JsonMembers::of(block) {
            Ok(block) => block,
            Err(odd) => {
                draft.push(TranscriptPart::Raw(odd));
                continue;
            }
        };
        match block.peek("type").and_then(Value::as_str) {
            Some("text") => {
                draft.say(block.string("text").unwrap_or_default());
            }
            Some("thinking") => {
                draft.think(block.string("thinking").unwrap_or_default());
            }
            Some("toolCall") => {
                let (id, name) = (block.string("id"), block.string("name"));
                draft.begin_call(id, name, block.any("arguments"), at);
            }
            _ => {
                draft.push(TranscriptPart::Raw(block.into_value()));
            }
        }
    }
    if let Some(mut usage) = message.object("usage") {
        let (fresh, read, write) = (usage.unsigned("input"), usage.unsigned("cacheRead"), usage.unsigned("cacheWrite"));
        draft.add_usage(&TranscriptUsage {
            input_tokens: [fresh, read, write].into_iter().flatten().reduce(u64::saturating_add),
            output_tokens: usage.unsigned("output"),
            cache_read_tokens: read,
            cache_write_tokens: write,
            cost: usage.object("cost").and_then(|mut cost| cost.number("total")),
            ..TranscriptUsage::default()
        });
    }
    match message.string("stopReason").as_deref() {
        Some("aborted") => draft.cancel(),
        Some("error") => draft.fail("agentFailed", message.string("errorMessage").unwrap_or_default()),
        _ => {}
    }
}

/// A model id in the common form: with its provider before it.
fn model_id(provider: Option<String>, model: &str) -> String {
    match provider.filter(|provider| !provider.is_empty()) {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    }
}

/// The session id from a path or an id.
pub(super) fn session_of(name: &str) -> &str {
    let stem = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = stem.strip_suffix(".jsonl").unwrap_or(stem);
    stem.rsplit_once('_').map_or(stem, |(_, id)| id)
}

fn content_text(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => format!("[{}]", part.get("type").and_then(Value::as_str).unwrap_or("unknown")),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => text_of(other),
    }
}

fn images(content: &Value) -> Vec<TranscriptAttachment> {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let images = parts.iter().filter(|part| part.get("type").and_then(Value::as_str) == Some("image"));
    let image = |part: &Value| TranscriptAttachment {
        kind: TranscriptAttachmentKind::Image,
        foreign_kind: "image".to_owned(),
        name: "image".to_owned(),
        raw: JsonMembers::of(part.clone()).unwrap_or_default().rest(),
        ..TranscriptAttachment::default()
    };
    images.map(image).collect()
}
