//! The newest turns of a log, read without the rest of it.

use std::sync::Arc;

use grove_core::{SessionId, Turn, TurnId};
use grove_fs::SessionFs;

use super::read::{begins_turn, turns_of};
use super::write::hash_of;
use crate::error::LogError;
use crate::index::{EntryNo, Index, Owner};
use crate::store::read_lines;

/// How many entries are read at a time.
const STEP: usize = 256;

/// How much is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub turns: usize,
    /// Of their lines; the newest turn is given whatever it has.
    pub bytes: u64,
}

/// Turns in a row.
#[derive(Clone, Debug)]
pub struct Window {
    /// Oldest first.
    pub turns: Vec<Arc<Turn>>,
    /// Whether there are older ones.
    pub older: bool,
}

/// The newest turns on the way to an entry, or none where there is none, as many as `limit` lets in.
pub async fn newest_at(
    fs: &dyn SessionFs,
    path: &str,
    index: &Index,
    at: Option<EntryNo>,
    limit: Limit,
) -> Result<Window, LogError> {
    collect(fs, path, index, at, usize::MAX, limit).await
}

/// The turns that come before `before`, or the last ones, as many as `limit` lets in.
pub async fn newest(
    fs: &dyn SessionFs,
    path: &str,
    index: &Index,
    before: Option<EntryNo>,
    limit: Limit,
) -> Result<Window, LogError> {
    let from = match before {
        Some(entry) => index.parent(entry),
        None => index.leaf(),
    };
    collect(fs, path, index, from, before.map_or(usize::MAX, EntryNo::as_usize), limit).await
}

/// `end` is the first entry that does not count, in the order of the file.
async fn collect(
    fs: &dyn SessionFs,
    path: &str,
    index: &Index,
    mut from: Option<EntryNo>,
    end: usize,
    limit: Limit,
) -> Result<Window, LogError> {
    // Newest first, so that going back appends.
    let mut taken: Vec<Taken> = Vec::new();
    let (mut turns, mut bytes) = (0, 0);
    while let Some(entry) = from {
        let step = index.tail(entry, STEP);
        let lines = read_lines(fs, path, index, &step).await?;
        from = step.first().and_then(|first| index.parent(*first));
        for (entry, line) in step.into_iter().zip(lines).rev() {
            bytes += line.len() as u64;
            let begins_turn = begins_turn(&line);
            turns += usize::from(begins_turn);
            taken.push(Taken { entry, line, begins_turn });
        }
        if turns > limit.turns || (bytes > limit.bytes && turns > 0) {
            break;
        }
    }
    let all = from.is_none();
    let kept = within(&taken, limit, all);
    let older = !all || kept < taken.len();
    taken.truncate(kept);
    taken.reverse();

    let first = taken.first().map_or(0, |taken| taken.entry.as_usize());
    let own = index.entries().skip(first).take_while(|entry| entry.as_usize() < end);
    let own: Vec<EntryNo> = own.filter(|entry| index.owner(*entry) == Owner::Grove).collect();
    let own = read_lines(fs, path, index, &own).await?;
    let entries = taken.iter().map(|taken| (taken.entry, taken.line.as_slice()));
    Ok(Window { turns: turns_of(index, entries, own.iter().map(Vec::as_slice)), older })
}

/// An entry that was read on the way back.
struct Taken {
    entry: EntryNo,
    line: Vec<u8>,
    begins_turn: bool,
}

/// How many of the entries, newest first, make whole turns within the limit.
fn within(taken: &[Taken], limit: Limit, all: bool) -> usize {
    let (mut turns, mut bytes, mut kept) = (0, 0, 0);
    for (number, taken) in taken.iter().enumerate() {
        bytes += taken.line.len() as u64;
        if taken.begins_turn {
            turns += 1;
            if turns > limit.turns || (bytes > limit.bytes && turns > 1) {
                return kept;
            }
            kept = number + 1;
        }
    }
    if all { taken.len() } else { kept }
}

/// The entry with which a turn begins, where the log has it.
pub fn entry_of(index: &Index, session: &SessionId, turn: &TurnId) -> Option<EntryNo> {
    let hash = hash_of(session, turn.as_str(), 0);
    let lengths = (8..=hash.len()).step_by(4);
    lengths.map(|length| &hash[..length]).find_map(|id| index.find(id)).or_else(|| index.find(turn.as_str()))
}
