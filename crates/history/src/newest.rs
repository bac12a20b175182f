//! The newest turns of a session, read from where they lie where that is known, and out of everything where it is not.

use std::collections::VecDeque;

use crate::ending::{Amount, Ending, Places, entries_of};
use crate::error::HistoryError;
use crate::files;
use crate::normal::{Follows, ForeignTurn, Source, path_among_newest};
use crate::reader::{FileMark, Located};
use crate::{gemini, reader_of, vscode};

/// The newest turns of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    /// In their order: no more of them than it takes for what was wanted.
    pub turns: Vec<ForeignTurn>,
    pub has_older: bool,
    /// The number of the first of them among all turns, from 0.
    first: usize,
}

impl Newest {
    /// Keeps the turns that lead to the newest one. Those on abandoned branches go, so fewer are left than were wanted.
    pub fn on_active_branch(self) -> Self {
        let follows: Vec<Follows> = self.turns.iter().map(|turn| turn.follows).collect();
        let (path, has_older) = path_among_newest(self.first, &follows);
        let mut wanted = path.iter().peekable();
        let turns = self.turns.into_iter().enumerate();
        let turns = turns.filter(|(at, _)| wanted.next_if_eq(&at).is_some()).map(|(_, turn)| turn);
        Self { turns: turns.collect(), has_older, first: self.first }
    }
}

/// Reads the newest turns of a session. They are the last ones that reading all of it would give; `ending` alone says how
/// fast that goes.
pub fn newest(located: &Located, ending: Option<&Ending>, amount: Amount) -> Result<Newest, HistoryError> {
    if let Some(ending) = ending
        && let Some(newest) = from_ending(located, ending, amount)
    {
        return Ok(newest);
    }
    let mut window = Window::new(amount);
    reader_of(located.source).read(located, None, &mut |turn| window.push(turn))?;
    Ok(window.finish(0))
}

/// The newest turns by where they lie; `None` where that does not hold any more.
fn from_ending(located: &Located, ending: &Ending, amount: Amount) -> Option<Newest> {
    let mark = FileMark::of(&files::stat(&located.path).ok()?);
    let mut window = Window::new(amount);
    let before = match &ending.places {
        Places::Requests(requests) => {
            if mark != ending.mark {
                return None;
            }
            let turns = match located.source {
                Source::Gemini => gemini::newest(located, requests, amount),
                _ => vscode::newest(located, requests, amount),
            };
            let turns = turns.ok()??;
            let told = turns.len() as u64;
            turns.into_iter().for_each(|turn| window.push(turn));
            u64::from(requests.turns).saturating_sub(told)
        }
        Places::Steps(steps) => {
            // A log that has grown has the same turns before its steps.
            let has_grown = || {
                mark.inode == ending.mark.inode
                    && mark.size > ending.mark.size
                    && ending.fingerprint.is_some_and(|print| print.fits(&located.path))
            };
            let is_same = mark == ending.mark || has_grown();
            let step = steps.before(amount).filter(|_| is_same)?;
            let mut bookmark = step.bookmark.clone();
            bookmark.asked = steps.asked_behind(step).collect();
            reader_of(located.source).read(located, Some(&bookmark), &mut |turn| window.push(turn)).ok()?;
            u64::from(bookmark.turns)
        }
    };
    // The file may have been written while it was read.
    let is_settled = FileMark::of(&files::stat(&located.path).ok()?) == mark;
    let is_enough = window.is_met() || before == 0;
    (is_settled && is_enough).then(|| window.finish(before))
}

/// The last of many turns.
#[derive(Debug)]
struct Window {
    amount: Amount,
    turns: VecDeque<ForeignTurn>,
    entries: u64,
    dropped: usize,
}

impl Window {
    fn new(amount: Amount) -> Self {
        Self { amount, turns: VecDeque::new(), entries: 0, dropped: 0 }
    }

    fn push(&mut self, turn: ForeignTurn) {
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

    /// `before` is how many turns were not looked at.
    fn finish(self, before: u64) -> Newest {
        let first = usize::try_from(before).unwrap_or(usize::MAX).saturating_add(self.dropped);
        Newest { turns: self.turns.into(), has_older: first > 0, first }
    }
}

#[cfg(test)]
mod tests;
