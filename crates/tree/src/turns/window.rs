//! Reads the newest turns of a log without the rest of it.

use std::sync::Arc;

use grove_core::Turn;
use grove_fs::SessionFs;

use super::read::{begins_turn, turns_of};
use crate::error::LogError;
use crate::index::{EntryNo, LogIndex, Owner};
use crate::links::Ancestors;
use crate::store::read_lines;

/// The number of entries of one read.
const STEP: usize = 256;

/// Limits on the turns to read.
#[derive(Clone, Copy, Debug)]
pub struct TurnLimit {
    pub turns: usize,
    /// Bytes of their lines; the newest turn is returned whatever its size.
    pub bytes: u64,
}

/// Consecutive turns.
#[derive(Clone, Debug)]
pub struct LoggedTurns {
    /// Oldest first.
    pub turns: Vec<Arc<Turn>>,
    /// True if there are older ones.
    pub older: bool,
}

/// Consecutive entries of a branch to read turns from.
#[derive(Clone, Copy, Debug)]
pub struct EntryRange {
    /// The last entry; `None` for an empty range.
    last: Option<EntryNo>,
    /// The entry before the range.
    above: Option<EntryNo>,
    /// The entry at which the branch of the leaf enters a cycle of parents. The range ends before it.
    cycle: Option<EntryNo>,
    /// The first excluded entry in file order.
    end: usize,
}

impl EntryRange {
    /// The range up to an entry.
    pub fn to(last: Option<EntryNo>) -> Self {
        Self { last, above: None, cycle: None, end: usize::MAX }
    }

    /// The range before an entry.
    pub fn before(index: &LogIndex, entry: EntryNo) -> Self {
        let is_cyclic = index.links.is_cyclic(entry);
        let cycle = index.leaf().filter(|_| is_cyclic).and_then(|leaf| index.links.first_cyclic(leaf));
        let last = index.parent(entry).filter(|last| Some(*last) != cycle);
        Self { last, above: None, cycle, end: entry.as_usize() }
    }

    /// Its entries, newest first.
    fn backward(self, index: &LogIndex) -> BackwardEntries<'_> {
        let mut rest = self.last.map(|last| index.links.ancestors(index.canonical(last)));
        let mut way = BackwardEntries { next: None, stops: [self.above, self.cycle], rest: None };
        way.next = rest.as_mut().and_then(|rest| rest.next()).filter(|next| !way.stops.contains(&Some(*next)));
        way.rest = rest;
        way
    }

    /// Limits the range to entries after `floor`, if that is on the path.
    pub fn above(self, floor: Option<EntryNo>) -> Self {
        Self { above: floor, ..self }
    }
}

/// The entries of a range, newest first. A cycle of parents ends it after each of its entries came once.
struct BackwardEntries<'a> {
    next: Option<EntryNo>,
    /// Entries outside the range, at which it stops.
    stops: [Option<EntryNo>; 2],
    rest: Option<Ancestors<'a>>,
}

impl BackwardEntries<'_> {
    /// The next entries, at most `count`.
    fn take(&mut self, count: usize) -> Vec<EntryNo> {
        let mut taken = Vec::new();
        while let Some(entry) = self.next.filter(|_| taken.len() < count) {
            taken.push(entry);
            let next = self.rest.as_mut().and_then(|rest| rest.next());
            self.next = next.filter(|next| !self.stops.contains(&Some(*next)));
        }
        taken
    }
}

/// The newest turns on the path to an entry within `limit`; none without an entry.
pub async fn newest_turns_at(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    at: Option<EntryNo>,
    limit: TurnLimit,
) -> Result<LoggedTurns, LogError> {
    newest_turns_in(fs, path, index, EntryRange::to(at), limit).await
}

/// The turns before `before`, or the last ones, within `limit`.
pub async fn newest(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    before: Option<EntryNo>,
    limit: TurnLimit,
) -> Result<LoggedTurns, LogError> {
    let range = before.map_or_else(|| EntryRange::to(index.leaf()), |entry| EntryRange::before(index, entry));
    newest_turns_in(fs, path, index, range, limit).await
}

/// The newest turns of a range, within `limit`.
pub async fn newest_turns_in(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    range: EntryRange,
    limit: TurnLimit,
) -> Result<LoggedTurns, LogError> {
    let end = range.end;
    let mut way = range.backward(index);
    // Newest first, so that reading backwards appends.
    let mut taken: Vec<ReadEntry> = Vec::new();
    let (mut turns, mut bytes) = (0, 0);
    while way.next.is_some() {
        let step = way.take(STEP);
        let lines = read_lines(fs, path, index, &step).await?;
        for (entry, line) in step.into_iter().zip(lines) {
            bytes += line.len() as u64;
            let begins_turn = begins_turn(&line);
            turns += usize::from(begins_turn);
            taken.push(ReadEntry { entry, line, begins_turn });
        }
        if turns > limit.turns || (bytes > limit.bytes && turns > 0) {
            break;
        }
    }
    let all = way.next.is_none();
    let count = within(&taken, limit, all);
    let older = !all || count < taken.len();
    taken.truncate(count);
    taken.reverse();

    let first = taken.first().map_or(0, |taken| taken.entry.as_usize());
    let own = index.entries().skip(first).take_while(|entry| entry.as_usize() < end);
    let own: Vec<EntryNo> = own.filter(|entry| index.owner(*entry) == Owner::Grove).collect();
    let own = read_lines(fs, path, index, &own).await?;
    let entries = taken.iter().map(|taken| (taken.entry, taken.line.as_slice()));
    Ok(LoggedTurns { turns: turns_of(index, entries, own.iter().map(Vec::as_slice)), older })
}

/// An entry that was read backwards.
struct ReadEntry {
    entry: EntryNo,
    line: Vec<u8>,
    begins_turn: bool,
}

/// The number of entries, newest first, that make complete turns within the limit.
fn within(taken: &[ReadEntry], limit: TurnLimit, all: bool) -> usize {
    let (mut turns, mut bytes, mut count) = (0, 0, 0);
    for (number, taken) in taken.iter().enumerate() {
        bytes += taken.line.len() as u64;
        if taken.begins_turn {
            turns += 1;
            if turns > limit.turns || (bytes > limit.bytes && turns > 1) {
                return count;
            }
            count = number + 1;
        }
    }
    if all { taken.len() } else { count }
}
