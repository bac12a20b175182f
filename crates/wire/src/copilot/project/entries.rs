//! Events of a log's entries outside of turns: compactions, and `grove.info` entries.
//!
//! An event is derived from its entry's line alone, so that it is the same at any time. An entry is placed behind the
//! newest turn that had ended when it was added. So one that came during a turn is read before that turn.

use grove_core::{LogEntry, SessionId, TurnId};
use serde::Deserialize;
use serde_json::Value;

use super::ids;
use crate::copilot::events::*;
use crate::copilot::methods::SessionContext;
use crate::copilot::{Event, EventId, Object};

/// The `customType` of an event of the session.
const INFO: &str = "grove.info";

/// A line of the log, as far as it may have an event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryLine {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    #[serde(default)]
    timestamp: String,
    custom_type: Option<String>,
    data: Option<InfoData>,
    summary: Option<String>,
    tokens_before: Option<u64>,
    details: Option<CheckpointLink>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CheckpointLink {
    checkpoint_number: Option<u64>,
    checkpoint_path: Option<String>,
}

/// The data of a `grove.info` entry. The members depend on its type.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InfoData {
    info_type: String,
    message: String,
    level: Option<String>,
    category: Option<String>,
    url: Option<String>,
    tip: Option<String>,
    operation: Option<String>,
    context: Option<SessionContext>,
    model: Option<String>,
    turns: Option<u64>,
    was_active: Option<bool>,
    continues: Option<bool>,
    shutdown: Option<Object>,
}

/// The event of an entry, if it has one, after `parent`.
pub(super) fn event(session: &SessionId, line: &str, parent: EventId) -> Option<Event> {
    let entry: EntryLine = serde_json::from_str(line).ok()?;
    let (id, timestamp) = (ids::entry(session, &entry.id), entry.timestamp.clone());
    let data = data(entry)?;
    Some(Event { id, timestamp, parent_id: Some(parent), ephemeral: false, agent_id: None, data })
}

fn data(entry: EntryLine) -> Option<EventData> {
    match (entry.kind.as_str(), entry.custom_type.as_deref(), entry.data) {
        ("compaction", _, _) => {
            let details = entry.details.unwrap_or_default();
            let complete = CompactionComplete {
                success: true,
                pre_compaction_tokens: entry.tokens_before,
                summary_content: entry.summary,
                checkpoint_number: details.checkpoint_number,
                checkpoint_path: details.checkpoint_path,
                ..CompactionComplete::default()
            };
            Some(complete.into())
        }
        ("custom", Some(INFO), Some(info)) => Some(info_event(info, entry.timestamp)),
        _ => None,
    }
}

fn info_event(info: InfoData, at: String) -> EventData {
    let InfoData { info_type, message, level, category, url, tip, .. } = info;
    match info_type.as_str() {
        "log" => log_event(level.as_deref(), category, message, url, tip),
        "plan" => PlanChanged { operation: info.operation.unwrap_or_else(|| "update".to_owned()) }.into(),
        "context" => info.context.unwrap_or_default().into(),
        "resume" => SessionResume {
            resume_time: at,
            event_count: info.turns.unwrap_or(0),
            events_file_size_bytes: None,
            selected_model: info.model,
            context: info.context,
            session_was_active: info.was_active,
            continue_pending_work: info.continues,
        }
        .into(),
        "shutdown" => {
            let counters = Value::Object(info.shutdown.unwrap_or_default());
            let shutdown: SessionShutdown = serde_json::from_value(counters).unwrap_or_default();
            Box::new(shutdown).into()
        }
        _ => SessionInfo { info_type, message, url, tip }.into(),
    }
}

/// The event of a client's message for people.
pub fn log_event(
    level: Option<&str>,
    category: Option<String>,
    message: String,
    url: Option<String>,
    tip: Option<String>,
) -> EventData {
    let category = category.unwrap_or_else(|| "notification".to_owned());
    match level {
        Some("warning") => SessionWarning { warning_type: category, message, url }.into(),
        Some("error") => SessionError { error_type: category, message, stack: None, url }.into(),
        Some(_) | None => SessionInfo { info_type: category, message, url, tip }.into(),
    }
}

/// The id of the event of an entry, by its line.
pub fn entry_event_id(session: &SessionId, line: &str) -> Option<EventId> {
    event(session, line, ids::start_id(session)).map(|event| event.id)
}

/// The entries that a [`super::Projector`] remembers; of more, the newest.
pub const MAX_TAIL: usize = 1_000;

/// The newest entries outside of turns, with the events that they have: after the leaf has moved, one of them may be the
/// last event.
#[derive(Debug)]
pub(super) struct EntryTail {
    /// The newest finished turn.
    newest: Option<TurnId>,
    /// The turn before each entry, and its event.
    events: std::collections::VecDeque<(Option<TurnId>, EventId)>,
}

impl EntryTail {
    pub(super) fn new(session: &SessionId, newest: Option<TurnId>, entries: &[LogEntry]) -> Self {
        let with_event = |entry: &LogEntry| Some((entry.after.clone(), entry_event_id(session, &entry.line)?));
        let events = entries[entries.len().saturating_sub(MAX_TAIL)..].iter().filter_map(with_event).collect();
        Self { newest, events }
    }

    /// Notes an entry. False if it does not belong to the newest turn.
    pub(super) fn add(&mut self, entry: &LogEntry, event: &EventId) -> bool {
        if entry.after != self.newest {
            return false;
        }
        if self.events.len() >= MAX_TAIL {
            self.events.pop_front();
        }
        self.events.push_back((entry.after.clone(), event.clone()));
        true
    }

    /// A turn has ended: nothing is behind it yet. One of the same id may have been abandoned.
    pub(super) fn turn_ended(&mut self, turn: TurnId) {
        self.newest = Some(turn);
        self.events.retain(|(after, _)| *after != self.newest);
    }

    /// Moves to a turn. Returns the last event behind it, if an entry has one.
    pub(super) fn move_to(&mut self, turn: Option<TurnId>) -> Option<EventId> {
        self.newest = turn;
        self.events.iter().rev().find(|(after, _)| *after == self.newest).map(|(_, event)| event.clone())
    }
}
