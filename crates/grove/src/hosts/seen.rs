//! What sessions other hosts had when they last answered: a file for each in `hosts-seen` of the data folder.
//!
//! It is a convenience. What cannot be written is not kept, and what cannot be read is not there.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use grove_host::{Clock, SystemClock};
use grove_wire::ahp::SessionSummary;
use serde::{Deserialize, Serialize};

use crate::data_folder;

/// How many sessions are kept of a host, those that changed last; and how large its file may be, else it is not read.
const MOST_SESSIONS: usize = 2_000;
const MOST_BYTES: u64 = 8 << 20;

/// A host's sessions, as they were.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// When, in milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) sessions: Vec<SessionSummary>,
}

/// Keeps a list that a host gave.
pub(super) fn keep(data_dir: &Path, host: &str, sessions: &[SessionSummary]) {
    let sessions = sessions.iter().take(MOST_SESSIONS).cloned().collect();
    let Ok(text) = serde_json::to_string(&Seen { at: SystemClock.now().0, sessions }) else { return };
    let path = path(data_dir, host);
    let folder = path.parent().unwrap_or(data_dir);
    if fs::create_dir_all(folder).is_ok() {
        data_folder::write_private(&path, &text).ok();
    }
}

/// What was kept of a host.
pub(super) fn kept(data_dir: &Path, host: &str) -> Option<Seen> {
    let mut text = String::new();
    File::open(path(data_dir, host)).ok()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Forgets a host's sessions.
pub(crate) fn forget(data_dir: &Path, host: &str) {
    fs::remove_file(path(data_dir, host)).ok();
}

fn path(data_dir: &Path, host: &str) -> PathBuf {
    // A host's name is fit for a file's.
    data_dir.join("hosts-seen").join(format!("{host}.json"))
}
