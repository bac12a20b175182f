//! Files of the data folder that nothing needs any more.
//!
//! No session is touched: what a session refers to stays, and so does everything that a running host may use. A host
//! removes most of this itself when it starts or stops; what is found here was left by one that was killed, or by an
//! interrupted command.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use grove_agents::acp::shim_folder;
use grove_core::{ChatId, Session, SessionId};
use grove_fs::{LocalFs, SessionFs};
use serde::Serialize;

use crate::data_folder;
use crate::disk_usage::{entries, size, walk};
use crate::settings::Settings;
use crate::stores::{self, StoreFolder};

/// Younger files may be in use by a command that runs now.
const MIN_AGE: Duration = Duration::from_secs(60 * 60);
/// Younger logs may still be read by people.
const LOG_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The digits of a SHA-256 in hexadecimal, which names a stored body.
const HASH_DIGITS: usize = 64;
/// The folder of a session's temporary files, in the store's folder for these.
const SPILLS_PREFIX: &str = "session-";

/// Something that nothing needs any more.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Garbage {
    pub(crate) path: PathBuf,
    pub(crate) kind: GarbageKind,
    pub(crate) bytes: u64,
}

/// The reason why nothing needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum GarbageKind {
    /// A file that was written and never renamed.
    TemporaryFile,
    /// The host's log before it was rotated, a week ago or earlier.
    OldLog,
    /// A session whose import never finished.
    UnfinishedImport,
    /// The old folder of a session that moved to another store.
    MovedSession,
    /// Temporary files of a session that is gone.
    Spills,
    /// A stored body that no log, no session file and no journal names.
    OrphanedContent,
    /// The folder of an agent that does not run, of a session that is gone.
    AgentFolder,
}

impl GarbageKind {
    /// The kind in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            GarbageKind::TemporaryFile => "a temporary file",
            GarbageKind::OldLog => "an old log",
            GarbageKind::UnfinishedImport => "an unfinished import",
            GarbageKind::MovedSession => "the old folder of a moved session",
            GarbageKind::Spills => "temporary files of a deleted session",
            GarbageKind::OrphanedContent => "content that nothing refers to",
            GarbageKind::AgentFolder => "the folder of a deleted session's agent",
        }
    }
}

/// Finds what may be removed while a host runs.
pub(crate) fn find_beside_host(settings: &Settings, now: SystemTime) -> io::Result<Vec<Garbage>> {
    let data_dir = &settings.data_dir.value;
    let mut found = Vec::new();
    for path in entries(data_dir)?.into_iter().filter(|path| path.is_file()) {
        let kind = match path.extension().and_then(|end| end.to_str()) {
            Some("new") if is_older(&path, MIN_AGE, now) => GarbageKind::TemporaryFile,
            Some("old") if path.ends_with("host.log.old") && is_older(&path, LOG_AGE, now) => GarbageKind::OldLog,
            _ => continue,
        };
        found.push(garbage(path, kind)?);
    }
    Ok(found)
}

/// Finds everything. The caller has locked the data folder, so no host runs.
pub(crate) async fn find_all(settings: &Settings, now: SystemTime) -> io::Result<Vec<Garbage>> {
    let mut found = find_beside_host(settings, now)?;
    let data_dir = &settings.data_dir.value;
    let journaled = hashes_in(&data_dir.join("journal"), &[])?;
    let mut needed_agents = HashSet::new();
    for store in stores::folders(settings) {
        for folder in entries(&store.folder)?.into_iter().filter(|folder| folder.is_dir()) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match name.rsplit_once('~') {
                None => {
                    found.extend(orphaned_contents(&folder, &journaled, now)?);
                    needed_agents.extend(agent_folders(data_dir, &folder, &name)?);
                }
                Some((_, "import")) => found.push(garbage(folder, GarbageKind::UnfinishedImport)?),
                Some((_, "moved")) => found.push(garbage(folder, GarbageKind::MovedSession)?),
                // A disposed session, which `grove rm` deletes.
                Some(_) => {}
            }
        }
        found.extend(spills(data_dir, &store).await?);
    }
    for folder in entries(&data_folder::agents_path(data_dir))? {
        if !needed_agents.contains(&folder) && is_older(&folder, MIN_AGE, now) && !is_locked(&folder.join("lock")) {
            found.push(garbage(folder, GarbageKind::AgentFolder)?);
        }
    }
    Ok(found)
}

/// Removes something that was found.
pub(crate) fn remove(garbage: &Garbage) -> io::Result<()> {
    let removed = match fs::symlink_metadata(&garbage.path)?.is_dir() {
        true => fs::remove_dir_all(&garbage.path),
        false => fs::remove_file(&garbage.path),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn garbage(path: PathBuf, kind: GarbageKind) -> io::Result<Garbage> {
    let bytes = size(&path)?.bytes;
    Ok(Garbage { path, kind, bytes })
}

/// Says whether a file was last changed this long ago. One whose time is unknown is not old.
fn is_older(path: &Path, age: Duration, now: SystemTime) -> bool {
    let changed = fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
    changed.and_then(|changed| now.duration_since(changed).ok()).is_some_and(|passed| passed >= age)
}

fn is_locked(path: &Path) -> bool {
    match File::open(path) {
        Ok(lock) => lock.try_lock().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// The bodies of a session that nothing names.
fn orphaned_contents(folder: &Path, journaled: &HashSet<String>, now: SystemTime) -> io::Result<Vec<Garbage>> {
    let contents = entries(&folder.join("content"))?;
    if contents.is_empty() {
        return Ok(Vec::new());
    }
    let named = hashes_in(folder, &[folder.join("content"), folder.join("files"), folder.join("research")])?;
    let mut found = Vec::new();
    for path in contents {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_body = name.len() == HASH_DIGITS && name.bytes().all(is_digit);
        if is_body && !named.contains(&name) && !journaled.contains(&name) && is_older(&path, MIN_AGE, now) {
            found.push(garbage(path, GarbageKind::OrphanedContent)?);
        }
    }
    Ok(found)
}

/// Every SHA-256 in hexadecimal that the files in a folder name, except for those below `except`.
fn hashes_in(folder: &Path, except: &[PathBuf]) -> io::Result<HashSet<String>> {
    let mut hashes = HashSet::new();
    for (path, _) in walk(folder)? {
        if !except.iter().any(|except| path.starts_with(except)) {
            collect_hashes(File::open(&path)?, &mut hashes)?;
        }
    }
    Ok(hashes)
}

fn collect_hashes(file: impl Read, hashes: &mut HashSet<String>) -> io::Result<()> {
    // The last digits in a row, at most one more than a hash has.
    let mut digits = String::new();
    for byte in BufReader::with_capacity(1 << 16, file).bytes().map(Some).chain([None]) {
        match byte.transpose()? {
            Some(byte) if is_digit(byte) => {
                if digits.len() <= HASH_DIGITS {
                    digits.push(char::from(byte));
                }
            }
            _ => {
                if digits.len() == HASH_DIGITS {
                    hashes.insert(digits.clone());
                }
                digits.clear();
            }
        }
    }
    Ok(())
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// The folders of the agents of a session's chats.
fn agent_folders(data_dir: &Path, folder: &Path, session: &str) -> io::Result<Vec<PathBuf>> {
    let names = entries(&folder.join("chats"))?;
    let names = names.iter().filter_map(|chat| chat.file_name()?.to_str());
    let (session, agents) = (SessionId::from(session), data_folder::agents_path(data_dir));
    let chats = names.chain([Session::MAIN_CHAT]).map(ChatId::from);
    Ok(chats.map(|chat| shim_folder(&agents, &session, &chat)).collect())
}

/// The temporary files of sessions that a store does not have any more.
async fn spills(data_dir: &Path, store: &StoreFolder) -> io::Result<Vec<Garbage>> {
    let is_local = store.folder.starts_with(data_dir);
    let fs = if is_local { LocalFs::inside(data_dir, &store.folder) } else { LocalFs::new(&store.folder) };
    let mut found = Vec::new();
    for left in fs.leftover_tmpdirs().await.map_err(io::Error::other)? {
        let folder = PathBuf::from(left.location("").map_err(io::Error::other)?);
        for path in entries(&folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(session) = name.strip_prefix(SPILLS_PREFIX)
                && !store.folder.join(session).exists()
            {
                found.push(garbage(path, GarbageKind::Spills)?);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_found_wherever_they_are_and_longer_rows_of_digits_are_none() {
        let hash = "0123456789abcdef".repeat(4);
        let text = format!("{{\"a\":\"{hash}\"}}\nff{hash} {}", "ab".repeat(32));
        let mut found = HashSet::new();
        collect_hashes(text.as_bytes(), &mut found).unwrap();
        assert_eq!(found, HashSet::from([hash, "ab".repeat(32)]));
    }
}
