//! The newest turns of a log, read without the rest of it.

use std::sync::Arc;

use grove_core::Turn;
use grove_fs::SessionFs;

use super::read::{begins_turn, turns_of};
use crate::error::LogError;
use crate::index::{EntryNo, LogIndex, Owner};
use crate::links::Ancestors;
use crate::store::read_lines;

/// How many entries are read at a time.
const STEP: usize = 256;

/// How much is wanted.
#[derive(Clone, Copy, Debug)]
pub struct TurnLimit {
    pub turns: usize,
    /// Of their lines; the newest turn is given whatever it has.
    pub bytes: u64,
}

/// Turns in a row.
#[derive(Clone, Debug)]
pub struct LoggedTurns {
    /// Oldest first.
    pub turns: Vec<Arc<Turn>>,
    /// Whether there are older ones.
    pub older: bool,
}

/// Entries in a row of a branch, of which turns are wanted.
#[derive(Clone, Copy, Debug)]
pub struct EntryRange {
    /// The last of them; without one there are none.
    last: Option<EntryNo>,
    /// What comes before them and is not among them.
    above: Option<EntryNo>,
    /// The entry at which the branch of the leaf enters a cycle of parents. The stretch ends before it.
    cycle: Option<EntryNo>,
    /// The first entry that does not count, in the order of the file.
    end: usize,
}

impl EntryRange {
    /// The way to an entry.
    pub fn to(last: Option<EntryNo>) -> Self {
        Self { last, above: None, cycle: None, end: usize::MAX }
    }

    /// What comes before an entry.
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

    /// Only what comes behind an entry, where it is on the way.
    pub fn above(self, floor: Option<EntryNo>) -> Self {
        Self { above: floor, ..self }
    }
}

/// The entries of a stretch, newest first. A cycle of parents ends it after each of its entries came once.
struct BackwardEntries<'a> {
    next: Option<EntryNo>,
    /// Entries that are not among it any more.
    stops: [Option<EntryNo>; 2],
    rest: Option<Ancestors<'a>>,
}

impl BackwardEntries<'_> {
    /// The next entries, at most so many.
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

/// The newest turns on the way to an entry, or none where there is none, as many as `limit` lets in.
pub async fn newest_turns_at(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    at: Option<EntryNo>,
    limit: TurnLimit,
) -> Result<LoggedTurns, LogError> {
    newest_turns_in(fs, path, index, EntryRange::to(at), limit).await
}

/// The turns that come before `before`, or the last ones, as many as `limit` lets in.
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

/// The newest turns of a stretch, as many as `limit` lets in.
pub async fn newest_turns_in(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    range: EntryRange,
    limit: TurnLimit,
) -> Result<LoggedTurns, LogError> {
    let end = range.end;
    let mut way = range.backward(index);
    // Newest first, so that going back appends.
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
    let kept = within(&taken, limit, all);
    let older = !all || kept < taken.len();
    taken.truncate(kept);
    taken.reverse();

    let first = taken.first().map_or(0, |taken| taken.entry.as_usize());
    let own = index.entries().skip(first).take_while(|entry| entry.as_usize() < end);
    let own: Vec<EntryNo> = own.filter(|entry| index.owner(*entry) == Owner::Grove).collect();
    let own = read_lines(fs, path, index, &own).await?;
    let entries = taken.iter().map(|taken| (taken.entry, taken.line.as_slice()));
    Ok(LoggedTurns { turns: turns_of(index, entries, own.iter().map(Vec::as_slice)), older })
}

/// An entry that was read on the way back.
struct ReadEntry {
    entry: EntryNo,
    line: Vec<u8>,
    begins_turn: bool,
}

/// How many of the entries, newest first, make whole turns within the limit.
fn within(taken: &[ReadEntry], limit: TurnLimit, all: bool) -> usize {
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
