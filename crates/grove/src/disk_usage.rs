//! The disk space of the data folder and of the stores of sessions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::settings::Settings;
use crate::stores::{self, StoreFolder};

/// The use of a data folder and of the other stores.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiskUsage {
    pub(crate) folder: PathBuf,
    /// All parts together.
    pub(crate) bytes: u64,
    /// The parts, the largest first.
    pub(crate) parts: Vec<PartUsage>,
    /// The sessions, the largest first.
    pub(crate) sessions: Vec<SessionUsage>,
}

/// The use of one part of the data folder.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartUsage {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

/// The use of one session's folder.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionUsage {
    pub(crate) id: String,
    pub(crate) store: String,
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    /// The logs of its chats.
    pub(crate) log_bytes: u64,
    /// Large bodies, stored by reference.
    pub(crate) content_bytes: u64,
}

/// The parts of a data folder: a name, and the entries that belong to it.
const PARTS: [(&str, &[&str]); 7] = [
    ("journal", &["journal", "journal.end"]),
    ("logs", &["host.log", "host.log.old", "damage.jsonl", "audit"]),
    ("agents", &["agents"]),
    ("programs", &["programs"]),
    ("catalog", &["history.db", "history.db-wal", "history.db-shm"]),
    ("history", &["history"]),
    ("caches", &["hosts-seen", "sessions-layer.json", "client-path", "port"]),
];
/// The part of everything that no other part has.
const OTHER: &str = "other";
/// The part of all sessions.
const SESSIONS: &str = "sessions";
/// The folder of sessions in the data folder.
const LOCAL_STORE: &str = "session-state";

/// Measures a data folder and the other stores. Links are not followed.
pub(crate) fn measure(settings: &Settings) -> io::Result<DiskUsage> {
    let folder = settings.data_dir.value.clone();
    let mut sessions = Vec::new();
    for store in stores::folders(settings) {
        sessions.extend(sessions_of(&store)?);
    }
    sessions.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.id.cmp(&b.id)));
    let mut parts: Vec<PartUsage> = PARTS.iter().map(|(name, _)| PartUsage { name, bytes: 0, files: 0 }).collect();
    let total = |count: fn(&SessionUsage) -> u64| sessions.iter().map(count).sum();
    parts.push(PartUsage { name: SESSIONS, bytes: total(|one| one.bytes), files: total(|one| one.files) });
    parts.push(PartUsage { name: OTHER, bytes: 0, files: 0 });
    for entry in entries(&folder)? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == LOCAL_STORE {
            continue;
        }
        let of_part = PARTS.iter().position(|(_, names)| names.contains(&name.as_str()));
        let found = size(&entry)?;
        if let Some(part) = parts.get_mut(of_part.unwrap_or(PARTS.len() + 1)) {
            part.bytes += found.bytes;
            part.files += found.files;
        }
    }
    parts.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(b.name)));
    Ok(DiskUsage { folder, bytes: parts.iter().map(|part| part.bytes).sum(), parts, sessions })
}

fn sessions_of(store: &StoreFolder) -> io::Result<Vec<SessionUsage>> {
    let mut found = Vec::new();
    for folder in entries(&store.folder)?.into_iter().filter(|folder| folder.is_dir()) {
        let whole = size(&folder)?;
        let logs = walk(&folder)?.into_iter().filter(|(path, _)| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("events.jsonl"))
        });
        found.push(SessionUsage {
            id: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            store: store.name.to_string(),
            bytes: whole.bytes,
            files: whole.files,
            log_bytes: logs.map(|(_, bytes)| bytes).sum(),
            content_bytes: size(&folder.join("content"))?.bytes,
        });
    }
    Ok(found)
}

/// Bytes and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

/// The size of a file, or of a folder with everything in it. One that does not exist has none.
pub(crate) fn size(path: &Path) -> io::Result<Size> {
    let files = walk(path)?;
    Ok(Size { bytes: files.iter().map(|(_, bytes)| bytes).sum(), files: files.len() as u64 })
}

/// The files in a folder and below, each with its length; a file alone is the only one.
///
/// Files that are removed meanwhile, as a running host does, are left out.
pub(crate) fn walk(path: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let found = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        if found.is_dir() {
            open.extend(entries(&path)?);
        } else if found.is_file() {
            files.push((path, found.len()));
        }
    }
    Ok(files)
}

/// The paths in a folder, sorted. A folder that does not exist has none.
pub(crate) fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let found = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found?,
    };
    let mut paths = found.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths)
}

/// A number of bytes for people.
pub(crate) fn bytes_shown(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let unit_name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 { format!("{bytes} {unit_name}") } else { format!("{value:.1} {unit_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_that_of_the_files_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/c"), "12345").unwrap();
        fs::write(folder.path().join("a/d"), "123").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("a/link")).unwrap();
        assert_eq!(size(folder.path()).unwrap(), Size { bytes: 8, files: 2 });
        assert_eq!(size(&folder.path().join("a/d")).unwrap(), Size { bytes: 3, files: 1 });
        assert_eq!(size(&folder.path().join("none")).unwrap(), Size::default());
    }

    #[test]
    fn bytes_are_shown_in_the_unit_that_fits() {
        let shown = [0, 1_023, 1_536, 5 << 20, 3 << 40].map(bytes_shown);
        assert_eq!(shown, ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "3.0 TiB"]);
    }
}
