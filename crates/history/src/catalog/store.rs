//! The catalog's database: opening, and replacing an unusable one.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_core::Timestamp;
use grove_transcript::{TranscriptSource, model_key};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Statement, params};
use serde::Serialize;

use super::entry::CatalogEntry;
use super::error::CatalogError;
use super::private;
use crate::changes::SessionChanges;
use crate::reader::{Bookmark, FileMark, SessionLocation};
use crate::tail_index::TailIndex;

/// Raised with every change of the tables, and of readers' results: older entries are read again.
const VERSION: i64 = 5;

const TABLES: &str = "
    CREATE TABLE session (
        path TEXT PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        source TEXT NOT NULL,
        source_id TEXT NOT NULL,
        modified INTEGER NOT NULL,
        repository TEXT,
        folder TEXT,
        title TEXT NOT NULL,
        inode INTEGER NOT NULL,
        size INTEGER NOT NULL,
        written INTEGER NOT NULL,
        models TEXT NOT NULL,
        bookmark TEXT,
        entry TEXT NOT NULL,
        beside INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE ending (
        path TEXT PRIMARY KEY,
        ending TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE changed (
        path TEXT PRIMARY KEY,
        changes TEXT NOT NULL,
        before TEXT
    ) WITHOUT ROWID;
    CREATE INDEX newest ON session (modified DESC, id DESC);
    CREATE INDEX own ON session (source_id);
";

/// Smaller files are read completely, so the positions of their newest turns are not stored.
const LONG: u64 = 1024 * 1024;
/// The maximum size of a session's tail index. A session that needs more is read completely.
const MAX_TAIL_INDEX: usize = 256 * 1024;

/// The maximum wait of one connection for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// The sessions of this machine.
pub struct Catalog {
    path: PathBuf,
    writer: Mutex<Connection>,
    /// Lists have a connection of their own, so that they need not wait for a scan.
    reader: Mutex<Connection>,
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The stored data of a session beside its entry.
#[derive(Debug)]
pub(super) struct StoredEntry {
    pub entry: CatalogEntry,
    pub bookmark: Option<Bookmark>,
}

/// The marks of a session's files at the last scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileMarks {
    pub mark: FileMark,
    pub sidecar_modified_at: Timestamp,
}

impl FileMarks {
    pub(super) fn of(location: &SessionLocation) -> Self {
        Self { mark: location.mark, sidecar_modified_at: location.sidecar_modified_at }
    }
}

/// The further data to store with an entry.
#[derive(Debug, Default)]
pub(super) struct EntryDetails {
    pub bookmark: Option<Bookmark>,
    pub tail_index: Option<TailIndex>,
    pub changes: SessionChanges,
    /// The changes before the bookmark.
    pub before: SessionChanges,
    /// The modification time of the files beside the session.
    pub sidecar_modified_at: Timestamp,
}

impl Catalog {
    /// Opens the catalog. A missing one, or one of another version, is replaced by an empty one.
    pub fn open(path: &Path) -> Result<Self, CatalogError> {
        let (writer, reader) = match connect(path) {
            Ok(both) => both,
            Err(_) => {
                remove(path)?;
                connect(path)?
            }
        };
        Ok(Self { path: path.to_owned(), writer: Mutex::new(writer), reader: Mutex::new(reader) })
    }

    /// Opens a catalog that another process writes, for reading.
    pub fn open_read_only(path: &Path) -> Result<Self, CatalogError> {
        let open = || Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let reader = open()?;
        if reader.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? != VERSION {
            return Err(CatalogError::OtherVersion);
        }
        Ok(Self { path: path.to_owned(), writer: Mutex::new(open()?), reader: Mutex::new(reader) })
    }

    /// Deletes all entries.
    pub fn clear(&self) -> Result<(), CatalogError> {
        let (mut writer, mut reader) = (self.writer(), self.reader());
        // Open connections keep the deleted files alive, invisible to others.
        remove(&self.path)?;
        (*writer, *reader) = connect(&self.path)?;
        Ok(())
    }

    /// The number of sessions.
    pub fn len(&self) -> Result<u64, CatalogError> {
        let count: i64 = self.reader().query_row("SELECT count(*) FROM session", [], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    pub fn is_empty(&self) -> Result<bool, CatalogError> {
        Ok(self.len()? == 0)
    }

    /// A session by the catalog's own name.
    pub fn named(&self, id: &str) -> Result<Option<CatalogEntry>, CatalogError> {
        self.one("SELECT entry FROM session WHERE id = ?1", id)
    }

    fn one(&self, sql: &str, name: &str) -> Result<Option<CatalogEntry>, CatalogError> {
        let reader = self.reader();
        Ok(reader.prepare(sql)?.query_row([name], read_entry).optional()?.flatten())
    }

    /// Every session, in no order.
    pub fn each(&self, mut each: impl FnMut(CatalogEntry)) -> Result<(), CatalogError> {
        let reader = self.reader();
        let mut statement = reader.prepare("SELECT entry FROM session")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(entry) = read_entry(row)? {
                each(entry);
            }
        }
        Ok(())
    }

    /// The mark of each known file at its last read.
    pub(super) fn marks(&self) -> Result<HashMap<PathBuf, FileMarks>, CatalogError> {
        let reader = self.reader();
        let mut statement = reader.prepare("SELECT path, inode, size, written, beside FROM session")?;
        let marks = statement.query_map([], |row| {
            let path: String = row.get(0)?;
            let mark = FileMark {
                inode: row.get::<_, i64>(1)?.cast_unsigned(),
                size: row.get::<_, i64>(2)?.cast_unsigned(),
                modified_at: Timestamp(row.get::<_, i64>(3)?.cast_unsigned()),
            };
            let sidecar_modified_at = Timestamp(row.get::<_, i64>(4)?.cast_unsigned());
            Ok((PathBuf::from(path), FileMarks { mark, sidecar_modified_at }))
        })?;
        Ok(marks.collect::<Result<_, _>>()?)
    }

    pub(super) fn known(&self, path: &Path) -> Result<Option<StoredEntry>, CatalogError> {
        let reader = self.reader();
        let mut statement = reader.prepare("SELECT entry, bookmark FROM session WHERE path = ?1")?;
        let read = |row: &Row<'_>| Ok((read_entry(row)?, row.get::<_, Option<String>>(1)?));
        let found = statement.query_row([shown(path)], read).optional()?;
        Ok(found.and_then(|(entry, bookmark)| {
            let bookmark = bookmark.and_then(|text| serde_json::from_str(&text).ok());
            Some(StoredEntry { entry: entry?, bookmark })
        }))
    }

    /// The positions of a session's newest turns, if they are known: [`newest`](crate::newest) reads them there.
    pub fn tail_index(&self, entry: &CatalogEntry) -> Result<Option<TailIndex>, CatalogError> {
        self.tail_index_of(&entry.key())
    }

    pub(super) fn tail_index_of(&self, path: &Path) -> Result<Option<TailIndex>, CatalogError> {
        let reader = self.reader();
        let mut statement = reader.prepare("SELECT ending FROM ending WHERE path = ?1")?;
        let found = statement.query_row([shown(path)], |row| {
            // An unreadable value counts as absent.
            Ok(serde_json::from_str(row.get_ref(0)?.as_str()?).ok())
        });
        Ok(found.optional()?.flatten())
    }

    /// The files that the edits of each of these sessions changed.
    pub fn changes<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a CatalogEntry>,
    ) -> Result<Vec<SessionChanges>, CatalogError> {
        let reader = self.reader();
        let mut statement = reader.prepare("SELECT changes FROM changed WHERE path = ?1")?;
        entries.into_iter().map(|entry| changed(&mut statement, &entry.key())).collect()
    }

    /// A session's changes before its bookmark.
    pub(super) fn changes_before(&self, path: &Path) -> Result<SessionChanges, CatalogError> {
        let reader = self.reader();
        let mut statement = reader.prepare("SELECT before FROM changed WHERE path = ?1 AND before IS NOT NULL")?;
        changed(&mut statement, path)
    }

    pub(super) fn reader(&self) -> MutexGuard<'_, Connection> {
        // A connection is intact after a panic, too.
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a session. `entry.id` is made unique.
pub(super) fn write(
    connection: &Connection,
    entry: &mut CatalogEntry,
    noted: &EntryDetails,
) -> Result<(), CatalogError> {
    let path = shown(&entry.key());
    let taken = "SELECT count(*) FROM session WHERE id = ?1 AND path <> ?2";
    let is_taken = |id: &str| connection.prepare(taken)?.query_row(params![id, path], |row| row.get::<_, i64>(0));
    let own = entry.id.clone();
    let mut copies = 1;
    while is_taken(&entry.id)? > 0 {
        copies += 1;
        entry.id = format!("{own}.{copies}");
    }
    let mark = entry.mark;
    let sql =
        "INSERT OR REPLACE INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    connection.prepare(sql)?.execute(params![
        path,
        entry.id,
        entry.source().name(),
        entry.session.source_id,
        whole(entry.modified_at().0),
        entry.repository,
        entry.folder,
        entry.title().to_lowercase(),
        mark.inode.cast_signed(),
        mark.size.cast_signed(),
        mark.modified_at.0.cast_signed(),
        model_keys(&entry.session.models),
        noted.bookmark.as_ref().and_then(|bookmark| serde_json::to_string(bookmark).ok()),
        written(entry)?,
        noted.sidecar_modified_at.0.cast_signed(),
    ])?;
    let tail_index = noted.tail_index.as_ref().and_then(|tail_index| serde_json::to_string(tail_index).ok());
    match tail_index.filter(|tail_index| tail_index.len() <= MAX_TAIL_INDEX && mark.size >= LONG) {
        Some(tail_index) => {
            connection.prepare("INSERT OR REPLACE INTO ending VALUES (?1, ?2)")?.execute([&path, &tail_index])?
        }
        None => connection.prepare("DELETE FROM ending WHERE path = ?1")?.execute([&path])?,
    };
    if noted.changes.is_empty() && noted.before.is_empty() {
        connection.prepare("DELETE FROM changed WHERE path = ?1")?.execute([path])?;
    } else {
        let before = if noted.before.is_empty() { None } else { Some(written(&noted.before)?) };
        let sql = "INSERT OR REPLACE INTO changed VALUES (?1, ?2, ?3)";
        connection.prepare(sql)?.execute(params![path, written(&noted.changes)?, before])?;
    }
    Ok(())
}

fn changed(statement: &mut Statement<'_>, path: &Path) -> Result<SessionChanges, CatalogError> {
    let text: Option<String> = statement.query_row([shown(path)], |row| row.get(0)).optional()?;
    // Nothing is stored for a session without changes.
    Ok(match text {
        Some(text) => serde_json::from_str(&text).map_err(unreadable)?,
        None => SessionChanges::default(),
    })
}

fn written(value: &impl Serialize) -> Result<String, CatalogError> {
    let text = serde_json::to_string(value);
    Ok(text.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?)
}

fn unreadable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
}

/// The models of a session for comparison, each between bars.
fn model_keys(models: &[String]) -> String {
    let keys: String = models.iter().map(|model| format!("{}|", model_key(model))).collect();
    if keys.is_empty() { keys } else { format!("|{keys}") }
}

pub(super) fn forget(connection: &Connection, path: &Path) -> Result<(), CatalogError> {
    for table in ["session", "ending", "changed"] {
        connection.prepare(&format!("DELETE FROM {table} WHERE path = ?1"))?.execute([shown(path)])?;
    }
    Ok(())
}

/// Reads an entry. An unreadable one counts as absent.
pub(super) fn read_entry(row: &Row<'_>) -> rusqlite::Result<Option<CatalogEntry>> {
    Ok(serde_json::from_str(row.get_ref(0)?.as_str()?).ok())
}

/// Converts a time for the database. Invalid times of a file keep their order; nothing else is guaranteed.
pub(super) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A path as stored text. Tools use names in UTF-8; another name would be read again each time.
fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn connect(path: &Path) -> Result<(Connection, Connection), CatalogError> {
    private::make_file(path).map_err(|error| CatalogError::Folder { path: path.to_owned(), error })?;
    let open = || -> Result<Connection, CatalogError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // A database that a power loss damages is replaced.
        connection.pragma_update(None, "synchronous", "off")?;
        Ok(connection)
    };
    let writer = open()?;
    let version: i64 = writer.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = writer.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        writer.execute_batch(TABLES)?;
        writer.pragma_update(None, "user_version", VERSION)?;
    } else if version != VERSION {
        return Err(CatalogError::OtherVersion);
    }
    writer.prepare("SELECT entry, bookmark, inode FROM session LIMIT 1")?;
    writer.prepare("SELECT ending FROM ending LIMIT 1")?;
    writer.prepare("SELECT changes, before FROM changed LIMIT 1")?;
    Ok((writer, open()?))
}

fn remove(path: &Path) -> Result<(), CatalogError> {
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let file = PathBuf::from(name);
        match fs::remove_file(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(CatalogError::Folder { path: file, error }),
        }
    }
    Ok(())
}

/// A source by its name.
pub(super) fn source_named(name: &str) -> Option<TranscriptSource> {
    crate::readers().iter().map(|reader| reader.source()).find(|source| source.name() == name)
}
