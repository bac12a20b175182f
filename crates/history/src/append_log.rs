//! Reads append-only logs: from the beginning, or from the start of the newest turn.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::ops::ControlFlow;

use grove_transcript::{Damage, DamageKind, TranscriptSession, TranscriptTurn, TurnParent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::json_lines::{JsonlReader, JsonlRecord};
use crate::parent_index::ParentIndex;
use crate::reader::{Bookmark, ReadEnd, ReadOutcome, SessionLocation, TurnSink};
use crate::tail_index::{ParentLookup, ResumePointRecorder, ResumePoints, TailIndex, TailLayout};

/// The state between two turns: everything that a later read needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoldState<T> {
    pub session: TranscriptSession,
    /// The number of the next line.
    pub line: u64,
    /// The state of a tool's own format.
    pub own: T,
}

impl<T> FoldState<T> {
    /// Creates the state before the first line.
    pub(crate) fn new(session: TranscriptSession, own: T) -> Self {
        Self { session, line: 1, own }
    }
}

/// Folds lines into turns.
pub(crate) trait LogFold {
    /// The state of a tool's own format.
    type ReaderState: Clone + Serialize + DeserializeOwned;

    fn take(&mut self, record: JsonlRecord) -> LineEffect;
    /// Ends the open turn as the last one.
    fn end(&mut self) -> Option<TranscriptTurn>;
    /// True if records came before the first turn. The turn that includes them cannot be read again without them.
    fn has_preamble(&self) -> bool;
    fn known(&mut self) -> &mut FoldState<Self::ReaderState>;
    /// The parent of the open turn.
    fn follows(&self) -> TurnParent;
    /// True if a line, which is not parsed, may lead back before turn `number`, so that the turn would be abandoned. It
    /// may say so of other lines too.
    fn may_go_back(&mut self, line: &[u8], number: u32) -> bool;
    /// The turn of each line, if lines have parents.
    fn chain(&mut self) -> Option<&mut ParentIndex> {
        None
    }
}

/// The maximum number of kept records before the first turn.
const MAX_PREAMBLE: usize = 1_000;

/// Records before the first turn, which are added to its beginning. Further ones are dropped, and marked.
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

    /// Takes all records, in order.
    pub(crate) fn give(&mut self) -> Vec<P> {
        std::mem::take(&mut self.0)
    }
}

/// The result of reading a log.
pub(crate) struct LogOutcome<T> {
    pub known: FoldState<T>,
    pub bookmark: Option<Bookmark>,
    pub steps: Option<ResumePoints>,
    /// True if the read ended early, and the unread part may abandon turns.
    pub may_go_back: bool,
}

impl<T> LogOutcome<T> {
    /// The read outcome, once the session is complete.
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
        let Self { known, bookmark, may_go_back, .. } = self;
        ReadOutcome { session: finish(known), bookmark, tail_index, may_go_back }
    }
}

/// The effect of a line on the reader.
#[derive(Debug)]
pub(crate) enum LineEffect {
    /// The line begins a turn, and ended the one before. A later read may start here, so the state must be the same
    /// when the line is read again.
    StartsTurn(Option<Box<TranscriptTurn>>),
    Continues,
    /// The line's parent is before the start of this read: only a full read can resolve it.
    NeedsFullRead,
}

/// The size of one read of a file.
pub(crate) const BUFFER: usize = 128 * 1024;

/// A source of a file's bytes from any offset.
pub(crate) fn of_file<'a>(file: &'a File) -> impl FnMut(u64) -> io::Result<BufReader<&'a File>> {
    move |offset| {
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        Ok(BufReader::with_capacity(BUFFER, file))
    }
}

/// A source of bytes in memory.
pub(crate) fn of_bytes<'a>(bytes: &'a [u8]) -> impl FnMut(u64) -> io::Result<&'a [u8]> {
    move |offset| Ok(usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default())
}

/// Reads from a bookmark if possible, and otherwise from the beginning, up to a break of `turns`. `begin` makes a fold
/// from an earlier read's state, if there is one.
pub(crate) fn read<F: LogFold, R: BufRead>(
    mut source: impl FnMut(u64) -> io::Result<R>,
    begin: impl Fn(Option<FoldState<F::ReaderState>>) -> F,
    from: Option<&Bookmark>,
    turns: &mut TurnSink<'_>,
) -> io::Result<LogOutcome<F::ReaderState>> {
    let mut returned_turns = 0;
    if let Some(bookmark) = from {
        let known = serde_json::from_value(bookmark.carried.clone())?;
        let mut tell = |turn| {
            returned_turns += 1;
            turns(turn)
        };
        let mut fold = begin(Some(known));
        if let Some(chain) = fold.chain() {
            chain.preload(&bookmark.asked);
        }
        if let Some(read) = read_lines(source(bookmark.offset)?, bookmark.offset, fold, &mut tell)? {
            return Ok(read);
        }
        returned_turns += bookmark.turns;
    }
    // A full read returns the same turns, so those that were returned already are left out.
    let mut number = 0;
    let mut tell = |turn| {
        number += 1;
        if number > returned_turns { turns(turn) } else { ControlFlow::Continue(()) }
    };
    let read = read_lines(source(0)?, 0, begin(None), &mut tell)?;
    read.ok_or_else(|| io::Error::other("a line has a parent before the beginning"))
}

/// Reads lines from `offset` on, up to a break of `turns`; `None` if a line's parent is before `offset`.
pub(crate) fn read_lines<F: LogFold>(
    source: impl BufRead,
    offset: u64,
    mut fold: F,
    turns: &mut TurnSink<'_>,
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
        // Parents in the same turn, and turns that follow the previous one, are resolved wherever the read starts.
        let found = fold.chain().into_iter().flat_map(|chain| chain.found());
        for (entry, turn) in found.filter(|(_, turn)| *turn != Some(here)) {
            trail.add_lookup(ParentLookup { at: offset, entry, turn });
        }
        match step {
            LineEffect::StartsTurn(turn) => {
                if let Some(turn) = turn {
                    trail.add_turn(&turn);
                    if let ControlFlow::Break(end) = turns(*turn) {
                        let may_go_back = end == ReadEnd::Searched && goes_back(&mut records, &mut fold)?;
                        let known = fold.known().clone();
                        return Ok(Some(LogOutcome { known, bookmark: None, steps: None, may_go_back }));
                    }
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
        trail.add_turn(&turn);
        // Nothing follows, so a break changes nothing.
        let _ended = turns(turn);
    }
    let all = fold.known().session.turns;
    let (bookmark, steps) = trail.finish(end, all);
    Ok(Some(LogOutcome { known: fold.known().clone(), bookmark, steps, may_go_back: false }))
}

/// Searches the unread lines for one that may abandon the newest complete turn.
fn goes_back<F: LogFold>(records: &mut JsonlReader<impl BufRead>, fold: &mut F) -> io::Result<bool> {
    let Some(number) = fold.known().session.turns.checked_sub(1) else { return Ok(true) };
    Ok(!fold.follows().is_previous() || records.any_line(|line| fold.may_go_back(line, number))?)
}

/// The values of a member in a line that is not parsed, at any depth; `None` for anything but a text.
pub(crate) fn texts_of<'a>(line: &'a [u8], member: &str) -> impl Iterator<Item = Option<&'a str>> {
    let length = member.len() + 2;
    memchr::memmem::find_iter(line, &format!("\"{member}\"")).into_owned().map(move |at| {
        let value =
            line[at + length..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
        let end = memchr::memchr2(b'"', b'\\', value).filter(|end| value[*end] == b'"')?;
        std::str::from_utf8(&value[..end]).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_member_are_found_without_parsing() {
        let line = br#"{"p":"a","x":{"p" : "b","q":"p"},"y":"\"p\":\"c\"","p":null,"p":"d\u0065","p":"#;
        assert_eq!(texts_of(line, "p").collect::<Vec<_>>(), [Some("a"), Some("b"), None, None, None, None]);
    }
}
