//! Claude Code: a folder for each project, with a log for each session, one block of a message per line.
//!
//! Lines have parents, so a session is a tree: all of its turns are returned in file order, each with its parent turn.
//! A log only grows, so a read can continue at the newest turn; if a new line has an old parent, the whole log is read
//! again to resolve it.

mod entry;
mod file_history;
mod find;
mod fold;
mod sidecar;
mod store_roots;
mod turn_assembler;

pub use sidecar::{backup, todos};
pub use store_roots::store_roots;

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::append_log::{self, BUFFER};
use crate::error::HistoryError;
use crate::files;
use crate::reader::{
    Bookmark, Hints, HistoryReader, ReadOutcome, SessionLocation, StoreListing, StoreRoot, TurnSink, every,
};
use fold::{FoldState, TurnFold};
use grove_transcript::{DamageKind, DamageLocation, TranscriptSession, TranscriptSource, TranscriptTurn};
use sidecar::Sidecar;

/// The reader of Claude Code's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claude;

impl HistoryReader for Claude {
    fn source(&self) -> TranscriptSource {
        TranscriptSource::Claude
    }

    fn find(&self, root: &StoreRoot, hints: Hints) -> StoreListing {
        find::find(root, hints)
    }

    fn locate(&self, path: &Path) -> Result<SessionLocation, HistoryError> {
        find::locate(path)
    }

    fn read_until(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut TurnSink<'_>,
    ) -> Result<ReadOutcome, HistoryError> {
        let path = location.path_for(TranscriptSource::Claude)?;
        let (file, _) = files::open(path)?;
        let begin = |known| begin(known, &location.id, &Sidecar::of(path));
        let read = append_log::read(append_log::of_file(&file), begin, from, turns);
        let grown = read.map_err(|error| HistoryError::io(path, error))?;
        let mut reading = grown.reading(location, |known| known.finish(location.preview.title.clone()));
        let session = &mut reading.session;
        session.workspace.fill(location.workspace.clone());
        match sidecar::todos(path, &location.id) {
            Ok(todos) => session.todos = todos,
            Err(problem) => {
                session.damage.add(
                    DamageKind::Damaged,
                    DamageLocation { what: problem.to_string(), ..DamageLocation::default() },
                );
            }
        }
        Ok(reading)
    }
}

/// Reads a log in memory, from its beginning or from a bookmark.
pub fn read_log(
    bytes: &[u8],
    id: &str,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> io::Result<ReadOutcome> {
    let begin = |known| begin(known, id, &Sidecar::default());
    let grown = append_log::read(append_log::of_bytes(bytes), begin, from, &mut every(turns))?;
    Ok(grown.reading(&SessionLocation::without_file(TranscriptSource::Claude, id), |known| known.finish(None)))
}

fn begin(carried: Option<FoldState>, id: &str, sidecar: &Sidecar) -> TurnFold {
    let is_resumed = carried.is_some();
    TurnFold::new(carried.unwrap_or_else(|| FoldState::initial(id)), sidecar.clone(), 0, is_resumed)
}

/// The result of reading a subagent's log.
#[derive(Debug)]
struct SidechainLog {
    session: TranscriptSession,
    turns: Vec<TranscriptTurn>,
    /// Its size in bytes.
    size: usize,
}

/// Reads a subagent's log of at most `room` bytes. Subagents in it are marked as included.
fn side_log(
    path: &Path,
    id: &str,
    sidecar: &Sidecar,
    depth: usize,
    room: usize,
    claimed: &mut BTreeSet<String>,
) -> Option<SidechainLog> {
    let (file, metadata) = files::open(path).ok()?;
    let size = usize::try_from(metadata.len()).ok().filter(|size| *size <= room)?;
    let mut known = FoldState::initial(id);
    known.own.claimed.clone_from(claimed);
    let mut turns = Vec::new();
    let fold = TurnFold::new(known, sidecar.clone(), depth, false);
    let source = BufReader::with_capacity(BUFFER, file.take(metadata.len()));
    let mut known = append_log::read_lines(source, 0, fold, &mut every(&mut |turn| turns.push(turn))).ok()??.known;
    *claimed = std::mem::take(&mut known.own.claimed);
    Some(SidechainLog { session: known.finish(None), turns, size })
}
