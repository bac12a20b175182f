//! The lock of a log.
//!
//! Appending, mending and replacing a log take several steps, and so does reading it: what is read first says where the
//! rest lies. Whoever does either holds the lock of the log's key meanwhile. A session's task is the only one that writes
//! to its logs, so between writers the lock changes nothing; it keeps a reader from looking at a log whose torn end is
//! being cut off, or whose older form is being replaced. A log that was read keeps what was read of it: what is behind
//! an index that somebody holds ([`crate::session::LogSnapshot`]) is only appended to, and needs no lock.
//!
//! A key names one file of one store, whoever asks for it, so one set of locks serves all hosts of a process; two stores
//! with the same path do not wait for each other.

use std::sync::LazyLock;

use grove_fs::{FsError, LockGuard, Locks, SessionFs};

static LOCKS: LazyLock<Locks> = LazyLock::new(Locks::default);

/// Waits for the lock of a log.
pub(crate) async fn hold(fs: &dyn SessionFs, log: &str) -> Result<LockGuard, FsError> {
    Ok(LOCKS.hold(&fs.lock_key(log)?).await)
}
