//! The Copilot CLI: a folder for each session, with its events one a line.
//!
//! The log only grows, so a reading can go on where the newest turn began.

mod event;
mod find;
mod fold;
mod locations;
mod side;
mod turn;

pub use locations::locations;
pub use side::{Checkpoint, checkpoints, plan};

use std::io::{BufRead, BufReader, Seek, SeekFrom};

use serde_json::Value;

use crate::damage::{BadPlace, Mark};
use crate::ending::Trail;
use crate::error::HistoryError;
use crate::files;
use crate::growing::Grown;
use crate::json::lenient;
use crate::limits::MAX_PIECE;
use crate::lines::Lines;
use crate::normal::{ForeignSession, ForeignTurn, NO_MESSAGES, Source};
use crate::reader::{Bookmark, Finding, Hints, Located, Reader, Reading, Root};
use event::Event;
use fold::{Fold, Known, Own, Step};
use side::Side;

/// The reader of the Copilot CLI's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopilotCli;

impl Reader for CopilotCli {
    fn source(&self) -> Source {
        Source::CopilotCli
    }

    fn find(&self, root: &Root, hints: Hints) -> Finding {
        find::find(root, hints)
    }

    fn read(
        &self,
        located: &Located,
        from: Option<&Bookmark>,
        turns: &mut dyn FnMut(ForeignTurn),
    ) -> Result<Reading, HistoryError> {
        let path = located.meant_for(Source::CopilotCli)?;
        let (mut file, _) = files::open(path)?;
        let (offset, known) = match from {
            None => (0, Known::begun(&located.id)),
            Some(bookmark) => {
                let known = serde_json::from_value(bookmark.carried.clone());
                let known: Known =
                    known.map_err(|error| HistoryError::malformed(path, format!("its bookmark: {error}")))?;
                file.seek(SeekFrom::Start(bookmark.offset)).map_err(|error| HistoryError::io(path, error))?;
                (bookmark.offset, known)
            }
        };
        let read = read_events(BufReader::with_capacity(BUFFER, file), offset, known, turns);
        Ok(read.map_err(|error| HistoryError::io(path, error))?.reading(located, |known| finish(known, located)))
    }
}

/// Reads a log that is at hand, from its beginning or from a bookmark.
pub fn read_log(
    bytes: &[u8],
    id: &str,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(ForeignTurn),
) -> std::io::Result<Reading> {
    let (offset, known) = match from {
        None => (0, Known::begun(id)),
        Some(bookmark) => (bookmark.offset, serde_json::from_value(bookmark.carried.clone())?),
    };
    let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
    let located = Located::nowhere(Source::CopilotCli, id);
    Ok(read_events(rest, offset, known, turns)?.reading(&located, |known| finish(known, &located)))
}

/// How much of a file is read at once.
const BUFFER: usize = 128 * 1024;

/// Reads events from `offset` on.
fn read_events(
    source: impl BufRead,
    offset: u64,
    known: Known,
    turns: &mut dyn FnMut(ForeignTurn),
) -> std::io::Result<Grown<Own>> {
    let mut lines = Lines::new(source, MAX_PIECE, offset, known.line);
    let mut fold = Fold::new(known);
    let mut trail: Trail<Known> = Trail::new();
    let mut end = offset;
    let mut is_empty = offset == 0;
    let mut last_bad: Option<BadPlace> = None;
    while let Some(line) = lines.next()? {
        let (offset, number, ended) = (line.offset, line.number, line.ended);
        let place = |what: String| BadPlace { offset, line: Some(number), what };
        let Some(bytes) = line.bytes else {
            fold.bad(Mark::TooLarge, place(format!("a line of more than {MAX_PIECE} bytes")));
            continue;
        };
        end = offset + bytes.len() as u64;
        let text = without_zeros(bytes.trim_ascii());
        if bytes.contains(&0) {
            let mark = if ended { Mark::Damaged } else { Mark::TornTail };
            fold.bad(mark, place("zeros, as a loss of power leaves them".to_owned()));
        }
        if text.is_empty() {
            continue;
        }
        is_empty = false;
        if let Some(bad) = last_bad.take() {
            fold.bad(Mark::Damaged, bad);
        }
        let value = match lenient::read::<Value>(text) {
            Ok(read) => {
                if read.has_bad_bytes {
                    fold.bad(Mark::Damaged, place("bytes that are no text".to_owned()));
                }
                read.value
            }
            Err(error) if ended => {
                fold.bad(Mark::Damaged, place(error.to_string()));
                continue;
            }
            Err(error) => {
                last_bad = Some(place(error.to_string()));
                continue;
            }
        };
        let event = match Event::of(value) {
            Ok(event) => event,
            Err(odd) => {
                fold.bad(Mark::Damaged, place("no event".to_owned()));
                fold.odd(odd);
                continue;
            }
        };
        // A turn that takes in what came before it cannot be begun anew without that.
        let is_first = fold.has_early();
        if let Step::Begins(turn) = fold.take(event, text.len(), place) {
            if let Some(turn) = turn {
                trail.told(&turn);
                turns(*turn);
            }
            fold.known.line = number;
            match is_first {
                true => trail.lose(),
                false => trail.begins(offset, fold.known.session.turns, &fold.known),
            }
        }
    }
    if let Some(bad) = last_bad {
        fold.bad(Mark::TornTail, bad);
    }
    if let Some(turn) = fold.end_turn() {
        trail.told(&turn);
        turns(turn);
    }
    let mut known = fold.known;
    if is_empty {
        known.session.damage.mark(Mark::Empty);
    } else if !known.own.has_start {
        known.session.damage.mark(Mark::MissingStart);
    }
    let (bookmark, steps) = trail.finish(end, known.session.turns);
    Ok(Grown { known, bookmark, steps })
}

/// A line without the zeros that stand before it and behind it: where a machine lost its power, what was to be written
/// there is zeros, and the next line follows them.
fn without_zeros(line: &[u8]) -> &[u8] {
    let is_zero = |byte: &&u8| **byte == 0;
    let line = &line[line.iter().take_while(is_zero).count()..];
    &line[..line.len() - line.iter().rev().take_while(is_zero).count()]
}

/// The session, with what lies beside its log.
fn finish(known: Known, located: &Located) -> ForeignSession {
    let Known { mut session, own: Own { total, .. }, .. } = known;
    let side = match located.path.parent() {
        Some(folder) if find::is_folder_of_session(&located.path) => Side::read(folder, &mut Vec::new()),
        _ => Side::default(),
    };
    let first = session.first_message.lines().next().filter(|_| session.first_message != NO_MESSAGES);
    let first = first.map(str::to_owned).filter(|first| !first.is_empty());
    session.title = side.custom_title.or(session.title.take()).or(side.name).or(first);
    session.workspace.fill(side.workspace);
    session.created_at = session.created_at.or(side.created_at);
    session.modified_at = session.modified_at.or(side.updated_at).or(session.created_at);
    session.parent = side.parent.or(session.parent.take());
    if let Some(total) = total {
        session.usage = total;
    }
    session
}
