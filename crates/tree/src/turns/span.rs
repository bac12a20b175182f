//! The position of a turn in its log.

use grove_core::{SessionId, Timestamp, TurnId};
use grove_fs::SessionFs;

use super::read::{end_in, turn_id_in};
use super::write::hash_of;
use crate::error::LogError;
use crate::index::{EntryNo, LogIndex, Owner};
use crate::kind::EntryType;
use crate::role::Role;
use crate::store::read_lines;

/// The number of messages of one read.
const STEP: usize = 256;

/// The first and the last message of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnSpan {
    pub first: EntryNo,
    pub last: EntryNo,
}

/// Finds a turn on the path to the leaf. Another branch may have one of the same id.
///
/// Entry ids are derived from the session that wrote them. If that is this session, or the one that it was forked from,
/// nothing is read; else the messages are searched, newest first.
pub async fn locate_turn(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    turn: &TurnId,
) -> Result<Option<TurnSpan>, LogError> {
    let spans = spans(index);
    if let Some(span) = by_id(index, &spans, turn) {
        return Ok(Some(span));
    }
    for spans in spans.chunks(STEP) {
        let firsts: Vec<EntryNo> = spans.iter().map(|span| span.first).collect();
        let lines = read_lines(fs, path, index, &firsts).await?;
        let found = lines.iter().position(|line| turn_id_in(line).as_ref() == Some(turn));
        if let Some(span) = found.and_then(|at| spans.get(at)) {
            return Ok(Some(*span));
        }
    }
    Ok(None)
}

/// The start of a turn by the host's clock, given its user message. The entry's own time may be a client's. `None` if
/// it is not known.
pub async fn turn_started_at(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    first: EntryNo,
) -> Result<Option<Timestamp>, LogError> {
    let line = read_lines(fs, path, index, &[first]).await?;
    let Some(turn) = line.first().and_then(|line| turn_id_in(line)) else { return Ok(None) };
    // A turn is written as one block, so the next turn end is its own.
    let own = index.entries().skip(first.as_usize() + 1).filter(|entry| index.owner(*entry) == Owner::Grove);
    let own: Vec<EntryNo> = own.take(STEP).collect();
    for entry in own {
        let lines = read_lines(fs, path, index, &[entry]).await?;
        let Some(end) = lines.first().and_then(|line| end_in(line)).filter(|end| end.turn == turn) else { continue };
        let lasted = end.ended_at.0.saturating_sub(end.started_at.0);
        return Ok(end.seen_end.map(|seen| Timestamp(seen.0.saturating_sub(lasted))));
    }
    Ok(None)
}

/// The turns on the path to the leaf, newest first.
fn spans(index: &LogIndex) -> Vec<TurnSpan> {
    let mut spans = Vec::new();
    let mut last = None;
    for entry in index.leaf().into_iter().flat_map(|leaf| index.links.ancestors(leaf)) {
        if index.kind(entry) != EntryType::Message {
            continue;
        }
        let end = *last.get_or_insert(entry);
        if index.role(entry) == Some(Role::User) {
            spans.push(TurnSpan { first: entry, last: end });
            last = None;
        }
    }
    spans
}

fn by_id(index: &LogIndex, spans: &[TurnSpan], turn: &TurnId) -> Option<TurnSpan> {
    let header = index.header();
    let writers = [header.and_then(|header| header.id()), header.and_then(|header| header.parent_session())];
    let hashes = writers.into_iter().flatten().map(|writer| hash_of(&SessionId::from(writer), turn.as_str(), 0));
    let ids = hashes.flat_map(|hash| (8..=hash.len()).step_by(4).map(move |length| hash[..length].to_owned()));
    let found: Vec<EntryNo> = ids.chain([turn.to_string()]).filter_map(|id| index.find(&id)).collect();
    if found.is_empty() {
        return None;
    }
    spans.iter().find(|span| found.contains(&span.first)).copied()
}
