//! Folds items of a rollout into turns. The program records when a turn begins and ends; older versions do not, and
//! there a person's words begin one.
//!
//! Most items are recorded twice, as model output and as display event. The first one counts.

use std::mem;

use grove_core::{MessageOrigin, Timestamp};
use grove_transcript::{
    CallState, ContextBlock, DamageKind, DamageLocation, FileLocation, Notice, TranscriptAgent, TranscriptAttachment,
    TranscriptModel, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptTurn, TranscriptUsage, TurnParent,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::content::{content_text, ended, image_of, images};
use crate::append_log::{self, LineEffect, Preamble};
use crate::json::{JsonMembers, text_of};
use crate::json_lines::JsonlRecord;
use crate::limits::MAX_STATE;
use crate::turn_builder::TurnBuilder;

/// Beginnings of user texts that are the program's context.
const CONTEXT: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
];
/// Records of the program's state, repeated with each turn.
const STATES: &[&str] = &["thread_settings_applied", "mcp_startup_complete", "shutdown_complete"];
/// The event that abandons the newest turns.
const ROLLED_BACK: &str = "thread_rolled_back";
/// Display items that repeat a model item.
const SHOWN: &[&str] = &["UserMessage", "AgentMessage", "Reasoning"];

/// The state between two turns beside the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReaderState {
    pub title: Option<String>,
    pub has_start: bool,
    model: Option<String>,
    mode: Option<String>,
    /// The session's total usage at the last record, which may be repeated.
    total: Option<Value>,
    /// The time of the last record: items of older rollouts have none.
    at: Option<Timestamp>,
    /// The numbers of the turns that lead here.
    path: Vec<u32>,
}

pub(super) type FoldState = append_log::FoldState<ReaderState>;

impl FoldState {
    pub(super) fn initial(id: &str) -> Self {
        Self::new(TranscriptSession::new(TranscriptSource::Codex, id), ReaderState::default())
    }
}

#[derive(Debug)]
pub(super) struct TurnFold {
    known: FoldState,
    current: Option<TurnBuilder>,
    /// True if the open turn has its message.
    has_message: bool,
    preamble: Preamble<TranscriptPart>,
    preamble_context: Preamble<ContextBlock>,
    weight: usize,
}

impl append_log::LogFold for TurnFold {
    type ReaderState = ReaderState;

    fn take(&mut self, record: JsonlRecord) -> LineEffect {
        let (length, place) = (record.length, record.place(format!("a turn of more than {MAX_STATE} bytes")));
        let mut line = match JsonMembers::of(record.value) {
            Ok(line) => line,
            Err(odd) => {
                self.known
                    .session
                    .damage
                    .add(DamageKind::Damaged, DamageLocation { what: "no item".to_owned(), ..place });
                self.push(TranscriptPart::Raw(odd));
                return LineEffect::Continues;
            }
        };
        self.known.own.at = line.time("timestamp").or(self.known.own.at);
        self.known.session.modified_at = self.known.session.modified_at.max(self.known.own.at);
        let kind = line.string("type");
        // Older rollouts have items without an envelope, and begin with the session's metadata.
        let (kind, body) = match (kind, line.object("payload")) {
            (Some(kind), Some(body)) => (kind, body),
            (Some(kind), None) => {
                line.insert("type", Value::String(kind));
                ("response_item".to_owned(), line)
            }
            (None, _) if line.has("record_type") => return LineEffect::Continues,
            (None, _) if line.has("id") => ("session_meta".to_owned(), line),
            (None, _) => {
                self.known
                    .session
                    .damage
                    .add(DamageKind::Damaged, DamageLocation { what: "no item".to_owned(), ..place });
                self.push(TranscriptPart::Raw(line.into_value()));
                return LineEffect::Continues;
            }
        };
        let begins = self.begins(&kind, &body);
        let ended = begins.then(|| {
            let ended = self.end_turn();
            self.begin(&body);
            self.weight = 0;
            ended
        });
        self.weight = self.weight.saturating_add(length);
        if self.weight > MAX_STATE {
            self.known.session.damage.add(DamageKind::TooLarge, place);
        } else {
            self.tell(&kind, body);
        }
        match ended {
            Some(ended) => LineEffect::StartsTurn(ended.map(Box::new)),
            None => LineEffect::Continues,
        }
    }

    fn end(&mut self) -> Option<TranscriptTurn> {
        self.end_turn()
    }

    fn follows(&self) -> TurnParent {
        self.current.as_ref().map_or(TurnParent::Previous, |draft| draft.turn.follows)
    }

    fn may_go_back(&mut self, line: &[u8], _: u32) -> bool {
        memchr::memmem::find(line, ROLLED_BACK.as_bytes()).is_some()
    }

    fn has_preamble(&self) -> bool {
        !self.preamble.is_empty() || !self.preamble_context.is_empty()
    }

    fn known(&mut self) -> &mut FoldState {
        &mut self.known
    }
}

impl TurnFold {
    pub(super) fn new(known: FoldState) -> Self {
        Self {
            known,
            current: None,
            has_message: false,
            preamble: Preamble::default(),
            preamble_context: Preamble::default(),
            weight: 0,
        }
    }

    /// True if an item begins a turn.
    fn begins(&self, kind: &str, body: &JsonMembers) -> bool {
        let inner = body.peek("type").and_then(Value::as_str).unwrap_or_default();
        match (kind, inner) {
            ("event_msg", "task_started" | "turn_started") => true,
            ("event_msg", "user_message") => {
                self.is_news(body.peek("message").and_then(Value::as_str).unwrap_or_default())
            }
            ("response_item", "message") if body.peek("role").and_then(Value::as_str) == Some("user") => {
                let text = body.peek("content").map(content_text).unwrap_or_default();
                !is_context(&text) && self.is_news(&text)
            }
            _ => false,
        }
    }

    /// True if a person's words differ from the open turn's: then they begin a new one.
    fn is_news(&self, text: &str) -> bool {
        match &self.current {
            Some(draft) => self.has_message && draft.turn.message.text != text,
            None => true,
        }
    }

    fn begin(&mut self, body: &JsonMembers) {
        let number = self.known.session.turns;
        let id = body.peek("turn_id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let version = self.known.session.version.clone();
        // A resumed read begins the turn again at which it stopped.
        let path = &mut self.known.own.path;
        if path.last() == Some(&number) {
            path.pop();
        }
        let follows = TurnParent::of(number, path.last().copied());
        path.push(number);
        let mut turn = TranscriptTurn {
            id: id.map_or_else(|| format!("turn-{}", number.saturating_add(1)), str::to_owned),
            follows,
            started_at: self.known.own.at,
            ended_at: self.known.own.at,
            agent: Some(TranscriptAgent {
                id: "codex".into(),
                name: "Codex".into(),
                version,
                ..TranscriptAgent::default()
            }),
            ..TranscriptTurn::default()
        };
        turn.message.origin = MessageOrigin::Automation;
        turn.context = self.preamble_context.give();
        let mut draft = TurnBuilder::new(turn);
        for part in self.preamble.give() {
            draft.push(part);
        }
        self.current = Some(draft);
        self.has_message = false;
    }

    /// Ends the open turn.
    fn end_turn(&mut self) -> Option<TranscriptTurn> {
        let mut draft = self.current.take()?;
        draft.turn.model =
            draft.turn.model.take().or_else(|| self.known.own.model.as_deref().map(TranscriptModel::new));
        draft.turn.mode = draft.turn.mode.take().or_else(|| self.known.own.mode.clone());
        let turn = draft.finish();
        self.known.session.count(&turn);
        Some(turn)
    }

    /// The open turn. An agent's work without a prompt begins a turn without a message.
    fn open(&mut self) -> &mut TurnBuilder {
        if self.current.is_none() {
            self.begin(&JsonMembers::default());
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

    fn context(&mut self, name: &str, text: String) {
        let block = ContextBlock { name: name.to_owned(), text, ..ContextBlock::default() };
        match &mut self.current {
            Some(draft) => draft.turn.context.push(block),
            None => self.preamble_context.push(block, &mut self.known.session.damage),
        }
    }

    fn tell(&mut self, kind: &str, mut body: JsonMembers) {
        match kind {
            "session_meta" => self.start(body),
            "turn_context" => {
                self.known.own.model = body.string("model").or(self.known.own.model.take());
                self.known.own.mode = body.string("approval_policy").or(self.known.own.mode.take());
                if let Some(folder) = body.string("cwd") {
                    self.known.session.workspace.folders = vec![FileLocation::local(folder)];
                }
                if let (Some(draft), Some(model)) = (&mut self.current, &self.known.own.model) {
                    draft.turn.model = Some(TranscriptModel::new(model));
                    draft.turn.mode.clone_from(&self.known.own.mode);
                }
            }
            "response_item" => self.item(body),
            "event_msg" => self.event(body),
            "compacted" => {
                let text = body.string("message").unwrap_or_default();
                body.forget(&["replacement_history"]);
                self.notice("compacted", text, body);
            }
            // Repeated with each turn: the program's own state, and the usage, which is counted elsewhere.
            "world_state" | "token_usage_record" => {}
            _ => {
                body.insert("itemType", Value::String(kind.to_owned()));
                self.push(TranscriptPart::Raw(body.into_value()));
            }
        }
    }

    fn start(&mut self, mut body: JsonMembers) {
        let known = &mut self.known;
        // A fork begins with its source's records, the source's start included.
        if mem::replace(&mut known.own.has_start, true) {
            return;
        }
        if let Some(id) = body.string("id").filter(|id| !id.is_empty() && *id != known.session.source_id) {
            let file = mem::replace(&mut known.session.source_id, id);
            known.session.aliases.push(file);
        }
        known.session.version = body.string("cli_version");
        known.session.created_at = body.time("timestamp").or(known.own.at);
        let spawned = body.peek("source").and_then(|source| {
            let spawn = source.get("subagent")?.get("thread_spawn")?;
            spawn.get("parent_thread_id")?.as_str().map(str::to_owned)
        });
        known.session.parent = body.string("forked_from_id").or(spawned);
        let workspace = &mut known.session.workspace;
        workspace.folders = body.string("cwd").map(FileLocation::local).into_iter().collect();
        if let Some(mut git) = body.object("git") {
            workspace.branch = git.string("branch");
            workspace.commit = git.string("commit_hash");
            workspace.repository = git.string("repository_url");
        }
        let instructions = body.object("base_instructions").and_then(|mut instructions| instructions.string("text"));
        if let Some(text) = instructions.or_else(|| body.string("instructions")).filter(|text| !text.is_empty()) {
            self.context("instructions", text);
        }
    }

    /// Adds words of a person to the open turn, which has none yet or the same.
    fn user_message(&mut self, text: String, attachments: Vec<TranscriptAttachment>) {
        let message = &mut self.open().turn.message;
        message.origin = MessageOrigin::User;
        message.text = text;
        if message.attachments.is_empty() {
            message.attachments = attachments;
        }
        self.has_message = true;
    }

    fn spoke(&mut self, text: String) {
        let at = self.known.own.at;
        let draft = self.open();
        draft.answered(at);
        if !draft.has_recent(&TranscriptPart::Text(text.clone())) {
            draft.say(text);
        }
    }

    fn thought(&mut self, text: String) {
        let at = self.known.own.at;
        let draft = self.open();
        draft.answered(at);
        if !draft.has_recent(&TranscriptPart::Reasoning { text: text.clone(), title: None, duration_ms: None }) {
            draft.think(text);
        }
    }

    /// Reads a model item.
    fn item(&mut self, mut body: JsonMembers) {
        let kind = body.string("type").unwrap_or_default();
        let at = self.known.own.at;
        match kind.as_str() {
            "message" => {
                let content = body.any("content").unwrap_or_default();
                let text = content_text(&content);
                match body.string("role").as_deref() {
                    Some("assistant") => {
                        let id = body.string("id");
                        let turn = &mut self.open().turn;
                        turn.model_message_id = id.or(turn.model_message_id.take());
                        self.spoke(text);
                    }
                    Some("user") if is_context(&text) => {
                        self.environment(&text);
                        self.context("user", text);
                    }
                    Some("user") => self.user_message(text, images(&content)),
                    Some(role) => {
                        let role = role.to_owned();
                        self.context(&role, text);
                    }
                    None => self.push(TranscriptPart::Raw(content)),
                }
            }
            "reasoning" => {
                for key in ["summary", "content"] {
                    for part in body.list(key) {
                        if let Some(text) = part.get("text").and_then(Value::as_str) {
                            self.thought(text.to_owned());
                        }
                    }
                }
            }
            "function_call" => {
                let (id, name) = (body.string("call_id"), body.string("name"));
                let input = body.any("arguments");
                let call = self.open().begin_call(id, name, input, at);
                call.provider = body.string("namespace").or(call.provider.take());
            }
            "custom_tool_call" => {
                let (id, name) = (body.string("call_id"), body.string("name"));
                let input = body.any("input").map(|input| json!({"input": input}));
                self.open().begin_call(id, name, input, at);
            }
            "local_shell_call" => {
                let id = body.string("call_id").or_else(|| body.string("id"));
                self.open().begin_call(id, Some("local_shell".into()), body.any("action"), at);
            }
            kind if kind.ends_with("_call") => {
                let id = body.string("call_id").or_else(|| body.string("id"));
                let is_over = body.string("status").is_none_or(|status| status == "completed");
                let name = kind.trim_end_matches("_call").to_owned();
                let input = body.any("action").unwrap_or_else(|| Value::Object(body.rest()));
                let call = self.open().begin_call(id, Some(name), Some(input), at);
                if is_over {
                    call.state = CallState::Complete;
                }
            }
            kind if kind.ends_with("_output") => match body.string("call_id") {
                Some(id) => {
                    let output = body.any("output");
                    ended(self.open().end_call(&id, CallState::Complete, at), output);
                }
                None => self.push(TranscriptPart::Raw(body.into_value())),
            },
            _ => {
                body.insert("type", Value::String(kind));
                self.push(TranscriptPart::Raw(body.into_value()));
            }
        }
    }

    /// Reads a display event.
    fn event(&mut self, mut body: JsonMembers) {
        let kind = body.string("type").unwrap_or_default();
        let at = self.known.own.at;
        match kind.as_str() {
            "user_message" => {
                let text = body.string("message").unwrap_or_default();
                let mut images = body.list("images");
                images.extend(body.list("local_images"));
                let attachments = images.iter().map(|image| image_of(&text_of(image))).collect();
                self.user_message(text, attachments);
            }
            "agent_message" => self.spoke(body.string("message").unwrap_or_default()),
            "agent_reasoning" | "agent_reasoning_raw_content" => self.thought(body.string("text").unwrap_or_default()),
            "token_count" => self.used(body),
            "task_started" | "turn_started" => {}
            "task_complete" | "turn_complete" => {
                let draft = self.open();
                draft.moved(at);
                draft.done();
                draft.turn.first_response_ms = body.unsigned("time_to_first_token_ms").or(draft.turn.first_response_ms);
            }
            "turn_aborted" => {
                let draft = self.open();
                draft.moved(at);
                draft.cancel();
                let reason = body.string("reason").unwrap_or_default();
                self.notice("turn_aborted", reason, JsonMembers::default());
            }
            "error" => {
                let message = body.message("message").unwrap_or_default();
                let draft = self.open();
                draft.moved(at);
                draft.fail("agentFailed", message.clone());
                self.notice("error", message, body);
            }
            ROLLED_BACK => {
                let count = body.unsigned("num_turns").and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
                let path = &mut self.known.own.path;
                path.truncate(path.len().saturating_sub(count));
                self.notice(ROLLED_BACK, String::new(), body);
            }
            "thread_name_updated" => {
                self.known.own.title =
                    body.string("thread_name").or_else(|| body.string("name")).or(self.known.own.title.take());
            }
            "item_completed" => self.shown(body),
            "exec_command_end" => {
                let id = body.string("call_id");
                let code = body.signed("exit_code");
                if let Some(call) = id.and_then(|id| self.current.as_mut()?.known_call(Some(&id))) {
                    call.exit_code = code;
                }
            }
            kind if STATES.contains(&kind) => {}
            _ => {
                let text = body.message("message").unwrap_or_default();
                self.notice(&kind, text, body);
            }
        }
    }

    /// Adds the further data of a displayed item.
    fn shown(&mut self, mut body: JsonMembers) {
        let Some(mut item) = body.object("item") else { return };
        let kind = item.string("type").unwrap_or_default();
        if SHOWN.contains(&kind.as_str()) {
            return;
        }
        let id = item.string("id");
        let call = id.as_deref().and_then(|id| self.current.as_mut()?.known_call(Some(id)));
        let Some(call) = call else {
            item.insert("type", Value::String(kind));
            return self.notice("item_completed", String::new(), item);
        };
        if let Some(code) = item.signed("exit_code") {
            call.exit_code = Some(code);
        }
        if matches!(item.string("status").as_deref(), Some("declined")) {
            call.state = CallState::Refused;
            call.approval = grove_transcript::Approval::Denied;
        }
        item.forget(&["command", "cwd", "aggregated_output", "process_id", "parsed_cmd", "source", "duration"]);
        call.raw.extend(item.rest());
    }

    fn used(&mut self, mut body: JsonMembers) {
        let Some(mut info) = body.object("info") else { return };
        let total = info.any("total_token_usage");
        if total.is_some() && total == self.known.own.total {
            return;
        }
        self.known.own.total = total;
        if let Some(mut last) = info.object("last_token_usage") {
            let usage = TranscriptUsage {
                input_tokens: last.unsigned("input_tokens"),
                output_tokens: last.unsigned("output_tokens"),
                cache_read_tokens: last.unsigned("cached_input_tokens"),
                cache_write_tokens: last.unsigned("cache_write_input_tokens"),
                reasoning_tokens: last.unsigned("reasoning_output_tokens"),
                cost: None,
            };
            self.open().add_usage(&usage);
        }
    }

    /// Reads the program's description of the environment.
    fn environment(&mut self, text: &str) {
        let shell = text.split_once("<shell>").and_then(|(_, rest)| rest.split_once("</shell>"));
        if let Some((shell, _)) = shell {
            self.known.session.workspace.shell = Some(shell.trim().to_owned());
        }
    }
}

fn is_context(text: &str) -> bool {
    let text = text.trim_start();
    CONTEXT.iter().any(|head| text.starts_with(head))
}
