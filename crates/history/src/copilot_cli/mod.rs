//! The Copilot CLI: a folder for each session, with one event per line.
//!
//! The log only grows, so a read can continue at the newest turn.

mod event;
mod find;
mod fold;
mod sidecar;
mod store_roots;
mod turn;

pub use sidecar::{CheckpointSummary, checkpoints, plan};
pub use store_roots::store_roots;

use std::io::{BufRead, BufReader, Seek, SeekFrom};

use grove_transcript::{DamageKind, DamageLocation, NO_MESSAGES, TranscriptSession, TranscriptSource, TranscriptTurn};
use serde_json::Value;

use crate::append_log::LogOutcome;
use crate::error::HistoryError;
use crate::files;
use crate::json::lenient;
use crate::limits::MAX_JSON_ITEM;
use crate::line_reader::LineReader;
use crate::reader::{
    Bookmark, Hints, HistoryReader, ReadOutcome, SessionLocation, StoreListing, StoreRoot, TurnSink, every,
};
use crate::tail_index::ResumePointRecorder;
use event::LogEvent;
use fold::{FoldState, LineEffect, ReaderState, TurnFold};
use sidecar::Sidecar;

/// The reader of the Copilot CLI's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopilotCli;

impl HistoryReader for CopilotCli {
    fn source(&self) -> TranscriptSource {
        TranscriptSource::CopilotCli
    }

    fn find(&self, root: &StoreRoot, hints: Hints) -> StoreListing {
        find::find(root, hints)
    }

    fn read_until(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut TurnSink<'_>,
    ) -> Result<ReadOutcome, HistoryError> {
        let path = location.path_for(TranscriptSource::CopilotCli)?;
        let (mut file, _) = files::open(path)?;
        let (offset, known) = match from {
            None => (0, FoldState::initial(&location.id)),
            Some(bookmark) => {
                let known = serde_json::from_value(bookmark.carried.clone());
                let known: FoldState =
                    known.map_err(|error| HistoryError::malformed(path, format!("its bookmark: {error}")))?;
                file.seek(SeekFrom::Start(bookmark.offset)).map_err(|error| HistoryError::io(path, error))?;
                (bookmark.offset, known)
            }
        };
        let read = read_events(BufReader::with_capacity(BUFFER, file), offset, known, turns);
        Ok(read.map_err(|error| HistoryError::io(path, error))?.reading(location, |known| finish(known, location)))
    }
}

/// Reads a log in memory, from its beginning or from a bookmark.
pub fn read_log(
    bytes: &[u8],
    id: &str,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> std::io::Result<ReadOutcome> {
    let (offset, known) = match from {
        None => (0, FoldState::initial(id)),
        Some(bookmark) => (bookmark.offset, serde_json::from_value(bookmark.carried.clone())?),
    };
    let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
    let location = SessionLocation::without_file(TranscriptSource::CopilotCli, id);
    Ok(read_events(rest, offset, known, &mut every(turns))?.reading(&location, |known| finish(known, &location)))
}

/// The size of one read of a file.
const BUFFER: usize = 128 * 1024;

/// Reads events from `offset` on, up to a break of `turns`.
fn read_events(
    source: impl BufRead,
    offset: u64,
    known: FoldState,
    turns: &mut TurnSink<'_>,
) -> std::io::Result<LogOutcome<ReaderState>> {
    let mut lines = LineReader::new(source, MAX_JSON_ITEM, offset, known.line);
    let mut fold = TurnFold::new(known);
    let mut trail: ResumePointRecorder<FoldState> = ResumePointRecorder::new();
    let mut end = offset;
    let mut is_empty = offset == 0;
    let mut last_bad: Option<DamageLocation> = None;
    while let Some(line) = lines.next()? {
        let (offset, number, ended) = (line.offset, line.number, line.ended);
        let place = |what: String| DamageLocation { offset, line: Some(number), what };
        let Some(bytes) = line.bytes else {
            fold.bad(DamageKind::TooLarge, place(format!("a line of more than {MAX_JSON_ITEM} bytes")));
            continue;
        };
        end = offset + bytes.len() as u64;
        let text = without_zeros(bytes.trim_ascii());
        if bytes.contains(&0) {
            let mark = if ended { DamageKind::Damaged } else { DamageKind::TornTail };
            fold.bad(mark, place("zeros, as a loss of power leaves them".to_owned()));
        }
        if text.is_empty() {
            continue;
        }
        is_empty = false;
        if let Some(bad) = last_bad.take() {
            fold.bad(DamageKind::Damaged, bad);
        }
        let value = match lenient::read::<Value>(text) {
            Ok(read) => {
                if read.has_bad_bytes {
                    fold.bad(DamageKind::Damaged, place("invalid UTF-8".to_owned()));
                }
                read.value
            }
            Err(error) if ended => {
                fold.bad(DamageKind::Damaged, place(error.to_string()));
                continue;
            }
            Err(error) => {
                last_bad = Some(place(error.to_string()));
                continue;
            }
        };
        let event = match LogEvent::of(value) {
            Ok(event) => event,
            Err(odd) => {
                fold.bad(DamageKind::Damaged, place("no event".to_owned()));
                fold.odd(odd);
                continue;
            }
        };
        // A turn that includes earlier records cannot be read again without them.
        let is_first = fold.has_preamble();
        if let LineEffect::StartsTurn(turn) = fold.take(event, text.len(), place) {
            if let Some(turn) = turn {
                trail.add_turn(&turn);
                if turns(*turn).is_break() {
                    return Ok(LogOutcome { known: fold.known, bookmark: None, steps: None, may_go_back: false });
                }
            }
            fold.known.line = number;
            match is_first {
                true => trail.reset(),
                false => trail.begins(offset, fold.known.session.turns, &fold.known),
            }
        }
    }
    if let Some(bad) = last_bad {
        fold.bad(DamageKind::TornTail, bad);
    }
    if let Some(turn) = fold.end_turn() {
        trail.add_turn(&turn);
        // Nothing follows, so a break changes nothing.
        let _ended = turns(turn);
    }
    let mut known = fold.known;
    if is_empty {
        known.session.damage.mark(DamageKind::Empty);
    } else if !known.own.has_start {
        known.session.damage.mark(DamageKind::MissingStart);
    }
    let (bookmark, steps) = trail.finish(end, known.session.turns);
    Ok(LogOutcome { known, bookmark, steps, may_go_back: false })
}

/// A line without surrounding zeros: after a power loss, unwritten bytes are zeros, and the next line follows them.
fn without_zeros(line: &[u8]) -> &[u8] {
    let is_zero = |byte: &&u8| **byte == 0;
    let line = &line[line.iter().take_while(is_zero).count()..];
    &line[..line.len() - line.iter().rev().take_while(is_zero).count()]
}

/// The session, with the files beside its log.
fn finish(known: FoldState, location: &SessionLocation) -> TranscriptSession {
    let FoldState { mut session, own: ReaderState { total, .. }, .. } = known;
    let sidecar = match location.path.parent() {
        Some(folder) if find::is_folder_of_session(&location.path) => Sidecar::read(folder, &mut Vec::new()),
        _ => Sidecar::default(),
    };
    let first = session.first_message.lines().next().filter(|_| session.first_message != NO_MESSAGES);
    let first = first.map(str::to_owned).filter(|first| !first.is_empty());
    session.title = sidecar.custom_title.or(session.title.take()).or(sidecar.name).or(first);
    session.workspace.fill(sidecar.workspace);
    session.created_at = session.created_at.or(sidecar.created_at);
    session.modified_at = session.modified_at.or(sidecar.updated_at).or(session.created_at);
    session.parent = sidecar.parent.or(session.parent.take());
    if let Some(total) = total {
        session.usage = total;
    }
    session
}
