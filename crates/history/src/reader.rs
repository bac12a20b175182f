//! What a reader of a tool's store does, for whoever lists sessions and shows them.
//!
//! Finding is cheap: folders are listed, small files and indexes are looked at, and no session is opened. Reading gives
//! a session's turns one by one and what is known of it as a whole at the end, so that memory follows one turn and not
//! the file. A file that only ever grows can be read on from a [`Bookmark`].

use std::fmt::Debug;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use grove_core::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HistoryError;
use crate::files;
use crate::fingerprint::Fingerprint;
use crate::normal::{TranscriptSession, TranscriptSource, TranscriptTurn, TranscriptWorkspace};
use crate::opencode::{self, SharedDatabase};
use crate::tail_index::{ParentLookup, TailIndex};

/// A reader of one tool's stores. It never writes where it reads.
pub trait HistoryReader: Debug + Send + Sync {
    fn source(&self) -> TranscriptSource;

    /// The sessions below a root. What cannot be looked at is told beside them, and hides none of the others.
    fn find(&self, root: &StoreRoot, hints: Hints) -> StoreListing;

    /// Whether hints add anything to what is found.
    fn has_hints(&self) -> bool {
        true
    }

    /// A session by its absolute path, with what the tool's own files around it say of it. A file outside of any store is
    /// known by its name alone.
    fn locate(&self, path: &Path) -> Result<SessionLocation, HistoryError> {
        SessionLocation::of_file(self.source(), path)
    }

    /// Reads a session: each turn goes to `turns`, in order. With a bookmark of an earlier reading of the same file,
    /// the turns before it are left out; they count in the session all the same.
    ///
    /// The caller knows by the file's [`FileMark`] whether it has only grown: with a bookmark into another file the
    /// answer means nothing.
    fn read(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut dyn FnMut(TranscriptTurn),
    ) -> Result<ReadOutcome, HistoryError>;
}

/// Whether a tool's own lists and manifests are looked at. They cost more than listing folders, so whoever only wants to
/// know which files have changed leaves them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hints {
    Read,
    Skip,
}

/// A folder that may hold sessions of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRoot {
    pub source: TranscriptSource,
    /// Which product or edition of the tool it belongs to, as it is shown.
    pub product: String,
    pub folder: PathBuf,
}

/// What was found below a root.
#[derive(Debug, Default)]
pub struct StoreListing {
    pub sessions: Vec<SessionLocation>,
    /// What the tool itself lists and has no file of; told only where its lists are looked at.
    pub lost: Vec<MissingSession>,
    pub problems: Vec<HistoryError>,
}

impl StoreListing {
    /// What lies in a folder, by name. A folder that cannot be looked into is a problem, and has nothing.
    pub(crate) fn names(&mut self, folder: &Path) -> Vec<String> {
        files::names(folder).unwrap_or_else(|problem| {
            self.problems.push(problem);
            Vec::new()
        })
    }

    /// A session that lies in a file, with the file's time as its own until more is known of it.
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

/// A session that its tool lists, and that lies nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSession {
    pub id: String,
    /// Where it would lie, or the list that has it where that does not say.
    pub path: PathBuf,
}

/// A session that was found and not opened.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionLocation {
    pub source: TranscriptSource,
    pub product: String,
    /// The session's id, as its file or folder says it.
    pub id: String,
    /// The file that holds it.
    pub path: PathBuf,
    /// An older file of the same session, for where this one is of no use.
    pub older: Option<PathBuf>,
    pub mark: FileMark,
    /// When what lies beside the session was last written, as far as that tells of its turns.
    pub sidecar_modified_at: Timestamp,
    pub workspace: TranscriptWorkspace,
    pub preview: SessionPreview,
    /// A copy of the database that holds it, which all that were found in it share.
    pub(crate) database: Option<SharedDatabase>,
}

impl SessionLocation {
    /// Where it lies, for the reader of this tool's sessions; another's it cannot read.
    pub(crate) fn path_for(&self, reader: TranscriptSource) -> Result<&PathBuf, HistoryError> {
        if self.source == reader {
            return Ok(&self.path);
        }
        Err(HistoryError::OtherSource { path: self.path.clone(), wanted: self.source })
    }

    /// For readers that give no bookmark: one that somebody brings all the same is an error.
    pub(crate) fn without_bookmark(&self, from: Option<&Bookmark>) -> Result<(), HistoryError> {
        match from {
            None => Ok(()),
            Some(_) => Err(HistoryError::malformed(&self.path, "its bookmark: sessions of this kind have none")),
        }
    }

    /// A session that is at hand as bytes and lies nowhere.
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

    /// The session for who reads it more than once: what each reading would copy is copied now.
    pub fn with_database_copy(mut self) -> Result<Self, HistoryError> {
        if self.database.is_none() && opencode::is_database(self.source, &self.path) {
            self.database = Some(SharedDatabase::copy(&self.path)?);
        }
        Ok(self)
    }

    /// A session by the name of its file, wherever that lies: an export, say.
    pub fn of_file(source: TranscriptSource, path: &Path) -> Result<Self, HistoryError> {
        let mark = FileMark::of(&files::stat(path)?);
        // A log in a folder of its own is called as its folder.
        let named =
            if path.file_name().is_some_and(|name| name == "events.jsonl") { path.parent() } else { Some(path) };
        let id = named.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let preview = SessionPreview { modified_at: Some(mark.modified_at), ..SessionPreview::default() };
        Ok(Self { path: path.to_owned(), mark, preview, ..Self::without_file(source, id) })
    }
}

/// What can be said of a session without opening it. Any of it may be out of date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPreview {
    pub title: Option<String>,
    pub created_at: Option<Timestamp>,
    pub modified_at: Option<Timestamp>,
    /// Whether the tool itself lists it. `None` where the tool has no list, or it cannot be read.
    pub listed: Option<bool>,
}

/// By which a file is known again, and whether it has grown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileMark {
    /// The file's number on its device; 0 where the system has none.
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

/// A session that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOutcome {
    pub session: TranscriptSession,
    /// Where to go on once the file has grown. Formats in which a later byte can change an earlier turn have none: they
    /// are read anew.
    pub bookmark: Option<Bookmark>,
    /// Where its newest turns lie, where that was found out on the way.
    pub tail_index: Option<TailIndex>,
}

/// Where a reading can go on: at the beginning of the newest turn, which may have grown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bookmark {
    pub offset: u64,
    /// How many turns lie before it.
    pub turns: u32,
    /// What the reader has to remember.
    pub(crate) carried: Value,
    /// By which a file that is longer now is known to have grown.
    #[serde(default)]
    pub(crate) fingerprint: Option<Fingerprint>,
    /// What lines behind it ask for of what lies before it, as far as that is known.
    #[serde(default, skip)]
    pub(crate) asked: Vec<ParentLookup>,
}

/// A session with all of its turns at once.
pub fn read_with_turns(
    reader: &dyn HistoryReader,
    location: &SessionLocation,
) -> Result<(TranscriptSession, Vec<TranscriptTurn>), HistoryError> {
    let mut turns = Vec::new();
    let reading = reader.read(location, None, &mut |turn| turns.push(turn))?;
    Ok((reading.session, turns))
}
