//! `damage.jsonl` in the data folder: the damage that hosts found when they started.
//!
//! It stays until the user deletes it, since damage that was repaired or lost once is not found again.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use grove_core::Timestamp;
use serde::{Deserialize, Serialize};

/// The maximum size of the file. Nothing more is written beyond it.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// One finding of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) message: String,
}

pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("damage.jsonl")
}

/// Appends the findings of a host. They are also in the log, so a failure here is only logged.
pub(crate) fn append(data_dir: &Path, now: Timestamp, damage: &[String]) {
    let path = path(data_dir);
    if damage.is_empty() || fs::metadata(&path).is_ok_and(|found| found.len() > MAX_BYTES) {
        return;
    }
    let known = read(data_dir);
    // Each host finds irreparable damage again.
    let is_new = |message: &&String| !known.iter().any(|finding| finding.message == **message);
    let lines: String = damage
        .iter()
        .filter(is_new)
        .filter_map(|message| serde_json::to_string(&Finding { at: now.0, message: message.clone() }).ok())
        .map(|line| line + "\n")
        .collect();
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written {
        tracing::warn!(%error, file = %path.display(), "cannot write the damage file");
    }
}

/// The findings of earlier starts, oldest first. Unreadable lines are skipped.
pub(crate) fn read(data_dir: &Path) -> Vec<Finding> {
    let text = fs::read_to_string(path(data_dir)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_noted_once() {
        let folder = tempfile::tempdir().unwrap();
        let found = |messages: &[&str]| messages.iter().map(|&message| message.to_owned()).collect::<Vec<_>>();
        append(folder.path(), Timestamp(1), &found(&["a"]));
        append(folder.path(), Timestamp(2), &found(&["a", "b"]));
        let expected = [(1, "a"), (2, "b")].map(|(at, message)| Finding { at, message: message.to_owned() });
        assert_eq!(read(folder.path()), expected);
    }
}
