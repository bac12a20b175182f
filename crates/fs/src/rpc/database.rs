//! The database of a session at a storage client that has one (`capabilities.sqlite`).

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::RpcFs;
use super::wire::{
    ErrorClass, ExistsResult, QueryParams, QueryResult, QueryType, SessionFsMethod, SqliteExistsParams,
    TransactionParams, TransactionResult, WireStatement,
};
use crate::FsError;
use crate::workspace::DATABASE;
use crate::workspace::database::{Cell, Database, DatabaseError, QueryRows, Statement, StatementKind};

/// The most rows that a statement may return.
const MOST_ROWS: usize = 100_000;

/// The tables of one session. The client owns `session.db`: it is never accessed by its path.
#[derive(Clone, Debug)]
pub(super) struct RpcDatabase {
    fs: RpcFs,
}

impl RpcDatabase {
    pub(super) fn new(fs: RpcFs) -> Self {
        Self { fs }
    }

    fn session_id(&self) -> String {
        self.fs.shared.session.clone()
    }

    async fn ask<P: serde::Serialize + Sync, R: serde::de::DeserializeOwned + Send>(
        &self,
        method: SessionFsMethod,
        params: &P,
    ) -> Result<R, DatabaseError> {
        match self.fs.reading(DATABASE, self.fs.call(method, params, DATABASE)).await {
            Ok(result) => Ok(result),
            // The client refuses a faulty statement.
            Err(FsError::Other { reason, .. }) => Err(DatabaseError::Sql { reason }),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl Database for RpcDatabase {
    async fn exists(&self) -> Result<bool, DatabaseError> {
        let found: ExistsResult =
            self.ask(SessionFsMethod::SqliteExists, &SqliteExistsParams { session_id: self.session_id() }).await?;
        Ok(found.exists)
    }

    async fn query(&self, statement: Statement) -> Result<QueryRows, DatabaseError> {
        let params = QueryParams { session_id: self.session_id(), statement: sent(statement)? };
        let given: QueryResult = self.ask(SessionFsMethod::SqliteQuery, &params).await?;
        rows(given)
    }

    async fn transaction(&self, statements: Vec<Statement>) -> Result<Vec<QueryRows>, DatabaseError> {
        let statements = statements.into_iter().map(sent).collect::<Result<_, _>>()?;
        let params = TransactionParams { session_id: self.session_id(), statements };
        let given: TransactionResult = self.ask(SessionFsMethod::SqliteTransaction, &params).await?;
        match given.error {
            None => given.results.into_iter().map(rows).collect(),
            Some(error) if error.error_class == ErrorClass::BusyOrLocked => Err(DatabaseError::Busy),
            Some(error) => Err(DatabaseError::Sql { reason: error.message }),
        }
    }
}

/// A statement as it is sent.
fn sent(statement: Statement) -> Result<WireStatement, DatabaseError> {
    let query_type = match statement.kind {
        StatementKind::Exec => QueryType::Exec,
        StatementKind::Query => QueryType::Query,
        StatementKind::Run => QueryType::Run,
    };
    let params = statement.parameters.into_iter().map(|(name, cell)| Ok((name, value(cell)?)));
    let params: Map<String, Value> = params.collect::<Result<_, DatabaseError>>()?;
    let params = Some(params).filter(|params| !params.is_empty());
    Ok(WireStatement { query: statement.sql, query_type, params })
}

fn rows(given: QueryResult) -> Result<QueryRows, DatabaseError> {
    if let Some(error) = given.error {
        let reason = error.message.unwrap_or_else(|| "the storage client gave no reason".to_owned());
        return Err(DatabaseError::Sql { reason });
    }
    if given.rows.len() > MOST_ROWS {
        return Err(DatabaseError::TooMuch { limit: MOST_ROWS, what: "rows" });
    }
    let QueryResult { columns, rows, rows_affected, last_insert_rowid, .. } = given;
    let cells = |mut row: Map<String, Value>| {
        columns.iter().map(|column| cell(row.remove(column).unwrap_or(Value::Null))).collect::<Result<Vec<_>, _>>()
    };
    let rows = rows.into_iter().map(cells).collect::<Result<_, _>>()?;
    Ok(QueryRows { columns, rows, changed: rows_affected, last_row: last_insert_rowid })
}

/// A cell as JSON. The wire has no form for bytes.
pub(crate) fn value(cell: Cell) -> Result<Value, DatabaseError> {
    Ok(match cell {
        Cell::Null => Value::Null,
        Cell::Integer(number) => number.into(),
        Cell::Real(number) => number.into(),
        Cell::Text(text) => text.into(),
        Cell::Blob(_) => {
            return Err(DatabaseError::Unexpected {
                place: "a statement",
                found: "bytes, which have no JSON".to_owned(),
            });
        }
    })
}

/// A cell from JSON. SQLite has numbers for booleans.
pub(crate) fn cell(value: Value) -> Result<Cell, DatabaseError> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::Bool(flag) => Cell::Integer(flag.into()),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cell::Integer(whole),
            None => Cell::Real(number.as_f64().unwrap_or(f64::MAX)),
        },
        Value::String(text) => Cell::Text(text),
        Value::Array(_) | Value::Object(_) => {
            return Err(DatabaseError::Unexpected { place: "a cell", found: "a list or an object".to_owned() });
        }
    })
}
