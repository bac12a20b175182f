//! Folds lines into turns: a person's words begin one, and everything up to the next belongs to it, in file order.
//! Parents only decide which turn a turn follows: within a turn the results of parallel calls have different parents,
//! and all of them count.

use std::collections::{BTreeSet, HashSet};
use std::mem;

use grove_core::{MessageOrigin, Timestamp};
use grove_transcript::limits::MAX_NAMES;
use grove_transcript::{
    ContextBlock, DamageKind, DamageLocation, FileLocation, Notice, ToolInput, TranscriptAgent, TranscriptAttachment,
    TranscriptAttachmentKind, TranscriptChat, TranscriptEdit, TranscriptMessage, TranscriptPart, TranscriptSession,
    TranscriptSource, TranscriptTurn, TurnParent, Worktree,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::entry::{EntryParent, LogEntry, UserText, words_of};
use super::file_history::FileBackups;
use super::sidecar::{Sidecar, SubagentMetadata};
use super::turn_assembler::{ToolResultDetails, TurnAssembler, content_text};
use super::{SidechainLog, side_log};
use crate::append_log::{self, LineEffect, Preamble};
use crate::json::JsonMembers;
use crate::json_lines::JsonlRecord;
use crate::limits::MAX_STATE;
use crate::parent_index::{ParentIndex, ParentTurn};
use crate::subagents::{SubagentChat, attach};

/// The maximum number of subagents' conversations in a turn's own file. Further lines are added to the last of them.
const MAX_SIDES: usize = 1_000;
/// The maximum depth of subagents' logs. Deeper ones are added beside the others.
const MAX_DEPTH: usize = 8;
/// Progress lines of a running call: its result has everything.
const PROGRESS: &[&str] = &[
    "agent_progress",
    "bash_progress",
    "hook_progress",
    "mcp_progress",
    "query_update",
    "search_results_received",
    "waiting_for_task",
];
/// Lines that repeat others, or that concern only the program.
const NOISE: &[&str] = &[
    "userType",
    "entrypoint",
    "slug",
    "sessionKind",
    "promptSource",
    "promptId",
    "requestId",
    "sourceToolAssistantUUID",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "session_id",
    "imagePasteIds",
];

/// The state between two turns beside the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReaderState {
    /// The title that the person gave.
    given_title: Option<String>,
    /// The title that the program made.
    made_title: Option<String>,
    /// The first line's id, and true if any line has the file's own id.
    first_id: Option<String>,
    has_own_id: bool,
    /// True if lines have parents.
    has_chain: bool,
    /// True if the file as a whole is a subagent's; unknown before the first message.
    is_side: Option<bool>,
    /// The parent of the newest turn.
    follows: TurnParent,
    /// Subagents that are included already.
    pub claimed: BTreeSet<String>,
    /// Files with backups.
    #[serde(default)]
    tracked: FileBackups,
}

pub(super) type FoldState = append_log::FoldState<ReaderState>;

impl FoldState {
    pub(super) fn initial(id: &str) -> Self {
        Self::new(TranscriptSession::new(TranscriptSource::Claude, id), ReaderState::default())
    }

    /// The complete session. `listed` is its title in the program's own list.
    pub(super) fn finish(self, listed: Option<String>) -> TranscriptSession {
        let Self { mut session, own, .. } = self;
        let first = session.first_message.lines().next().map(str::to_owned);
        let first = first.filter(|first| session.turns > 0 && !first.is_empty());
        session.title = own.given_title.or(own.made_title).or(listed).or(first);
        if let Some(id) = own.first_id.filter(|id| *id != session.source_id) {
            // A fork begins with lines of its source session; a moved file has none of its own.
            if own.has_own_id {
                session.parent = session.parent.take().or(Some(id));
            } else {
                session.aliases.push(id);
            }
        }
        session
    }
}

#[derive(Debug)]
pub(super) struct TurnFold {
    known: FoldState,
    sidecar: Sidecar,
    depth: usize,
    chain: ParentIndex,
    /// True if the next line is the one at which an earlier read stopped.
    is_resumed: bool,
    current: Option<TurnAssembler>,
    sides: Vec<Sidechain>,
    /// Subagents with logs of their own and the calls that started them, in order.
    agents: Vec<(String, String)>,
    preamble: Preamble<TranscriptPart>,
    /// The number of bytes of the current turn.
    weight: usize,
}

/// A subagent's conversation in the same file.
#[derive(Debug)]
struct Sidechain {
    turn_assembler: TurnAssembler,
    /// The ids of its lines.
    ids: HashSet<String>,
}

impl append_log::LogFold for TurnFold {
    type ReaderState = ReaderState;

    fn take(&mut self, record: JsonlRecord) -> LineEffect {
        let (length, place) = (record.length, record.place(format!("a turn of more than {MAX_STATE} bytes")));
        let mut entry = match LogEntry::of(record.value) {
            Ok(entry) => entry,
            Err(odd) => {
                self.known
                    .session
                    .damage
                    .add(DamageKind::Damaged, DamageLocation { what: "no entry".to_owned(), ..place });
                self.push(TranscriptPart::Raw(odd));
                return LineEffect::Continues;
            }
        };
        self.common(&mut entry);
        if entry.kind == "user" && self.known.own.is_side.is_none() {
            self.known.own.is_side = Some(entry.is_side);
        }
        let is_side = entry.is_side && self.known.own.is_side == Some(false);
        let is_resumed = mem::take(&mut self.is_resumed);
        let parent_turn = match &entry.parent {
            _ if is_resumed || is_side => ParentTurn::Missing,
            EntryParent::Of(parent) => self.chain.find(parent),
            // The line that a summary names decides if it belongs to this session.
            EntryParent::Unspecified if entry.kind == "summary" => entry
                .body
                .peek("leafUuid")
                .and_then(Value::as_str)
                .map_or(ParentTurn::Missing, |leaf| self.chain.find(leaf)),
            EntryParent::Root | EntryParent::Unspecified => ParentTurn::Missing,
        };
        if parent_turn == ParentTurn::Unknown {
            return LineEffect::NeedsFullRead;
        }
        self.known.own.has_chain |= matches!(parent_turn, ParentTurn::Of(_));
        self.weight = self.weight.saturating_add(length);
        let is_full = self.weight > MAX_STATE;
        if is_side {
            if is_full {
                self.known.session.damage.add(DamageKind::TooLarge, place);
            } else {
                self.side(entry);
            }
            return LineEffect::Continues;
        }
        let id = entry.id.clone();
        let begins = match self.prompt(&mut entry, is_resumed) {
            Some(message) => {
                let is_root = entry.parent == EntryParent::Root && self.known.own.has_chain;
                let ended = self.end_turn();
                let number = self.known.session.turns;
                self.known.own.follows = match parent_turn {
                    _ if is_resumed => self.known.own.follows,
                    ParentTurn::Of(turn) => TurnParent::of(number, turn),
                    ParentTurn::Missing if is_root => TurnParent::of(number, None),
                    ParentTurn::Missing | ParentTurn::Unknown => TurnParent::Previous,
                };
                self.begin(entry, message);
                self.weight = length;
                Some(ended)
            }
            None => {
                if is_full {
                    self.known.session.damage.add(DamageKind::TooLarge, place);
                } else {
                    self.tell(entry);
                }
                None
            }
        };
        if let Some(id) = id {
            let here = self.current.is_some().then_some(self.known.session.turns);
            let turn = match parent_turn {
                ParentTurn::Of(turn) if begins.is_none() => turn,
                _ => here,
            };
            self.chain.add(&id, turn);
        }
        match begins {
            Some(ended) => LineEffect::StartsTurn(ended.map(Box::new)),
            None => LineEffect::Continues,
        }
    }

    /// Ends the last turn, which also gets the subagents without a known call.
    fn end(&mut self) -> Option<TranscriptTurn> {
        if self.current.is_some() && self.depth == 0 {
            for agent in self.sidecar.agents() {
                if !self.known.own.claimed.contains(&agent) && !self.agents.iter().any(|(known, _)| *known == agent) {
                    self.agents.push((agent.clone(), format!("agent-{agent}")));
                }
            }
        }
        self.end_turn()
    }

    fn has_preamble(&self) -> bool {
        !self.preamble.is_empty()
    }

    fn known(&mut self) -> &mut FoldState {
        &mut self.known
    }

    fn chain(&mut self) -> Option<&mut ParentIndex> {
        Some(&mut self.chain)
    }
}

impl TurnFold {
    pub(super) fn new(known: FoldState, sidecar: Sidecar, depth: usize, is_resumed: bool) -> Self {
        Self {
            known,
            sidecar,
            depth,
            chain: ParentIndex::new(is_resumed),
            is_resumed,
            current: None,
            sides: Vec::new(),
            agents: Vec::new(),
            preamble: Preamble::default(),
            weight: 0,
        }
    }

    /// Ends the open turn.
    fn end_turn(&mut self) -> Option<TranscriptTurn> {
        let turn_assembler = self.current.take()?;
        let mut children = Vec::new();
        let mut turn = turn_assembler.finish();
        for (at, side) in mem::take(&mut self.sides).into_iter().enumerate() {
            let mut told = side.turn_assembler.finish();
            // Older versions do not name the call: it is the one with the same prompt.
            let call = turn
                .tool_calls()
                .filter(|call| !children.iter().any(|child: &SubagentChat| child.call == call.id))
                .find(|call| matches!(&call.input, ToolInput::Subagent { prompt, .. } if *prompt == told.message.text));
            let call = call.map_or_else(|| format!("{}-side-{at}", turn.id), |call| call.id.clone());
            told.id = format!("{call}-turn");
            children.push(SubagentChat {
                chat: TranscriptChat { id: call.clone(), turns: vec![told], ..TranscriptChat::default() },
                call,
            });
        }
        for (agent, call) in mem::take(&mut self.agents) {
            children.extend(self.agent(&agent, call));
        }
        attach(&mut turn.parts, children);
        self.known.session.count(&turn);
        Some(turn)
    }

    /// The conversation of a subagent with a log of its own.
    fn agent(&mut self, id: &str, call: String) -> Option<SubagentChat> {
        if self.depth >= MAX_DEPTH || !self.known.own.claimed.insert(id.to_owned()) {
            return None;
        }
        let path = self.sidecar.agent(id)?;
        let card = SubagentMetadata::of(&path);
        let room = MAX_STATE.saturating_sub(self.weight);
        let read = side_log(&path, id, &self.sidecar, self.depth + 1, room, &mut self.known.own.claimed);
        let damage = &mut self.known.session.damage;
        let Some(SidechainLog { session, turns, size }) = read else {
            damage.mark(DamageKind::TooLarge);
            return None;
        };
        self.weight = self.weight.saturating_add(size);
        for mark in session.damage.marks {
            damage.mark(mark);
        }
        damage.count = damage.count.saturating_add(session.damage.count);
        let call = card.call.clone().unwrap_or(call);
        let mut chat = TranscriptChat { id: id.to_owned(), turns, ..TranscriptChat::default() };
        card.write_to(&mut chat);
        Some(SubagentChat { call, chat })
    }

    /// Reads the session's data that every line has.
    fn common(&mut self, entry: &mut LogEntry) {
        let session = &mut self.known.session;
        let body = &mut entry.body;
        if let Some(id) = body.string("sessionId") {
            self.known.own.has_own_id |= id == session.source_id;
            self.known.own.first_id.get_or_insert(id);
        }
        if let Some(mut from) = body.object("forkedFrom") {
            session.parent = from.string("sessionId").or(session.parent.take());
        }
        if let Some(folder) = body.string("cwd").filter(|_| session.workspace.folders.is_empty()) {
            session.workspace.folders.push(FileLocation::local(folder));
        }
        session.workspace.branch =
            body.string("gitBranch").filter(|branch| !branch.is_empty()).or(session.workspace.branch.take());
        session.version = body.string("version").or(session.version.take());
        session.created_at = session.created_at.or(entry.at);
        session.modified_at = session.modified_at.max(entry.at);
        body.forget(NOISE);
    }

    /// The message that begins a turn, if the line is one. Its results go to the open turn. A resumed read has returned
    /// those already.
    fn prompt(&mut self, entry: &mut LogEntry, is_resumed: bool) -> Option<TranscriptMessage> {
        if entry.kind == "attachment" {
            return self.queued(entry);
        }
        if entry.kind != "user" || entry.is_recap() {
            return None;
        }
        let mut message = entry.body.object("message")?;
        let text = match message.string("content") {
            Some(text) => vec![Value::String(text)],
            None => {
                let mut blocks = message.list("content");
                let has_results = blocks.iter().any(|block| is_type(block, "tool_result"));
                if has_results && is_resumed {
                    blocks.retain(|block| !is_type(block, "tool_result"));
                    entry.body.forget(&["toolUseResult", "toolDenialKind"]);
                    blocks
                } else if has_results {
                    self.results(blocks, entry)
                } else {
                    blocks
                }
            }
        };
        message.forget(&["role"]);
        entry.body.keep("message", message);
        if text.is_empty() {
            return None;
        }
        self.words(text, entry)
    }

    fn results(&mut self, blocks: Vec<Value>, entry: &mut LogEntry) -> Vec<Value> {
        let (body, at) = (&mut entry.body, entry.at);
        let sidecar = mem::take(&mut self.sidecar);
        let (rest, found) = self.open(at).results(blocks, body, at, &sidecar);
        self.sidecar = sidecar;
        self.found(found);
        rest
    }

    fn found(&mut self, found: ToolResultDetails) {
        self.weight = self.weight.saturating_add(found.weight);
        if found.is_too_large {
            self.known.session.damage.mark(DamageKind::TooLarge);
        }
        for (agent, call) in found.agents {
            self.link(agent, call);
        }
    }

    fn link(&mut self, agent: String, call: String) {
        let is_known = self.known.own.claimed.contains(&agent) || self.agents.iter().any(|(known, _)| *known == agent);
        if !is_known && self.agents.len() < MAX_SIDES {
            self.agents.push((agent, call));
        }
    }

    /// Reads the text of a user line.
    fn words(&mut self, blocks: Vec<Value>, entry: &mut LogEntry) -> Option<TranscriptMessage> {
        let (mut texts, mut attachments) = (Vec::new(), Vec::new());
        for block in blocks {
            match block {
                Value::String(text) => texts.push(text),
                block if is_type(&block, "text") => texts.push(content_text(&Value::Array(vec![block]))),
                block => attachments.push(attachment_of(block)),
            }
        }
        let text = texts.join("\n\n");
        if entry.is_hidden {
            self.context(vec![ContextBlock { name: "meta".to_owned(), text, ..ContextBlock::default() }]);
            return None;
        }
        let is_automatic =
            entry.body.peek("origin").and_then(|origin| origin.get("kind")?.as_str()) == Some("task-notification");
        match words_of(&text) {
            UserText::Person { text, .. } if is_automatic => Some(automatic(text)),
            UserText::Automation(text) => Some(automatic(text)),
            UserText::Person { text, .. } if text.is_empty() && attachments.is_empty() => None,
            UserText::Person { text, command, context } => {
                if command.as_deref() == Some("rename") {
                    self.renamed(&text);
                }
                // They belong to the turn that begins here.
                let mut message = TranscriptMessage { text, command, attachments, ..TranscriptMessage::default() };
                if !context.is_empty() {
                    message.raw.insert(CONTEXT.to_owned(), serde_json::to_value(context).unwrap_or_default());
                }
                Some(message)
            }
            UserText::Stopped => {
                let turn_assembler = self.open(entry.at);
                turn_assembler.draft.moved(entry.at);
                turn_assembler.draft.cancel();
                None
            }
            UserText::Program { kind, text } => {
                if let Some(turn_assembler) = &mut self.current {
                    turn_assembler.draft.moved(entry.at);
                    // An answer of the program itself needs no model.
                    if kind != "stop-hook" && turn_assembler.draft.is_unanswered() {
                        turn_assembler.draft.done();
                    }
                }
                self.notice(kind, text, JsonMembers::default());
                None
            }
            UserText::Context(context) => {
                self.context(context);
                None
            }
        }
    }

    /// A person's message while the agent worked: it is added when the agent gets it.
    fn queued(&mut self, entry: &mut LogEntry) -> Option<TranscriptMessage> {
        let attachment = entry.body.peek("attachment")?;
        if attachment.get("type").and_then(Value::as_str) != Some("queued_command")
            || attachment.get("commandMode").and_then(Value::as_str).is_some_and(|mode| mode != "prompt")
        {
            return None;
        }
        let text = content_text(attachment.get("prompt")?);
        let message = match words_of(&text) {
            UserText::Person { text, command, .. } => {
                TranscriptMessage { text, command, ..TranscriptMessage::default() }
            }
            UserText::Automation(text) => automatic(text),
            UserText::Stopped | UserText::Program { .. } | UserText::Context(_) => return None,
        };
        // It did not stop the agent, which goes on in the next turn.
        if let Some(turn_assembler) = &mut self.current {
            turn_assembler.draft.done();
        }
        entry.body.forget(&["attachment"]);
        Some(message)
    }

    fn renamed(&mut self, text: &str) {
        let name = text.split_once(' ').map(|(_, name)| name.trim().to_owned());
        self.known.own.given_title = name.filter(|name| !name.is_empty());
    }

    fn begin(&mut self, mut entry: LogEntry, mut message: TranscriptMessage) {
        let context = message.raw.shift_remove(CONTEXT).and_then(|context| serde_json::from_value(context).ok());
        let mode = entry.body.string("permissionMode");
        entry.body.forget(&["message", "origin", "todos", "thinkingMetadata"]);
        message.raw.extend(entry.body.rest());
        let turn = TranscriptTurn {
            id: entry.id.filter(|id| !id.is_empty()).unwrap_or_else(|| self.next_id()),
            follows: self.known.own.follows,
            started_at: entry.at,
            ended_at: entry.at,
            agent: Some(self.who()),
            context: context.unwrap_or_default(),
            mode,
            message,
            ..TranscriptTurn::default()
        };
        self.current = Some(TurnAssembler::new(turn));
        self.flush_preamble();
    }

    fn next_id(&self) -> String {
        format!("turn-{}", self.known.session.turns + 1)
    }

    fn who(&self) -> TranscriptAgent {
        let version = self.known.session.version.clone();
        TranscriptAgent { id: "claude-code".into(), name: "Claude Code".into(), version, ..TranscriptAgent::default() }
    }

    /// The open turn. An agent's work without a prompt begins a turn without a message.
    fn open(&mut self, at: Option<Timestamp>) -> &mut TurnAssembler {
        if self.current.is_none() {
            let mut turn_assembler = TurnAssembler::unasked(self.next_id(), at);
            turn_assembler.draft.turn.agent = Some(self.who());
            self.known.own.follows = TurnParent::Previous;
            self.current = Some(turn_assembler);
            self.flush_preamble();
        }
        self.current.get_or_insert_default()
    }

    fn flush_preamble(&mut self) {
        for part in self.preamble.give() {
            self.push(part);
        }
    }

    fn push(&mut self, part: TranscriptPart) {
        match &mut self.current {
            Some(turn_assembler) => {
                turn_assembler.draft.push(part);
            }
            None => self.preamble.push(part, &mut self.known.session.damage),
        }
    }

    fn notice(&mut self, kind: &str, text: String, data: JsonMembers) {
        self.push(TranscriptPart::Notice(Notice { kind: kind.to_owned(), text, raw: data.rest() }));
    }

    fn context(&mut self, blocks: Vec<ContextBlock>) {
        match &mut self.current {
            Some(turn_assembler) => turn_assembler.draft.turn.context.extend(blocks),
            None => {
                for block in blocks {
                    self.notice(&block.name, block.text, JsonMembers::default());
                }
            }
        }
    }

    /// Adds a line that begins no turn.
    fn tell(&mut self, mut entry: LogEntry) {
        match entry.kind.as_str() {
            "assistant" => self.open(entry.at).assistant(entry),
            "user" if entry.is_recap() => {
                let content = entry.body.object("message").and_then(|mut message| message.any("content"));
                let text = content.as_ref().map(content_text).unwrap_or_default();
                self.notice("compact-summary", text, JsonMembers::default());
            }
            // `prompt` has taken everything.
            "user" => {
                entry.body.forget(&[
                    "permissionMode",
                    "toolUseResult",
                    "origin",
                    "todos",
                    "thinkingMetadata",
                    "sourceToolUseID",
                ]);
                let rest = entry.body.rest();
                if !rest.is_empty() {
                    self.push(TranscriptPart::Notice(Notice { kind: "user".into(), text: String::new(), raw: rest }));
                }
            }
            "system" => self.system(entry),
            "attachment" => self.attached(entry),
            "progress" => {
                let data = entry.body.object("data").unwrap_or_default();
                let kind = data.peek("type").and_then(Value::as_str).unwrap_or_default();
                let agent = data.peek("agentId").and_then(Value::as_str).map(str::to_owned);
                if let (Some(agent), Some(call)) = (agent, entry.body.string("parentToolUseID")) {
                    self.link(agent, call);
                }
                if !PROGRESS.contains(&kind) {
                    self.push(TranscriptPart::Raw(data.into_value()));
                }
            }
            _ => self.record(entry),
        }
    }

    fn system(&mut self, mut entry: LogEntry) {
        let kind = entry.body.string("subtype").unwrap_or_else(|| "system".to_owned());
        let text = entry.body.message("content").unwrap_or_default();
        entry.body.forget(&["level", "toolUseID"]);
        if let Some(turn_assembler) = &mut self.current {
            match kind.as_str() {
                // It is written at the end of a turn.
                "turn_duration" => turn_assembler.draft.done(),
                "error" | "api_refusal" => {
                    let message = entry.body.peek("error").and_then(|error| error.get("message")?.as_str());
                    turn_assembler.draft.fail(&kind, message.unwrap_or(&text).to_owned());
                }
                _ => {}
            }
        }
        if kind == "local_command"
            && let UserText::Person { text, command, .. } = words_of(&text)
            && command.as_deref() == Some("rename")
        {
            self.renamed(&text);
        }
        self.notice(&kind, text, entry.body);
    }

    fn attached(&mut self, mut entry: LogEntry) {
        let Some(mut attachment) = entry.body.object("attachment") else {
            return self.notice("attachment", String::new(), entry.body);
        };
        let foreign_kind = attachment.string("type").unwrap_or_default();
        let kind = match foreign_kind.as_str() {
            "file" | "compact_file_reference" | "pdf_reference" => TranscriptAttachmentKind::File,
            "directory" => TranscriptAttachmentKind::Folder,
            "selected_lines_in_ide" => TranscriptAttachmentKind::Selection,
            _ => return self.notice(&foreign_kind, String::new(), attachment),
        };
        let path = ["filename", "path"].iter().find_map(|key| attachment.string(key));
        let place = path.map(FileLocation::local);
        let name = attachment.string("displayPath").or_else(|| place.as_ref().map(|place| place.name().to_owned()));
        let text = attachment.any("content").map(|content| {
            let inner = content.get("file").and_then(|file| file.get("content")).and_then(Value::as_str);
            inner.map_or_else(|| content_text(&content), str::to_owned)
        });
        let raw = attachment.rest();
        let attached = TranscriptAttachment { kind, foreign_kind, name: name.unwrap_or_default(), place, text, raw };
        self.open(entry.at).draft.turn.message.attachments.push(attached);
    }

    /// Reads data of the session as a whole, and unknown lines.
    fn record(&mut self, mut entry: LogEntry) {
        let body = &mut entry.body;
        match entry.kind.as_str() {
            "custom-title" => self.known.own.given_title = body.string("customTitle").filter(|title| !title.is_empty()),
            "ai-title" => self.known.own.made_title = body.string("aiTitle").or(self.known.own.made_title.take()),
            "summary" => {
                // A file has summaries of other sessions as well: those name lines that are not in it.
                let leaf = body.string("leafUuid");
                let is_ours = leaf.is_none_or(|leaf| self.chain.find(&leaf) != ParentTurn::Missing);
                let summary = body.string("summary").filter(|summary| {
                    !summary.is_empty() && !summary.starts_with("API Error") && !summary.starts_with("Invalid API key")
                });
                if is_ours {
                    self.known.own.made_title = summary.or(self.known.own.made_title.take());
                } else if let Some(summary) = summary {
                    self.notice("summary", summary, JsonMembers::default());
                }
            }
            "relocated" => {
                if let Some(folder) = body.string("relocatedCwd") {
                    self.known.session.workspace.folders = vec![FileLocation::local(folder)];
                }
            }
            "worktree-state" => {
                if let Some(mut tree) = body.object("worktreeSession") {
                    let workspace = &mut self.known.session.workspace;
                    workspace.branch = tree.string("worktreeBranch").or(workspace.branch.take());
                    workspace.commit = tree.string("originalHeadCommit").or(workspace.commit.take());
                    workspace.base_branch = tree.string("originalBranch").or(workspace.base_branch.take());
                    let repository = tree.string("originalCwd").filter(|folder| !folder.is_empty());
                    let folder = tree.string("worktreePath").filter(|folder| !folder.is_empty());
                    let tree = folder.map(|folder| Worktree { folder, repository });
                    workspace.worktree = tree.or(workspace.worktree.take());
                }
            }
            "pr-link" => {
                let workspace = &mut self.known.session.workspace;
                workspace.repository =
                    workspace.repository.take().or_else(|| body.peek("prRepository")?.as_str().map(str::to_owned));
                let text = body.string("prUrl").unwrap_or_default();
                workspace.set_pull_request(Some(text.clone()));
                self.notice("pr-link", text, entry.body);
            }
            "agent-name" => {
                if let (Some(name), true) = (body.string("agentName"), self.known.session.raw.len() < MAX_NAMES) {
                    self.known.session.raw.insert("agentName".to_owned(), Value::String(name));
                }
            }
            // The program's state, repeated with each prompt.
            "last-prompt" | "mode" | "permission-mode" => {}
            "queue-operation" => {
                if let Some(text) = body.string("content").filter(|text| !text.is_empty()) {
                    self.notice("queue-operation", text, entry.body);
                }
            }
            "file-history-snapshot" => {
                let snapshot = body.object("snapshot").unwrap_or_default();
                let backups = snapshot.peek("trackedFileBackups").and_then(Value::as_object);
                if backups.is_some_and(|backups| !backups.is_empty()) {
                    let folder = self.known.session.workspace.folders.first().and_then(|place| place.path.clone());
                    for edit in self.known.own.tracked.take(&snapshot, folder.as_deref(), &self.sidecar) {
                        self.edited(edit);
                    }
                    self.notice("file-history-snapshot", String::new(), snapshot);
                }
            }
            _ => {
                let kind = entry.kind;
                body.insert("type", Value::String(kind));
                self.push(TranscriptPart::Raw(entry.body.into_value()));
            }
        }
    }

    /// Adds an edit to the open turn, unless a call has the same text.
    fn edited(&mut self, mut edit: TranscriptEdit) {
        let Some(turn_assembler) = &self.current else { return };
        let is_told = turn_assembler.draft.turn.tool_calls().any(|call| match &call.input {
            ToolInput::Edits(edits) => edits.iter().any(|told| told.path == edit.place.shown()),
            _ => false,
        });
        if is_told {
            edit.changes.clear();
        }
        self.push(TranscriptPart::Edit(Box::new(edit)));
    }

    /// Adds a line of a subagent's conversation in the same file.
    fn side(&mut self, mut entry: LogEntry) {
        let known = match &entry.parent {
            EntryParent::Of(parent) => self.sides.iter().rposition(|side| side.ids.contains(parent)),
            EntryParent::Root | EntryParent::Unspecified => None,
        };
        let begins = known.is_none() && entry.kind == "user" && self.sides.len() < MAX_SIDES;
        if begins || self.sides.is_empty() {
            self.open(entry.at);
            let turn_assembler = TurnAssembler::unasked(String::new(), entry.at);
            self.sides.push(Sidechain { turn_assembler, ids: HashSet::new() });
        }
        let at = known.filter(|_| !begins).unwrap_or(self.sides.len() - 1);
        let Some(side) = self.sides.get_mut(at) else { return };
        if let Some(id) = entry.id.clone() {
            side.ids.insert(id);
        }
        match entry.kind.as_str() {
            "assistant" => side.turn_assembler.assistant(entry),
            "user" => {
                let content = entry.body.object("message").and_then(|mut message| message.any("content"));
                match content {
                    Some(Value::Array(blocks)) if blocks.iter().any(|block| is_type(block, "tool_result")) => {
                        let (_, found) = side.turn_assembler.results(blocks, &mut entry.body, entry.at, &self.sidecar);
                        self.found(found);
                    }
                    Some(content) if begins => side.turn_assembler.draft.turn.message.text = content_text(&content),
                    Some(content) => {
                        side.turn_assembler.draft.notice("user", content_text(&content), JsonMembers::default())
                    }
                    None => {}
                }
            }
            "progress" => {}
            kind => {
                let kind = kind.to_owned();
                side.turn_assembler.draft.notice(&kind, String::new(), entry.body);
            }
        }
    }
}

/// The member that holds a message's context until its turn begins.
const CONTEXT: &str = "context";

fn is_type(block: &Value, kind: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(kind)
}

fn automatic(text: String) -> TranscriptMessage {
    TranscriptMessage { text, origin: MessageOrigin::SystemNotification, ..TranscriptMessage::default() }
}

fn attachment_of(block: Value) -> TranscriptAttachment {
    let mut members = JsonMembers::of(block).unwrap_or_default();
    let foreign_kind = members.string("type").unwrap_or_default();
    let kind = if foreign_kind == "image" { TranscriptAttachmentKind::Image } else { TranscriptAttachmentKind::Other };
    let name = members.string("title").unwrap_or_else(|| foreign_kind.clone());
    TranscriptAttachment { kind, foreign_kind, name, raw: members.rest(), ..TranscriptAttachment::default() }
}
