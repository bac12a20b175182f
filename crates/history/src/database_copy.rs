//! A copy of another tool's SQLite database. Reading a copy creates no files beside the original and waits for no lock.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::error::HistoryError;
use crate::files;
use crate::limits::MAX_DATABASE;
use crate::reader::FileMark;

/// The files of a database: itself, its write-ahead log, and the journal of an unfinished transaction.
const ENDS: [&str; 3] = ["", "-wal", "-journal"];
/// The maximum number of attempts if its owner writes meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// An open copy. It is deleted on drop.
#[derive(Debug)]
pub(crate) struct DatabaseCopy {
    pub(crate) connection: Connection,
    // After the connection, which is closed first.
    _folder: TempDir,
}

impl DatabaseCopy {
    /// Copies a database with its write-ahead log.
    pub(crate) fn of(path: &Path) -> Result<Self, HistoryError> {
        let folder = tempfile::tempdir().map_err(|error| HistoryError::malformed(path, error))?;
        let to = folder.path().join("copy.db");
        for _ in 0..MAX_ATTEMPTS {
            let before = marks(path);
            for end in ENDS {
                let (from, to) = (beside(path, end), beside(&to, end));
                if end.is_empty() || from.is_file() {
                    copied(&from, &to)?;
                } else if to.exists() {
                    std::fs::remove_file(&to).map_err(|error| HistoryError::io(&to, error))?;
                }
            }
            // A database and a log of different times do not fit together.
            if marks(path) == before {
                break;
            }
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(&to, flags).map_err(|error| HistoryError::malformed(path, error))?;
        Ok(Self { connection, _folder: folder })
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn marks(path: &Path) -> [Option<FileMark>; ENDS.len()] {
    ENDS.map(|end| std::fs::metadata(beside(path, end)).ok().map(|metadata| FileMark::of(&metadata)))
}

fn copied(from: &Path, to: &Path) -> Result<(), HistoryError> {
    let (file, metadata) = files::open(from)?;
    if metadata.len() > MAX_DATABASE {
        return Err(HistoryError::TooLarge { path: from.to_owned(), limit: MAX_DATABASE });
    }
    // Its owner may be writing: growth is bounded too.
    let copy = File::create(to).and_then(|mut to| io::copy(&mut file.take(MAX_DATABASE), &mut to));
    copy.map(drop).map_err(|error| HistoryError::io(from, error))
}
