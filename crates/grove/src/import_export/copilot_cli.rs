//! A session in the Copilot CLI's format: its log as events.
//!
//! The CLI has no branches, so only the branch of the leaf is written. Its compactions keep nothing of the earlier
//! part, while Grove's may: such a compaction is written before the first turn of which something is kept.

use std::sync::Arc;

use grove_core::{Session, Timestamp, Turn};
use grove_tree::{EntryNo, EntryType, Log, LogIndex, Role, turns};
use grove_wire::copilot::events::{CompactionComplete, EventData};
use grove_wire::copilot::project::history;
use grove_wire::copilot::{Event, EventId};
use serde::Deserialize;

/// The events of a session, and the session's facts.
#[derive(Debug)]
pub(crate) struct CopilotCliEvents {
    pub(crate) events: Vec<Event>,
    pub(crate) turns: usize,
}

/// A compaction, and the index of the turn that follows it.
#[derive(Debug)]
struct CompactionEvent {
    before: usize,
    at: Timestamp,
    data: CompactionComplete,
}

/// The events of a session.
///
/// `checkpoint` returns the path of a checkpoint's file, `new_id` an id for an event without one.
pub(crate) fn events(
    session: &Session,
    log: &Log,
    checkpoint: &dyn Fn(&str) -> String,
    new_id: &mut dyn FnMut() -> EventId,
) -> CopilotCliEvents {
    let turns: Vec<Arc<Turn>> = turns::turns(log);
    let compactions = compactions(log, turns.len(), checkpoint);
    let mut compactions = compactions.into_iter().peekable();
    let mut events: Vec<Event> = Vec::new();
    let mut started_turns = 0;
    let count = turns.len();
    let mut push = |event: Event| {
        let parent_id = events.last().map(|last: &Event| last.id.clone());
        events.push(Event { parent_id, ..event });
    };
    for event in history(session, turns, &[]) {
        if matches!(event.data, EventData::UserMessage(_)) {
            while let Some(compacted) = compactions.next_if(|next| next.before <= started_turns) {
                push(compacted.event(new_id()));
            }
            started_turns += 1;
        }
        push(event);
    }
    for compacted in compactions {
        push(compacted.event(new_id()));
    }
    CopilotCliEvents { events, turns: count }
}

impl CompactionEvent {
    fn event(self, id: EventId) -> Event {
        let timestamp = grove_wire::ahp::time::text(self.at);
        Event { id, timestamp, parent_id: None, ephemeral: false, agent_id: None, data: self.data.into() }
    }
}

/// The compactions on the branch of the leaf.
fn compactions(log: &Log, count: usize, checkpoint: &dyn Fn(&str) -> String) -> Vec<CompactionEvent> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CompactionLine {
        summary: String,
        #[serde(default)]
        first_kept_entry_id: Option<String>,
        #[serde(default)]
        tokens_before: Option<u64>,
        #[serde(default)]
        details: Option<CompactionDetails>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct CompactionDetails {
        checkpoint_number: Option<u64>,
        checkpoint_path: Option<String>,
    }
    let index = log.index();
    let branch = index.leaf().map(|leaf| index.branch(leaf)).unwrap_or_default();
    let mut found = Vec::new();
    for (at, entry) in branch.iter().enumerate().filter(|(_, entry)| index.kind(**entry) == EntryType::Compaction) {
        let Ok(line) = serde_json::from_slice::<CompactionLine>(log.line(*entry)) else { continue };
        let first_kept = line.first_kept_entry_id.and_then(|id| index.find(&id));
        let first_kept = first_kept
            .and_then(|first_kept| branch.iter().position(|one| *one == first_kept))
            .filter(|first_kept| *first_kept < at);
        // A turn that is kept in part is kept completely.
        let before = match first_kept {
            Some(first_kept) => turns_begun(index, &branch[..=first_kept]).saturating_sub(1),
            None => turns_begun(index, &branch[..at]),
        };
        let details = line.details.unwrap_or_default();
        let file = details.checkpoint_path.as_deref().and_then(|path| path.rsplit(['/', '\\']).next());
        let data = CompactionComplete {
            success: true,
            pre_compaction_tokens: line.tokens_before,
            summary_content: Some(line.summary),
            checkpoint_number: details.checkpoint_number,
            checkpoint_path: file.filter(|file| !file.is_empty()).map(checkpoint),
            ..CompactionComplete::default()
        };
        let time = index.time(*entry).and_then(|time| u64::try_from(time).ok());
        found.push(CompactionEvent { before: before.min(count), at: Timestamp(time.unwrap_or(0)), data });
    }
    // A later compaction may keep more than an earlier one.
    found.sort_by_key(|compacted| compacted.before);
    found
}

/// The number of turns that begin among these entries.
fn turns_begun(index: &LogIndex, entries: &[EntryNo]) -> usize {
    let begins =
        |entry: &&EntryNo| index.kind(**entry) == EntryType::Message && index.role(**entry) == Some(Role::User);
    entries.iter().filter(begins).count()
}
