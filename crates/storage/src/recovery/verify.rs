//! Verification of the data on disk, for `grove check`. Nothing is changed.

use std::path::Path;
use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_tree::turns::parse_turn_end;
use grove_tree::{Owner, store};

use crate::journal::{FileJournal, JournalContents};
use crate::store::session_file::{self, ExpectedLog, LoadError, SessionFile};
use crate::store::{log_lock, paths};

/// The part of a log that is read at a time.
const PIECE: usize = 1 << 20;

/// Compares the journal, the sessions' files and their logs; returns descriptions of the damage.
pub async fn verify_all(journal: &Path, stores: &[Arc<dyn SessionFs>]) -> Vec<String> {
    let mut wrong = Vec::new();
    // First, since a running host writes to the journal first.
    let mut files = Vec::new();
    for fs in stores {
        match fs.readdir("").await {
            Ok(names) => {
                for id in names.iter().filter_map(|name| session_of(name)) {
                    match session_file::read(fs.as_ref(), &id).await {
                        Ok(file) => files.push((fs, file)),
                        Err(LoadError::Fs(FsError::NotFound { .. } | FsError::NotADirectory { .. })) => {}
                        Err(error) => wrong.push(format!("session {id}: {error}")),
                    }
                }
            }
            Err(FsError::NotFound { .. }) => {}
            Err(error) => wrong.push(error.to_string()),
        }
    }
    match FileJournal::look(journal) {
        Ok(contents) => {
            wrong.extend(contents.damage().map(str::to_owned));
            let seqs = files.iter().map(|(_, file)| file);
            wrong.extend(lacks_numbers(&contents, seqs));
        }
        Err(error) => wrong.push(error.to_string()),
    }
    for (fs, file) in files.iter().filter(|(_, file)| !file.disposed) {
        wrong.extend(verify_file(fs.as_ref(), file).await);
    }
    wrong
}

/// Compares the logs of a session with its file; returns descriptions of the damage.
pub async fn verify_session(fs: &dyn SessionFs, session: &SessionId) -> Vec<String> {
    match session_file::read(fs, session).await {
        Ok(file) => verify_file(fs, &file).await,
        // A session that was never written is only in the journal.
        Err(LoadError::Fs(FsError::NotFound { .. })) => Vec::new(),
        Err(error) => vec![format!("session {session}: {error}")],
    }
}

/// Reports sessions' folders with sequence numbers that the journal lacks.
///
/// The journal has each number first, so it was removed, truncated, or is an older one.
pub(super) fn lacks_numbers<'a>(
    contents: &JournalContents,
    files: impl IntoIterator<Item = &'a SessionFile>,
) -> Option<String> {
    let known = contents.last_used();
    let newest = files.into_iter().filter(|file| file.seq > known).max_by_key(|file| file.seq)?;
    let (id, seq) = (newest.id(), newest.seq);
    let journal = if known == 0 { "holds none".to_owned() } else { format!("ends at {known}") };
    Some(format!(
        "the folder of session {id} has events up to number {seq}, and the journal {journal}: it was removed, cut off, or \
         restored from a backup; events that only it had are lost, and the folders' data is used"
    ))
}

fn session_of(name: &str) -> Option<SessionId> {
    SessionUri::from(format!("session:/{name}")).id()
}

async fn verify_file(fs: &dyn SessionFs, file: &SessionFile) -> Vec<String> {
    let mut wrong: Vec<String> = file.implausible_times().into_iter().collect();
    for log in file.expected_logs() {
        let which = match log.chat.as_str() {
            Session::MAIN_CHAT => format!("session {}: its log", file.id()),
            _ => format!("session {}: the log of its chat {}", file.id(), log.chat),
        };
        match verify_log(fs, file.id(), &log).await {
            Ok(None) => {}
            Ok(Some(what)) => wrong.push(format!("{which} {what}")),
            Err(error) => wrong.push(format!("{which} cannot be read: {error}")),
        }
    }
    wrong
}

async fn verify_log(fs: &dyn SessionFs, session: &SessionId, log: &ExpectedLog) -> Result<Option<String>, FsError> {
    let path = paths::log(session, &log.chat);
    let _held = log_lock::hold(fs, &path).await?;
    let size = match fs.stat(&path).await {
        Ok(stat) => stat.size,
        Err(FsError::NotFound { .. }) if log.has_turns || log.extent.is_some() => {
            let turns = log.extent.as_ref().map(|extent| format!(", with {}", count(extent.turns))).unwrap_or_default();
            return Ok(Some(format!("is missing{turns}")));
        }
        Err(FsError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(extent) = &log.extent else {
        return Ok((log.has_turns && size == 0).then(|| "is empty, and had turns".to_owned()));
    };
    let turns = count_turns(fs, &path).await;
    let now = format!("it had {} and has {}", count(extent.turns), count(turns));
    if size < extent.bytes {
        return Ok(Some(format!("has {size} bytes and had {}: {now}", extent.bytes)));
    }
    if checksum(fs, &path, extent.bytes).await? != extent.crc32 {
        let bytes = extent.bytes;
        return Ok(Some(format!(
            "is not what Grove wrote, somewhere in its first {bytes} bytes: it is damaged, or another program has rewritten \
             it; {now}"
        )));
    }
    Ok((turns < extent.turns).then(|| format!("lost turns: {now}")))
}

/// The checksum of the first bytes of a file.
pub(super) async fn checksum(fs: &dyn SessionFs, path: &str, bytes: u64) -> Result<u32, FsError> {
    let mut hasher = crc32fast::Hasher::new();
    let mut at = 0;
    while at < bytes {
        let most = usize::try_from(bytes - at).unwrap_or(PIECE).min(PIECE);
        let piece = fs.read_range(path, at, most).await?;
        if piece.is_empty() {
            break;
        }
        hasher.update(&piece);
        at += piece.len() as u64;
    }
    Ok(hasher.finalize())
}

/// How many turns end in a log; none where it is missing or cannot be read at all.
async fn count_turns(fs: &dyn SessionFs, path: &str) -> u64 {
    let Ok(opened) = store::open_log(fs, path, &mut String::new).await else { return 0 };
    let own: Vec<_> = opened.index.entries().filter(|entry| opened.index.owner(*entry) == Owner::Grove).collect();
    let Ok(lines) = store::read_lines(fs, path, &opened.index, &own).await else { return 0 };
    lines.iter().filter_map(|line| parse_turn_end(line)).count() as u64
}

fn count(turns: u64) -> String {
    if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") }
}
