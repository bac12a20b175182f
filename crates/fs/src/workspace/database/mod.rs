//! `session.db`: data of a session that fits tables better than files.
//!
//! [`Database`] is the interface. [`LocalDatabase`] is a SQLite file in a folder on this machine, and the only code
//! that opens it; [`NoDatabase`] is for stores without one. A storage client's store can supply its own.

pub(crate) mod local;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

pub(crate) use local::DatabaseSnapshot;
pub use local::LocalDatabase;

use crate::FsError;

/// The tables of one session. Every method may be called from several tasks at once.
#[async_trait]
pub trait Database: fmt::Debug + Send + Sync {
    /// Returns whether there is a database already. Asking does not create one.
    async fn exists(&self) -> Result<bool, DatabaseError>;

    /// Runs one statement. The database is created if it is missing.
    async fn query(&self, statement: Statement) -> Result<QueryRows, DatabaseError>;

    /// Runs all statements or none.
    async fn transaction(&self, statements: Vec<Statement>) -> Result<Vec<QueryRows>, DatabaseError>;
}

/// A statement to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub sql: String,
    pub kind: StatementKind,
    /// The parameters by their names in the statement, with or without the `:`, `@` or `$` before them.
    pub parameters: BTreeMap<String, Cell>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Any number of statements without parameters and results.
    Exec,
    /// One statement that returns rows.
    Query,
    /// One statement that changes data.
    Run,
}

/// The result of a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryRows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// The number of changed rows.
    pub changed: u64,
    /// The id of the last inserted row, for a statement that changes data.
    pub last_row: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// The reason why a database failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    #[error("the session's storage has no database: store the session in a local folder to have one")]
    Unsupported,
    #[error("the session's database is in use by another program: try again")]
    Busy,
    #[error("the statement took longer than {longest:?} and was stopped: ask for less")]
    TooSlow { longest: Duration },
    #[error("the statement returned more than {limit} {what}: ask for less, with LIMIT")]
    TooMuch { limit: usize, what: &'static str },
    #[error("there is no parameter {name:?} in the statement: leave it out, or correct its name")]
    NoParameter { name: String },
    #[error("the session's database has something unexpected in {place}: {found}")]
    Unexpected { place: &'static str, found: String },
    #[error("the session's database failed: {reason}")]
    Sql { reason: String },
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl Statement {
    pub fn exec(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), kind: StatementKind::Exec, parameters: BTreeMap::new() }
    }

    pub fn query(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), kind: StatementKind::Query, parameters: BTreeMap::new() }
    }

    pub fn run(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), kind: StatementKind::Run, parameters: BTreeMap::new() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, cell: impl Into<Cell>) -> Self {
        self.parameters.insert(name.to_owned(), cell.into());
        self
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Cell::Integer(number)
    }
}

impl From<Option<&str>> for Cell {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Cell::Null, Cell::from)
    }
}

/// The database of a session whose store has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDatabase;

#[async_trait]
impl Database for NoDatabase {
    async fn exists(&self) -> Result<bool, DatabaseError> {
        Ok(false)
    }

    async fn query(&self, _: Statement) -> Result<QueryRows, DatabaseError> {
        Err(DatabaseError::Unsupported)
    }

    async fn transaction(&self, _: Vec<Statement>) -> Result<Vec<QueryRows>, DatabaseError> {
        Err(DatabaseError::Unsupported)
    }
}
