//! Reading logs that only ever grow: from the beginning, or on from where the newest turn began.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::damage::{Damage, DamageKind};
use crate::json_lines::{JsonlReader, JsonlRecord};
use crate::normal::{TranscriptSession, TranscriptTurn};
use crate::parent_index::ParentIndex;
use crate::reader::{Bookmark, ReadOutcome, SessionLocation};
use crate::tail_index::{ParentLookup, ResumePointRecorder, ResumePoints, TailIndex, TailLayout};

/// What is known between two turns: all that a later reading has to remember.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoldState<T> {
    pub session: TranscriptSession,
    /// The line that comes next.
    pub line: u64,
    /// What a tool's logs need beside that.
    pub own: T,
}

impl<T> FoldState<T> {
    /// What is known before the first line.
    pub(crate) fn new(session: TranscriptSession, own: T) -> Self {
        Self { session, line: 1, own }
    }
}

/// Lines folded into turns.
pub(crate) trait LogFold {
    /// What a tool's logs need to be remembered.
    type ReaderState: Clone + Serialize + DeserializeOwned;

    fn take(&mut self, record: JsonlRecord) -> LineEffect;
    /// Ends the turn that is open, as the last one.
    fn end(&mut self) -> Option<TranscriptTurn>;
    /// Whether something came before the first turn. A turn that takes that in cannot be begun anew without it.
    fn has_preamble(&self) -> bool;
    fn known(&mut self) -> &mut FoldState<Self::ReaderState>;
    /// Which turn each line belongs to, where lines hang from each other.
    fn chain(&mut self) -> Option<&mut ParentIndex> {
        None
    }
}

/// How much is kept of what comes before the first turn.
const MAX_PREAMBLE: usize = 1_000;

/// What comes before the first turn: it stands at that one's beginning. What is too much is left out, and marked.
#[derive(Debug)]
pub(crate) struct Preamble<P>(Vec<P>);

impl<P> Default for Preamble<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P> Preamble<P> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, part: P, damage: &mut Damage) {
        match self.0.len() < MAX_PREAMBLE {
            true => self.0.push(part),
            false => damage.mark(DamageKind::TooLarge),
        }
    }

    /// All of it, in order. Nothing is left.
    pub(crate) fn give(&mut self) -> Vec<P> {
        std::mem::take(&mut self.0)
    }
}

/// A log that was read.
pub(crate) struct LogOutcome<T> {
    pub known: FoldState<T>,
    pub bookmark: Option<Bookmark>,
    pub steps: Option<ResumePoints>,
}

impl<T> LogOutcome<T> {
    /// The reading, once it is known what the session is.
    pub(crate) fn reading(
        self,
        location: &SessionLocation,
        finish: impl FnOnce(FoldState<T>) -> TranscriptSession,
    ) -> ReadOutcome {
        let tail_index = self.steps.map(|steps| TailIndex {
            mark: location.mark,
            fingerprint: None,
            places: TailLayout::ResumePoints(steps),
        });
        ReadOutcome { session: finish(self.known), bookmark: self.bookmark, tail_index }
    }
}

/// What a line means for who reads it.
#[derive(Debug)]
pub(crate) enum LineEffect {
    /// The line begins a turn, and ended the one before it. A reading may go on from here, so what is known must be the
    /// same when the line is taken again.
    StartsTurn(Option<Box<TranscriptTurn>>),
    Continues,
    /// The line hangs from one that stands before the place where reading began: only reading anew can tell.
    NeedsFullRead,
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
pub(crate) fn read<F: LogFold, R: BufRead>(
    mut source: impl FnMut(u64) -> io::Result<R>,
    begin: impl Fn(Option<FoldState<F::ReaderState>>) -> F,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> io::Result<LogOutcome<F::ReaderState>> {
    let mut told = 0;
    if let Some(bookmark) = from {
        let known = serde_json::from_value(bookmark.carried.clone())?;
        let mut tell = |turn| {
            told += 1;
            turns(turn);
        };
        let mut fold = begin(Some(known));
        if let Some(chain) = fold.chain() {
            chain.preload(&bookmark.asked);
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
pub(crate) fn read_lines<F: LogFold>(
    source: impl BufRead,
    offset: u64,
    mut fold: F,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> io::Result<Option<LogOutcome<F::ReaderState>>> {
    let mut records = JsonlReader::new(source, offset, fold.known().line);
    let mut trail: ResumePointRecorder<FoldState<F::ReaderState>> = ResumePointRecorder::new();
    let mut end = offset;
    while let Some(record) = records.next(&mut fold.known().session.damage)? {
        let (offset, line) = (record.offset, record.line);
        end = offset + record.length as u64;
        let is_first = fold.has_preamble();
        let here = fold.known().session.turns;
        let step = fold.take(record);
        // What hangs from its own turn, or begins one behind it, is found wherever reading begins.
        let found = fold.chain().into_iter().flat_map(|chain| chain.found());
        for (entry, turn) in found.filter(|(_, turn)| *turn != Some(here)) {
            trail.asked(ParentLookup { at: offset, entry, turn });
        }
        match step {
            LineEffect::StartsTurn(turn) => {
                if let Some(turn) = turn {
                    trail.told(&turn);
                    turns(*turn);
                }
                fold.known().line = line;
                let number = fold.known().session.turns;
                match is_first {
                    true => trail.reset(),
                    false => trail.begins(offset, number, fold.known()),
                }
            }
            LineEffect::Continues => {}
            LineEffect::NeedsFullRead => return Ok(None),
        }
    }
    if let Some(turn) = fold.end() {
        trail.told(&turn);
        turns(turn);
    }
    let all = fold.known().session.turns;
    let (bookmark, steps) = trail.finish(end, all);
    Ok(Some(LogOutcome { known: fold.known().clone(), bookmark, steps }))
}
