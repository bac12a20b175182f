//! Converts entries to messages.

use std::borrow::Cow;
use std::collections::HashSet;

use grove_fs::FsError;

use super::path::ContextPath;
use super::{ContextMessage, Json, Rules, tools};
use crate::fields::{EntryFields, LineFields, MessageFields, is};
use crate::index::{EntryNo, LogIndex};
use crate::kind::EntryType;
use crate::object::{JsonObject, field, quoted};
use crate::scan::text_of;
use crate::source::{LogSource, each_line, line};
use crate::time::milliseconds;

/// A message of a context under construction, with the data that its neighbours need.
pub(super) struct ContextDraft<'a> {
    entry: EntryNo,
    pub(super) json: Cow<'a, [u8]>,
    /// The ids of an assistant's tool calls.
    pub(super) calls: Vec<Vec<u8>>,
    pub(super) voice: DraftRole,
    /// True for an assistant's turn that was aborted or ended in an error.
    pub(super) is_broken: bool,
    /// True for the note in which oh-my-pi keeps the thoughts of an interrupted turn.
    pub(super) is_note: bool,
    /// True if an edit removed it, and only its position still counts.
    pub(super) is_gone: bool,
}

/// The role of a draft, for matching calls and results.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DraftRole {
    User,
    Assistant,
    /// A tool's result of this call.
    Result(Vec<u8>),
    Other,
}

impl DraftRole {
    fn of(fields: &MessageFields<'_>) -> Self {
        match fields.role.and_then(text_of).as_deref() {
            Some(b"user") => DraftRole::User,
            Some(b"assistant") => DraftRole::Assistant,
            Some(b"toolResult") => {
                DraftRole::Result(fields.tool_call_id.and_then(text_of).unwrap_or_default().into_owned())
            }
            Some(_) | None => DraftRole::Other,
        }
    }

    pub(super) fn answers(&self) -> Option<&Vec<u8>> {
        match self {
            DraftRole::Result(call) => Some(call),
            DraftRole::User | DraftRole::Assistant | DraftRole::Other => None,
        }
    }
}

impl<'a> ContextDraft<'a> {
    fn new(entry: EntryNo, json: impl Into<Cow<'a, [u8]>>) -> Self {
        let json = json.into();
        Self {
            entry,
            json,
            calls: Vec::new(),
            voice: DraftRole::Other,
            is_broken: false,
            is_note: false,
            is_gone: false,
        }
    }

    pub(super) fn finish(self) -> ContextMessage<'a> {
        ContextMessage { json: Json::new(self.json), entry: self.entry }
    }
}

/// Writes drafts, the oldest first.
pub(super) struct ContextWriter<'a, 'p> {
    rules: Rules,
    path: &'p ContextPath,
    /// oh-my-pi: the calls of a turn that was retried; their results follow.
    abandoned_calls: HashSet<Vec<u8>>,
    pub(super) drafts: Vec<ContextDraft<'a>>,
}

/// A message in JSON, and the fields that are read again.
struct EncodedMessage<'l> {
    json: Cow<'l, [u8]>,
    fields: MessageFields<'l>,
}

impl<'a, 'p> ContextWriter<'a, 'p> {
    pub(super) fn new(rules: Rules, path: &'p ContextPath) -> Self {
        Self { rules, path, abandoned_calls: HashSet::new(), drafts: Vec::new() }
    }

    /// Adds the messages before all entries: a compaction's system message (pi 1.5) and its summary.
    pub(super) fn begin(&mut self, index: &LogIndex, source: &(impl LogSource + ?Sized)) -> Result<(), FsError> {
        let Some(compaction) = self.path.compaction else { return Ok(()) };
        let line = line(index, source, compaction)?;
        let fields = EntryFields::of(&line).line;
        if self.path.has_system_message
            && let Some(message) = fields.system_message
        {
            self.drafts.push(ContextDraft::new(compaction, message.to_vec()));
        }
        let time = time(&fields);
        let json = match self.rules {
            Rules::Grove => summary_message(COMPACTION_INTRODUCTION, fields.summary.unwrap_or(b"\"\""), &time),
            Rules::Pi | Rules::Omp => object(&[
                ("role", Some(br#""compactionSummary""#)),
                ("summary", fields.summary),
                ("shortSummary", fields.short_summary.filter(|_| self.rules == Rules::Omp)),
                ("tokensBefore", fields.tokens_before),
                ("timestamp", Some(&time)),
            ]),
        };
        self.drafts.push(ContextDraft::new(compaction, json));
        Ok(())
    }

    /// Adds the messages of some of the path's entries, up to its end.
    pub(super) fn entries(
        &mut self,
        index: &LogIndex,
        source: &'a (impl LogSource + ?Sized),
        entries: &[EntryNo],
    ) -> Result<(), FsError> {
        let before = self.path.entries.len() - entries.len();
        let mut number = before;
        each_line(index, source, entries, |entry, line| {
            let is_kept = number < self.path.kept_entries;
            number += 1;
            let kind = index.kind(entry);
            let draft = match &line {
                Cow::Borrowed(line) => self.draft(entry, kind, is_kept, line, Cow::Borrowed),
                Cow::Owned(line) => self.draft(entry, kind, is_kept, line, |json| Cow::Owned(json.to_vec())),
            };
            self.drafts.extend(draft);
            Ok(())
        })
    }

    fn draft<'l>(
        &mut self,
        entry: EntryNo,
        kind: EntryType,
        is_kept: bool,
        line: &'l [u8],
        keep: impl Fn(&'l [u8]) -> Cow<'a, [u8]>,
    ) -> Option<ContextDraft<'a>> {
        let EntryFields { line, message } = EntryFields::of(line);
        let spoken = match kind {
            EntryType::Message => self.message(&line, message)?,
            EntryType::CustomMessage => self.custom_message(&line),
            EntryType::BranchSummary => EncodedMessage { json: self.branch_summary(&line)?.into(), fields: message },
            _ => return None,
        };
        let (json, content): (Cow<'a, [u8]>, Option<&[u8]>) = match self.path.edits.get(&entry) {
            Some(None) if self.rules == Rules::Pi => return None,
            Some(None) => {
                let gone = ContextDraft::new(entry, Vec::new());
                return Some(ContextDraft { voice: DraftRole::of(&spoken.fields), is_gone: true, ..gone });
            }
            Some(Some(content)) => {
                let mut message = JsonObject::parse(&spoken.json).unwrap_or_default();
                message.set("content", content.clone());
                (Cow::Owned(message.render()), Some(content))
            }
            None => {
                let json = match spoken.json {
                    Cow::Borrowed(json) => keep(json),
                    Cow::Owned(json) => Cow::Owned(json),
                };
                (json, spoken.fields.content)
            }
        };
        let fields = &spoken.fields;
        if is_kept && self.path.has_system_message && is(fields.role, "system") {
            return None;
        }
        let mut draft = ContextDraft::new(entry, json);
        // pi leaves calls and results unchanged.
        if self.rules == Rules::Pi {
            return Some(draft);
        }
        draft.voice = DraftRole::of(fields);
        if draft.voice == DraftRole::Assistant {
            draft.calls = tools::calls(content);
            draft.is_broken = is(fields.stop_reason, "aborted") || is(fields.stop_reason, "error");
        }
        draft.is_note = is(fields.custom_type, tools::INTERRUPTED);
        Some(draft)
    }

    fn message<'l>(&mut self, line: &LineFields<'l>, fields: MessageFields<'l>) -> Option<EncodedMessage<'l>> {
        let json = line.message.filter(|message| message.starts_with(b"{"))?;
        let role = fields.role.and_then(text_of).unwrap_or_default();
        match self.rules {
            Rules::Pi => {
                let has_content = matches!(role.as_ref(), b"user" | b"assistant" | b"toolResult");
                if has_content && fields.content == Some(b"null") {
                    let mut message = JsonObject::parse(json)?;
                    message.set("content", "[]");
                    return Some(EncodedMessage { json: message.render().into(), fields });
                }
            }
            Rules::Omp => {
                if self.is_abandoned(&role, &fields) {
                    return None;
                }
            }
            Rules::Grove => {
                if matches!(role.as_ref(), b"custom" | b"hookMessage") {
                    let json = user_message(fields.content, fields.timestamp);
                    return Some(EncodedMessage { json: json.into(), fields: MessageFields::default() });
                }
            }
        }
        Some(EncodedMessage { json: json.into(), fields })
    }

    /// True for a turn that oh-my-pi retried with success: it is left out, with the results of its calls.
    fn is_abandoned(&mut self, role: &[u8], fields: &MessageFields<'_>) -> bool {
        let status = fields.retry_recovery.and_then(|recovery| field(recovery, "status"));
        if role == b"assistant" && is(status, "recovered") {
            self.abandoned_calls = tools::calls(fields.content).into_iter().collect();
            return true;
        }
        if role == b"toolResult"
            && let Some(call) = fields.tool_call_id.and_then(text_of)
            && self.abandoned_calls.remove(call.as_ref())
        {
            return true;
        }
        self.abandoned_calls.clear();
        false
    }

    fn custom_message<'l>(&self, line: &LineFields<'l>) -> EncodedMessage<'l> {
        let time = time(line);
        let json = match self.rules {
            Rules::Grove => user_message(line.content, Some(&time)),
            Rules::Pi | Rules::Omp => object(&[
                ("role", Some(br#""custom""#)),
                ("customType", line.custom_type),
                ("content", line.content),
                ("display", line.display),
                ("details", line.details),
                ("attribution", line.attribution.filter(|_| self.rules == Rules::Omp)),
                ("timestamp", Some(&time)),
            ]),
        };
        // Under Grove's rules the message does not name the extension.
        let custom_type = line.custom_type.filter(|_| self.rules != Rules::Grove);
        EncodedMessage { json: json.into(), fields: MessageFields { custom_type, ..MessageFields::default() } }
    }

    fn branch_summary(&self, line: &LineFields<'_>) -> Option<Vec<u8>> {
        let summary = line.summary.filter(|summary| summary.starts_with(b"\"") && *summary != b"\"\"")?;
        let time = time(line);
        Some(match self.rules {
            Rules::Grove => summary_message(BRANCH_INTRODUCTION, summary, &time),
            Rules::Pi | Rules::Omp => object(&[
                ("role", Some(br#""branchSummary""#)),
                ("summary", Some(summary)),
                ("fromId", line.from_id),
                ("timestamp", Some(&time)),
            ]),
        })
    }
}

pub(crate) const COMPACTION_INTRODUCTION: &str = "What was said before this point, in short:";
pub(crate) const BRANCH_INTRODUCTION: &str = "What happened on another branch of this conversation, in short:";

/// Grove: a summary as a message of the user.
fn summary_message(introduction: &str, summary: &[u8], time: &[u8]) -> Vec<u8> {
    // The summary stays in its escaped form: it may have escapes that cannot be decoded.
    let inner = summary.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or_default();
    let before = quoted(format!("{introduction}\n\n<summary>\n").as_bytes());
    let after = quoted(b"\n</summary>");
    let text = [&before[..before.len() - 1], inner, &after[1..]].concat();
    let block = object(&[("type", Some(br#""text""#)), ("text", Some(&text))]);
    user_message(Some(&[b"[".as_slice(), &block, b"]"].concat()), Some(time))
}

fn user_message(content: Option<&[u8]>, time: Option<&[u8]>) -> Vec<u8> {
    object(&[("role", Some(br#""user""#)), ("content", Some(content.unwrap_or(b"[]"))), ("timestamp", time)])
}

/// An entry's time in the format of messages.
fn time(line: &LineFields<'_>) -> Vec<u8> {
    let time = line.timestamp.and_then(milliseconds);
    time.map_or_else(|| b"null".to_vec(), |time| time.to_string().into_bytes())
}

fn object(fields: &[(&str, Option<&[u8]>)]) -> Vec<u8> {
    let mut object = JsonObject::default();
    for (name, value) in fields {
        if let Some(value) = value {
            object.set(name, *value);
        }
    }
    object.render()
}
