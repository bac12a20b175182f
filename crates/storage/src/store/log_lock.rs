//! The lock of a log.
//!
//! Appending to, repairing and replacing a log take several steps, and so does reading it: the first read gives the
//! position of the rest. Readers and writers hold the lock of the log's key meanwhile. Only a session's task writes to
//! its logs, so between writers the lock changes nothing; it keeps a reader from a log whose torn end is being cut off,
//! or whose older form is being replaced. An index that is held ([`super::chat_log::LogSnapshot`]) needs no lock: the
//! bytes behind it are only appended to.
//!
//! A key names one file of one store, for every user, so one set of locks serves all hosts of a process; two stores
//! with the same path do not wait for each other.

use std::sync::LazyLock;

use grove_fs::{FsError, LockGuard, Locks, SessionFs};

static LOCKS: LazyLock<Locks> = LazyLock::new(Locks::default);

/// Waits for the lock of a log.
pub(crate) async fn hold(fs: &dyn SessionFs, log: &str) -> Result<LockGuard, FsError> {
    Ok(LOCKS.hold(&fs.lock_key(log)?).await)
}
