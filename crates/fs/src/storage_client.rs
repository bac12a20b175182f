//! The storage client's side: any store, served to a host.
//!
//! [`StorageClient::answer`] turns a method and its params into a result. It is independent of connections: the caller
//! passes the host's calls in and the answers out, and a test needs no connection.
//!
//! A host names files by absolute paths in the client's spelling. They begin at the root of the session's store here:
//! `/state/plan.md` is `state/plan.md` of the store, and `C:\state\plan.md` is `C/state/plan.md`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::path::parts;
use crate::rpc::wire::{
    ErrorClass, ExistsResult, MkdirParams, PathParams, QueryParams, QueryResult, QueryType, RangeParams, ReadResult,
    ReaddirResult, ReaddirWithTypesResult, RenameParams, RmParams, SessionFsMethod, SqliteExistsParams, StatResult,
    TransactionError, TransactionParams, TransactionResult, WireCode, WireEntry, WireError, WireKind, WireStatement,
    WriteParams,
};
use crate::rpc::{CallError, StorageCapabilities, cell, value};
use crate::workspace::database::{Cell, Database, DatabaseError, QueryRows, Statement, StatementKind};
use crate::{Conventions, DirEntry, FileKind, FsError, Removal, Result, SessionFs, Stat};

/// The largest file that is sent whole, in bytes.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;

/// JSON-RPC's codes for an invalid call.
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// The result of a call, or its error.
type CallResult<T> = std::result::Result<T, CallError>;

/// The error for a session without a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("session {session} has no storage handler: give one with it, since this client keeps its sessions itself")]
pub struct NoHandler {
    pub session: String,
}

/// Serves a store for each session.
#[derive(Debug)]
pub struct StorageClient {
    conventions: Conventions,
    capabilities: StorageCapabilities,
    sessions: Mutex<HashMap<String, Arc<dyn SessionFs>>>,
}

impl StorageClient {
    /// A storage client without sessions. It spells paths by `conventions` and has the abilities `capabilities`.
    pub fn new(conventions: Conventions, capabilities: StorageCapabilities) -> Self {
        Self { conventions, capabilities, sessions: Mutex::default() }
    }

    /// Serves a session from a store from now on. The wire has no links: for a host that must not be led out of a
    /// folder by them, use a store [`without_links`](SessionFs::without_links).
    pub fn add(&self, session: impl Into<String>, store: Arc<dyn SessionFs>) {
        self.sessions().insert(session.into(), store);
    }

    /// The same for a session that is about to be created or resumed at the host. Without a store the host must not be
    /// asked: it could not store the session.
    pub fn begin(&self, session: &str, store: Option<Arc<dyn SessionFs>>) -> std::result::Result<(), NoHandler> {
        let store = store.ok_or_else(|| NoHandler { session: session.to_owned() })?;
        self.add(session, store);
        Ok(())
    }

    /// Stops serving a session. Calls that have begun go on.
    pub fn remove(&self, session: &str) {
        self.sessions().remove(session);
    }

    /// Answers a call. An invalid call, or one about an unknown session, fails alone.
    pub async fn answer(&self, method: &str, params: Value) -> CallResult<Value> {
        let known = SessionFsMethod::named(method).filter(|method| method.is_offered(self.capabilities));
        match known {
            Some(method) => self.known(method, params).await,
            None => Err(refused(METHOD_NOT_FOUND, format!("Unhandled method {method}"))),
        }
    }

    async fn known(&self, method: SessionFsMethod, params: Value) -> CallResult<Value> {
        match method {
            SessionFsMethod::ReadFile => {
                let (store, path) = self.path_of(params)?;
                read(async { read_text(&store, &path?).await }.await)
            }
            SessionFsMethod::ReadFileBytes => {
                let (store, path) = self.path_of(params)?;
                read(async { read_bytes(&store, &path?).await.map(|bytes| STANDARD.encode(bytes)) }.await)
            }
            SessionFsMethod::ReadFileRange => {
                let params: RangeParams = parsed(params)?;
                let (store, path) = self.find(&params.session_id, &params.path)?;
                let length = usize::try_from(params.length.min(MAX_FILE)).unwrap_or(usize::MAX);
                let range = async { store.read_range(&path?, params.offset, length).await }.await;
                read(range.map(|bytes| STANDARD.encode(bytes)))
            }
            SessionFsMethod::WriteFile => {
                let params: WriteParams = parsed(params)?;
                let (store, path) = self.find(&params.session_id, &params.path)?;
                done(async { store.write_text(&path?, &params.content).await }.await)
            }
            SessionFsMethod::WriteFileBytes => {
                let params: WriteParams = parsed(params)?;
                let (store, path) = self.find(&params.session_id, &params.path)?;
                done(async { write_bytes(&store, &path?, &params.content).await }.await)
            }
            SessionFsMethod::AppendFile => {
                let params: WriteParams = parsed(params)?;
                let (store, path) = self.find(&params.session_id, &params.path)?;
                done(async { store.append_text(&path?, &params.content).await }.await)
            }
            SessionFsMethod::Exists => {
                let (store, path) = self.path_of(params)?;
                let exists = async { store.exists(&path?).await }.await;
                written(&ExistsResult { exists: exists.unwrap_or(false) })
            }
            SessionFsMethod::Stat => {
                let (store, path) = self.path_of(params)?;
                written(&stat_result(async { store.stat(&path?).await }.await))
            }
            SessionFsMethod::Mkdir => {
                let params: MkdirParams = parsed(params)?;
                let (store, path) = self.find(&params.session_id, &params.path)?;
                let recursive = params.recursive.unwrap_or(false);
                done(
                    async { if recursive { store.mkdir(&path?).await } else { mkdir_one(&store, &path?).await } }.await,
                )
            }
            SessionFsMethod::Readdir => {
                let (store, path) = self.path_of(params)?;
                let (entries, error) = split(async { store.readdir(&path?).await }.await);
                written(&ReaddirResult { entries, error })
            }
            SessionFsMethod::ReaddirWithTypes => {
                let (store, path) = self.path_of(params)?;
                let (entries, error) = split(async { store.readdir_with_types(&path?).await }.await);
                written(&ReaddirWithTypesResult { entries: entries.into_iter().map(wire_entry).collect(), error })
            }
            SessionFsMethod::Rm => {
                let params: RmParams = parsed(params)?;
                let (store, path) = self.find(&params.session_id, &params.path)?;
                let what = if params.recursive.unwrap_or(false) { Removal::Everything } else { Removal::One };
                match async { store.rm(&path?, what).await }.await {
                    Err(FsError::NotFound { .. }) if params.force.unwrap_or(false) => done(Ok(())),
                    result => done(result),
                }
            }
            SessionFsMethod::Rename => {
                let params: RenameParams = parsed(params)?;
                let (store, source) = self.find(&params.session_id, &params.src)?;
                let target = self.path(&params.dest);
                done(async { store.rename(&source?, &target?).await }.await)
            }
            SessionFsMethod::SqliteQuery => self.query(parsed(params)?).await,
            SessionFsMethod::SqliteTransaction => self.transaction(parsed(params)?).await,
            SessionFsMethod::SqliteExists => {
                let params: SqliteExistsParams = parsed(params)?;
                let exists = self.database(&params.session_id)?.exists().await;
                written(&ExistsResult { exists: exists.unwrap_or(false) })
            }
        }
    }

    async fn query(&self, params: QueryParams) -> CallResult<Value> {
        let database = self.database(&params.session_id)?;
        // A faulty statement is the caller's fault: it is refused.
        let rows = database.query(statement(params.statement)?).await.map_err(|error| not_done(&error))?;
        written(&query_result(rows)?)
    }

    async fn transaction(&self, params: TransactionParams) -> CallResult<Value> {
        let database = self.database(&params.session_id)?;
        let statements = params.statements.into_iter().map(statement).collect::<CallResult<_>>()?;
        written(&match database.transaction(statements).await {
            Ok(results) => TransactionResult {
                results: results.into_iter().map(query_result).collect::<CallResult<_>>()?,
                error: None,
            },
            Err(error) => {
                let busy = matches!(error, DatabaseError::Busy);
                let error_class = if busy { ErrorClass::BusyOrLocked } else { ErrorClass::Fatal };
                let error = TransactionError { error_class, message: error.to_string() };
                TransactionResult { results: Vec::new(), error: Some(error) }
            }
        })
    }

    /// The database of a session, if its store has one.
    fn database(&self, session: &str) -> CallResult<Arc<dyn Database>> {
        let database = self.store(session)?.database("");
        database.ok_or_else(|| not_done(&DatabaseError::Unsupported))
    }

    fn store(&self, session: &str) -> CallResult<Arc<dyn SessionFs>> {
        let store = self.sessions().get(session).cloned();
        store.ok_or_else(|| refused(INTERNAL_ERROR, format!("No session found for sessionId: {session}")))
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn SessionFs>>> {
        // No step under this lock can panic half way.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path_of(&self, params: Value) -> CallResult<(Arc<dyn SessionFs>, Result<String>)> {
        let params: PathParams = parsed(params)?;
        self.find(&params.session_id, &params.path)
    }

    /// The store of a session, and a path in it. A bad path is an answer; an unknown session is an error.
    fn find(&self, session: &str, path: &str) -> CallResult<(Arc<dyn SessionFs>, Result<String>)> {
        Ok((self.store(session)?, self.path(path)))
    }

    /// A host's path as a path in the store.
    fn path(&self, given: &str) -> Result<String> {
        let Some(path) = self.conventions.parts(given) else {
            return Err(FsError::Other { path: given.to_owned(), reason: "the path must be absolute".to_owned() });
        };
        let path = path.join("/");
        parts(&path).map_err(|error| error.at(given))?;
        Ok(path)
    }
}

fn refused(code: i64, message: String) -> CallError {
    CallError::Refused { code, message }
}

fn not_done(error: &DatabaseError) -> CallError {
    refused(INTERNAL_ERROR, error.to_string())
}

fn statement(given: WireStatement) -> CallResult<Statement> {
    let kind = match given.query_type {
        QueryType::Exec => StatementKind::Exec,
        QueryType::Query => StatementKind::Query,
        QueryType::Run => StatementKind::Run,
    };
    let parameters = given.params.unwrap_or_default().into_iter().map(|(name, value)| Ok((name, cell(value)?)));
    let parameters = parameters.collect::<std::result::Result<_, DatabaseError>>().map_err(|error| not_done(&error))?;
    Ok(Statement { sql: given.query, kind, parameters })
}

fn query_result(rows: QueryRows) -> CallResult<QueryResult> {
    let QueryRows { columns, rows, changed, last_row } = rows;
    let row = |cells: Vec<Cell>| {
        let members = columns.iter().cloned().zip(cells).map(|(name, cell)| Ok((name, value(cell)?)));
        members.collect::<std::result::Result<Map<_, _>, DatabaseError>>()
    };
    let rows = rows.into_iter().map(row).collect::<std::result::Result<_, _>>().map_err(|error| not_done(&error))?;
    Ok(QueryResult { rows, columns, rows_affected: changed, last_insert_rowid: last_row, error: None })
}

fn parsed<T: DeserializeOwned>(params: Value) -> CallResult<T> {
    serde_json::from_value(params).map_err(|error| refused(INVALID_PARAMS, format!("Invalid params: {error}")))
}

fn written<T: Serialize>(result: &T) -> CallResult<Value> {
    serde_json::to_value(result).map_err(|error| refused(INTERNAL_ERROR, error.to_string()))
}

/// The answer of a call without a result: nothing, or the error.
fn done(result: Result<()>) -> CallResult<Value> {
    match result {
        Ok(()) => Ok(Value::Null),
        Err(error) => written(&wire_error(&error)),
    }
}

fn read(result: Result<String>) -> CallResult<Value> {
    let (content, error) = split(result);
    written(&ReadResult { content, error })
}

/// A value, or an empty one beside the error.
fn split<T: Default>(result: Result<T>) -> (T, Option<WireError>) {
    match result {
        Ok(value) => (value, None),
        Err(error) => (T::default(), Some(wire_error(&error))),
    }
}

fn wire_error(error: &FsError) -> WireError {
    let code = match error {
        FsError::NotFound { .. } => WireCode::NotFound,
        _ => WireCode::Unknown,
    };
    WireError { code, message: Some(error.to_string()) }
}

async fn read_text(store: &Arc<dyn SessionFs>, path: &str) -> Result<String> {
    let bytes = read_bytes(store, path).await?;
    String::from_utf8(bytes).map_err(|_| FsError::NotText { path: path.to_owned() })
}

async fn read_bytes(store: &Arc<dyn SessionFs>, path: &str) -> Result<Vec<u8>> {
    // Checked first, so that nobody makes us load a file that could not be sent.
    if store.stat(path).await?.size > MAX_FILE {
        return Err(FsError::TooLarge { path: path.to_owned(), limit: MAX_FILE });
    }
    store.read_file(path).await
}

async fn write_bytes(store: &Arc<dyn SessionFs>, path: &str, content: &str) -> Result<()> {
    let bytes = STANDARD.decode(content);
    let reason = |error: base64::DecodeError| format!("its content is not base64: {error}");
    store
        .write_file(path, &bytes.map_err(|error| FsError::Other { path: path.to_owned(), reason: reason(error) })?)
        .await
}

/// Creates a folder in an existing one.
async fn mkdir_one(store: &Arc<dyn SessionFs>, path: &str) -> Result<()> {
    if store.exists(path).await? {
        return Err(FsError::AlreadyExists { path: path.to_owned() });
    }
    if let Some((above, _)) = path.rsplit_once('/') {
        store.stat(above).await.map_err(|error| error.at(path))?;
    }
    store.mkdir(path).await
}

fn stat_result(stat: Result<Stat>) -> StatResult {
    let time = |time| jiff::Timestamp::try_from(time).map_or_else(|_| EPOCH.to_owned(), |time| format!("{time:.3}"));
    let unknown = SystemTime::UNIX_EPOCH;
    let nothing = Stat { kind: FileKind::Other, size: 0, modified: unknown, created: unknown };
    let (stat, error) = match stat {
        Ok(stat) => (stat, None),
        Err(error) => (nothing, Some(wire_error(&error))),
    };
    StatResult {
        is_file: stat.kind == FileKind::File,
        is_directory: stat.kind == FileKind::Folder,
        size: stat.size,
        mtime: time(stat.modified),
        birthtime: time(stat.created),
        error,
    }
}

/// For times that a date cannot represent.
const EPOCH: &str = "1970-01-01T00:00:00.000Z";

fn wire_entry(entry: DirEntry) -> WireEntry {
    let kind = match entry.kind {
        FileKind::Folder => WireKind::Directory,
        // The wire has no third kind; only folders can be entered.
        FileKind::File | FileKind::Other => WireKind::File,
    };
    WireEntry { name: entry.name, kind }
}
