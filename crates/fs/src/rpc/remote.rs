//! The connection to a storage client, shared by all its sessions.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::file_cache::FileCache;
use super::unconfirmed::UnconfirmedAppends;
use super::wire::SessionFsMethod;
use crate::{FsError, Locks, Result};

/// Calls to the other end of a connection.
#[async_trait]
pub trait RemoteCalls: Debug + Send + Sync {
    /// Sends a request and waits for its answer: the result, or `null` without one. Dropping the future drops the
    /// answer.
    async fn call(&self, method: &str, params: Value) -> std::result::Result<Value, CallError>;
}

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The other side answered with an error.
    #[error("{message} ({code})")]
    Refused { code: i64, message: String },
    /// There is no connection, or it was lost before the answer came.
    #[error("the storage client is not connected")]
    Disconnected,
}

/// The limits of calls to a storage client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time that a caller waits for its turn, and then for its result. Then it gets an error.
    pub time: Duration,
    /// The time that one call may go without an answer. Then it has failed, and whether the client did it is unknown.
    pub call: Duration,
    /// The time for which an append without an answer may still arrive. Until then its file is read back before each
    /// change.
    pub late: Duration,
    /// The number of calls that may wait for an answer, over all sessions. Further callers wait for their turn, first
    /// come, first served.
    pub in_flight: usize,
    /// The largest file that is read or rewritten, in bytes: the wire has whole files only.
    pub file: u64,
    /// The most names in a folder.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            call: Duration::from_secs(15),
            late: Duration::from_secs(10 * 60),
            in_flight: 32,
            file: 64 * 1024 * 1024,
            entries: 100_000,
        }
    }
}

/// A storage client at the other end of a connection.
#[derive(Debug)]
pub struct Remote {
    calls: Arc<dyn RemoteCalls>,
    pub(super) limits: Limits,
    turns: Arc<Semaphore>,
    /// By [`lock_key`](crate::SessionFs::lock_key): changes of one file happen one after the other.
    pub(super) locks: Locks,
    pub(super) file_cache: FileCache,
    pub(super) unconfirmed: UnconfirmedAppends,
    /// Set once known: the client counts sizes in bytes.
    pub(super) has_byte_sizes: OnceLock<bool>,
    /// Numbers appends without an answer.
    pub(super) appends: AtomicU64,
}

/// A call that was sent. Dropping it drops the answer.
pub(super) type SentCall = Pin<Box<dyn Future<Output = std::result::Result<Value, CallError>> + Send>>;

impl Remote {
    pub fn new(calls: Arc<dyn RemoteCalls>, limits: Limits) -> Self {
        let turns = Semaphore::new(limits.in_flight.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            calls,
            limits,
            turns: Arc::new(turns),
            locks: Locks::default(),
            file_cache: FileCache::new(limits.file),
            unconfirmed: UnconfirmedAppends::default(),
            has_byte_sizes: OnceLock::new(),
            appends: AtomicU64::new(0),
        }
    }

    /// Waits for a turn. Its holder may make calls, one after the other, until it is dropped.
    pub(super) async fn turn(&self, path: &str) -> Result<OwnedSemaphorePermit> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        turn.map_err(|_| FsError::Disconnected { path: path.to_owned() })
    }

    /// Makes one call. The caller holds a turn.
    pub(super) async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: SessionFsMethod,
        params: &P,
        path: &str,
    ) -> Result<R> {
        let limit = self.limits.call;
        match tokio::time::timeout(limit, self.send(method, params, path)?).await {
            Ok(answer) => answered(answer, path),
            Err(_) => Err(FsError::TimedOut { path: path.to_owned(), limit }),
        }
    }

    /// Sends a call without a time limit.
    pub(super) fn send<P: Serialize>(&self, method: SessionFsMethod, params: &P, path: &str) -> Result<SentCall> {
        let bad = |error: serde_json::Error| FsError::BadAnswer { path: path.to_owned(), reason: error.to_string() };
        let params = serde_json::to_value(params).map_err(bad)?;
        let calls = Arc::clone(&self.calls);
        Ok(Box::pin(async move { calls.call(method.name(), params).await }))
    }
}

/// The result of a call.
pub(super) fn answered<R: DeserializeOwned>(answer: std::result::Result<Value, CallError>, path: &str) -> Result<R> {
    let path = path.to_owned();
    match answer {
        Ok(result) => {
            serde_json::from_value(result).map_err(|error| FsError::BadAnswer { path, reason: error.to_string() })
        }
        Err(CallError::Disconnected) => Err(FsError::Disconnected { path }),
        Err(CallError::Refused { message, .. }) => {
            Err(FsError::Other { path, reason: format!("the storage client refused: {message}") })
        }
    }
}
