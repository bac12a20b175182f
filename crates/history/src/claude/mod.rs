//! Claude Code: a folder for each project, and in it a log for each session, with what was said one block a line.
//!
//! Lines hang from each other, so a session is a tree: all of its turns are told in the order of the file, and each says
//! which one it goes on from. A log only grows, so a reading can go on where the newest turn began; where a new line
//! hangs from an old one, the log is read anew to find out from which.

mod beside;
mod entry;
mod file_history;
mod find;
mod fold;
mod locations;
mod talk;

pub use beside::{backup, todos};
pub use locations::locations;

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::damage::{BadPlace, Mark};
use crate::error::HistoryError;
use crate::files;
use crate::growing::{self, BUFFER};
use crate::normal::{ForeignSession, ForeignTurn, Source};
use crate::reader::{Bookmark, Finding, Hints, Located, Reader, Reading, Root};
use beside::Beside;
use fold::{Fold, Known};

/// The reader of Claude Code's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claude;

impl Reader for Claude {
    fn source(&self) -> Source {
        Source::Claude
    }

    fn find(&self, root: &Root, hints: Hints) -> Finding {
        find::find(root, hints)
    }

    fn locate(&self, path: &Path) -> Result<Located, HistoryError> {
        find::locate(path)
    }

    fn read(
        &self,
        located: &Located,
        from: Option<&Bookmark>,
        turns: &mut dyn FnMut(ForeignTurn),
    ) -> Result<Reading, HistoryError> {
        let path = located.meant_for(Source::Claude)?;
        let (file, _) = files::open(path)?;
        let begin = |known| begin(known, &located.id, &Beside::of(path));
        let read = growing::read(growing::of_file(&file), begin, from, turns);
        let grown = read.map_err(|error| HistoryError::io(path, error))?;
        let mut reading = grown.reading(located, |known| known.finish(located.headline.title.clone()));
        let session = &mut reading.session;
        session.workspace.fill(located.workspace.clone());
        match beside::todos(path, &located.id) {
            Ok(todos) => session.todos = todos,
            Err(problem) => {
                session.damage.add(Mark::Damaged, BadPlace { what: problem.to_string(), ..BadPlace::default() });
            }
        }
        Ok(reading)
    }
}

/// Reads a log that is at hand, from its beginning or from a bookmark.
pub fn read_log(
    bytes: &[u8],
    id: &str,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(ForeignTurn),
) -> io::Result<Reading> {
    let begin = |known| begin(known, id, &Beside::default());
    let grown = growing::read(growing::of_bytes(bytes), begin, from, turns)?;
    Ok(grown.reading(&Located::nowhere(Source::Claude, id), |known| known.finish(None)))
}

fn begin(carried: Option<Known>, id: &str, beside: &Beside) -> Fold {
    let is_resumed = carried.is_some();
    Fold::new(carried.unwrap_or_else(|| Known::begun(id)), beside.clone(), 0, is_resumed)
}

/// A subagent's log that was read.
#[derive(Debug)]
struct SideLog {
    session: ForeignSession,
    turns: Vec<ForeignTurn>,
    /// How many bytes it has.
    size: usize,
}

/// Reads a subagent's log, if it has no more than `room` bytes. Those that it tells of are claimed.
fn side_log(
    path: &Path,
    id: &str,
    beside: &Beside,
    depth: usize,
    room: usize,
    claimed: &mut BTreeSet<String>,
) -> Option<SideLog> {
    let (file, metadata) = files::open(path).ok()?;
    let size = usize::try_from(metadata.len()).ok().filter(|size| *size <= room)?;
    let mut known = Known::begun(id);
    known.own.claimed.clone_from(claimed);
    let mut turns = Vec::new();
    let fold = Fold::new(known, beside.clone(), depth, false);
    let source = BufReader::with_capacity(BUFFER, file.take(metadata.len()));
    let mut known = growing::read_lines(source, 0, fold, &mut |turn| turns.push(turn)).ok()??.known;
    *claimed = std::mem::take(&mut known.own.claimed);
    Some(SideLog { session: known.finish(None), turns, size })
}
