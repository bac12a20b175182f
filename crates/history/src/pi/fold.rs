//! Entries folded into turns: a person's message begins one. A session is a tree, and what hangs from an earlier turn than
//! the one that is open begins one too.

use std::mem;

use grove_core::{MessageOrigin, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chain::{Chain, Hangs};
use crate::damage::{BadPlace, Mark};
use crate::draft::Draft;
use crate::growing::{self, Early, Step};
use crate::json::{Members, text_of};
use crate::limits::MAX_STATE;
use crate::normal::{
    AttachmentKind, CallState, Follows, ForeignAgent, ForeignAttachment, ForeignModel, ForeignPart, ForeignSession,
    ForeignTurn, ForeignUsage, Notice, Place, Source, ToolOutput,
};
use crate::records::Record;

/// The newest version of the format that is known.
const VERSION: u64 = 3;

/// What is known between two turns beside the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Own {
    pub title: Option<String>,
    pub has_start: bool,
    /// The program, as it is shown.
    product: String,
    /// The model that was chosen last.
    model: Option<String>,
    /// What the newest turn goes on from.
    follows: Follows,
}

pub(super) type Known = growing::Known<Own>;

impl Known {
    pub(super) fn begun(id: &str, product: &str) -> Self {
        Self::new(ForeignSession::new(Source::Pi, id), Own { product: product.to_owned(), ..Own::default() })
    }
}

#[derive(Debug)]
pub(super) struct Fold {
    known: Known,
    chain: Chain,
    /// Whether the next line is the one at which an earlier reading stopped.
    is_resumed: bool,
    current: Option<Draft>,
    early: Early<ForeignPart>,
    weight: usize,
}

impl Fold {
    pub(super) fn new(known: Known, is_resumed: bool) -> Self {
        Self { known, chain: Chain::new(is_resumed), is_resumed, current: None, early: Early::default(), weight: 0 }
    }
}

impl growing::Fold for Fold {
    type Own = Own;

    fn take(&mut self, record: Record) -> Step {
        let (length, place) = (record.length, record.place(format!("a turn of more than {MAX_STATE} bytes")));
        let no_entry = |value, place| (value, BadPlace { what: "no entry".to_owned(), ..place });
        let parsed = match Members::of(record.value) {
            Ok(mut entry) => match entry.string("type") {
                Some(kind) => Ok((kind, entry)),
                None if entry.peek("kind").and_then(Value::as_str) == Some("header") => {
                    Ok(("session".to_owned(), entry))
                }
                // Newer versions keep records of another kind beside entries.
                None if entry.has("kind") => {
                    self.push(ForeignPart::Raw(entry.into_value()));
                    return Step::GoesOn;
                }
                None => Err(no_entry(entry.into_value(), place.clone())),
            },
            Err(odd) => Err(no_entry(odd, place.clone())),
        };
        let (kind, mut entry) = match parsed {
            Ok(parsed) => parsed,
            Err((odd, place)) => {
                self.known.session.damage.add(Mark::Damaged, place);
                self.push(ForeignPart::Raw(odd));
                return Step::GoesOn;
            }
        };
        if kind == "session" {
            self.start(entry);
            return Step::GoesOn;
        }
        let (id, at) = (entry.string("id"), entry.time("timestamp"));
        self.known.session.modified_at = self.known.session.modified_at.max(at);
        let is_resumed = mem::take(&mut self.is_resumed);
        let is_root = entry.peek("parentId").is_some_and(Value::is_null);
        let hangs = match entry.string("parentId") {
            _ if is_resumed => Hangs::Nowhere,
            Some(parent) => self.chain.find(&parent),
            None if is_root => Hangs::From(None),
            None => Hangs::Nowhere,
        };
        if hangs == Hangs::Unknown {
            return Step::Lost;
        }
        let here = self.current.is_some().then_some(self.known.session.turns);
        let begins = is_resumed || begins(&kind, &entry, hangs, here);
        let ended = begins.then(|| {
            let ended = self.end_turn();
            let number = self.known.session.turns;
            self.known.own.follows = match hangs {
                _ if is_resumed => self.known.own.follows,
                Hangs::From(turn) => Follows::of(number, turn),
                Hangs::Nowhere | Hangs::Unknown => Follows::Previous,
            };
            self.weight = 0;
            self.begin(id.as_deref(), at);
            ended
        });
        if let Some(id) = &id {
            let turn = match hangs {
                Hangs::From(turn) if !begins => turn,
                _ => self.current.is_some().then_some(self.known.session.turns),
            };
            self.chain.add(id, turn);
        }
        self.weight = self.weight.saturating_add(length);
        if self.weight > MAX_STATE {
            self.known.session.damage.add(Mark::TooLarge, place);
        } else {
            self.tell(kind, entry, id, at);
        }
        match ended {
            Some(ended) => Step::Begins(ended.map(Box::new)),
            None => Step::GoesOn,
        }
    }

    fn end(&mut self) -> Option<ForeignTurn> {
        self.end_turn()
    }

    fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    fn known(&mut self) -> &mut Known {
        &mut self.known
    }

    fn chain(&mut self) -> Option<&mut Chain> {
        Some(&mut self.chain)
    }
}

/// Whether an entry begins a turn: a person's words do, and whatever is said elsewhere than in the turn that is open.
fn begins(kind: &str, entry: &Members, hangs: Hangs, here: Option<u32>) -> bool {
    if kind != "message" {
        return false;
    }
    let role = entry.peek("message").and_then(|message| message.get("role")?.as_str());
    match role {
        Some("user" | "bashExecution" | "pythonExecution") => true,
        _ => matches!((hangs, here), (Hangs::From(turn), Some(_)) if turn != here),
    }
}

impl Fold {
    fn start(&mut self, mut header: Members) {
        let known = &mut self.known;
        if mem::replace(&mut known.own.has_start, true) {
            return;
        }
        if let Some(version) = header.unsigned("version").filter(|version| *version > VERSION) {
            known.session.damage.mark(Mark::NewerVersion { version });
        }
        if let Some(id) = header.string("id").filter(|id| !id.is_empty() && *id != known.session.source_id) {
            let file = mem::replace(&mut known.session.source_id, id);
            known.session.aliases.push(file);
        }
        known.session.created_at = header.time("timestamp").or_else(|| header.time("createdAt"));
        known.session.workspace.folders = header.string("cwd").map(Place::local).into_iter().collect();
        let more = header.list("additionalDirectories");
        known.session.workspace.folders.extend(more.iter().filter_map(Value::as_str).map(Place::local));
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
        let mut turn = ForeignTurn {
            id: id
                .filter(|id| !id.is_empty())
                .map_or_else(|| format!("turn-{}", number.saturating_add(1)), str::to_owned),
            follows: self.known.own.follows,
            started_at: at,
            ended_at: at,
            agent: Some(ForeignAgent { id: "pi".into(), name, ..ForeignAgent::default() }),
            ..ForeignTurn::default()
        };
        turn.message.origin = MessageOrigin::Automation;
        let mut draft = Draft::new(turn);
        for part in self.early.give() {
            draft.push(part);
        }
        self.current = Some(draft);
    }

    fn end_turn(&mut self) -> Option<ForeignTurn> {
        let mut draft = self.current.take()?;
        draft.turn.model = draft.turn.model.take().or_else(|| self.known.own.model.as_deref().map(ForeignModel::new));
        let turn = draft.finish();
        self.known.session.count(&turn);
        Some(turn)
    }

    /// The turn that is open. What an agent does without having been asked begins one without a message.
    fn open(&mut self, at: Option<Timestamp>) -> &mut Draft {
        if self.current.is_none() {
            self.known.own.follows = Follows::Previous;
            self.begin(None, at);
        }
        self.current.get_or_insert_default()
    }

    fn push(&mut self, part: ForeignPart) {
        match &mut self.current {
            Some(draft) => {
                draft.push(part);
            }
            None => self.early.push(part, &mut self.known.session.damage),
        }
    }

    fn notice(&mut self, kind: &str, text: String, data: Members) {
        self.push(ForeignPart::Notice(Notice { kind: kind.to_owned(), text, raw: data.rest() }));
    }

    fn tell(&mut self, kind: String, mut entry: Members, id: Option<String>, at: Option<Timestamp>) {
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
                self.push(ForeignPart::Raw(entry.into_value()));
            }
        }
    }

    fn message(&mut self, mut message: Members, id: Option<String>, at: Option<Timestamp>) {
        // When it was said, to the millisecond; the entry's time is when it was written down.
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
                    return self.push(ForeignPart::Raw(message.into_value()));
                };
                let failed = message.flag("isError").unwrap_or(false);
                let content = message.any("content").unwrap_or_default();
                let call = draft.call_ends(&call, if failed { CallState::Failed } else { CallState::Complete }, at);
                if call.name.is_empty() {
                    crate::draft::describe(call, message.string("toolName"), None);
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
                draft.call_begins(Some(id.clone()), Some(name.into()), Some(json!({"command": command})), at);
                let call = draft.call_ends(&id, CallState::Complete, at);
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

fn assistant(draft: &mut Draft, mut message: Members, at: Option<Timestamp>) {
    draft.answered(at);
    if let Some(model) = message.string("model") {
        draft.turn.model = Some(ForeignModel::new(&model_id(message.string("provider"), &model)));
    }
    draft.turn.model_message_id = message.string("responseId").or(draft.turn.model_message_id.take());
    let blocks = match message.string("content") {
        Some(text) => vec![json!({"type": "text", "text": text})],
        None => message.list("content"),
    };
    for block in blocks {
        let mut block = match Members::of(block) {
            Ok(block) => block,
            Err(odd) => {
                draft.push(ForeignPart::Raw(odd));
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
                draft.call_begins(id, name, block.any("arguments"), at);
            }
            _ => {
                draft.push(ForeignPart::Raw(block.into_value()));
            }
        }
    }
    if let Some(mut usage) = message.object("usage") {
        let (fresh, read, write) = (usage.unsigned("input"), usage.unsigned("cacheRead"), usage.unsigned("cacheWrite"));
        draft.use_up(&ForeignUsage {
            input_tokens: [fresh, read, write].into_iter().flatten().reduce(u64::saturating_add),
            output_tokens: usage.unsigned("output"),
            cache_read_tokens: read,
            cache_write_tokens: write,
            cost: usage.object("cost").and_then(|mut cost| cost.number("total")),
            ..ForeignUsage::default()
        });
    }
    match message.string("stopReason").as_deref() {
        Some("aborted") => draft.cancel(),
        Some("error") => draft.fail("agentFailed", message.string("errorMessage").unwrap_or_default()),
        _ => {}
    }
}

/// A model as all tools' are written: its provider before it.
fn model_id(provider: Option<String>, model: &str) -> String {
    match provider.filter(|provider| !provider.is_empty()) {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    }
}

/// The session that a path or an id names.
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

fn images(content: &Value) -> Vec<ForeignAttachment> {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let images = parts.iter().filter(|part| part.get("type").and_then(Value::as_str) == Some("image"));
    let image = |part: &Value| ForeignAttachment {
        kind: AttachmentKind::Image,
        foreign_kind: "image".to_owned(),
        name: "image".to_owned(),
        raw: Members::of(part.clone()).unwrap_or_default().rest(),
        ..ForeignAttachment::default()
    };
    images.map(image).collect()
}
