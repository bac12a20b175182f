//! Reads the newest turns of a session: at their known positions, else from a full read.

use std::collections::VecDeque;

use grove_transcript::{TranscriptSource, TranscriptTurn, TurnParent, path_among_newest};

use crate::error::HistoryError;
use crate::files;
use crate::reader::{FileMark, SessionLocation};
use crate::tail_index::{TailIndex, TailLayout, TailLimit, entries_of};
use crate::{gemini, reader_of, vscode};

/// The newest turns of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct NewestTurns {
    /// In order: no more than needed for the limit.
    pub turns: Vec<TranscriptTurn>,
    pub has_older: bool,
    /// The number of the first of them among all turns, from 0.
    first: usize,
}

impl NewestTurns {
    /// Keeps the turns that lead to the newest one. Those on abandoned branches go, so fewer are left than were wanted.
    pub fn on_active_branch(self) -> Self {
        let follows: Vec<TurnParent> = self.turns.iter().map(|turn| turn.follows).collect();
        let (path, has_older) = path_among_newest(self.first, &follows);
        let mut wanted = path.iter().peekable();
        let turns = self.turns.into_iter().enumerate();
        let turns = turns.filter(|(at, _)| wanted.next_if_eq(&at).is_some()).map(|(_, turn)| turn);
        Self { turns: turns.collect(), has_older, first: self.first }
    }
}

/// Reads the newest turns of a session: the last ones of a full read. `tail_index` only makes it faster.
pub fn newest(
    location: &SessionLocation,
    tail_index: Option<&TailIndex>,
    amount: TailLimit,
) -> Result<NewestTurns, HistoryError> {
    if let Some(tail_index) = tail_index
        && let Some(newest) = from_tail_index(location, tail_index, amount)
    {
        return Ok(newest);
    }
    let mut window = TurnWindow::new(amount);
    reader_of(location.source).read(location, None, &mut |turn| window.push(turn))?;
    Ok(window.finish(0))
}

/// The newest turns by their positions; `None` if these are not valid any more.
fn from_tail_index(location: &SessionLocation, tail_index: &TailIndex, amount: TailLimit) -> Option<NewestTurns> {
    let mark = FileMark::of(&files::stat(&location.path).ok()?);
    let mut window = TurnWindow::new(amount);
    let before = match &tail_index.places {
        TailLayout::RequestRanges(requests) => {
            if mark != tail_index.mark {
                return None;
            }
            let turns = match location.source {
                TranscriptSource::Gemini => gemini::newest(location, requests, amount),
                _ => vscode::newest(location, requests, amount),
            };
            let turns = turns.ok()??;
            let count = turns.len() as u64;
            turns.into_iter().for_each(|turn| window.push(turn));
            u64::from(requests.turns).saturating_sub(count)
        }
        TailLayout::ResumePoints(steps) => {
            // A log that has grown has the same turns before its resume points.
            let has_grown = || {
                mark.inode == tail_index.mark.inode
                    && mark.size > tail_index.mark.size
                    && tail_index.fingerprint.is_some_and(|print| print.fits(&location.path))
            };
            let is_same = mark == tail_index.mark || has_grown();
            let step = steps.before(amount).filter(|_| is_same)?;
            let mut bookmark = step.bookmark.clone();
            bookmark.asked = steps.asked_behind(step).collect();
            reader_of(location.source).read(location, Some(&bookmark), &mut |turn| window.push(turn)).ok()?;
            u64::from(bookmark.turns)
        }
    };
    // The file may have been written while it was read.
    let is_settled = FileMark::of(&files::stat(&location.path).ok()?) == mark;
    let is_enough = window.is_met() || before == 0;
    (is_settled && is_enough).then(|| window.finish(before))
}

/// The last of many turns.
#[derive(Debug)]
struct TurnWindow {
    amount: TailLimit,
    turns: VecDeque<TranscriptTurn>,
    entries: u64,
    dropped: usize,
}

impl TurnWindow {
    fn new(amount: TailLimit) -> Self {
        Self { amount, turns: VecDeque::new(), entries: 0, dropped: 0 }
    }

    fn push(&mut self, turn: TranscriptTurn) {
        self.entries += entries_of(&turn);
        self.turns.push_back(turn);
        while let Some(first) = self.turns.front() {
            let entries = self.entries - entries_of(first);
            if !self.amount.is_met(self.turns.len() as u64 - 1, entries) {
                break;
            }
            self.entries = entries;
            self.turns.pop_front();
            self.dropped += 1;
        }
    }

    fn is_met(&self) -> bool {
        self.dropped > 0 || self.amount.is_met(self.turns.len() as u64, self.entries)
    }

    /// `before` is the number of skipped turns.
    fn finish(self, before: u64) -> NewestTurns {
        let first = usize::try_from(before).unwrap_or(usize::MAX).saturating_add(self.dropped);
        NewestTurns { turns: self.turns.into(), has_older: first > 0, first }
    }
}

#[cfg(test)]
mod tests;
