//! The audit log in the data folder: `audit/audit.jsonl` and older files, each of bounded size.
//!
//! A thread of its own writes the records. The host never waits for it: a record that finds the queue full, or the disk,
//! is dropped and counted, and the next record that can be written is preceded by a line that says how many are missing.

mod follower;
pub(crate) mod reader;
pub(crate) mod writer;

use std::path::{Path, PathBuf};

pub(crate) use follower::AuditFollower;
pub(crate) use reader::{AuditFilter, AuditReader};
pub(crate) use writer::AuditFiles;

/// The number of files, with the newest.
pub(crate) const FILES: usize = 8;
/// The size at which a new file begins.
pub(crate) const FILE_BYTES: u64 = 8 << 20;

/// The folder of the audit log.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("audit")
}

/// A file of the log; 0 is the newest.
fn file(folder: &Path, age: usize) -> PathBuf {
    match age {
        0 => folder.join("audit.jsonl"),
        age => folder.join(format!("audit.{age}.jsonl")),
    }
}
