//! The database of newer versions. It is copied with its write-ahead log, and the copy is opened.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Value, json};

use super::{MessageSink, MessageStore, StoredMessage};
use crate::database_copy::DatabaseCopy;
use crate::error::HistoryError;
use crate::json::JsonMembers;
use crate::json_lines::value_of;
use crate::limits::MAX_JSON_ITEM;

/// A copy of a database, from which any number of sessions can be read.
#[derive(Debug)]
pub struct Database {
    copy: DatabaseCopy,
    path: std::path::PathBuf,
}

/// A shared copy for reading its sessions one after the other. It is deleted with the last reference.
#[derive(Clone, Debug)]
pub(crate) struct SharedDatabase(Arc<Mutex<Database>>);

impl SharedDatabase {
    pub(crate) fn copy(path: &Path) -> Result<Self, HistoryError> {
        Ok(Self(Arc::new(Mutex::new(Database::copy(path)?))))
    }

    pub(super) fn get(&self) -> MutexGuard<'_, Database> {
        // A connection is intact after a panic, too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Equal whether or not a copy is loaded: the session is the same.
impl PartialEq for SharedDatabase {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A session's data for a list.
pub(super) struct SessionRow {
    pub id: String,
    pub info: JsonMembers,
    pub has_parent: bool,
}

impl Database {
    /// Copies a database with its write-ahead log.
    pub fn copy(path: &Path) -> Result<Self, HistoryError> {
        Ok(Self { copy: DatabaseCopy::of(path)?, path: path.to_owned() })
    }

    fn fail(&self, error: impl ToString) -> HistoryError {
        HistoryError::malformed(&self.path, error)
    }

    /// Every session.
    pub(super) fn rows(&self) -> Result<Vec<SessionRow>, HistoryError> {
        let fail = |error: rusqlite::Error| self.fail(error);
        let sql = format!(
            "SELECT {COLUMNS}, EXISTS (SELECT 1 FROM session p WHERE p.id = s.parent_id) \
            FROM session s ORDER BY time_created, id"
        );
        let mut statement = self.copy.connection.prepare(&sql).map_err(fail)?;
        let rows = statement
            .query_map([], |row| Ok(SessionRow { id: row.get(0)?, info: info_of(row)?, has_parent: row.get(8)? }));
        rows.and_then(Iterator::collect).map_err(fail)
    }
}

const COLUMNS: &str = "s.id, s.parent_id, s.directory, s.title, s.version, s.time_created, s.time_updated, s.revert";

/// A row as the object that older versions keep.
fn info_of(row: &Row<'_>) -> rusqlite::Result<JsonMembers> {
    let text = |at: usize| row.get::<_, Option<String>>(at);
    let value = json!({"parentID": text(1)?, "directory": text(2)?, "title": text(3)?, "version": text(4)?,
        "time": {"created": row.get::<_, i64>(5)?, "updated": row.get::<_, i64>(6)?}, "revert": text(7)?});
    Ok(JsonMembers::of(value).unwrap_or_default())
}

impl MessageStore for Database {
    fn session_info(&self, id: &str) -> Result<Option<JsonMembers>, HistoryError> {
        let sql = format!("SELECT {COLUMNS} FROM session s WHERE s.id = ?1");
        self.copy.connection.query_row(&sql, [id], info_of).optional().map_err(|error| self.fail(error))
    }

    fn messages(&self, id: &str, each: &mut MessageSink<'_>) -> Result<(), HistoryError> {
        let fail = |error: rusqlite::Error| self.fail(error);
        let longest = i64::try_from(MAX_JSON_ITEM).unwrap_or(i64::MAX);
        let sql = "SELECT id, CASE WHEN length(data) <= ?2 THEN data END FROM message WHERE session_id = ?1 \
            ORDER BY time_created, id";
        let mut messages = self.copy.connection.prepare(sql).map_err(fail)?;
        let sql = "SELECT CASE WHEN length(data) <= ?2 THEN data END FROM part WHERE message_id = ?1 ORDER BY id";
        let mut parts = self.copy.connection.prepare(sql).map_err(fail)?;
        let mut rows = messages.query(params![id, longest]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let message: String = row.get(0).map_err(fail)?;
            let data: Option<String> = row.get(1).map_err(fail)?;
            let mut stored_message = match parsed(data.as_deref()) {
                Ok(Value::Object(members)) => {
                    let weight = data.as_ref().map_or(0, String::len);
                    let value = JsonMembers::of(Value::Object(members)).unwrap_or_default();
                    StoredMessage { id: message.clone(), message: value, parts: Vec::new(), weight }
                }
                Ok(_) => {
                    let _goes_on = each(Err(format!("message {message}: no object")));
                    continue;
                }
                Err(error) => {
                    let _goes_on = each(Err(format!("message {message}: {error}")));
                    continue;
                }
            };
            let mut inner = parts.query(params![message, longest]).map_err(fail)?;
            while let Some(row) = inner.next().map_err(fail)? {
                let data: Option<String> = row.get(0).map_err(fail)?;
                stored_message.weight = stored_message.weight.saturating_add(data.as_ref().map_or(0, String::len));
                if stored_message.weight > MAX_JSON_ITEM {
                    let _goes_on = each(Err(format!("message {message}: more than {MAX_JSON_ITEM} bytes")));
                    break;
                }
                match parsed(data.as_deref()) {
                    Ok(part) => stored_message.parts.push(part),
                    Err(error) => {
                        let _goes_on = each(Err(format!("a part of message {message}: {error}")));
                    }
                }
            }
            if each(Ok(stored_message)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn parsed(data: Option<&str>) -> Result<Value, String> {
    let data = data.ok_or_else(|| format!("more than {MAX_JSON_ITEM} bytes"))?;
    value_of(data.as_bytes()).map_err(|error| error.to_string())
}
