//! Reading logs that only ever grow: from the beginning, or on from where the newest turn began.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ending::{Asked, Ending, Places, Steps, Trail};
use crate::normal::{ForeignSession, ForeignTurn};
use crate::reader::{Bookmark, Located, Reading};
use crate::records::{Record, Records};

/// What is known between two turns. It is all that a later reading has to remember.
pub(crate) trait Known: Clone + Serialize + DeserializeOwned {
    fn session(&mut self) -> &mut ForeignSession;
    /// The line that comes next.
    fn line(&mut self) -> &mut u64;
}

/// Lines folded into turns.
pub(crate) trait Fold {
    type Known: Known;

    fn take(&mut self, record: Record) -> Step;
    /// Ends the turn that is open, as the last one.
    fn end(&mut self) -> Option<ForeignTurn>;
    /// Whether something came before the first turn. A turn that takes that in cannot be begun anew without it.
    fn has_early(&self) -> bool;
    fn known(&mut self) -> &mut Self::Known;
    fn into_known(self) -> Self::Known;
    /// Where lines hang from each other: which entries were found since this was last called, and their turns.
    fn found(&mut self) -> Vec<(u64, Option<u32>)> {
        Vec::new()
    }
    /// Where lines hang from each other: what is known of entries before the place where reading begins.
    fn know(&mut self, _: &[Asked]) {}
}

/// A log that was read.
pub(crate) struct Grown<K> {
    pub known: K,
    pub bookmark: Option<Bookmark>,
    pub steps: Option<Steps>,
}

impl<K> Grown<K> {
    /// The reading, once it is known what the session is.
    pub(crate) fn reading(self, located: &Located, finish: impl FnOnce(K) -> ForeignSession) -> Reading {
        let ending = self.steps.map(|steps| Ending { mark: located.mark, places: Places::Steps(steps) });
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
    begin: impl Fn(Option<F::Known>) -> F,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(ForeignTurn),
) -> io::Result<Grown<F::Known>> {
    let mut told = 0;
    if let Some(bookmark) = from {
        let known = serde_json::from_value(bookmark.carried.clone())?;
        let mut tell = |turn| {
            told += 1;
            turns(turn);
        };
        let mut fold = begin(Some(known));
        fold.know(&bookmark.asked);
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
) -> io::Result<Option<Grown<F::Known>>> {
    let mut records = Records::new(source, offset, *fold.known().line());
    let mut trail: Trail<F::Known> = Trail::new();
    let mut end = offset;
    while let Some(record) = records.next(&mut fold.known().session().damage)? {
        let (offset, line) = (record.offset, record.line);
        end = offset + record.length as u64;
        let is_first = fold.has_early();
        let here = fold.known().session().turns;
        let step = fold.take(record);
        // What hangs from its own turn, or begins one behind it, is found wherever reading begins.
        for (entry, turn) in fold.found().into_iter().filter(|(_, turn)| *turn != Some(here)) {
            trail.asked(Asked { at: offset, entry, turn });
        }
        match step {
            Step::Begins(turn) => {
                if let Some(turn) = turn {
                    trail.told(&turn);
                    turns(*turn);
                }
                *fold.known().line() = line;
                let number = fold.known().session().turns;
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
    let all = fold.known().session().turns;
    let (bookmark, steps) = trail.finish(end, all);
    Ok(Some(Grown { known: fold.into_known(), bookmark, steps }))
}
