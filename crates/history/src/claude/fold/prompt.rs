//! User lines: the messages that begin turns, and everything else that has the role of the user.

use std::mem;

use grove_core::MessageOrigin;
use grove_transcript::{ContextBlock, TranscriptAttachment, TranscriptAttachmentKind, TranscriptMessage};
use serde_json::Value;

use super::super::entry::{LogEntry, UserText, words_of};
use super::super::turn_assembler::content_text;
use super::{CONTEXT, TurnFold, is_type};
use crate::json::JsonMembers;

impl TurnFold {
    /// The message that begins a turn, if the line is one. Its results go to the open turn. A resumed read has returned
    /// those already.
    pub(super) fn prompt(&mut self, entry: &mut LogEntry, is_resumed: bool) -> Option<TranscriptMessage> {
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
