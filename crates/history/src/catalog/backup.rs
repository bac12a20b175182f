//! Backups of sessions that a tool is about to delete.
//!
//! At its start, Claude Code deletes the sessions whose files were not written for `cleanupPeriodDays` (30 unless its
//! `settings.json` says otherwise). A file is copied in the last quarter of that time, a week before its end at the
//! latest, and again when it has changed since. No other supported tool is known to clean up.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grove_core::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::private;
use super::store::source_named;
use crate::files;
use crate::limits::MAX_SMALL_FILE;
use crate::reader::{SessionLocation, StoreRoot};

const DAY: u64 = 24 * 60 * 60;
const CLAUDE: &str = "claude";
const CLAUDE_DAYS: u64 = 30;
const WEEK: u64 = 7;
/// The maximum number of files beside a session that are copied with it.
pub const MAX_BESIDE: usize = 1_000;
/// The maximum depth of those files.
const MAX_DEPTH: usize = 8;

/// The file beside a copy that names its origin.
const ORIGIN: &str = "origin";

/// The folder of backups. A backup is listed instead of its deleted file.
#[derive(Clone, Debug)]
pub struct BackupStore {
    pub folder: PathBuf,
    /// The current time. Without it nothing more is copied.
    pub now: Option<Timestamp>,
}

/// A backup, and the file that it was made from.
#[derive(Clone, Debug)]
pub(super) struct SessionBackup {
    pub location: SessionLocation,
    pub origin: PathBuf,
}

/// The time after which a tool deletes unwritten files, if it does.
pub(super) fn lifetime(root: &StoreRoot) -> Option<Duration> {
    if root.source.name() != CLAUDE {
        return None;
    }
    // Sessions are stored in `projects`, settings beside it.
    let settings = root.folder.parent().map(|home| home.join("settings.json"));
    let settings = settings.and_then(|file| files::read(&file, MAX_SMALL_FILE).ok());
    let settings = settings.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let days = settings.and_then(|settings| settings.get("cleanupPeriodDays")?.as_u64()).unwrap_or(CLAUDE_DAYS);
    Some(Duration::from_secs(days.saturating_mul(DAY)))
}

impl BackupStore {
    /// True if a file is about to be deleted.
    pub(super) fn is_due(&self, lifetime: Duration, written: Timestamp) -> bool {
        let Some(now) = self.now else { return false };
        let age = Duration::from_millis(now.0.saturating_sub(written.0));
        let margin = (lifetime / 4).max(Duration::from_secs(WEEK * DAY)).min(lifetime);
        age >= lifetime.saturating_sub(margin)
    }

    /// The path of a session's backup.
    fn place(&self, location: &SessionLocation) -> PathBuf {
        let digest = Sha256::digest(location.path.to_string_lossy().as_bytes());
        let name = hex::encode(&digest[..8]);
        let file = location.path.file_name().unwrap_or_default();
        self.folder.join(location.source.name()).join(name).join(file)
    }

    /// Copies a session and the folder of its name. Returns true if there was anything to copy: files with the same
    /// time and size are skipped.
    pub(super) fn copy(&self, location: &SessionLocation) -> io::Result<bool> {
        let place = self.place(location);
        if is_same(&location.path, &place)? {
            return Ok(false);
        }
        let beside = location.path.with_extension("");
        if beside.is_dir() {
            let mut left = MAX_BESIDE;
            copy_folder(&beside, &place.with_extension(""), &mut left, 0)?;
        }
        if let Some(folder) = place.parent() {
            private::make_folder(folder)?;
            let origin = folder.join(ORIGIN);
            private::make_file(&origin)?;
            fs::write(origin, location.path.to_string_lossy().as_bytes())?;
        }
        // Last, so that an existing copy is a complete one.
        copy_file(&location.path, &place)?;
        Ok(true)
    }

    /// Every backup. Unreadable ones are skipped.
    pub(super) fn copies(&self) -> Vec<SessionBackup> {
        let mut found = Vec::new();
        for source in files::names(&self.folder).unwrap_or_default() {
            let Some(known) = source_named(&source) else { continue };
            let folder = self.folder.join(source);
            for name in files::names(&folder).unwrap_or_default() {
                let folder = folder.join(name);
                let Ok(origin) = files::read_text(&folder.join(ORIGIN), MAX_SMALL_FILE) else { continue };
                let origin = PathBuf::from(origin);
                let copy = origin.file_name().map(|name| folder.join(name));
                if let Some(Ok(location)) = copy.map(|copy| SessionLocation::of_file(known, &copy)) {
                    found.push(SessionBackup { location, origin });
                }
            }
        }
        found
    }
}

fn copy_folder(from: &Path, to: &Path, left: &mut usize, depth: usize) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if *left == 0 || depth > MAX_DEPTH {
            return Ok(());
        }
        *left -= 1;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        // No link is followed: it may lead anywhere.
        if kind.is_dir() {
            copy_folder(&from, &to, left, depth + 1)?;
        } else if kind.is_file() {
            copy_file(&from, &to)?;
        }
    }
    Ok(())
}

fn is_same(from: &Path, to: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(from)?;
    let same = |copy: fs::Metadata| copy.len() == metadata.len() && copy.modified().ok() == metadata.modified().ok();
    Ok(fs::metadata(to).is_ok_and(same))
}

/// Copies a file completely or not at all, with its time.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    if is_same(from, to)? {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        private::make_folder(folder)?;
    }
    let mut name = to.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    private::copy(from, &new)?;
    let file = fs::OpenOptions::new().write(true).open(&new)?;
    file.set_modified(fs::metadata(from)?.modified()?)?;
    fs::rename(&new, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_copied_in_the_last_quarter_of_its_time_and_a_week_before_its_end_at_the_latest() {
        let keep = BackupStore { folder: PathBuf::new(), now: Some(Timestamp(100 * DAY * 1_000)) };
        let due = |lifetime: u64, age: u64| {
            keep.is_due(Duration::from_secs(lifetime * DAY), Timestamp((100 - age) * DAY * 1_000))
        };
        assert_eq!([due(30, 20), due(30, 23), due(30, 40)], [false, true, true]);
        assert_eq!([due(80, 59), due(80, 60)], [false, true]);
        assert!(due(3, 0), "what goes within a week is copied at once");
    }

    #[test]
    fn a_copy_has_what_lies_beside_its_session_and_is_made_again_when_that_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store/one.jsonl");
        fs::create_dir_all(folder.path().join("store/one/subagents")).unwrap();
        fs::write(&path, "{}\n").unwrap();
        fs::write(folder.path().join("store/one/subagents/agent-1.jsonl"), "{}").unwrap();
        let keep = BackupStore { folder: folder.path().join("kept"), now: None };
        let location = || SessionLocation::of_file(grove_transcript::TranscriptSource::CopilotCli, &path).unwrap();
        assert!(keep.copy(&location()).unwrap());
        assert!(!keep.copy(&location()).unwrap(), "nothing has changed");
        fs::write(&path, "{}\n{}\n").unwrap();
        assert!(keep.copy(&location()).unwrap());
        let copies = keep.copies();
        assert_eq!(copies.iter().map(|copy| &copy.origin).collect::<Vec<_>>(), [&path]);
        let copy = &copies[0].location;
        assert_eq!((fs::read_to_string(&copy.path).unwrap().as_str(), copy.id.as_str()), ("{}\n{}\n", "one"));
        assert_eq!(copy.mark.modified_at, location().mark.modified_at);
        assert!(copy.path.with_extension("").join("subagents/agent-1.jsonl").is_file());
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&copy.path).unwrap().permissions());
            assert_eq!(mode & 0o077, 0, "what people said is nobody else's business");
        }
    }
}
