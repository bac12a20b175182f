//! Converts the normal form to `grove-core`'s turns, and so, through `grove-tree`, to entries of a log.
//!
//! Data without a place in core are kept on the message as an extra member, `history`: times, citations, the model's
//! name for display, data that were not understood.

use std::collections::HashSet;

use grove_core::*;
use serde_json::{Value, json};

use crate::normal::TranscriptAttachmentKind as TranscriptKind;
use crate::normal::{
    Approval, CallState, EditKind, TodoItem, TodoStatus, ToolInput, TranscriptChat, TranscriptEdit, TranscriptMessage,
    TranscriptPart, TranscriptToolCall, TranscriptToolKind, TranscriptTurn, TranscriptUsage, TurnOutcome,
};

/// The member of a message's extra that holds the rest of a turn.
pub const HISTORY: &str = "history";

/// The maximum length of displayed raw data.
const MAX_SHOWN: usize = 2_000;

/// A turn, and the conversations that it started.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreTurn {
    pub turn: Turn,
    pub chats: Vec<ChildChat>,
}

/// The conversation of a subagent: a chat beside its parent's.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildChat {
    pub id: ChatId,
    /// The parent chat; `None` means the chat of the turn.
    pub parent: Option<ChatId>,
    /// The call that started it.
    pub call: ToolCallId,
    pub title: String,
    pub turns: Vec<Turn>,
}

/// Converts a turn. `fallback` is its start time if the tool has none.
pub fn core_turn(turn: &TranscriptTurn, fallback: Timestamp) -> CoreTurn {
    let mut chats = Vec::new();
    let turn = converted(turn, fallback, None, &mut chats);
    CoreTurn { turn, chats }
}

fn converted(
    transcript: &TranscriptTurn,
    fallback: Timestamp,
    chat: Option<&ChatId>,
    chats: &mut Vec<ChildChat>,
) -> Turn {
    let started_at = transcript.started_at.unwrap_or(fallback);
    let mut writer = CoreTurnBuilder { parts: Vec::new(), ready: 0, ids: HashSet::new(), started_at, chat, chats };
    for part in &transcript.parts {
        writer.part(part);
    }
    let mut parts = writer.parts;
    let outcome = match &transcript.outcome {
        TurnOutcome::Complete => Outcome::Complete,
        TurnOutcome::Cancelled => Outcome::Cancelled,
        TurnOutcome::Failed(error) => {
            parts.push(Part::Error(error.clone()));
            Outcome::Error
        }
        TurnOutcome::Interrupted => {
            parts.push(Part::Error(ErrorInfo::new(
                "interrupted",
                "The turn was interrupted: its end was not recorded.",
            )));
            Outcome::Error
        }
    };
    Turn {
        id: transcript.id.as_str().into(),
        message: message(transcript),
        parts,
        usage: usage(transcript),
        outcome,
        started_at,
        ended_at: transcript.ended_at.unwrap_or(started_at).max(started_at),
        derived: DerivedCache::default(),
    }
}

fn message(transcript: &TranscriptTurn) -> Message {
    let message = &transcript.message;
    let attachments = message.attachments.iter().filter_map(|attachment| {
        let kind = match attachment.kind {
            TranscriptKind::File => AttachmentKind::File,
            TranscriptKind::Folder => AttachmentKind::Directory,
            TranscriptKind::Selection => AttachmentKind::Selection,
            _ => return None,
        };
        let path = attachment.place.as_ref()?.path.clone()?;
        Some(Attachment { kind, path, display_name: Some(attachment.name.clone()).filter(|name| !name.is_empty()) })
    });
    Message {
        text: message.text.clone(),
        attachments: attachments.collect(),
        origin: message.origin,
        model: transcript.model.as_ref().map(|model| model.model.as_str().into()),
        extra: rest(transcript),
    }
}

/// The whole turn except its text and parts, which are stored elsewhere.
fn rest(transcript: &TranscriptTurn) -> Option<Extra> {
    let message = TranscriptMessage { text: String::new(), ..transcript.message.clone() };
    let bare = TranscriptTurn { message, parts: Vec::new(), ..transcript.clone() };
    let history = serde_json::to_value(bare).ok()?;
    Some([(HISTORY.to_owned(), history)].into_iter().collect())
}

fn usage(transcript: &TranscriptTurn) -> Option<Usage> {
    let TranscriptUsage {
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, ..
    } = transcript.usage.as_ref()?;
    Some(Usage {
        input_tokens: *input_tokens,
        output_tokens: *output_tokens,
        model: transcript.model.as_ref().map(|model| model.model.as_str().into()),
        cache_read_tokens: *cache_read_tokens,
        cache_write_tokens: *cache_write_tokens,
        reasoning_tokens: *reasoning_tokens,
        context: None,
        // Tools count in units of their own, which are not currencies.
        cost: None,
    })
}

struct CoreTurnBuilder<'a> {
    parts: Vec<Part>,
    ready: u32,
    ids: HashSet<String>,
    started_at: Timestamp,
    chat: Option<&'a ChatId>,
    chats: &'a mut Vec<ChildChat>,
}

impl CoreTurnBuilder<'_> {
    fn part(&mut self, part: &TranscriptPart) {
        let id = PartId::from(format!("p{}", self.parts.len()));
        match part {
            TranscriptPart::Text(text) => {
                let text = TextPart { id, content: text.clone(), delivery: Delivery::Streamed };
                self.parts.push(Part::Text(text));
            }
            TranscriptPart::Reasoning { text, .. } => self.parts.push(Part::Reasoning { id, content: text.clone() }),
            TranscriptPart::ToolCall(call) => self.call(call),
            TranscriptPart::Edit(edit) => self.edit(edit),
            TranscriptPart::Question(question) => {
                let words =
                    [question.title.as_str(), question.message.as_str(), question.answer.as_deref().unwrap_or("")];
                let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
                self.parts.push(Part::Notice(words.join("\n")));
            }
            TranscriptPart::Notice(notice) if notice.text.is_empty() => {}
            TranscriptPart::Notice(notice) => self.parts.push(Part::Notice(notice.text.clone())),
            TranscriptPart::Raw(value) => {
                let shown: String = value.to_string().chars().take(MAX_SHOWN).collect();
                self.parts.push(Part::Notice(format!("Not understood: {shown}")));
            }
        }
    }

    fn call(&mut self, call: &TranscriptToolCall) {
        let id = self.unique(&call.id);
        let name = call.shown_name.as_ref().unwrap_or(&call.name);
        let invocation = call.intention.clone().unwrap_or_else(|| name.clone());
        let core = ToolCall {
            id: id.clone(),
            name: call.name.clone(),
            display_name: name.clone(),
            kind: kind(call.kind),
            language: language(&call.input),
            invocation_message: invocation,
            intention: None,
            client: None,
            input: input(call),
            confirmed: confirmed(&call.approval),
            output: None,
            status: status(call),
            ready_rank: Some(self.ready),
            announced: None,
            extra: Some(call.raw.clone()).filter(|raw| !raw.is_empty()),
            running_since: None,
            ran_ms: call.ran_for_ms(),
        };
        self.push_call(core);
        if let ToolInput::Todos(items) = &call.input {
            self.parts.push(Part::Plan(items.iter().map(plan_entry).collect()));
        }
        if let Some(chat) = &call.subagent {
            self.child(chat, id);
        }
    }

    /// A unique id: a result is found by its call's id, so none may be empty or used twice.
    fn unique(&mut self, id: &str) -> ToolCallId {
        let is_free = !id.is_empty() && !self.ids.contains(id);
        let id = if is_free { id.to_owned() } else { format!("{id}#{}", self.ready) };
        self.ids.insert(id.clone());
        id.into()
    }

    fn push_call(&mut self, call: ToolCall) {
        self.ready += 1;
        self.parts.push(Part::ToolCall(Box::new(call)));
    }

    /// Adds a subagent's chat. The nesting is bounded where conversations are attached.
    fn child(&mut self, chat: &TranscriptChat, call: ToolCallId) {
        let id = ChatId::from(chat.id.as_str());
        let parts = [&chat.agent, &chat.description].into_iter().flatten();
        let title = parts.map(String::as_str).collect::<Vec<_>>().join(": ");
        let at = self.chats.len();
        let parent = self.chat.cloned();
        self.chats.push(ChildChat { id: id.clone(), parent, call, title, turns: Vec::new() });
        let turns: Vec<Turn> =
            chat.turns.iter().map(|turn| converted(turn, self.started_at, Some(&id), self.chats)).collect();
        self.chats[at].turns = turns;
    }

    /// Adds an edit without a call as a call: clients look there for file changes.
    fn edit(&mut self, edit: &TranscriptEdit) {
        let verb = match edit.kind {
            EditKind::Create => "Created",
            EditKind::Delete => "Deleted",
            EditKind::Rename => "Renamed",
            EditKind::Edit => "Edited",
        };
        let shown = format!("{verb} {}", edit.place.shown());
        let mut input = json!({"path": edit.place.shown(), "changes": edit.changes});
        if let Some(from) = &edit.from {
            input["from"] = json!(from.shown());
        }
        let result = ToolResult {
            success: true,
            past_tense_message: shown.clone(),
            output: None,
            attached: Vec::new(),
            extra: Some(edit.raw.clone()).filter(|raw| !raw.is_empty()),
        };
        let id = self.unique("edit");
        self.push_call(ToolCall {
            id,
            name: "edit".to_owned(),
            display_name: "Edit".to_owned(),
            kind: Some(match edit.kind {
                EditKind::Delete => ToolKind::Delete,
                EditKind::Rename => ToolKind::Move,
                EditKind::Create | EditKind::Edit => ToolKind::Edit,
            }),
            language: None,
            invocation_message: shown,
            intention: None,
            client: None,
            input: Some(input.to_string()),
            confirmed: None,
            output: None,
            status: ToolCallStatus::Completed(result),
            ready_rank: Some(self.ready),
            announced: None,
            extra: None,
            running_since: None,
            ran_ms: None,
        });
    }
}

fn kind(kind: TranscriptToolKind) -> Option<ToolKind> {
    match kind {
        TranscriptToolKind::Shell => Some(ToolKind::Terminal),
        TranscriptToolKind::ShellOutput | TranscriptToolKind::Read | TranscriptToolKind::List => Some(ToolKind::Read),
        TranscriptToolKind::Search => Some(ToolKind::Search),
        TranscriptToolKind::Fetch => Some(ToolKind::Fetch),
        TranscriptToolKind::Edit | TranscriptToolKind::Edits => Some(ToolKind::Edit),
        TranscriptToolKind::Todo => Some(ToolKind::Think),
        TranscriptToolKind::Subagent | TranscriptToolKind::Other => None,
    }
}

fn language(input: &ToolInput) -> Option<String> {
    match input {
        ToolInput::Command { language, .. } => language.clone(),
        _ => None,
    }
}

/// The raw input; or its meaning if only that is known.
fn input(call: &TranscriptToolCall) -> Option<String> {
    match (&call.raw_input, &call.input) {
        (Some(Value::String(text)), _) => Some(text.clone()),
        (Some(value), _) => Some(value.to_string()),
        (None, ToolInput::Command { command, .. }) => Some(json!({"command": command}).to_string()),
        (None, ToolInput::Generic) => None,
        (None, input) => serde_json::to_string(input).ok(),
    }
}

fn confirmed(approval: &Approval) -> Option<Confirmation> {
    let by = match approval {
        Approval::NotNeeded { .. } => ConfirmationReason::NotNeeded,
        Approval::Setting { .. } | Approval::Remembered { .. } => ConfirmationReason::Setting,
        Approval::Person { .. } => ConfirmationReason::Person,
        Approval::Unknown | Approval::Denied | Approval::Skipped | Approval::Waiting => return None,
    };
    Some(Confirmation { by, option: None })
}

fn status(call: &TranscriptToolCall) -> ToolCallStatus {
    let result = |success| {
        let words = call.summary.as_ref().or(call.intention.as_ref()).unwrap_or(&call.name);
        let extra = call.exit_code.map(|code| [("exitCode".to_owned(), json!(code))].into_iter().collect());
        ToolCallStatus::Completed(ToolResult {
            success,
            past_tense_message: words.clone(),
            output: call.output.as_ref().map(|output| output.text.clone()),
            attached: Vec::new(),
            extra,
        })
    };
    match call.state {
        CallState::Complete => result(true),
        CallState::Failed => result(false),
        // Like core leaves a call that was running when its turn ended.
        CallState::Interrupted => ToolCallStatus::Running,
        CallState::Refused if call.approval == Approval::Skipped => {
            ToolCallStatus::Cancelled(CancelReason::Skipped.into())
        }
        CallState::Refused => ToolCallStatus::Cancelled(CancelReason::Denied.into()),
    }
}

fn plan_entry(item: &TodoItem) -> PlanEntry {
    let status = match item.status {
        TodoStatus::NotStarted => PlanStatus::Pending,
        TodoStatus::InProgress => PlanStatus::InProgress,
        TodoStatus::Completed => PlanStatus::Completed,
    };
    PlanEntry { content: item.title.clone(), priority: PlanPriority::Medium, status }
}
