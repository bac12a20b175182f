//! Reading logs that only ever grow: from the beginning, or on from where the newest turn began.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::damage::{Damage, Mark};
use crate::ending::{Asked, Ending, Places, Steps, Trail};
use crate::normal::{ForeignSession, ForeignTurn};
use crate::reader::{Bookmark, Located, Reading};
use crate::records::{Record, Records};

/// What is known between two turns: all that a later reading has to remember.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Known<T> {
    pub session: ForeignSession,
    /// The line that comes next.
    pub line: u64,
    /// What a tool's logs need beside that.
    pub own: T,
}

impl<T> Known<T> {
    /// What is known before the first line.
    pub(crate) fn new(session: ForeignSession, own: T) -> Self {
        Self { session, line: 1, own }
    }
}

/// Lines folded into turns.
pub(crate) trait Fold {
    /// What a tool's logs need to be remembered.
    type Own: Clone + Serialize + DeserializeOwned;

    fn take(&mut self, record: Record) -> Step;
    /// Ends the turn that is open, as the last one.
    fn end(&mut self) -> Option<ForeignTurn>;
    /// Whether something came before the first turn. A turn that takes that in cannot be begun anew without it.
    fn has_early(&self) -> bool;
    fn known(&mut self) -> &mut Known<Self::Own>;
    /// Which turn each line belongs to, where lines hang from each other.
    fn chain(&mut self) -> Option<&mut Chain> {
        None
    }
}

/// How much is kept of what comes before the first turn.
const MAX_EARLY: usize = 1_000;

/// What comes before the first turn: it stands at that one's beginning. What is too much is left out, and marked.
#[derive(Debug)]
pub(crate) struct Early<P>(Vec<P>);

impl<P> Default for Early<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P> Early<P> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, part: P, damage: &mut Damage) {
        match self.0.len() < MAX_EARLY {
            true => self.0.push(part),
            false => damage.mark(Mark::TooLarge),
        }
    }

    /// All of it, in order. Nothing is left.
    pub(crate) fn give(&mut self) -> Vec<P> {
        std::mem::take(&mut self.0)
    }
}

/// A log that was read.
pub(crate) struct Grown<T> {
    pub known: Known<T>,
    pub bookmark: Option<Bookmark>,
    pub steps: Option<Steps>,
}

impl<T> Grown<T> {
    /// The reading, once it is known what the session is.
    pub(crate) fn reading(self, located: &Located, finish: impl FnOnce(Known<T>) -> ForeignSession) -> Reading {
        let ending =
            self.steps.map(|steps| Ending { mark: located.mark, fingerprint: None, places: Places::Steps(steps) });
        Reading { session: finish(self.known), bookmark: self.bookmark, ending }
    }
}

/// What a line means for who reads it.
#[derive(Debug)]
pub(crate) enum Step {
    /// The line begins a turn, and ended the one before it. A reading may go on from here, so what is known must be the
    /// same when the line is taken again.
    Begins(Option<Box<ForeignTurn>>),
    GoesOn,
    /// The line hangs from one that stands before the place where reading began: only reading anew can tell.
    Lost,
}

/// How much of a file is read at once.
pub(crate) const BUFFER: usize = 128 * 1024;

/// A source of a file's bytes from any place on.
pub(crate) fn of_file<'a>(file: &'a File) -> impl FnMut(u64) -> io::Result<BufReader<&'a File>> {
    move |offset| {
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        Ok(BufReader::with_capacity(BUFFER, file))
    }
}

/// A source of bytes that are at hand.
pub(crate) fn of_bytes<'a>(bytes: &'a [u8]) -> impl FnMut(u64) -> io::Result<&'a [u8]> {
    move |offset| Ok(usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default())
}

/// Reads on from a bookmark where that is possible, and from the beginning where it is not. `begin` makes a fold of what
/// an earlier reading has carried, if there was one.
pub(crate) fn read<F: Fold, R: BufRead>(
    mut source: impl FnMut(u64) -> io::Result<R>,
    begin: impl Fn(Option<Known<F::Own>>) -> F,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(ForeignTurn),
) -> io::Result<Grown<F::Own>> {
    let mut told = 0;
    if let Some(bookmark) = from {
        let known = serde_json::from_value(bookmark.carried.clone())?;
        let mut tell = |turn| {
            told += 1;
            turns(turn);
        };
        let mut fold = begin(Some(known));
        if let Some(chain) = fold.chain() {
            chain.know(&bookmark.asked);
        }
        if let Some(read) = read_lines(source(bookmark.offset)?, bookmark.offset, fold, &mut tell)? {
            return Ok(read);
        }
        told += bookmark.turns;
    }
    // Reading anew gives the same turns, so those that were told are left out.
    let mut number = 0;
    let mut tell = |turn| {
        number += 1;
        if number > told {
            turns(turn);
        }
    };
    let read = read_lines(source(0)?, 0, begin(None), &mut tell)?;
    read.ok_or_else(|| io::Error::other("a line hangs from one before the beginning"))
}

/// Reads lines from `offset` on; `None` where one hangs from a line before that.
pub(crate) fn read_lines<F: Fold>(
    source: impl BufRead,
    offset: u64,
    mut fold: F,
    turns: &mut dyn FnMut(ForeignTurn),
) -> io::Result<Option<Grown<F::Own>>> {
    let mut records = Records::new(source, offset, fold.known().line);
    let mut trail: Trail<Known<F::Own>> = Trail::new();
    let mut end = offset;
    while let Some(record) = records.next(&mut fold.known().session.damage)? {
        let (offset, line) = (record.offset, record.line);
        end = offset + record.length as u64;
        let is_first = fold.has_early();
        let here = fold.known().session.turns;
        let step = fold.take(record);
        // What hangs from its own turn, or begins one behind it, is found wherever reading begins.
        let found = fold.chain().into_iter().flat_map(|chain| chain.found());
        for (entry, turn) in found.filter(|(_, turn)| *turn != Some(here)) {
            trail.asked(Asked { at: offset, entry, turn });
        }
        match step {
            Step::Begins(turn) => {
                if let Some(turn) = turn {
                    trail.told(&turn);
                    turns(*turn);
                }
                fold.known().line = line;
                let number = fold.known().session.turns;
                match is_first {
                    true => trail.lose(),
                    false => trail.begins(offset, number, fold.known()),
                }
            }
            Step::GoesOn => {}
            Step::Lost => return Ok(None),
        }
    }
    if let Some(turn) = fold.end() {
        trail.told(&turn);
        turns(turn);
    }
    let all = fold.known().session.turns;
    let (bookmark, steps) = trail.finish(end, all);
    Ok(Some(Grown { known: fold.known().clone(), bookmark, steps }))
}
