//! The interface of readers of tools' stores, for listing and showing sessions.
//!
//! Finding is cheap: it lists folders, reads small files and indexes, and opens no session. Reading returns a session's
//! turns one by one and the session's own data at the end, so that memory depends on one turn and not on the file. An
//! append-only file can be read on from a [`Bookmark`].

use std::fmt::Debug;
use std::fs::Metadata;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grove_core::Timestamp;
use grove_transcript::{TranscriptSession, TranscriptSource, TranscriptTurn, TranscriptWorkspace, TurnBuffer, path_of};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HistoryError;
use crate::files;
use crate::fingerprint::Fingerprint;
use crate::opencode::SharedDatabase;
use crate::reader_of;
use crate::tail_index::{ParentLookup, TailIndex};

/// A reader of one tool's stores. It never writes where it reads.
pub trait HistoryReader: Debug + Send + Sync {
    fn source(&self) -> TranscriptSource;

    /// The sessions below a root. Problems are reported beside them, and hide none of the others.
    fn find(&self, root: &StoreRoot, hints: Hints) -> StoreListing;

    /// True if hints add anything to the result.
    fn has_hints(&self) -> bool {
        true
    }

    /// A session by its absolute path, with data from the tool's own files around it. A file outside of any store has
    /// only its name.
    fn locate(&self, path: &Path) -> Result<SessionLocation, HistoryError> {
        SessionLocation::of_file(self.source(), path)
    }

    /// Reads a session: each turn goes to `turns`, in order. With a bookmark of an earlier read of the same file, the
    /// turns before it are left out; they count in the session all the same.
    ///
    /// The caller knows by the file's [`FileMark`] that it has only grown: with a bookmark of another file the result
    /// is meaningless.
    fn read(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut dyn FnMut(TranscriptTurn),
    ) -> Result<ReadOutcome, HistoryError> {
        self.read_until(location, from, &mut every(turns))
    }

    /// The same up to the turn at which `turns` breaks. Nothing after it is parsed, unless the format is replayed as a
    /// whole. The session then counts the turns up to there, and the outcome may have neither bookmark nor tail index.
    fn read_until(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut TurnSink<'_>,
    ) -> Result<ReadOutcome, HistoryError>;
}

/// The receiver of a session's turns. It breaks to end the read.
pub type TurnSink<'a> = dyn FnMut(TranscriptTurn) -> ControlFlow<ReadEnd> + 'a;

/// The end of a read before the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadEnd {
    /// Nothing more is read.
    AtTurn,
    /// The rest of a log is searched for lines that may abandon turns: see [`ReadOutcome::may_go_back`].
    Searched,
}

/// A sink that takes every turn.
pub(crate) fn every(turns: &mut dyn FnMut(TranscriptTurn)) -> impl FnMut(TranscriptTurn) -> ControlFlow<ReadEnd> {
    |turn| {
        turns(turn);
        ControlFlow::Continue(())
    }
}

/// The turns of a format that is replayed as a whole: those after a break are dropped.
pub(crate) fn until_break(turns: &mut TurnSink<'_>) -> impl FnMut(TranscriptTurn) {
    let mut is_open = true;
    move |turn| is_open = is_open && turns(turn).is_continue()
}

/// The use of a tool's own lists and manifests. They cost more than listing folders, so a check for changed files
/// leaves them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hints {
    Read,
    Skip,
}

/// A folder that may hold sessions of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRoot {
    pub source: TranscriptSource,
    /// The product or edition of the tool, for display.
    pub product: String,
    pub folder: PathBuf,
}

/// The sessions found below a root.
#[derive(Debug, Default)]
pub struct StoreListing {
    pub sessions: Vec<SessionLocation>,
    /// Sessions in the tool's list without a file; only if its lists are read.
    pub lost: Vec<MissingSession>,
    pub problems: Vec<HistoryError>,
}

impl StoreListing {
    /// The names in a folder. A folder that cannot be read is a problem, and has none.
    pub(crate) fn names(&mut self, folder: &Path) -> Vec<String> {
        files::names(folder).unwrap_or_else(|problem| {
            self.problems.push(problem);
            Vec::new()
        })
    }

    /// Adds a session with a file of its own, with the file's time until more is known.
    pub(crate) fn add_file(&mut self, root: &StoreRoot, path: PathBuf, location: SessionLocation) {
        let mark = match files::stat(&path) {
            Ok(metadata) => FileMark::of(&metadata),
            Err(problem) => return self.problems.push(problem),
        };
        let preview =
            SessionPreview { modified_at: location.preview.modified_at.or(Some(mark.modified_at)), ..location.preview };
        self.sessions.push(SessionLocation { product: root.product.clone(), path, mark, preview, ..location });
    }
}

/// A session in its tool's list without a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSession {
    pub id: String,
    /// Its expected path, or the list that has it if that names none.
    pub path: PathBuf,
}

/// A session that was found and not opened.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionLocation {
    pub source: TranscriptSource,
    pub product: String,
    /// The session's id, from its file or folder.
    pub id: String,
    /// The file that holds it.
    pub path: PathBuf,
    /// An older file of the same session, in case this one is unusable.
    pub older: Option<PathBuf>,
    pub mark: FileMark,
    /// The modification time of the files beside the session, as far as they concern its turns.
    pub sidecar_modified_at: Timestamp,
    pub workspace: TranscriptWorkspace,
    pub preview: SessionPreview,
    /// A copy of its database, shared by all sessions found in it.
    pub(crate) database: Option<SharedDatabase>,
}

impl SessionLocation {
    /// Its path, for the reader of this tool's sessions; another reader gets an error.
    pub(crate) fn path_for(&self, reader: TranscriptSource) -> Result<&PathBuf, HistoryError> {
        if self.source == reader {
            return Ok(&self.path);
        }
        Err(HistoryError::OtherSource { path: self.path.clone(), wanted: self.source })
    }

    /// An error if a bookmark is given: for readers that return none.
    pub(crate) fn without_bookmark(&self, from: Option<&Bookmark>) -> Result<(), HistoryError> {
        match from {
            None => Ok(()),
            Some(_) => Err(HistoryError::malformed(&self.path, "its bookmark: sessions of this kind have none")),
        }
    }

    /// A session in memory, without a file.
    pub fn without_file(source: TranscriptSource, id: impl Into<String>) -> Self {
        Self {
            source,
            product: String::new(),
            id: id.into(),
            path: PathBuf::new(),
            older: None,
            mark: FileMark::default(),
            sidecar_modified_at: Timestamp::default(),
            workspace: TranscriptWorkspace::default(),
            preview: SessionPreview::default(),
            database: None,
        }
    }

    /// A session by the name of its file, anywhere: an export, for example.
    pub fn of_file(source: TranscriptSource, path: &Path) -> Result<Self, HistoryError> {
        let mark = FileMark::of(&files::stat(path)?);
        // A log in a folder of its own is named after the folder.
        let named =
            if path.file_name().is_some_and(|name| name == "events.jsonl") { path.parent() } else { Some(path) };
        let id = named.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let preview = SessionPreview { modified_at: Some(mark.modified_at), ..SessionPreview::default() };
        Ok(Self { path: path.to_owned(), mark, preview, ..Self::without_file(source, id) })
    }
}

/// A session's data without opening it. They may be out of date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPreview {
    pub title: Option<String>,
    pub created_at: Option<Timestamp>,
    pub modified_at: Option<Timestamp>,
    /// True if the tool itself lists it. `None` if the tool has no list, or it cannot be read.
    pub listed: Option<bool>,
}

/// Identifies a file, and tells if it has grown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileMark {
    /// The file's number on its device; 0 if the system has none.
    pub inode: u64,
    pub size: u64,
    pub modified_at: Timestamp,
}

impl FileMark {
    pub fn of(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let modified_at = Timestamp(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)));
        Self { inode: inode(metadata), size: metadata.len(), modified_at }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

/// The result of reading a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOutcome {
    pub session: TranscriptSession,
    /// The bookmark for reading on once the file has grown. Formats in which later bytes can change an earlier turn
    /// have none: they are read again completely.
    pub bookmark: Option<Bookmark>,
    /// The positions of its newest turns, if the read found them.
    pub tail_index: Option<TailIndex>,
    /// True if the read ended early, and the unread part may abandon turns.
    pub may_go_back: bool,
}

/// The position for reading on: the start of the newest turn, which may have grown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bookmark {
    pub offset: u64,
    /// The number of turns before it.
    pub turns: u32,
    /// The reader's state.
    pub(crate) carried: Value,
    /// Verifies that a longer file has grown, and was not rewritten.
    #[serde(default)]
    pub(crate) fingerprint: Option<Fingerprint>,
    /// The known lookups of later lines in earlier ones.
    #[serde(default, skip)]
    pub(crate) asked: Vec<ParentLookup>,
}

/// A session that was read once, with its turns.
#[derive(Debug)]
pub struct BufferedSession {
    pub session: TranscriptSession,
    /// The turns of all branches.
    pub turns: TurnBuffer,
    /// The numbers of the turns that lead to the newest one. The others were abandoned.
    pub path: Vec<usize>,
}

/// Reads a session once, and keeps its turns in bounded memory: the session's own data and its active branch are known
/// only at the end.
pub fn read_buffered(location: &SessionLocation) -> Result<BufferedSession, HistoryError> {
    let mut turns = TurnBuffer::default();
    let mut follows = Vec::new();
    let mut result = Ok(());
    let reading = reader_of(location.source).read_until(location, None, &mut |turn| {
        follows.push(turn.follows);
        result = turns.push(turn);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(ReadEnd::AtTurn) }
    })?;
    result.map_err(|error| HistoryError::Buffer { path: location.path.clone(), error })?;
    Ok(BufferedSession { session: reading.session, turns, path: path_of(&follows) })
}

/// Reads a session with all of its turns at once.
pub fn read_with_turns(
    reader: &dyn HistoryReader,
    location: &SessionLocation,
) -> Result<(TranscriptSession, Vec<TranscriptTurn>), HistoryError> {
    let mut turns = Vec::new();
    let reading = reader.read(location, None, &mut |turn| turns.push(turn))?;
    Ok((reading.session, turns))
}
