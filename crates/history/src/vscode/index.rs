//! VS Code's own list of sessions, in `state.vscdb`. It is a hint: sessions on the disk may be missing in it.
//!
//! The database is copied with its write-ahead log, and the copy is opened.

use std::collections::BTreeMap;
use std::path::Path;

use grove_core::Timestamp;
use rusqlite::OptionalExtension;
use serde_json::Value;

use crate::database_copy::DatabaseCopy;
use crate::error::HistoryError;
use crate::files;
use crate::json::{lenient, message_of, time_of};

/// A session in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexEntry {
    pub title: Option<String>,
    pub created_at: Option<Timestamp>,
    pub modified_at: Option<Timestamp>,
    /// VS Code hides these.
    pub is_empty: bool,
    /// The session is stored by an extension, and has no file here.
    pub is_external: bool,
    /// Its working directory, if it is not the workspace's folder.
    pub folder: Option<Value>,
}

/// The list, by session.
pub type SessionIndex = BTreeMap<String, IndexEntry>;

const KEY: &str = "chat.ChatSessionStore.index";

/// The list in a folder's `state.vscdb`, or in the backup beside it if that is damaged or has none. `None` if neither
/// has one.
pub fn read(folder: &Path) -> Result<Option<SessionIndex>, HistoryError> {
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

/// Parses the list. An invalid entry affects only itself.
pub fn index_of(json: &str) -> Option<SessionIndex> {
    let value = lenient::read::<Value>(json.as_bytes()).ok()?.value;
    let entries = value.get("entries")?.as_object()?;
    Some(entries.iter().map(|(id, entry)| (id.clone(), entry_of(entry))).collect())
}

fn entry_of(entry: &Value) -> IndexEntry {
    let timing = |key: &str| entry.get("timing").and_then(|timing| time_of(timing.get(key)?));
    let last = entry.get("lastMessageDate").and_then(time_of);
    let flag = |key: &str| entry.get(key).and_then(Value::as_bool).unwrap_or(false);
    IndexEntry {
        title: entry.get("title").and_then(message_of).filter(|title| !title.is_empty()),
        created_at: timing("created"),
        modified_at: timing("lastRequestEnded").or_else(|| timing("lastRequestStarted")).or(last),
        is_empty: flag("isEmpty"),
        is_external: flag("isExternal"),
        folder: entry.get("workingDirectory").cloned(),
    }
}

fn read_database(path: &Path) -> Result<Option<SessionIndex>, HistoryError> {
    if files::stat(path)?.len() == 0 {
        return Ok(None);
    }
    let copy = DatabaseCopy::of(path)?;
    let sql = "SELECT CAST(value AS TEXT) FROM ItemTable WHERE key = ?1";
    let value = copy.connection.query_row(sql, [KEY], |row| row.get::<_, Option<String>>(0)).optional();
    let value = value.map_err(|error| HistoryError::malformed(path, error))?;
    Ok(value.flatten().as_deref().and_then(index_of))
}
