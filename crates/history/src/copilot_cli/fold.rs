//! Folds events into turns: a person's message begins one, and everything up to the next belongs to it.

use std::collections::BTreeMap;

use grove_core::{ErrorInfo, MessageOrigin, Timestamp};
use grove_transcript::{
    ContextBlock, DamageKind, DamageLocation, FileLocation, Notice, TranscriptAgent, TranscriptAttachment,
    TranscriptAttachmentKind, TranscriptMessage, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptTurn,
    TranscriptUsage, TranscriptWorkspace,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::LogEvent;
use super::turn::EventTurnBuilder;
use crate::append_log::{self, Preamble};
use crate::blocks::blocks;
use crate::json::JsonMembers;
use crate::limits::MAX_STATE;
use crate::subagents::{SubagentChat, attach, chat_of};

/// The newest known version of the format.
const VERSION: u64 = 1;
/// The maximum number of a turn's subagents. Further ones are added to the turn itself.
const MAX_CHILDREN: usize = 1_000;

/// Events that are read however long their turn is.
const STATES: &[&str] = &[
    "session.start",
    "session.resume",
    "session.model_change",
    "session.title_changed",
    "assistant.turn_start",
    "assistant.turn_end",
    "abort",
];
const SMALL: usize = 64 * 1024;

/// The state between two turns beside the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReaderState {
    /// The last chosen model.
    pub model: Option<String>,
    pub has_start: bool,
    /// The session's total usage, if the program records it: it counts from the beginning, so the last record counts.
    pub total: Option<TranscriptUsage>,
    /// The call that started each subagent, which may work on in a later turn.
    pub agents: BTreeMap<String, String>,
}

pub(super) type FoldState = append_log::FoldState<ReaderState>;

/// The effect of a line on the reader.
#[derive(Debug)]
pub(super) enum LineEffect {
    /// The line begins a turn, and ended the one before.
    StartsTurn(Option<Box<TranscriptTurn>>),
    Continues,
}

#[derive(Debug)]
pub(super) struct TurnFold {
    pub known: FoldState,
    current: Option<EventTurnBuilder>,
    children: Vec<SubagentBuilder>,
    /// The parts before the first turn.
    preamble: Preamble<TranscriptPart>,
    preamble_context: Preamble<ContextBlock>,
    /// The number of bytes of the current turn.
    weight: usize,
}

/// A subagent's part in a turn.
#[derive(Debug)]
struct SubagentBuilder {
    call: String,
    name: Option<String>,
    description: Option<String>,
    builder: EventTurnBuilder,
}

impl FoldState {
    pub(super) fn initial(id: &str) -> Self {
        Self::new(TranscriptSession::new(TranscriptSource::CopilotCli, id), ReaderState::default())
    }
}

impl TurnFold {
    pub(super) fn new(known: FoldState) -> Self {
        Self {
            known,
            current: None,
            children: Vec::new(),
            preamble: Preamble::default(),
            preamble_context: Preamble::default(),
            weight: 0,
        }
    }

    pub(super) fn bad(&mut self, mark: DamageKind, place: DamageLocation) {
        self.known.session.damage.add(mark, place);
    }

    /// True if parts came before the first turn.
    pub(super) fn has_preamble(&self) -> bool {
        !self.preamble.is_empty() || !self.preamble_context.is_empty()
    }

    /// Keeps a value that is not an event with its turn.
    pub(super) fn odd(&mut self, value: Value) {
        self.push(TranscriptPart::Raw(value));
    }

    /// Adds an event of `length` bytes at `place`.
    pub(super) fn take(
        &mut self,
        event: LogEvent,
        length: usize,
        place: impl FnOnce(String) -> DamageLocation,
    ) -> LineEffect {
        if event.kind == "user.message" && !is_skill(&event) && self.owner(&event).is_none() {
            let ended = self.end_turn();
            self.begin(event);
            self.weight = length;
            return LineEffect::StartsTurn(ended.map(Box::new));
        }
        // State records of a session or a turn are small, and always count.
        let is_small = length <= SMALL && STATES.contains(&event.kind.as_str());
        if !is_small {
            self.weight = self.weight.saturating_add(length);
            if self.weight > MAX_STATE {
                self.bad(DamageKind::TooLarge, place(format!("a turn of more than {MAX_STATE} bytes")));
                return LineEffect::Continues;
            }
        }
        if event.kind.starts_with("session.") {
            self.session_event(event);
        } else {
            self.turn_event(event);
        }
        LineEffect::Continues
    }

    /// Ends the open turn.
    pub(super) fn end_turn(&mut self) -> Option<TranscriptTurn> {
        let builder = self.current.take()?;
        let mut turn = builder.finish(self.known.own.model.as_deref());
        let children = std::mem::take(&mut self.children).into_iter().map(|child| {
            let mut child_turn = child.builder.finish(None);
            child_turn.id = format!("{}-turn", child.call);
            let mut chat = chat_of(&child.call, child_turn);
            (chat.agent, chat.description) = (child.name, child.description);
            SubagentChat { call: child.call, chat }
        });
        attach(&mut turn.parts, children.collect());
        self.known.session.count(&turn);
        Some(turn)
    }

    fn begin(&mut self, event: LogEvent) {
        let LogEvent { id, at, mut data, .. } = event;
        let turn = TranscriptTurn {
            id: id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("turn-{}", self.known.session.turns + 1)),
            started_at: at,
            ended_at: at,
            mode: data.string("agentMode"),
            agent: self.agent(),
            context: data.string("transformedContent").map(|text| context_of(&text)).unwrap_or_default(),
            message: TranscriptMessage {
                text: data.string("content").unwrap_or_default(),
                attachments: data.list("attachments").into_iter().map(attachment_of).collect(),
                ..TranscriptMessage::default()
            },
            ..TranscriptTurn::default()
        };
        let mut builder = EventTurnBuilder::new(turn);
        builder.turn.message.raw = data.rest();
        self.current = Some(builder);
        self.flush_preamble();
    }

    fn agent(&self) -> Option<TranscriptAgent> {
        let version = self.known.session.version.clone();
        Some(TranscriptAgent {
            id: "copilot-cli".into(),
            name: "Copilot CLI".into(),
            version,
            ..TranscriptAgent::default()
        })
    }

    /// The open turn. An agent's work without a prompt begins a turn without a message.
    fn open(&mut self, at: Option<Timestamp>) -> &mut EventTurnBuilder {
        if self.current.is_none() {
            let turn = TranscriptTurn {
                id: format!("turn-{}", self.known.session.turns + 1),
                started_at: at,
                agent: self.agent(),
                message: TranscriptMessage { origin: MessageOrigin::Automation, ..TranscriptMessage::default() },
                ..TranscriptTurn::default()
            };
            self.current = Some(EventTurnBuilder::new(turn));
            self.flush_preamble();
        }
        self.current.get_or_insert_default()
    }

    /// Adds the parts before the first turn to its beginning.
    fn flush_preamble(&mut self) {
        for part in self.preamble.give() {
            self.push(part);
        }
        if let Some(builder) = &mut self.current {
            builder.turn.context.extend(self.preamble_context.give());
        }
    }

    fn push(&mut self, part: TranscriptPart) {
        match &mut self.current {
            Some(builder) => builder.push(part),
            None => self.preamble.push(part, &mut self.known.session.damage),
        }
    }

    fn notice(&mut self, kind: &str, text: String, data: JsonMembers) {
        let raw = data.rest();
        self.push(TranscriptPart::Notice(Notice { kind: kind.to_owned(), text, raw }));
    }

    /// The call of the subagent that an event comes from.
    fn owner(&self, event: &LogEvent) -> Option<String> {
        let by_agent = || event.agent.as_ref().map(|agent| self.known.own.agents.get(agent).unwrap_or(agent).as_str());
        event.parent_call().or_else(by_agent).map(str::to_owned)
    }

    /// The builder that an event belongs to: a subagent's, or the turn's own.
    fn builder(&mut self, event: &mut LogEvent) -> &mut EventTurnBuilder {
        let owner = self.owner(event);
        let Some(call) = owner else { return self.open(event.at) };
        let at = match self.child(&call) {
            Some(at) => at,
            None => return self.open(event.at),
        };
        let builder = &mut self.children[at].builder;
        if builder.turn.started_at.is_none() {
            builder.turn.started_at = event.at;
        }
        builder
    }

    fn child(&mut self, call: &str) -> Option<usize> {
        if let Some(at) = self.children.iter().rposition(|child| child.call == call) {
            return Some(at);
        }
        if self.children.len() == MAX_CHILDREN {
            return None;
        }
        self.open(None);
        let builder = EventTurnBuilder::default();
        self.children.push(SubagentBuilder { call: call.to_owned(), name: None, description: None, builder });
        Some(self.children.len() - 1)
    }

    fn turn_event(&mut self, mut event: LogEvent) {
        match event.kind.as_str() {
            "assistant.turn_start" => self.builder(&mut event).round_begins(),
            "assistant.turn_end" => {
                let at = event.at;
                self.builder(&mut event).round_ends(at);
            }
            "assistant.message" => self.builder(&mut event).message(event),
            "assistant.reasoning" => {
                let text = event.data.string("content").unwrap_or_default();
                self.builder(&mut event).think(text);
            }
            "assistant.usage" => {
                let usage = usage_of(&mut event.data);
                self.builder(&mut event).add_usage(&usage);
            }
            "tool.execution_start" => self.builder(&mut event).begin_call(event),
            "tool.execution_complete" => self.builder(&mut event).end_call(event),
            "permission.requested" => {
                let mut data = std::mem::take(&mut event.data);
                self.builder(&mut event).permission_requested(&mut data);
            }
            "permission.completed" => {
                let mut data = std::mem::take(&mut event.data);
                self.builder(&mut event).decided(&mut data);
            }
            "subagent.started" => self.subagent_begins(event),
            "subagent.completed" | "subagent.failed" => self.subagent_ends(event),
            "abort" => {
                let reason = event.data.message("reason").unwrap_or_default();
                if self.current.is_some() {
                    let at = event.at;
                    self.builder(&mut event).abort(at);
                }
                self.notice("abort", reason, JsonMembers::default());
            }
            "system.message" => {
                let text = event.data.string("content").unwrap_or_default();
                let block = ContextBlock { name: "system".to_owned(), text, ..ContextBlock::default() };
                match self.current {
                    Some(_) => self.builder(&mut event).turn.context.push(block),
                    None => self.preamble_context.push(block, &mut self.known.session.damage),
                }
            }
            "system.notification" => {
                let text = event.data.message("content").unwrap_or_default();
                self.notice("system.notification", text, event.data);
            }
            "user.message" if self.owner(&event).is_some() => {
                let text = event.data.string("content").unwrap_or_default();
                self.builder(&mut event).turn.message.text = text;
            }
            "user.message" | "external_tool.requested" | "external_tool.completed" | "hook.start" | "hook.end" => {
                self.notice(&event.kind, String::new(), event.data);
            }
            // Newer than this reader, or useless for a person: kept unchanged.
            _ => {
                let mut raw = event.data;
                raw.insert("type", Value::String(event.kind));
                self.push(TranscriptPart::Raw(raw.into_value()));
            }
        }
    }

    fn subagent_begins(&mut self, mut event: LogEvent) {
        let Some(call) = event.data.string("toolCallId") else {
            return self.notice("subagent.started", String::new(), event.data);
        };
        if let Some(agent) = &event.agent
            && self.known.own.agents.len() < MAX_CHILDREN
        {
            self.known.own.agents.insert(agent.clone(), call.clone());
        }
        let name = event.data.string("agentDisplayName").or_else(|| event.data.string("agentName"));
        let description = event.data.string("agentDescription").map(|text| text.trim().to_owned());
        if let Some(at) = self.child(&call) {
            let child = &mut self.children[at];
            (child.name, child.description) = (name, description);
            child.builder.turn.started_at = event.at;
        }
    }

    fn subagent_ends(&mut self, mut event: LogEvent) {
        let call = event.data.string("toolCallId");
        let child = call.and_then(|call| self.children.iter().rposition(|child| child.call == call));
        if let Some(child) = child {
            let builder = &mut self.children[child].builder;
            if event.kind == "subagent.completed" {
                // Its rounds may be missing; then its end is all there is.
                builder.round_begins();
                builder.round_ends(event.at);
            } else {
                let message = event.data.message("error").unwrap_or_default();
                builder.fail(ErrorInfo::new("subagentFailed", message), event.at);
            }
        }
        event.data.forget(&["agentName", "agentDisplayName"]);
        self.notice(&event.kind, String::new(), event.data);
    }

    fn session_event(&mut self, mut event: LogEvent) {
        match event.kind.as_str() {
            "session.start" => self.start(event),
            "session.resume" => {
                let model = event.data.string("selectedModel");
                self.choose(model);
                self.context(&mut event.data);
                self.notice("session.resume", String::new(), event.data);
            }
            "session.model_change" => {
                let model = event.data.string("newModel");
                self.choose(model);
                self.notice("session.model_change", String::new(), event.data);
            }
            "session.title_changed" => self.known.session.title = event.data.message("title"),
            "session.error" => {
                let message = event.data.message("message").unwrap_or_default();
                let kind = event.data.string("errorType").unwrap_or_else(|| "agentFailed".to_owned());
                // An error before any prompt fails no turn.
                if let Some(builder) = &mut self.current {
                    builder.fail(ErrorInfo::new(kind, message.clone()), event.at);
                }
                self.notice("session.error", message, event.data);
            }
            "session.usage_record" => {
                if let Some(mut usage) = event.data.object("usage") {
                    let usage = usage_of(&mut usage);
                    self.builder(&mut event).add_usage(&usage);
                }
            }
            "session.shutdown" => {
                if let Some(total) = metrics_of(&mut event.data) {
                    self.known.own.total = Some(total);
                }
                self.notice("session.shutdown", String::new(), JsonMembers::default());
            }
            "session.compaction_complete" => {
                let text = event.data.message("summaryContent").unwrap_or_default();
                self.notice("session.compaction_complete", text, event.data);
            }
            "session.info" | "session.warning" => {
                let text = event.data.message("message").unwrap_or_default();
                if event.data.peek("infoType").and_then(Value::as_str) == Some("fork") {
                    self.known.session.parent =
                        forked_from(&text).map(str::to_owned).or(self.known.session.parent.take());
                }
                self.notice(&event.kind, text, event.data);
            }
            // Plans, files, truncations, rewinds and newer kinds: one line with their data.
            _ => self.notice(&event.kind, String::new(), event.data),
        }
    }

    /// Sets the model from here on.
    fn choose(&mut self, model: Option<String>) {
        let Some(model) = model else { return };
        let before = self.known.own.model.replace(model);
        if let Some(builder) = &mut self.current {
            builder.model_changes(before.as_deref());
        }
    }

    fn start(&mut self, mut event: LogEvent) {
        let known = &mut self.known;
        let data = &mut event.data;
        known.own.has_start = true;
        if let Some(id) = data.string("sessionId").filter(|id| !id.is_empty() && *id != known.session.source_id) {
            let folder = std::mem::replace(&mut known.session.source_id, id);
            known.session.aliases.insert(0, folder);
        }
        if let Some(version) = data.unsigned("version").filter(|version| *version > VERSION) {
            known.session.damage.mark(DamageKind::NewerVersion { version });
        }
        known.session.version = data.string("copilotVersion");
        known.session.created_at = data.time("startTime").or(event.at);
        known.own.model = data.string("selectedModel").or(known.own.model.take());
        self.context(&mut event.data);
    }

    /// Sets the working directory: the last record counts, and missing members stay.
    fn context(&mut self, data: &mut JsonMembers) {
        let Some(mut context) = data.object("context") else { return };
        let folder = context.string("cwd").or_else(|| context.string("gitRoot"));
        let mut workspace = TranscriptWorkspace {
            folders: folder.map(FileLocation::local).into_iter().collect(),
            repository: context.string("repository"),
            branch: context.string("branch"),
            commit: context.string("headCommit"),
            ..TranscriptWorkspace::default()
        };
        workspace.fill(std::mem::take(&mut self.known.session.workspace));
        self.known.session.workspace = workspace;
    }
}

/// True for a skill's message, which is not a person's.
fn is_skill(event: &LogEvent) -> bool {
    event.data.peek("source").and_then(Value::as_str).is_some_and(|source| source.starts_with("skill-"))
}

/// The source session of a fork: `Forked from "name" (id) as …`. The note at the source names no parent.
fn forked_from(message: &str) -> Option<&str> {
    let (_, from) = message.strip_prefix("Forked from ")?.split_once("\" (")?;
    from.split_once(')').map(|(id, _)| id)
}

/// The context of a prompt, without the person's own words.
fn context_of(text: &str) -> Vec<ContextBlock> {
    blocks(text).into_iter().filter(|block| !block.name.is_empty()).collect()
}

fn attachment_of(value: Value) -> TranscriptAttachment {
    let mut members = JsonMembers::of(value).unwrap_or_default();
    let foreign_kind = members.string("type").unwrap_or_default();
    let path = members.string("path").or_else(|| members.string("filePath"));
    TranscriptAttachment {
        kind: match foreign_kind.as_str() {
            "file" => TranscriptAttachmentKind::File,
            "directory" => TranscriptAttachmentKind::Folder,
            "selection" => TranscriptAttachmentKind::Selection,
            "image" | "blob" => TranscriptAttachmentKind::Image,
            _ => TranscriptAttachmentKind::Other,
        },
        foreign_kind,
        name: members.string("displayName").unwrap_or_default(),
        place: path.map(FileLocation::local),
        text: members.string("text"),
        raw: members.rest(),
    }
}

fn usage_of(members: &mut JsonMembers) -> TranscriptUsage {
    TranscriptUsage {
        input_tokens: members.unsigned("inputTokens"),
        output_tokens: members.unsigned("outputTokens"),
        cache_read_tokens: members.unsigned("cacheReadTokens"),
        cache_write_tokens: members.unsigned("cacheWriteTokens"),
        reasoning_tokens: members.unsigned("reasoningTokens"),
        cost: members.number("cost"),
    }
}

/// The usage of all models together.
fn metrics_of(data: &mut JsonMembers) -> Option<TranscriptUsage> {
    let mut total = TranscriptUsage::default();
    for (_, metrics) in data.object("modelMetrics")?.rest() {
        let Ok(mut metrics) = JsonMembers::of(metrics) else { continue };
        if let Some(mut usage) = metrics.object("usage") {
            total.add(&usage_of(&mut usage));
        }
        if let Some(cost) = metrics.object("requests").and_then(|mut requests| requests.number("cost")) {
            total.add(&TranscriptUsage { cost: Some(cost), ..TranscriptUsage::default() });
        }
    }
    Some(total).filter(|total| !total.is_empty())
}
