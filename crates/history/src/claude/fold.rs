//! Lines folded into turns: a person's words begin one, and everything up to the next belongs to it, in the order of the
//! file. What hangs from what only says which turn a turn goes on from: within a turn the results of calls that ran side
//! by side hang from different lines, and all of them count.

use std::collections::{BTreeSet, HashSet};
use std::mem;

use grove_core::{MessageOrigin, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::beside::{Beside, Card};
use super::entry::{Entry, Parent, Words, words_of};
use super::file_history::Tracked;
use super::talk::{Found, Talk, content_text};
use super::{SideLog, side_log};
use crate::chain::{Chain, Hangs};
use crate::damage::{BadPlace, Mark};
use crate::growing::{self, Early, Step};
use crate::json::Members;
use crate::limits::{MAX_NAMES, MAX_STATE};
use crate::normal::{
    AttachmentKind, ContextBlock, Follows, ForeignAgent, ForeignAttachment, ForeignChat, ForeignEdit, ForeignMessage,
    ForeignPart, ForeignSession, ForeignTurn, Notice, Place, Source, ToolInput, Worktree,
};
use crate::records::Record;
use crate::subagents::{Child, attach};

/// How many conversations of subagents a turn may hold in its own file. What is beyond is told in the last of them.
const MAX_SIDES: usize = 1_000;
/// How deep subagents' logs are followed. Those that lie deeper are told beside the others.
const MAX_DEPTH: usize = 8;
/// What says how a call goes on while it runs: its result says it all.
const PROGRESS: &[&str] = &[
    "agent_progress",
    "bash_progress",
    "hook_progress",
    "mcp_progress",
    "query_update",
    "search_results_received",
    "waiting_for_task",
];
/// What each line repeats, or what means something to the program alone.
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

/// What is known between two turns beside the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Own {
    /// The title that the person gave.
    given_title: Option<String>,
    /// The one that the program made.
    made_title: Option<String>,
    /// The id that the first line has, and whether any has the file's own.
    first_id: Option<String>,
    has_own_id: bool,
    /// Whether lines say what they hang from.
    has_chain: bool,
    /// Whether the file as a whole is a subagent's; not known before the first message.
    is_side: Option<bool>,
    /// What the newest turn goes on from.
    follows: Follows,
    /// Subagents that were told of.
    pub claimed: BTreeSet<String>,
    /// Files of which there are copies.
    #[serde(default)]
    tracked: Tracked,
}

pub(super) type Known = growing::Known<Own>;

impl Known {
    pub(super) fn begun(id: &str) -> Self {
        Self::new(ForeignSession::new(Source::Claude, id), Own::default())
    }

    /// The session, once all of it was read. `listed` is the title that the program's own list has for it.
    pub(super) fn finish(self, listed: Option<String>) -> ForeignSession {
        let Self { mut session, own, .. } = self;
        let first = session.first_message.lines().next().map(str::to_owned);
        let first = first.filter(|first| session.turns > 0 && !first.is_empty());
        session.title = own.given_title.or(own.made_title).or(listed).or(first);
        if let Some(id) = own.first_id.filter(|id| *id != session.source_id) {
            // A fork begins with lines of the session that it comes from; a file that was moved has none of its own.
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
pub(super) struct Fold {
    known: Known,
    beside: Beside,
    depth: usize,
    chain: Chain,
    /// Whether the next line is the one at which an earlier reading stopped.
    is_resumed: bool,
    current: Option<Talk>,
    sides: Vec<Side>,
    /// Subagents that have logs of their own, with the calls that started them, in order.
    agents: Vec<(String, String)>,
    early: Early<ForeignPart>,
    /// How many bytes the current turn was told in.
    weight: usize,
}

/// A subagent's conversation that stands in the same file.
#[derive(Debug)]
struct Side {
    talk: Talk,
    /// The lines of it.
    ids: HashSet<String>,
}

impl growing::Fold for Fold {
    type Own = Own;

    fn take(&mut self, record: Record) -> Step {
        let (length, place) = (record.length, record.place(format!("a turn of more than {MAX_STATE} bytes")));
        let mut entry = match Entry::of(record.value) {
            Ok(entry) => entry,
            Err(odd) => {
                self.known.session.damage.add(Mark::Damaged, BadPlace { what: "no entry".to_owned(), ..place });
                self.push(ForeignPart::Raw(odd));
                return Step::GoesOn;
            }
        };
        self.common(&mut entry);
        if entry.kind == "user" && self.known.own.is_side.is_none() {
            self.known.own.is_side = Some(entry.is_side);
        }
        let is_side = entry.is_side && self.known.own.is_side == Some(false);
        let is_resumed = mem::take(&mut self.is_resumed);
        let hangs = match &entry.parent {
            _ if is_resumed || is_side => Hangs::Nowhere,
            Parent::Of(parent) => self.chain.find(parent),
            // Whether a summary is one of this session is said by the line that it names.
            Parent::Unsaid if entry.kind == "summary" => {
                entry.body.peek("leafUuid").and_then(Value::as_str).map_or(Hangs::Nowhere, |leaf| self.chain.find(leaf))
            }
            Parent::Root | Parent::Unsaid => Hangs::Nowhere,
        };
        if hangs == Hangs::Unknown {
            return Step::Lost;
        }
        self.known.own.has_chain |= matches!(hangs, Hangs::From(_));
        self.weight = self.weight.saturating_add(length);
        let is_full = self.weight > MAX_STATE;
        if is_side {
            if is_full {
                self.known.session.damage.add(Mark::TooLarge, place);
            } else {
                self.side(entry);
            }
            return Step::GoesOn;
        }
        let id = entry.id.clone();
        let begins = match self.prompt(&mut entry, is_resumed) {
            Some(message) => {
                let is_root = entry.parent == Parent::Root && self.known.own.has_chain;
                let ended = self.end_turn();
                let number = self.known.session.turns;
                self.known.own.follows = match hangs {
                    _ if is_resumed => self.known.own.follows,
                    Hangs::From(turn) => Follows::of(number, turn),
                    Hangs::Nowhere if is_root => Follows::of(number, None),
                    Hangs::Nowhere | Hangs::Unknown => Follows::Previous,
                };
                self.begin(entry, message);
                self.weight = length;
                Some(ended)
            }
            None => {
                if is_full {
                    self.known.session.damage.add(Mark::TooLarge, place);
                } else {
                    self.tell(entry);
                }
                None
            }
        };
        if let Some(id) = id {
            let here = self.current.is_some().then_some(self.known.session.turns);
            let turn = match hangs {
                Hangs::From(turn) if begins.is_none() => turn,
                _ => here,
            };
            self.chain.add(&id, turn);
        }
        match begins {
            Some(ended) => Step::Begins(ended.map(Box::new)),
            None => Step::GoesOn,
        }
    }

    /// Ends the last turn, which is also told of the subagents that nobody is known to have started.
    fn end(&mut self) -> Option<ForeignTurn> {
        if self.current.is_some() && self.depth == 0 {
            for agent in self.beside.agents() {
                if !self.known.own.claimed.contains(&agent) && !self.agents.iter().any(|(known, _)| *known == agent) {
                    self.agents.push((agent.clone(), format!("agent-{agent}")));
                }
            }
        }
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

impl Fold {
    pub(super) fn new(known: Known, beside: Beside, depth: usize, is_resumed: bool) -> Self {
        Self {
            known,
            beside,
            depth,
            chain: Chain::new(is_resumed),
            is_resumed,
            current: None,
            sides: Vec::new(),
            agents: Vec::new(),
            early: Early::default(),
            weight: 0,
        }
    }

    /// Ends the turn that is open.
    fn end_turn(&mut self) -> Option<ForeignTurn> {
        let talk = self.current.take()?;
        let mut children = Vec::new();
        let mut turn = talk.finish();
        for (at, side) in mem::take(&mut self.sides).into_iter().enumerate() {
            let mut told = side.talk.finish();
            // Older versions do not say which call it was: the one that was given the same words.
            let call = turn
                .tool_calls()
                .filter(|call| !children.iter().any(|child: &Child| child.call == call.id))
                .find(|call| matches!(&call.input, ToolInput::Subagent { prompt, .. } if *prompt == told.message.text));
            let call = call.map_or_else(|| format!("{}-side-{at}", turn.id), |call| call.id.clone());
            told.id = format!("{call}-turn");
            children.push(Child {
                chat: ForeignChat { id: call.clone(), turns: vec![told], ..ForeignChat::default() },
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

    /// The conversation of a subagent that has a log of its own.
    fn agent(&mut self, id: &str, call: String) -> Option<Child> {
        if self.depth >= MAX_DEPTH || !self.known.own.claimed.insert(id.to_owned()) {
            return None;
        }
        let path = self.beside.agent(id)?;
        let card = Card::of(&path);
        let room = MAX_STATE.saturating_sub(self.weight);
        let read = side_log(&path, id, &self.beside, self.depth + 1, room, &mut self.known.own.claimed);
        let damage = &mut self.known.session.damage;
        let Some(SideLog { session, turns, size }) = read else {
            damage.mark(Mark::TooLarge);
            return None;
        };
        self.weight = self.weight.saturating_add(size);
        for mark in session.damage.marks {
            damage.mark(mark);
        }
        damage.count = damage.count.saturating_add(session.damage.count);
        let call = card.call.clone().unwrap_or(call);
        let mut chat = ForeignChat { id: id.to_owned(), turns, ..ForeignChat::default() };
        card.write_to(&mut chat);
        Some(Child { call, chat })
    }

    /// What each line says of the session.
    fn common(&mut self, entry: &mut Entry) {
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
            session.workspace.folders.push(Place::local(folder));
        }
        session.workspace.branch =
            body.string("gitBranch").filter(|branch| !branch.is_empty()).or(session.workspace.branch.take());
        session.version = body.string("version").or(session.version.take());
        session.created_at = session.created_at.or(entry.at);
        session.modified_at = session.modified_at.max(entry.at);
        body.forget(NOISE);
    }

    /// The message that begins a turn, if the line is one. Results that come with it go to the turn that is open.
    /// A reading that goes on has told those before.
    fn prompt(&mut self, entry: &mut Entry, is_resumed: bool) -> Option<ForeignMessage> {
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

    fn results(&mut self, blocks: Vec<Value>, entry: &mut Entry) -> Vec<Value> {
        let (body, at) = (&mut entry.body, entry.at);
        let beside = mem::take(&mut self.beside);
        let (rest, found) = self.open(at).results(blocks, body, at, &beside);
        self.beside = beside;
        self.found(found);
        rest
    }

    fn found(&mut self, found: Found) {
        self.weight = self.weight.saturating_add(found.weight);
        if found.is_too_large {
            self.known.session.damage.mark(Mark::TooLarge);
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

    /// What stands where a person's words do.
    fn words(&mut self, blocks: Vec<Value>, entry: &mut Entry) -> Option<ForeignMessage> {
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
            Words::Person { text, .. } if is_automatic => Some(automatic(text)),
            Words::Automation(text) => Some(automatic(text)),
            Words::Person { text, .. } if text.is_empty() && attachments.is_empty() => None,
            Words::Person { text, command, context } => {
                if command.as_deref() == Some("rename") {
                    self.renamed(&text);
                }
                // They belong to the turn that begins here.
                let mut message = ForeignMessage { text, command, attachments, ..ForeignMessage::default() };
                if !context.is_empty() {
                    message.raw.insert(CONTEXT.to_owned(), serde_json::to_value(context).unwrap_or_default());
                }
                Some(message)
            }
            Words::Stopped => {
                let talk = self.open(entry.at);
                talk.draft.moved(entry.at);
                talk.draft.cancel();
                None
            }
            Words::Program { kind, text } => {
                if let Some(talk) = &mut self.current {
                    talk.draft.moved(entry.at);
                    // What the program answers itself needs no model.
                    if kind != "stop-hook" && talk.draft.is_unanswered() {
                        talk.draft.done();
                    }
                }
                self.notice(kind, text, Members::default());
                None
            }
            Words::Context(context) => {
                self.context(context);
                None
            }
        }
    }

    /// What a person said while the agent worked: it is told when the agent gets it.
    fn queued(&mut self, entry: &mut Entry) -> Option<ForeignMessage> {
        let attachment = entry.body.peek("attachment")?;
        if attachment.get("type").and_then(Value::as_str) != Some("queued_command")
            || attachment.get("commandMode").and_then(Value::as_str).is_some_and(|mode| mode != "prompt")
        {
            return None;
        }
        let text = content_text(attachment.get("prompt")?);
        let message = match words_of(&text) {
            Words::Person { text, command, .. } => ForeignMessage { text, command, ..ForeignMessage::default() },
            Words::Automation(text) => automatic(text),
            Words::Stopped | Words::Program { .. } | Words::Context(_) => return None,
        };
        // The agent was not stopped by it: it goes on in the next turn.
        if let Some(talk) = &mut self.current {
            talk.draft.done();
        }
        entry.body.forget(&["attachment"]);
        Some(message)
    }

    fn renamed(&mut self, text: &str) {
        let name = text.split_once(' ').map(|(_, name)| name.trim().to_owned());
        self.known.own.given_title = name.filter(|name| !name.is_empty());
    }

    fn begin(&mut self, mut entry: Entry, mut message: ForeignMessage) {
        let context = message.raw.shift_remove(CONTEXT).and_then(|context| serde_json::from_value(context).ok());
        let mode = entry.body.string("permissionMode");
        entry.body.forget(&["message", "origin", "todos", "thinkingMetadata"]);
        message.raw.extend(entry.body.rest());
        let turn = ForeignTurn {
            id: entry.id.filter(|id| !id.is_empty()).unwrap_or_else(|| self.next_id()),
            follows: self.known.own.follows,
            started_at: entry.at,
            ended_at: entry.at,
            agent: Some(self.who()),
            context: context.unwrap_or_default(),
            mode,
            message,
            ..ForeignTurn::default()
        };
        self.current = Some(Talk::new(turn));
        self.give_early();
    }

    fn next_id(&self) -> String {
        format!("turn-{}", self.known.session.turns + 1)
    }

    fn who(&self) -> ForeignAgent {
        let version = self.known.session.version.clone();
        ForeignAgent { id: "claude-code".into(), name: "Claude Code".into(), version, ..ForeignAgent::default() }
    }

    /// The turn that is open. What an agent does without having been asked begins one without a message.
    fn open(&mut self, at: Option<Timestamp>) -> &mut Talk {
        if self.current.is_none() {
            let mut talk = Talk::unasked(self.next_id(), at);
            talk.draft.turn.agent = Some(self.who());
            self.known.own.follows = Follows::Previous;
            self.current = Some(talk);
            self.give_early();
        }
        self.current.get_or_insert_default()
    }

    fn give_early(&mut self) {
        for part in self.early.give() {
            self.push(part);
        }
    }

    fn push(&mut self, part: ForeignPart) {
        match &mut self.current {
            Some(talk) => {
                talk.draft.push(part);
            }
            None => self.early.push(part, &mut self.known.session.damage),
        }
    }

    fn notice(&mut self, kind: &str, text: String, data: Members) {
        self.push(ForeignPart::Notice(Notice { kind: kind.to_owned(), text, raw: data.rest() }));
    }

    fn context(&mut self, blocks: Vec<ContextBlock>) {
        match &mut self.current {
            Some(talk) => talk.draft.turn.context.extend(blocks),
            None => {
                for block in blocks {
                    self.notice(&block.name, block.text, Members::default());
                }
            }
        }
    }

    /// A line that begins no turn.
    fn tell(&mut self, mut entry: Entry) {
        match entry.kind.as_str() {
            "assistant" => self.open(entry.at).assistant(entry),
            "user" if entry.is_recap() => {
                let content = entry.body.object("message").and_then(|mut message| message.any("content"));
                let text = content.as_ref().map(content_text).unwrap_or_default();
                self.notice("compact-summary", text, Members::default());
            }
            // All that it said was taken by `prompt`.
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
                    self.push(ForeignPart::Notice(Notice { kind: "user".into(), text: String::new(), raw: rest }));
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
                    self.push(ForeignPart::Raw(data.into_value()));
                }
            }
            _ => self.record(entry),
        }
    }

    fn system(&mut self, mut entry: Entry) {
        let kind = entry.body.string("subtype").unwrap_or_else(|| "system".to_owned());
        let text = entry.body.message("content").unwrap_or_default();
        entry.body.forget(&["level", "toolUseID"]);
        if let Some(talk) = &mut self.current {
            match kind.as_str() {
                // It is written when a turn has ended.
                "turn_duration" => talk.draft.done(),
                "error" | "api_refusal" => {
                    let message = entry.body.peek("error").and_then(|error| error.get("message")?.as_str());
                    talk.draft.fail(&kind, message.unwrap_or(&text).to_owned());
                }
                _ => {}
            }
        }
        if kind == "local_command"
            && let Words::Person { text, command, .. } = words_of(&text)
            && command.as_deref() == Some("rename")
        {
            self.renamed(&text);
        }
        self.notice(&kind, text, entry.body);
    }

    fn attached(&mut self, mut entry: Entry) {
        let Some(mut attachment) = entry.body.object("attachment") else {
            return self.notice("attachment", String::new(), entry.body);
        };
        let foreign_kind = attachment.string("type").unwrap_or_default();
        let kind = match foreign_kind.as_str() {
            "file" | "compact_file_reference" | "pdf_reference" => AttachmentKind::File,
            "directory" => AttachmentKind::Folder,
            "selected_lines_in_ide" => AttachmentKind::Selection,
            _ => return self.notice(&foreign_kind, String::new(), attachment),
        };
        let path = ["filename", "path"].iter().find_map(|key| attachment.string(key));
        let place = path.map(Place::local);
        let name = attachment.string("displayPath").or_else(|| place.as_ref().map(|place| place.name().to_owned()));
        let text = attachment.any("content").map(|content| {
            let inner = content.get("file").and_then(|file| file.get("content")).and_then(Value::as_str);
            inner.map_or_else(|| content_text(&content), str::to_owned)
        });
        let raw = attachment.rest();
        let attached = ForeignAttachment { kind, foreign_kind, name: name.unwrap_or_default(), place, text, raw };
        self.open(entry.at).draft.turn.message.attachments.push(attached);
    }

    /// What is said of the session as a whole, and what is not known.
    fn record(&mut self, mut entry: Entry) {
        let body = &mut entry.body;
        match entry.kind.as_str() {
            "custom-title" => self.known.own.given_title = body.string("customTitle").filter(|title| !title.is_empty()),
            "ai-title" => self.known.own.made_title = body.string("aiTitle").or(self.known.own.made_title.take()),
            "summary" => {
                // Summaries of other sessions stand in a file as well: those name lines that are not here.
                let leaf = body.string("leafUuid");
                let is_ours = leaf.is_none_or(|leaf| self.chain.find(&leaf) != Hangs::Nowhere);
                let summary = body.string("summary").filter(|summary| {
                    !summary.is_empty() && !summary.starts_with("API Error") && !summary.starts_with("Invalid API key")
                });
                if is_ours {
                    self.known.own.made_title = summary.or(self.known.own.made_title.take());
                } else if let Some(summary) = summary {
                    self.notice("summary", summary, Members::default());
                }
            }
            "relocated" => {
                if let Some(folder) = body.string("relocatedCwd") {
                    self.known.session.workspace.folders = vec![Place::local(folder)];
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
                workspace.pulled(Some(text.clone()));
                self.notice("pr-link", text, entry.body);
            }
            "agent-name" => {
                if let (Some(name), true) = (body.string("agentName"), self.known.session.raw.len() < MAX_NAMES) {
                    self.known.session.raw.insert("agentName".to_owned(), Value::String(name));
                }
            }
            // How the program stands, said anew with each prompt.
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
                    for edit in self.known.own.tracked.take(&snapshot, folder.as_deref(), &self.beside) {
                        self.edited(edit);
                    }
                    self.notice("file-history-snapshot", String::new(), snapshot);
                }
            }
            _ => {
                let kind = entry.kind;
                body.insert("type", Value::String(kind));
                self.push(ForeignPart::Raw(entry.body.into_value()));
            }
        }
    }

    /// A file was changed in the turn that is open. The text that a call wrote is not told again.
    fn edited(&mut self, mut edit: ForeignEdit) {
        let Some(talk) = &self.current else { return };
        let is_told = talk.draft.turn.tool_calls().any(|call| match &call.input {
            ToolInput::Edits(edits) => edits.iter().any(|told| told.path == edit.place.shown()),
            _ => false,
        });
        if is_told {
            edit.changes.clear();
        }
        self.push(ForeignPart::Edit(Box::new(edit)));
    }

    /// A line of a subagent whose conversation stands in the same file.
    fn side(&mut self, mut entry: Entry) {
        let known = match &entry.parent {
            Parent::Of(parent) => self.sides.iter().rposition(|side| side.ids.contains(parent)),
            Parent::Root | Parent::Unsaid => None,
        };
        let begins = known.is_none() && entry.kind == "user" && self.sides.len() < MAX_SIDES;
        if begins || self.sides.is_empty() {
            self.open(entry.at);
            let talk = Talk::unasked(String::new(), entry.at);
            self.sides.push(Side { talk, ids: HashSet::new() });
        }
        let at = known.filter(|_| !begins).unwrap_or(self.sides.len() - 1);
        let Some(side) = self.sides.get_mut(at) else { return };
        if let Some(id) = entry.id.clone() {
            side.ids.insert(id);
        }
        match entry.kind.as_str() {
            "assistant" => side.talk.assistant(entry),
            "user" => {
                let content = entry.body.object("message").and_then(|mut message| message.any("content"));
                match content {
                    Some(Value::Array(blocks)) if blocks.iter().any(|block| is_type(block, "tool_result")) => {
                        let (_, found) = side.talk.results(blocks, &mut entry.body, entry.at, &self.beside);
                        self.found(found);
                    }
                    Some(content) if begins => side.talk.draft.turn.message.text = content_text(&content),
                    Some(content) => side.talk.draft.notice("user", content_text(&content), Members::default()),
                    None => {}
                }
            }
            "progress" => {}
            kind => {
                let kind = kind.to_owned();
                side.talk.draft.notice(&kind, String::new(), entry.body);
            }
        }
    }
}

/// Where a message's context rides until its turn begins.
const CONTEXT: &str = "context";

fn is_type(block: &Value, kind: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(kind)
}

fn automatic(text: String) -> ForeignMessage {
    ForeignMessage { text, origin: MessageOrigin::SystemNotification, ..ForeignMessage::default() }
}

fn attachment_of(block: Value) -> ForeignAttachment {
    let mut members = Members::of(block).unwrap_or_default();
    let foreign_kind = members.string("type").unwrap_or_default();
    let kind = if foreign_kind == "image" { AttachmentKind::Image } else { AttachmentKind::Other };
    let name = members.string("title").unwrap_or_else(|| foreign_kind.clone());
    ForeignAttachment { kind, foreign_kind, name, raw: members.rest(), ..ForeignAttachment::default() }
}
