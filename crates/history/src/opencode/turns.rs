//! Converts messages and their parts to turns: a person's message begins one.

use std::collections::HashSet;

use grove_core::{MessageOrigin, Timestamp};
use grove_transcript::{
    CallState, ContextBlock, DamageKind, DamageLocation, EditKind, FileLocation, ToolOutput, TranscriptAgent,
    TranscriptAttachment, TranscriptAttachmentKind, TranscriptChat, TranscriptModel, TranscriptPart, TranscriptSession,
    TranscriptSource, TranscriptToolCall, TranscriptTurn, TranscriptUsage,
};
use serde_json::Value;

use super::{MAX_DEPTH, MessageStore, StoredMessage};
use crate::json::{JsonMembers, text_of};
use crate::limits::MAX_STATE;
use crate::reader::every;
use crate::subagents::{SubagentChat, attach};
use crate::turn_builder::TurnBuilder;

/// Folds the messages of a session into turns.
pub(super) struct TurnFold<'a> {
    store: &'a dyn MessageStore,
    pub session: TranscriptSession,
    depth: usize,
    /// The sessions that are included already: none is included twice.
    seen: &'a mut HashSet<String>,
    open: Option<TurnBuilder>,
    /// The sessions of subagents, and the calls that started them.
    agents: Vec<(String, String)>,
    weight: usize,
}

impl<'a> TurnFold<'a> {
    pub(super) fn new(store: &'a dyn MessageStore, id: &str, depth: usize, seen: &'a mut HashSet<String>) -> Self {
        seen.insert(id.to_owned());
        let session = TranscriptSession::new(TranscriptSource::OpenCode, id);
        Self { store, session, depth, seen, open: None, agents: Vec::new(), weight: 0 }
    }

    /// Adds a message; returns the turn that it ended.
    pub(super) fn take(&mut self, stored_message: StoredMessage) -> Option<TranscriptTurn> {
        let StoredMessage { id, mut message, parts, weight } = stored_message;
        let time = message.object("time").unwrap_or_default();
        let at = time.peek("created").and_then(crate::json::time_of);
        let ended_at = time.peek("completed").and_then(crate::json::time_of);
        if message.string("role").as_deref() == Some("user") {
            let ended = self.end_turn();
            self.weight = weight;
            self.begin(id, message, at);
            self.fits(&parts, |teller, part| teller.user_part(part));
            return ended;
        }
        self.weight = self.weight.saturating_add(weight);
        if self.weight > MAX_STATE {
            let what = format!("a turn of more than {MAX_STATE} bytes");
            self.session.damage.add(DamageKind::TooLarge, DamageLocation { what, ..DamageLocation::default() });
            return None;
        }
        if self.open.is_none() {
            self.begin(format!("{id}-turn"), JsonMembers::default(), at);
        }
        let draft = self.open.get_or_insert_default();
        draft.answered(at);
        if let Some(model) = message.string("modelID") {
            let provider = message.string("providerID").filter(|provider| !provider.is_empty());
            let model = provider.map_or_else(|| model.clone(), |provider| format!("{provider}/{model}"));
            draft.turn.model = Some(TranscriptModel::new(&model));
        }
        draft.turn.mode = message.string("mode").or(draft.turn.mode.take());
        draft.turn.model_message_id = Some(id);
        let usage = usage_of(&mut message);
        draft.add_usage(&usage);
        self.fits(&parts, |teller, part| teller.answered(part));
        let draft = self.open.get_or_insert_default();
        draft.moved(ended_at);
        if message.string("finish").as_deref() == Some("stop") {
            draft.done();
        }
        if let Some(mut error) = message.object("error") {
            let name = error.string("name").unwrap_or_else(|| "agentFailed".to_owned());
            let words = error.object("data").and_then(|mut data| data.string("message"));
            if name == "MessageAbortedError" {
                draft.cancel();
            } else {
                draft.fail(&name, words.unwrap_or_default());
            }
        }
        None
    }

    fn fits(&mut self, parts: &[Value], mut tell: impl FnMut(&mut Self, JsonMembers)) {
        for part in parts {
            match JsonMembers::of(part.clone()) {
                Ok(part) => tell(self, part),
                Err(odd) => {
                    self.open.get_or_insert_default().push(TranscriptPart::Raw(odd));
                }
            }
        }
    }

    fn begin(&mut self, id: String, mut message: JsonMembers, at: Option<Timestamp>) {
        let version = self.session.version.clone();
        let agent =
            TranscriptAgent { id: "opencode".into(), name: "OpenCode".into(), version, ..TranscriptAgent::default() };
        let mut turn = TranscriptTurn {
            id,
            started_at: at,
            ended_at: at,
            agent: Some(agent),
            mode: message.string("agent"),
            ..TranscriptTurn::default()
        };
        turn.message.origin = MessageOrigin::Automation;
        message.forget(&["model", "summary", "id", "sessionID", "parentID", "tools"]);
        turn.message.raw = message.rest();
        self.open = Some(TurnBuilder::new(turn));
    }

    /// Ends the open turn, with its subagents.
    pub(super) fn end_turn(&mut self) -> Option<TranscriptTurn> {
        let mut turn = self.open.take()?.finish();
        let mut children = Vec::new();
        for (agent, call) in std::mem::take(&mut self.agents) {
            if self.depth >= MAX_DEPTH || self.seen.contains(&agent) {
                continue;
            }
            let mut turns = Vec::new();
            let read =
                super::tell(self.store, &agent, self.depth + 1, self.seen, &mut every(&mut |turn| turns.push(turn)));
            if let Ok(session) = read {
                for mark in session.damage.marks {
                    self.session.damage.mark(mark);
                }
                let chat = TranscriptChat { id: agent, description: session.title, turns, ..TranscriptChat::default() };
                children.push(SubagentChat { call, chat });
            }
        }
        attach(&mut turn.parts, children);
        self.session.count(&turn);
        Some(turn)
    }

    /// A part of a person's message.
    fn user_part(&mut self, mut part: JsonMembers) {
        let draft = self.open.get_or_insert_default();
        let kind = part.string("type").unwrap_or_default();
        match kind.as_str() {
            "text" => {
                let text = part.string("text").unwrap_or_default();
                // The program's additions for the model.
                if part.flag("synthetic").unwrap_or(false) {
                    let name = "synthetic".to_owned();
                    return draft.turn.context.push(ContextBlock { name, text, ..ContextBlock::default() });
                }
                let message = &mut draft.turn.message;
                message.origin = MessageOrigin::User;
                if !message.text.is_empty() {
                    message.text.push_str("\n\n");
                }
                message.text.push_str(&text);
            }
            "file" => {
                let url = part.string("url").filter(|url| !url.starts_with("data:"));
                let mime = part.string("mime").unwrap_or_default();
                draft.turn.message.attachments.push(TranscriptAttachment {
                    kind: if mime.starts_with("image/") {
                        TranscriptAttachmentKind::Image
                    } else {
                        TranscriptAttachmentKind::File
                    },
                    foreign_kind: mime,
                    name: part.string("filename").unwrap_or_default(),
                    place: url.map(|url| FileLocation {
                        path: url.strip_prefix("file://").map(str::to_owned),
                        uri: url,
                        ..FileLocation::default()
                    }),
                    ..TranscriptAttachment::default()
                });
            }
            _ => other(draft, kind, part),
        }
    }

    /// A part of an answer.
    fn answered(&mut self, mut part: JsonMembers) {
        let draft = self.open.get_or_insert_default();
        let kind = part.string("type").unwrap_or_default();
        match kind.as_str() {
            "text" => {
                draft.say(part.string("text").unwrap_or_default());
            }
            "reasoning" => {
                draft.think(part.string("text").unwrap_or_default());
            }
            "tool" => self.call(part),
            // The usage is with the message.
            "step-start" | "step-finish" | "snapshot" => {}
            _ => other(draft, kind, part),
        }
    }

    fn call(&mut self, mut part: JsonMembers) {
        let draft = self.open.get_or_insert_default();
        let mut state = part.object("state").unwrap_or_default();
        let time = state.object("time").unwrap_or_default();
        let time = |key: &str| time.peek(key).and_then(crate::json::time_of);
        let (started_at, ended_at) = (time("start"), time("end"));
        let (id, name) = (part.string("callID"), part.string("tool"));
        let call = draft.begin_call(id, name, state.any("input"), started_at);
        call.ended_at = ended_at;
        call.intention = state.string("title").filter(|title| !title.is_empty());
        let (status, failure) = (state.string("status"), state.string("error"));
        call.state = match status.as_deref() {
            Some("completed") => CallState::Complete,
            Some("error") if failure.as_deref().is_some_and(|error| error.contains("rejected permission")) => {
                call.approval = grove_transcript::Approval::Denied;
                CallState::Refused
            }
            Some("error") => CallState::Failed,
            _ => CallState::Interrupted,
        };
        let output = state.string("output").or(failure);
        call.output = output.map(|text| ToolOutput { text, raw: None });
        if let Some(mut metadata) = state.object("metadata") {
            call.exit_code = metadata.signed("exit");
            edited(call, &metadata);
            let agent = metadata.string("sessionId").or_else(|| metadata.string("sessionID"));
            if let Some(agent) = agent {
                let call = call.id.clone();
                self.agents.push((agent, call));
            }
        }
        draft.moved(ended_at);
    }
}

/// Reads the program's data on an edited file: if it existed, and the changed lines.
fn edited(call: &mut TranscriptToolCall, metadata: &JsonMembers) {
    let kind = metadata.peek("exists").and_then(Value::as_bool);
    let kind = kind.map(|is_there| if is_there { EditKind::Edit } else { EditKind::Create });
    let lines = metadata.peek("filediff").and_then(|diff| {
        let number = |key: &str| diff.get(key).and_then(Value::as_u64);
        Some((number("additions")?, number("deletions")?))
    });
    call.input.set_edit_result(kind, lines);
}

fn other(draft: &mut TurnBuilder, kind: String, mut part: JsonMembers) {
    match kind.as_str() {
        "patch" | "agent" | "subtask" | "retry" | "compaction" => {
            let text = part.string("prompt").or_else(|| part.string("name")).unwrap_or_default();
            part.forget(&["id", "messageID", "sessionID"]);
            draft.notice(&kind, text, part);
        }
        _ => {
            part.insert("type", Value::String(kind));
            draft.push(TranscriptPart::Raw(part.into_value()));
        }
    }
}

fn usage_of(message: &mut JsonMembers) -> TranscriptUsage {
    let cost = message.number("cost").filter(|cost| cost.as_f64() != Some(0.0));
    let Some(mut tokens) = message.object("tokens") else {
        return TranscriptUsage { cost, ..TranscriptUsage::default() };
    };
    let mut cache = tokens.object("cache").unwrap_or_default();
    let (fresh, read, write) = (tokens.unsigned("input"), cache.unsigned("read"), cache.unsigned("write"));
    TranscriptUsage {
        input_tokens: [fresh, read, write].into_iter().flatten().reduce(u64::saturating_add),
        output_tokens: tokens.unsigned("output"),
        cache_read_tokens: read,
        cache_write_tokens: write,
        reasoning_tokens: tokens.unsigned("reasoning"),
        cost,
    }
}

/// Reads a session's data, from the object of older versions, or from a row converted to one.
pub(super) fn session_info(session: &mut TranscriptSession, mut info: JsonMembers) {
    session.version = info.string("version");
    session.parent = info.string("parentID");
    session.workspace.folders = info.string("directory").map(FileLocation::local).into_iter().collect();
    session.title = info.string("title").filter(|title| !title.is_empty() && !title.starts_with("New session - "));
    if let Some(mut time) = info.object("time") {
        session.created_at = time.time("created");
        session.modified_at = time.time("updated");
    }
    if let Some(revert) = info.any("revert") {
        let revert = match &revert {
            Value::String(text) => serde_json::from_str(text).unwrap_or(revert),
            _ => revert,
        };
        session.raw.insert("revert".to_owned(), revert);
    }
    if let Some(url) = info.any("share") {
        session.raw.insert("share".to_owned(), Value::String(text_of(&url)));
    }
}
