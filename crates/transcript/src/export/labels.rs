//! The normal form in words for people.

use grove_core::{Answerer, MessageOrigin, Timestamp};

use crate::normal::{
    Approval, CallState, EditKind, TodoItem, TodoStatus, TranscriptAttachment, TranscriptAttachmentKind,
    TranscriptEdit, TranscriptModel, TranscriptState, TranscriptToolKind, TranscriptUsage, TurnOutcome,
};

pub(super) fn speaker(origin: MessageOrigin) -> &'static str {
    match origin {
        MessageOrigin::User => "User",
        MessageOrigin::Agent => "Agent",
        MessageOrigin::Tool => "Tool",
        MessageOrigin::Automation => "Automation",
        MessageOrigin::SystemNotification => "System",
    }
}

/// The outcome of a turn, if it is worth showing.
pub(super) fn outcome(outcome: &TurnOutcome) -> Option<String> {
    match outcome {
        TurnOutcome::Complete => None,
        TurnOutcome::Cancelled => Some("cancelled".to_owned()),
        TurnOutcome::Failed(error) => Some(format!("failed: {}", error.message)),
        TurnOutcome::Interrupted => Some("interrupted: its end was not recorded".to_owned()),
    }
}

pub(super) fn state(state: TranscriptState) -> &'static str {
    match state {
        TranscriptState::Empty => "empty",
        TranscriptState::Complete => "complete",
        TranscriptState::Cancelled => "cancelled",
        TranscriptState::Failed => "failed",
        TranscriptState::Interrupted => "interrupted",
    }
}

pub(super) fn call_state(state: CallState) -> Option<&'static str> {
    match state {
        CallState::Complete => None,
        CallState::Failed => Some("failed"),
        CallState::Interrupted => Some("interrupted"),
        CallState::Refused => Some("refused"),
    }
}

/// The purpose of a tool; `None` if it is unknown.
pub(super) fn kind(kind: TranscriptToolKind) -> Option<&'static str> {
    match kind {
        TranscriptToolKind::Shell => Some("shell"),
        TranscriptToolKind::ShellOutput => Some("shell output"),
        TranscriptToolKind::Read => Some("read"),
        TranscriptToolKind::List => Some("list"),
        TranscriptToolKind::Search => Some("search"),
        TranscriptToolKind::Fetch => Some("fetch"),
        TranscriptToolKind::Todo => Some("to do"),
        TranscriptToolKind::Subagent => Some("subagent"),
        TranscriptToolKind::Edit => Some("edit"),
        TranscriptToolKind::Edits => Some("edits"),
        TranscriptToolKind::Other => None,
    }
}

/// The approval of a call in words, with the party that gave or denied it if it is known.
pub(super) fn approval(approval: &Approval, party: Option<&Answerer>) -> Option<String> {
    let with = |what: &str, more: &Option<String>| match more.as_deref().filter(|more| !more.is_empty()) {
        Some(more) => format!("{what} ({more})"),
        None => what.to_owned(),
    };
    let by = |what: &str, unknown: &str| party.map_or_else(|| unknown.to_owned(), |party| format!("{what} by {party}"));
    match approval {
        Approval::Unknown => None,
        Approval::NotNeeded { reason } => Some(with("no approval needed", reason)),
        Approval::Setting { id } => Some(with(&by("approved", "approved by a setting"), id)),
        Approval::Remembered { scope } => Some(with("approved by an earlier answer", scope)),
        Approval::Person { button } => Some(with(&by("approved", "approved by a person"), button)),
        Approval::Denied => Some(by("denied", "denied")),
        Approval::Skipped => Some("skipped".to_owned()),
        Approval::Waiting => Some("waits for approval".to_owned()),
    }
}

pub(super) fn time(at: Timestamp) -> String {
    let at = i64::try_from(at.0).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map_or_else(|| "at an unknown time".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

pub(super) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

pub(super) fn model(model: &TranscriptModel) -> String {
    let name = model.display_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&model.model);
    match &model.multiplier {
        Some(multiplier) => format!("{name} ({multiplier}x)"),
        None => name.to_owned(),
    }
}

pub(super) fn usage(usage: &TranscriptUsage) -> Option<String> {
    let counts = [
        ("in", usage.input_tokens),
        ("out", usage.output_tokens),
        ("read from cache", usage.cache_read_tokens),
        ("written to cache", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    ];
    // Tools report 0 for values that they do not have.
    let counts = counts.into_iter().filter_map(|(what, count)| Some((what, count.filter(|count| *count > 0)?)));
    let counts = counts.map(|(what, count)| format!("{count} {what}"));
    let counts: Vec<String> = counts.collect();
    let tokens = (!counts.is_empty()).then(|| format!("tokens: {}", counts.join(", ")));
    let cost = usage.cost.as_ref().filter(|cost| cost.as_f64() != Some(0.0)).map(|cost| format!("cost: {cost}"));
    let facts: Vec<String> = tokens.into_iter().chain(cost).collect();
    (!facts.is_empty()).then(|| facts.join(" · "))
}

pub(super) fn attachment(attachment: &TranscriptAttachment) -> String {
    let kind = match attachment.kind {
        TranscriptAttachmentKind::File => "file",
        TranscriptAttachmentKind::Folder => "folder",
        TranscriptAttachmentKind::Selection => "selection",
        TranscriptAttachmentKind::Symbol => "symbol",
        TranscriptAttachmentKind::Text => "text",
        TranscriptAttachmentKind::Image => "image",
        TranscriptAttachmentKind::Prompt => "prompt",
        TranscriptAttachmentKind::Tool => "tool",
        TranscriptAttachmentKind::Command => "command",
        TranscriptAttachmentKind::Output => "output",
        TranscriptAttachmentKind::Diagnostic => "diagnostic",
        TranscriptAttachmentKind::Change => "change",
        TranscriptAttachmentKind::Session => "session",
        TranscriptAttachmentKind::Other => "attachment",
    };
    let place = attachment.place.as_ref().map(crate::normal::FileLocation::shown).filter(|place| !place.is_empty());
    match place {
        Some(place) => format!("{kind} {place}"),
        None => format!("{kind} {}", attachment.name),
    }
}

pub(super) fn edit(edit: &TranscriptEdit) -> String {
    let place = edit.place.shown();
    let what = match (edit.kind, &edit.from) {
        (EditKind::Create, _) => format!("Created {place}"),
        (EditKind::Delete, _) => format!("Deleted {place}"),
        (EditKind::Rename, Some(from)) => format!("Renamed {} to {place}", from.shown()),
        (EditKind::Rename, None) => format!("Renamed to {place}"),
        (EditKind::Edit, _) => format!("Edited {place}"),
    };
    match (edit.added, edit.removed) {
        (None, None) => what,
        (added, removed) => format!("{what} (+{} -{})", added.unwrap_or(0), removed.unwrap_or(0)),
    }
}

/// A to-do list, one item per line.
pub(crate) fn todos(items: &[TodoItem]) -> String {
    let line = |item: &TodoItem| {
        let mark = match item.status {
            TodoStatus::NotStarted => " ",
            TodoStatus::InProgress => "~",
            TodoStatus::Completed => "x",
        };
        match item.description.is_empty() {
            true => format!("[{mark}] {}", item.title),
            false => format!("[{mark}] {}: {}", item.title, item.description),
        }
    };
    items.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Text on one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
