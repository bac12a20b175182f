//! The parts of a response.

use serde_json::{Value, json};

use super::call::RoundBuilder;
use super::uri::{range_of, uri_of};
use crate::normal::{EditKind, Notice, Question, TranscriptEdit, TranscriptPart};

/// The maximum length of a raw part that is not VS Code's own.
const MAX_SHOWN: usize = 2_000;

/// The parts of a turn, with those of its subagents after their calls.
pub(super) fn response(parts: &[TranscriptPart], calls: &mut RoundBuilder<'_>) -> Vec<Value> {
    let mut written = Vec::new();
    for part in parts {
        add(part, calls, None, &mut written);
    }
    written
}

/// Adds a part; `owner` is the call of the subagent that it belongs to.
fn add(part: &TranscriptPart, calls: &mut RoundBuilder<'_>, owner: Option<&str>, written: &mut Vec<Value>) {
    let mut push = |mut value: Value| {
        if let (Some(owner), Value::Object(members)) = (owner, &mut value) {
            members.insert("subAgentInvocationId".to_owned(), owner.into());
        }
        written.push(value);
    };
    match part {
        TranscriptPart::Text(text) => {
            if owner.is_none() {
                calls.text(text);
            }
            push(json!({
                "value": text,
                "supportThemeIcons": false,
                "supportHtml": false,
                "baseUri": {"$mid": 1, "path": "/", "scheme": "file"},
            }));
        }
        TranscriptPart::Reasoning { text, title, duration_ms } => {
            // Thoughts with the same id would be merged.
            let mut thought = json!({"kind": "thinking", "value": text, "id": calls.next_id("thinking")});
            if let Some(title) = title {
                thought["generatedTitle"] = title.as_str().into();
            }
            if let Some(duration) = duration_ms {
                thought["reasoningDurationMs"] = (*duration).into();
            }
            push(thought);
        }
        TranscriptPart::ToolCall(call) => {
            let id = calls.id_of(call);
            push(calls.invocation(call, &id));
            if owner.is_none() {
                calls.call(call, &id);
            }
            let turns = call.subagent.iter().flat_map(|chat| &chat.turns);
            for part in turns.flat_map(|turn| &turn.parts) {
                add(part, calls, Some(&id), written);
            }
        }
        TranscriptPart::Edit(edit) => edits(edit).into_iter().for_each(push),
        TranscriptPart::Question(question) => push(question_value(question)),
        // It has no text, and concerns another tool's view.
        TranscriptPart::Notice(notice) if notice.text.is_empty() && !calls.is_native() => {}
        TranscriptPart::Notice(notice) => push(notice_value(notice)),
        TranscriptPart::Raw(value) if calls.is_native() => push(value.clone()),
        TranscriptPart::Raw(value) => {
            let shown: String = value.to_string().chars().take(MAX_SHOWN).collect();
            push(progress("progressMessage", &format!("Not understood: {shown}")));
        }
    }
}

/// An edit's operation and its changes: VS Code has a part for each.
fn edits(edit: &TranscriptEdit) -> Vec<Value> {
    let mut parts = Vec::new();
    let is_plain = edit.kind == EditKind::Edit && edit.added.is_none() && edit.removed.is_none();
    if !is_plain || edit.changes.is_empty() {
        let kind = match edit.kind {
            EditKind::Create => "create",
            EditKind::Delete => "delete",
            EditKind::Rename => "rename",
            EditKind::Edit => "edit",
        };
        let mut part = json!({"kind": "externalEdit", "uri": uri_of(&edit.place), "editKind": kind});
        if let Some(from) = &edit.from {
            part["originalUri"] = uri_of(from);
        }
        for (name, count) in [("added", edit.added), ("removed", edit.removed)] {
            if let Some(count) = count {
                part["diff"][name] = count.into();
            }
        }
        parts.push(part);
    }
    if !edit.changes.is_empty() {
        let changes = edit.changes.iter().map(|change| json!({"range": range_of(&change.range), "text": change.text}));
        let changes: Vec<Value> = changes.collect();
        parts.push(json!({"kind": "textEditGroup", "uri": uri_of(&edit.place), "edits": [changes], "done": true}));
    }
    parts
}

fn question_value(question: &Question) -> Value {
    let Question { title, message, answer, .. } = question;
    match answer.as_deref() {
        Some(state @ ("accepted" | "rejected")) => {
            json!({"kind": "elicitationSerialized", "title": title, "message": message, "subtitle": "", "state": state,
                "isHidden": false})
        }
        answer => json!({"kind": "confirmation", "title": title, "message": message, "data": {"answer": answer},
            "isUsed": answer.is_some_and(|answer| answer != "not answered")}),
    }
}

fn notice_value(notice: &Notice) -> Value {
    match notice.kind.as_str() {
        kind @ ("progressMessage" | "warning" | "info" | "systemNotification") => progress(kind, &notice.text),
        _ if notice.text.is_empty() => {
            let mut members = notice.raw.clone();
            members.insert("kind".to_owned(), notice.kind.as_str().into());
            Value::Object(members)
        }
        _ => progress("progressMessage", &notice.text),
    }
}

fn progress(kind: &str, text: &str) -> Value {
    json!({"kind": kind, "content": {"value": text}})
}
