//! VS Code's own list of sessions, in `state.vscdb`. It is a hint: what is not in it may be on the disk all the same.
//!
//! The database is copied and the copy opened as immutable, so that nothing is ever made beside the real one, and
//! nobody's lock is in the way.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use grove_core::Timestamp;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde_json::Value;

use crate::error::HistoryError;
use crate::files;
use crate::json::{lenient, message_of, time_of};
use crate::limits::MAX_DATABASE;

/// What the list says of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexEntry {
    pub title: Option<String>,
    pub created_at: Option<Timestamp>,
    pub modified_at: Option<Timestamp>,
    /// VS Code hides these.
    pub is_empty: bool,
    /// Where it worked, where that is not the workspace's folder.
    pub folder: Option<Value>,
}

/// The list, by session.
pub type Index = BTreeMap<String, IndexEntry>;

/// What would end a path in the URI that a database is opened by.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'#').add(b'%').add(b'?');

const KEY: &str = "chat.ChatSessionStore.index";

/// The list in a folder's `state.vscdb`, or in the backup beside it where that is damaged or has none. `None` where
/// neither has.
pub fn read(folder: &Path) -> Result<Option<Index>, HistoryError> {
    let mut problem = None;
    for name in ["state.vscdb", "state.vscdb.backup"] {
        let path = folder.join(name);
        if !path.is_file() {
            continue;
        }
        match read_database(&path) {
            Ok(Some(index)) => return Ok(Some(index)),
            Ok(None) => {}
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    problem.map_or(Ok(None), Err)
}

/// The list as the database holds it. An entry that is not understood costs itself alone.
pub fn index_of(json: &str) -> Option<Index> {
    let value = lenient::read::<Value>(json.as_bytes()).ok()?.value;
    let entries = value.get("entries")?.as_object()?;
    Some(entries.iter().map(|(id, entry)| (id.clone(), entry_of(entry))).collect())
}

fn entry_of(entry: &Value) -> IndexEntry {
    let timing = |key: &str| entry.get("timing").and_then(|timing| time_of(timing.get(key)?));
    let last = entry.get("lastMessageDate").and_then(time_of);
    IndexEntry {
        title: entry.get("title").and_then(message_of).filter(|title| !title.is_empty()),
        created_at: timing("created"),
        modified_at: timing("lastRequestEnded").or_else(|| timing("lastRequestStarted")).or(last),
        is_empty: entry.get("isEmpty").and_then(Value::as_bool).unwrap_or(false),
        folder: entry.get("workingDirectory").cloned(),
    }
}

fn read_database(path: &Path) -> Result<Option<Index>, HistoryError> {
    let (file, metadata) = files::open(path)?;
    if metadata.len() > MAX_DATABASE {
        return Err(HistoryError::TooLarge { path: path.to_owned(), limit: MAX_DATABASE });
    }
    if metadata.len() == 0 {
        return Ok(None);
    }
    let value = copied(file).and_then(|copy| query(copy.path()).map_err(io::Error::other));
    let value = value.map_err(|error| HistoryError::malformed(path, error))?;
    Ok(value.as_deref().and_then(index_of))
}

fn copied(file: File) -> io::Result<tempfile::NamedTempFile> {
    let mut copy = tempfile::NamedTempFile::new()?;
    // Its owner may be at it: what has grown meanwhile stays bounded too.
    io::copy(&mut file.take(MAX_DATABASE), &mut copy)?;
    Ok(copy)
}

fn query(path: &Path) -> rusqlite::Result<Option<String>> {
    let uri = format!("file:{}?mode=ro&immutable=1", utf8_percent_encode(&path.to_string_lossy(), ESCAPED));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(uri, flags)?;
    let sql = "SELECT CAST(value AS TEXT) FROM ItemTable WHERE key = ?1";
    database.query_row(sql, [KEY], |row| row.get::<_, Option<String>>(0)).optional().map(Option::flatten)
}
