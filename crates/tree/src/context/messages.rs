//! Which entries of a branch become messages, and how.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::settings::kind;
use super::{ContextMessage, Rules};
use crate::kind::Kind;
use crate::object::{Object, quoted};
use crate::time::milliseconds;

/// A message on its way into a context.
pub(super) struct Draft {
    source: usize,
    json: Vec<u8>,
}

impl Draft {
    fn new(source: usize, json: impl Into<Vec<u8>>) -> Self {
        Self { source, json: json.into() }
    }

    pub(super) fn message(&self) -> Object<'_> {
        Object::parse(&self.json).unwrap_or_default()
    }

    pub(super) fn replace(&mut self, json: Vec<u8>) {
        self.json = json;
    }

    pub(super) fn finish(&self) -> Option<ContextMessage> {
        let json = String::from_utf8_lossy(&self.json).into_owned();
        Some(ContextMessage { json: RawValue::from_string(json).ok()?, source: self.source })
    }
}

/// The messages of a branch: all of them, or from the last compaction on its summary, what it kept, and what came
/// after.
pub(super) fn select(rules: Rules, path: &[Object<'_>]) -> Vec<Draft> {
    let last = |wanted: Kind| path.iter().rposition(|entry| kind(entry) == wanted);
    let mut writer = Writer::new(rules, path);
    let compaction = last(Kind::Compaction);
    let reset = last(Kind::ResetBoundary).filter(|reset| rules != Rules::Pi && compaction < Some(*reset));
    if let Some(reset) = reset {
        writer.entries(reset + 1..path.len());
    } else if let Some(compaction) = compaction {
        let led = writer.lead(compaction);
        writer.summary(compaction);
        let first = path[compaction].text("firstKeptEntryId");
        let kept = first.and_then(|first| {
            path[..compaction].iter().position(|entry| entry.text("id").is_some_and(|id| id == first))
        });
        if let Some(kept) = kept {
            let before = writer.drafts.len();
            writer.entries(kept..compaction);
            if led {
                writer.drop_system_messages(before);
            }
        }
        writer.entries(compaction + 1..path.len());
    } else {
        writer.entries(0..path.len());
    }
    writer.drafts
}

struct Writer<'a> {
    rules: Rules,
    path: &'a [Object<'a>],
    /// What a `context_edit` makes of an entry: nothing, or other content.
    edits: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// oh-my-pi: the calls of a turn that was tried again, whose results follow.
    given_up: HashSet<Vec<u8>>,
    drafts: Vec<Draft>,
}

impl<'a> Writer<'a> {
    fn new(rules: Rules, path: &'a [Object<'a>]) -> Self {
        let mut edits = HashMap::new();
        if rules != Rules::Omp {
            for edit in path.iter().filter(|entry| kind(entry) == Kind::ContextEdit) {
                let Some(target) = edit.text("targetId") else { continue };
                let replacement = edit.get("replacement").and_then(Object::parse);
                edits.insert(
                    target.into_owned(),
                    replacement.and_then(|replacement| replacement.get("content").map(<[u8]>::to_vec)),
                );
            }
        }
        Self { rules, path, edits, given_up: HashSet::new(), drafts: Vec::new() }
    }

    fn entries(&mut self, range: std::ops::Range<usize>) {
        for source in range {
            let entry = &self.path[source];
            let json = match kind(entry) {
                Kind::Message => self.message(entry),
                Kind::CustomMessage => Some(self.custom_message(entry)),
                Kind::BranchSummary => self.branch_summary(entry),
                _ => None,
            };
            let Some(json) = json else { continue };
            match entry.text("id").and_then(|id| self.edits.get(id.as_ref())) {
                None => self.drafts.push(Draft::new(source, json)),
                Some(None) => {}
                Some(Some(content)) => {
                    let mut message = Object::parse(&json).unwrap_or_default();
                    message.set("content", content.clone());
                    self.drafts.push(Draft::new(source, message.render()));
                }
            }
        }
    }

    fn message(&mut self, entry: &Object<'_>) -> Option<Vec<u8>> {
        let json = entry.get("message")?;
        let mut message = Object::parse(json)?;
        let role = message.text("role").map(|role| role.into_owned()).unwrap_or_default();
        match self.rules {
            Rules::Pi => {
                let has_content = matches!(role.as_slice(), b"user" | b"assistant" | b"toolResult");
                if has_content && message.get("content") == Some(b"null") {
                    message.set("content", "[]");
                    return Some(message.render());
                }
            }
            Rules::Omp => {
                if self.was_given_up(&role, &message) {
                    return None;
                }
            }
            Rules::Grove => {
                if matches!(role.as_slice(), b"custom" | b"hookMessage") {
                    return Some(user_message(message.get("content"), message.get("timestamp")));
                }
            }
        }
        Some(json.to_vec())
    }

    /// A turn that oh-my-pi tried again and that went well then is left out, with the results of its calls.
    fn was_given_up(&mut self, role: &[u8], message: &Object<'_>) -> bool {
        let recovery = message.get("retryRecovery").and_then(Object::parse);
        if role == b"assistant" && recovery.is_some_and(|recovery| recovery.is("status", "recovered")) {
            self.given_up = super::tools::calls(message).into_iter().collect();
            return true;
        }
        if role == b"toolResult"
            && let Some(call) = message.text("toolCallId")
            && self.given_up.remove(call.as_ref())
        {
            return true;
        }
        self.given_up.clear();
        false
    }

    fn custom_message(&self, entry: &Object<'_>) -> Vec<u8> {
        let time = time(entry);
        match self.rules {
            Rules::Grove => user_message(entry.get("content"), Some(&time)),
            Rules::Pi | Rules::Omp => object(&[
                ("role", Some(br#""custom""#)),
                ("customType", entry.get("customType")),
                ("content", entry.get("content")),
                ("display", entry.get("display")),
                ("details", entry.get("details")),
                ("attribution", entry.get("attribution").filter(|_| self.rules == Rules::Omp)),
                ("timestamp", Some(&time)),
            ]),
        }
    }

    fn branch_summary(&self, entry: &Object<'_>) -> Option<Vec<u8>> {
        let summary = entry.get("summary").filter(|summary| summary.starts_with(b"\"") && *summary != b"\"\"")?;
        let time = time(entry);
        Some(match self.rules {
            Rules::Grove => summary_message(LEFT_BRANCH, summary, &time),
            Rules::Pi | Rules::Omp => object(&[
                ("role", Some(br#""branchSummary""#)),
                ("summary", Some(summary)),
                ("fromId", entry.get("fromId")),
                ("timestamp", Some(&time)),
            ]),
        })
    }

    /// pi 1.5: the system message of a compaction comes before everything else.
    fn lead(&mut self, compaction: usize) -> bool {
        let message = self.path[compaction].get("systemMessage").filter(|message| message.starts_with(b"{"));
        match (self.rules, message) {
            (Rules::Pi | Rules::Grove, Some(message)) => {
                self.drafts.push(Draft::new(compaction, message));
                true
            }
            (Rules::Omp, _) | (_, None) => false,
        }
    }

    fn drop_system_messages(&mut self, from: usize) {
        let kept = self.drafts.split_off(from);
        self.drafts.extend(kept.into_iter().filter(|draft| !draft.message().is("role", "system")));
    }

    fn summary(&mut self, compaction: usize) {
        let entry = &self.path[compaction];
        let time = time(entry);
        let json = match self.rules {
            Rules::Grove => summary_message(COMPACTED, entry.get("summary").unwrap_or(b"\"\""), &time),
            Rules::Pi | Rules::Omp => object(&[
                ("role", Some(br#""compactionSummary""#)),
                ("summary", entry.get("summary")),
                ("shortSummary", entry.get("shortSummary").filter(|_| self.rules == Rules::Omp)),
                ("tokensBefore", entry.get("tokensBefore")),
                ("timestamp", Some(&time)),
            ]),
        };
        self.drafts.push(Draft::new(compaction, json));
    }
}

const COMPACTED: &str = "What was said before this point, in short:";
const LEFT_BRANCH: &str = "What happened on another branch of this conversation, in short:";

/// Grove: a summary as a message of the user.
fn summary_message(introduction: &str, summary: &[u8], time: &[u8]) -> Vec<u8> {
    // The summary stays in its escaped form: it may have what no decoded text can.
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

/// An entry's time as messages have it.
fn time(entry: &Object<'_>) -> Vec<u8> {
    let time = entry.get("timestamp").and_then(milliseconds);
    time.map_or_else(|| b"null".to_vec(), |time| time.to_string().into_bytes())
}

fn object(fields: &[(&str, Option<&[u8]>)]) -> Vec<u8> {
    let mut object = Object::default();
    for (name, value) in fields {
        if let Some(value) = value {
            object.set(name, *value);
        }
    }
    object.render()
}
