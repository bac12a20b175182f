//! A SQLite file in a session's folder.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql};
use tempfile::TempDir;

use super::{Cell, Database, DatabaseError, QueryRows, Statement, StatementKind};
use crate::workspace::{DATABASE, inside};
use crate::{Backend, FsError, LocalFs, SessionFs};

/// The time that a statement waits for other users of the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time limit of a call. Longer ones are stopped.
pub const LONGEST: Duration = Duration::from_secs(30);
/// SQLite's own steps, of which it does some millions in a second.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;
/// The most rows that a statement may return.
pub const MOST_ROWS: usize = 100_000;
pub const MOST_BYTES: usize = 16 * 1024 * 1024;

/// `session.db` in a folder on this machine.
///
/// The file is opened for each call, on tokio's threads for blocking work. Nothing else in this process may open it
/// while it is in use: the system drops SQLite's locks on a file as soon as any handle on it is closed.
#[derive(Clone, Debug)]
pub struct LocalDatabase {
    store: LocalFs,
    folder: Arc<str>,
    longest: Duration,
}

impl LocalDatabase {
    /// The database of the session in `folder` of the store.
    pub fn new(store: LocalFs, folder: &str) -> Self {
        Self { store, folder: folder.into(), longest: LONGEST }
    }

    /// The database of the session in `folder` of a store, if that is a folder on this machine.
    pub fn of(store: &dyn SessionFs, folder: &str) -> Option<Self> {
        let root = store.location("").ok().filter(|_| store.backend() == Backend::Local)?;
        Some(Self::new(LocalFs::new(root), folder))
    }

    /// Sets the time limit of a call, instead of 30 s.
    #[must_use]
    pub fn with_longest(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// A snapshot of the whole database. Two databases with the same pages give the same bytes, whatever their headers
    /// count.
    pub(crate) async fn snapshot(&self) -> Result<DatabaseSnapshot, DatabaseError> {
        self.work(move |source| {
            let io = |error: io::Error| FsError::from_io(&error, "the folder for temporary files");
            let folder = TempDir::with_prefix("grove-database-").map_err(io)?;
            let mut copy = Connection::open(folder.path().join(DATABASE)).map_err(sql)?;
            let backup = Backup::new(source, &mut copy).map_err(sql)?;
            // In one step: a copy in several starts over whenever somebody writes between them.
            match backup.step(-1).map_err(sql)? {
                StepResult::Done => Ok(DatabaseSnapshot { store: LocalFs::new(folder.path()), _folder: folder }),
                _ => Err(DatabaseError::Busy),
            }
        })
        .await
    }

    fn path(&self) -> Result<PathBuf, DatabaseError> {
        Ok(self.store.path(&inside(&self.folder, DATABASE))?)
    }

    /// Opens the database and works with it, within the time limit.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        self.store.mkdir(&self.folder).await?;
        let path = self.path()?;
        let (longest, nobody_waits) = (self.longest, Arc::new(AtomicBool::new(false)));
        let _waiting = CancelOnDrop(nobody_waits.clone());
        let done = blocking(move || {
            let mut connection = open(&path)?;
            let end = Instant::now() + longest;
            let stop = move || nobody_waits.load(Ordering::Relaxed) || Instant::now() > end;
            connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(stop)).map_err(sql)?;
            work(&mut connection)
        });
        match done.await {
            Err(DatabaseError::TooSlow { .. }) => Err(DatabaseError::TooSlow { longest }),
            done => done,
        }
    }
}

/// Stops the work when the caller no longer waits for it.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A snapshot of a database: `session.db` in a folder that is removed with this.
#[derive(Debug)]
pub(crate) struct DatabaseSnapshot {
    store: LocalFs,
    _folder: TempDir,
}

impl DatabaseSnapshot {
    pub(crate) fn store(&self) -> &LocalFs {
        &self.store
    }
}

#[async_trait]
impl Database for LocalDatabase {
    async fn exists(&self) -> Result<bool, DatabaseError> {
        Ok(self.store.exists(&inside(&self.folder, DATABASE)).await?)
    }

    async fn query(&self, statement: Statement) -> Result<QueryRows, DatabaseError> {
        self.work(move |connection| perform(connection, &statement)).await
    }

    async fn transaction(&self, statements: Vec<Statement>) -> Result<Vec<QueryRows>, DatabaseError> {
        self.work(move |connection| {
            // A writing transaction locks at once: two that read first could each wait for the other.
            let behavior = rusqlite::TransactionBehavior::Immediate;
            let transaction = connection.transaction_with_behavior(behavior).map_err(sql)?;
            let done: Result<Vec<QueryRows>, _> = statements.iter().map(|one| perform(&transaction, one)).collect();
            let done = done?;
            transaction.commit().map_err(sql)?;
            Ok(done)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T, DatabaseError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(DatabaseError::Sql { reason: error.to_string() }),
    }
}

fn open(path: &Path) -> Result<Connection, DatabaseError> {
    let io = |error: io::Error| FsError::from_io(&error, &path.to_string_lossy());
    // SQLite would make it readable for others. An existing file is left alone: closing it would drop locks.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(error).into()),
    }
    // A link in place of the file is not followed; the folder's own path may have some.
    let folder = path.parent().unwrap_or(path);
    let real = fs::canonicalize(folder).map_err(io)?.join(path.file_name().unwrap_or_default());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(real, flags).map_err(sql)?;
    connection.busy_timeout(PATIENCE).map_err(sql)?;
    // Statements come from agents: they see this file and no other.
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(sql)?;
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(sql)?;
    Ok(connection)
}

fn perform(connection: &Connection, statement: &Statement) -> Result<QueryRows, DatabaseError> {
    if statement.kind == StatementKind::Exec {
        connection.execute_batch(&statement.sql).map_err(sql)?;
        return Ok(QueryRows::default());
    }
    let mut prepared = connection.prepare(&statement.sql).map_err(sql)?;
    for (name, cell) in &statement.parameters {
        let spelt = |sign: &str| prepared.parameter_index(&format!("{sign}{name}")).ok().flatten();
        let index = ["", ":", "@", "$"].into_iter().find_map(spelt);
        let index = index.ok_or_else(|| DatabaseError::NoParameter { name: name.clone() })?;
        prepared.raw_bind_parameter(index, cell).map_err(sql)?;
    }
    if statement.kind == StatementKind::Run {
        let changed = prepared.raw_execute().map_err(sql)? as u64;
        return Ok(QueryRows { changed, last_row: Some(connection.last_insert_rowid()), ..QueryRows::default() });
    }
    let columns: Vec<String> = prepared.column_names().map(str::to_owned).collect();
    let mut given = QueryRows { columns, ..QueryRows::default() };
    let mut bytes = 0;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(sql)? {
        if given.rows.len() == MOST_ROWS {
            return Err(DatabaseError::TooMuch { limit: MOST_ROWS, what: "rows" });
        }
        let mut cells = Vec::with_capacity(given.columns.len());
        for column in 0..given.columns.len() {
            let value = row.get_ref(column).map_err(sql)?;
            bytes += 16 + value.as_bytes_or_null().ok().flatten().map_or(0, <[u8]>::len);
            if bytes > MOST_BYTES {
                return Err(DatabaseError::TooMuch { limit: MOST_BYTES, what: "bytes" });
            }
            cells.push(Cell::from(value));
        }
        given.rows.push(cells);
    }
    Ok(given)
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null => ToSqlOutput::Owned(SqlValue::Null),
            Cell::Integer(number) => ToSqlOutput::Owned(SqlValue::Integer(*number)),
            Cell::Real(number) => ToSqlOutput::Owned(SqlValue::Real(*number)),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Blob(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

fn sql(error: rusqlite::Error) -> DatabaseError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseError::Busy,
        Some(ErrorCode::OperationInterrupted) => DatabaseError::TooSlow { longest: LONGEST },
        _ => DatabaseError::Sql { reason: error.to_string() },
    }
}
