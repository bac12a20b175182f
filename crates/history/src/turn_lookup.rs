//! Finds one turn of a session by its number, and reads no further than it has to.

use std::num::NonZeroU32;
use std::ops::ControlFlow;

use grove_transcript::{TranscriptSource, TranscriptTurn, path_of};

use crate::error::HistoryError;
use crate::reader::{HistoryReader, ReadEnd, SessionLocation};
use crate::reader_of;

/// The turns that have numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// Those that lead to the newest one.
    Active,
    All,
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnLookup {
    Found(Box<TranscriptTurn>),
    /// The session has only so many turns.
    Missing {
        turns: usize,
    },
}

/// Finds the turn with a number, which counts from 1.
///
/// The file is parsed up to that turn. There are two exceptions: a format in which later bytes change earlier turns is
/// replayed as a whole; and where a later turn may abandon this one, the active branch is known only at the end. The
/// rest of a log with branches is searched for such a turn.
pub fn find_turn(
    location: &SessionLocation,
    number: NonZeroU32,
    branches: Branches,
) -> Result<TurnLookup, HistoryError> {
    let reader = reader_of(location.source);
    let number = usize::try_from(number.get()).unwrap_or(usize::MAX);
    if branches == Branches::All || !location.source.has_branches() {
        return Ok(first_turns(reader, location, number, ReadEnd::AtTurn)?.0);
    }
    // Its log is replayed as a whole: a first look would save nothing.
    if location.source != TranscriptSource::Gemini
        && let (lookup, false) = first_turns(reader, location, number, ReadEnd::Searched)?
    {
        return Ok(lookup);
    }
    on_active_branch(reader, location, number)
}

/// Reads up to the turn. Returns whether a turn is abandoned, or may be by the rest of the file.
fn first_turns(
    reader: &dyn HistoryReader,
    location: &SessionLocation,
    number: usize,
    end: ReadEnd,
) -> Result<(TurnLookup, bool), HistoryError> {
    let (mut turns, mut found, mut has_branches) = (0, None, false);
    let read = reader.read_until(location, None, &mut |turn| {
        turns += 1;
        has_branches |= !turn.follows.is_previous();
        if turns < number {
            return ControlFlow::Continue(());
        }
        found = Some(turn);
        ControlFlow::Break(end)
    })?;
    let lookup = found.map_or(TurnLookup::Missing { turns }, |turn| TurnLookup::Found(Box::new(turn)));
    Ok((lookup, has_branches || read.may_go_back))
}

/// Reads everything, and keeps only the turns at this place of any branch.
fn on_active_branch(
    reader: &dyn HistoryReader,
    location: &SessionLocation,
    number: usize,
) -> Result<TurnLookup, HistoryError> {
    let mut follows = Vec::new();
    // The place of each turn in its branch, from 1.
    let mut places: Vec<usize> = Vec::new();
    let mut candidates: Vec<(usize, TranscriptTurn)> = Vec::new();
    reader.read(location, None, &mut |turn| {
        let at = follows.len();
        let parent = turn.follows.number(at).and_then(|parent| places.get(parent).copied());
        let place = parent.unwrap_or(0) + 1;
        places.push(place);
        follows.push(turn.follows);
        if place == number {
            candidates.push((at, turn));
        }
    })?;
    let path = path_of(&follows);
    let at = path.get(number - 1);
    let found = candidates.into_iter().find(|(candidate, _)| at == Some(candidate));
    Ok(found.map_or(TurnLookup::Missing { turns: path.len() }, |(_, turn)| TurnLookup::Found(Box::new(turn))))
}
