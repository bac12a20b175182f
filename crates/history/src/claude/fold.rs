//! Folds lines into turns: a person's words begin one, and everything up to the next belongs to it, in file order.
//! Parents only decide which turn a turn follows: within a turn the results of parallel calls have different parents,
//! and all of them count.

mod prompt;
mod records;
mod subagents;

use std::collections::BTreeSet;
use std::mem;

use grove_core::Timestamp;
use grove_transcript::{
    ContextBlock, DamageKind, DamageLocation, FileLocation, Notice, ToolInput, TranscriptAgent, TranscriptChat,
    TranscriptMessage, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptTurn, TurnParent,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::entry::{EntryParent, LogEntry};
use super::file_history::FileBackups;
use super::sidecar::Sidecar;
use super::turn_assembler::{TurnAssembler, content_text};
use crate::append_log::{self, LineEffect, Preamble};
use crate::json::JsonMembers;
use crate::json_lines::JsonlRecord;
use crate::limits::MAX_STATE;
use crate::parent_index::{ParentIndex, ParentTurn};
use crate::subagents::{SubagentChat, attach};
use subagents::Sidechain;

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

    fn follows(&self) -> TurnParent {
        self.known.own.follows
    }

    fn may_go_back(&mut self, line: &[u8], number: u32) -> bool {
        append_log::texts_of(line, "parentUuid").any(|parent| self.chain.is_before(parent, number))
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
            let mut side_turn = side.turn_assembler.finish();
            // Older versions do not name the call: it is the one with the same prompt.
            let call = turn
                .tool_calls()
                .filter(|call| !children.iter().any(|child: &SubagentChat| child.call == call.id))
                .find(|call| {
                    matches!(&call.input, ToolInput::Subagent { prompt, .. } if *prompt == side_turn.message.text)
                });
            let call = call.map_or_else(|| format!("{}-side-{at}", turn.id), |call| call.id.clone());
            side_turn.id = format!("{call}-turn");
            children.push(SubagentChat {
                chat: TranscriptChat { id: call.clone(), turns: vec![side_turn], ..TranscriptChat::default() },
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
}

/// The member that holds a message's context until its turn begins.
const CONTEXT: &str = "context";

fn is_type(block: &Value, kind: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(kind)
}
