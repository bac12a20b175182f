//! Logs that are not what they were: missing, cut short, or damaged in the middle. They are completed from the journal, and
//! those of forked chats from the logs that they were copied from. Whatever is replaced is kept beside the log.

use std::collections::HashSet;
use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, MemoryFs, Removal, SessionFs};
use grove_tree::restoration::{Trust, beginning, complete, with_header_of};
use grove_tree::turns::{TurnLimit, header_line, parse_turn_end};
use grove_tree::{LogError, Owner, entries};
use sha2::{Digest, Sha256};

use super::log_replay::{inherited, is_told_by, replay_all, replay_newest};
use super::verify::checksum;
use crate::journal::JournalContents;
use crate::store::chat_log::{ChatLog, ChatLogError};
use crate::store::copy::{CopyError, CopyJob};
use crate::store::session_file::{self, ExpectedLog, LoadError, LogExtent, SessionFile};
use crate::store::stores::{StoreError, Stores};
use crate::store::{info, log_lock, paths, remove_if_present};

/// A log that is not what its session's file says.
#[derive(Clone, Debug)]
struct DamagedLog {
    expected: ExpectedLog,
    fault: Fault,
}

/// The fault of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Missing,
    /// It has fewer bytes than it had.
    Short {
        bytes: u64,
    },
    /// It has other bytes than it had.
    Changed,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Log(#[from] ChatLogError),
    #[error(transparent)]
    Tree(#[from] LogError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("it began as a copy of the log of session {session}, which cannot be read: {error}")]
    Copy { session: SessionId, error: CopySourceError },
}

/// Why the log that a chat began with cannot be copied again.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopySourceError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Copy(#[from] CopyError),
}

/// Compares the logs of sessions with the sessions' files, and completes those that are damaged from the journal and from the
/// logs that they were copied from. Gives the files as they are then, and what happened in words.
pub(super) async fn restore_logs(
    contents: &JournalContents,
    mut files: Vec<SessionFile>,
    stores: &Stores,
    limit: TurnLimit,
) -> (Vec<SessionFile>, Vec<String>) {
    let mut damage = Vec::new();
    // A fork is copied from what is restored by then.
    files.sort_by_key(SessionFile::created_at);
    let mut checked = Vec::with_capacity(files.len());
    let known = contents.chats();
    for mut file in files {
        if let (false, Ok(fs)) = (file.disposed, stores.get(file.backend())) {
            match damaged_logs(fs.as_ref(), &file, &known).await {
                Ok(damaged) => {
                    for log in damaged {
                        let restored =
                            Restoration { contents, stores, limit, fs: &fs, file: &file, log: &log }.run().await;
                        let Some((words, found)) = in_words(file.id(), &log, restored) else { continue };
                        damage.push(words);
                        if let Some(found) = found {
                            file = file.with_log_as_found(&log.expected.chat, found);
                            if let Err(error) = session_file::save(fs.as_ref(), &file).await {
                                damage.push(format!("session {}: {error}", file.id()));
                            }
                        }
                    }
                }
                Err(error) => damage.push(format!("session {}: {error}", file.id())),
            }
        }
        checked.push(file);
    }
    (checked, damage)
}

/// Finds logs that are shorter than they were. Those of which the journal has something are read as a whole, too: for the
/// others nothing could be done at a start, and `grove check` reads them.
async fn damaged_logs(
    fs: &dyn SessionFs,
    file: &SessionFile,
    known: &HashSet<(&SessionId, &ChatId)>,
) -> Result<Vec<DamagedLog>, FsError> {
    let mut damaged = Vec::new();
    for expected in file.expected_logs() {
        let least = match &expected.extent {
            Some(extent) => extent.bytes,
            None => u64::from(expected.has_turns),
        };
        if least == 0 {
            continue;
        }
        let path = paths::log(file.id(), &expected.chat);
        let fault = match fs.stat(&path).await {
            Ok(stat) if stat.size < least => Fault::Short { bytes: stat.size },
            Ok(_) => {
                let Some(extent) = expected.extent.as_ref().filter(|_| known.contains(&(file.id(), &expected.chat)))
                else {
                    continue;
                };
                if checksum(fs, &path, extent.bytes).await? == extent.crc32 {
                    continue;
                }
                Fault::Changed
            }
            // A chat that is being copied has no log yet.
            Err(FsError::NotFound { .. }) if expected.origin.is_some() && expected.extent.is_none() => continue,
            Err(FsError::NotFound { .. }) => Fault::Missing,
            Err(error) => return Err(error),
        };
        damaged.push(DamagedLog { expected, fault });
    }
    Ok(damaged)
}

/// The outcome of restoring a log.
struct RestoreOutcome {
    /// The turns it had before.
    before: u64,
    /// Its extent now; nothing where it was left as it was.
    now: Option<LogExtent>,
    /// It has exactly the bytes that it had: the checksum proves it.
    is_exact: bool,
    /// As it was found, every line could be read and no turn was missing.
    was_sound: bool,
    /// The file in which the damaged log is kept, if it was replaced.
    kept: Option<String>,
    /// The leaf that it had and that is not in it any more.
    lost_leaf: Option<String>,
}

/// One log that is being restored.
struct Restoration<'a> {
    contents: &'a JournalContents,
    stores: &'a Stores,
    limit: TurnLimit,
    fs: &'a Arc<dyn SessionFs>,
    file: &'a SessionFile,
    log: &'a DamagedLog,
}

impl Restoration<'_> {
    async fn run(&self) -> Result<RestoreOutcome, RestoreError> {
        let (id, chat) = (self.file.id(), &self.log.expected.chat);
        let path = paths::log(id, chat);
        let _held = log_lock::hold(self.fs.as_ref(), &path).await?;
        let found = match self.fs.read_file(&path).await {
            Ok(bytes) => bytes,
            Err(FsError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let rebuilt = self.rebuild(&found).await?;
        let extent = self.log.expected.extent.as_ref();
        let (mut restored, is_exact) = best_of(&found, &rebuilt, extent);
        let (before, after) = (LogState::of(&found), LogState::of(&restored));
        let was_sound = before.is_sound() && extent.is_none_or(|extent| before.turns >= extent.turns);
        let is_better = after.turns > before.turns || after.damage < before.damage;
        let is_taken = match self.log.fault {
            Fault::Missing | Fault::Short { .. } => true,
            // Another program that rewrote the log on purpose left it sound, and not of the same lengths.
            Fault::Changed if is_exact => !was_sound || is_in_place(&found, &restored),
            Fault::Changed => is_better && !was_sound,
        };
        let mut outcome =
            RestoreOutcome { before: before.turns, now: None, is_exact, was_sound, kept: None, lost_leaf: None };
        if !is_taken {
            return Ok(outcome);
        }
        let leaf = extent.filter(|extent| found.len() as u64 <= extent.bytes).and_then(|extent| extent.leaf.as_ref());
        if let Some(leaf) = leaf.filter(|leaf| after.leaf != **leaf) {
            match self.leaf_mark(&restored, leaf) {
                Some(mark) => restored.extend(mark),
                None => outcome.lost_leaf = Some(leaf.clone()),
            }
        }
        outcome.kept = replace(self.fs.as_ref(), &path, &paths::side_index(id, chat), &found, &restored).await?;
        let LogState { turns, leaf, .. } = LogState::of(&restored);
        let is_there = !restored.is_empty();
        let (bytes, crc32) = (restored.len() as u64, crc32fast::hash(&restored));
        outcome.now = is_there.then_some(LogExtent { bytes, turns, crc32, leaf: Some(leaf) });
        Ok(outcome)
    }

    /// Builds the log again in memory, as far as the journal and the log that it was copied from have it.
    async fn rebuild(&self, found: &[u8]) -> Result<Vec<u8>, RestoreError> {
        let (id, chat) = (self.file.id(), &self.log.expected.chat);
        let path = paths::log(id, chat);
        let scratch: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
        session_file::save(scratch.as_ref(), self.file).await?;
        let session = session_file::load(scratch.as_ref(), id, self.limit).await?;
        let copied = match &self.log.expected.origin {
            None => None,
            Some(origin) => match self.copy_again(origin, &session, found).await {
                Ok(copied) => Some(copied),
                // What is left of it may be enough to go on from.
                Err(_) if LogState::of(found).entries > 0 => None,
                Err(error) => return Err(RestoreError::Copy { session: origin.session.clone(), error }),
            },
        };
        // What comes behind the file's number is applied to the session later, as ever.
        let events = self.contents.events_of(id).filter(|(seq, _)| *seq <= self.file.seq);
        let events: Vec<&Event> = events.map(|(_, event)| event).collect();
        let is_creation = |event: &&Event| {
            matches!(event.change, Change::Session(_, SessionEvent::Created(_))) && event.at == self.file.created_at()
        };
        let first = events.iter().rposition(is_creation);
        let mut log = ChatLog::new(scratch.clone(), id, chat.clone());
        match (first, &copied, &self.log.expected.origin) {
            (Some(first), None, None) => replay_all(&events[first..], chat, &mut log, None).await?,
            (Some(first), Some(copied), Some(origin)) => {
                scratch.write_file(&path, copied).await?;
                let inherited = inherited(scratch.as_ref(), &path, origin, self.limit).await?;
                replay_all(&events[first..], chat, &mut log, Some(inherited)).await?;
            }
            _ => {
                let begun = match &copied {
                    Some(copied) => complete(found, copied, Trust::Damaged),
                    None => found.to_vec(),
                };
                let base = beginning(&begun, is_told_by(&events, chat));
                let base = complete(&base, &header_line(&session), Trust::Damaged);
                if LogState::of(&base).entries > 0 {
                    scratch.write_file(&path, &base).await?;
                }
                let session = session_file::load(scratch.as_ref(), id, self.limit).await?;
                replay_newest(&events, session, chat, &mut log).await?;
            }
        }
        match scratch.read_file(&path).await {
            Ok(rebuilt) => Ok(rebuilt),
            Err(FsError::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Copies the part of another log again that the log began with.
    async fn copy_again(
        &self,
        origin: &Arc<ChatOrigin>,
        session: &Session,
        found: &[u8],
    ) -> Result<Vec<u8>, CopySourceError> {
        let source = paths::log(&origin.session, &origin.chat);
        let from = self.stores.find_holder(&origin.store, &source).await?;
        let mut job = CopyJob {
            from,
            to: self.fs.clone(),
            origin: origin.clone(),
            index: None,
            session: session.id.clone(),
            chat: self.log.expected.chat.clone(),
            title: session.title.clone(),
            at: session.created_at,
            cwd: session.working_directories.first().map_or("/", String::as_str).to_owned(),
        };
        let note = info::id_of("from", &session.id);
        let has_note = found.windows(note.len()).any(|bytes| bytes == note.as_bytes());
        Ok(job.log_again(!has_note).await?)
    }

    /// The line that puts the leaf of a log where it was; nothing where that entry is not in it. An empty id stands for the
    /// place before the first entry.
    fn leaf_mark(&self, log: &[u8], leaf: &str) -> Option<Vec<u8>> {
        let index = grove_tree::open(log.to_vec(), &mut String::new).ok()?.index().clone();
        let target = match leaf {
            "" => None,
            leaf => Some(index.find(leaf).filter(|entry| index.owner(*entry) == Owner::Tree).map(|_| leaf)?),
        };
        let hash =
            hex::encode(Sha256::digest(format!("leaf {} {leaf}", paths::log(self.file.id(), &self.log.expected.chat))));
        let id = (8..=hash.len()).step_by(4).map(|length| &hash[..length]).find(|id| index.find(id).is_none())?;
        let mut line = entries::leaf_mark(id, self.file.modified_at(), target);
        line.push(b'\n');
        Some(line)
    }
}

/// The facts about the bytes of a log that tell which of two is the better one.
struct LogState {
    entries: usize,
    turns: u64,
    /// How much is wrong in it. A log that cannot be opened is worse than any other.
    damage: u64,
    /// The id of the leaf; empty before the first entry.
    leaf: String,
}

impl LogState {
    fn of(log: &[u8]) -> Self {
        let Ok(log) = grove_tree::open(log.to_vec(), &mut String::new) else {
            return Self { entries: 0, turns: 0, damage: u64::MAX, leaf: String::new() };
        };
        let index = log.index();
        let own = index.entries().filter(|entry| index.owner(*entry) == Owner::Grove);
        let ended: HashSet<_> = own.filter_map(|entry| parse_turn_end(log.line(entry))).collect();
        Self {
            entries: index.len(),
            turns: ended.len() as u64,
            damage: index.damage().len() as u64 + index.unlisted_damage(),
            leaf: index.leaf().map(|leaf| index.id(leaf).into_owned()).unwrap_or_default(),
        }
    }

    fn is_sound(&self) -> bool {
        self.damage == 0
    }
}

/// The best log that a damaged one and a rebuilt one give together, and whether its checksum proves that it has the bytes
/// which it had. Without the proof no line is changed that can be read.
fn best_of(found: &[u8], rebuilt: &[u8], extent: Option<&LogExtent>) -> (Vec<u8>, bool) {
    if let Some(extent) = extent {
        let length = usize::try_from(extent.bytes).unwrap_or(usize::MAX);
        let is_exact = |log: &Vec<u8>| log.get(..length).is_some_and(|log| crc32fast::hash(log) == extent.crc32);
        for rebuilt in [rebuilt.to_vec(), with_header_of(rebuilt, found)] {
            for others_from in [extent.bytes, 0] {
                let log = complete(found, &rebuilt, Trust::Rebuilt { others_from });
                if is_exact(&log) {
                    return (log, true);
                }
            }
        }
    }
    (complete(found, rebuilt, Trust::Damaged), false)
}

/// Tells whether two logs have the same lengths of lines, so that they differ within lines alone.
fn is_in_place(found: &[u8], restored: &[u8]) -> bool {
    let ends =
        |log: &[u8]| log.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect::<Vec<_>>();
    ends(found) == ends(restored)
}

/// Puts a restored log in the place of a damaged one. Gives the name under which the damaged one is kept, unless it was only
/// appended to.
async fn replace(
    fs: &dyn SessionFs,
    path: &str,
    side_index: &str,
    found: &[u8],
    restored: &[u8],
) -> Result<Option<String>, FsError> {
    if restored == found {
        return Ok(None);
    }
    let whole = found.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut kept = None;
    if restored.starts_with(found) {
        fs.append_file(path, &restored[found.len()..]).await?;
        fs.sync(path).await?;
    } else if restored.starts_with(&found[..whole]) {
        fs.append_file(&format!("{path}.torn"), &found[whole..]).await?;
        fs.truncate(path, whole as u64).await?;
        fs.append_file(path, &restored[whole..]).await?;
        fs.sync(path).await?;
    } else {
        let mut name = format!("{path}.damaged");
        let mut number = 1;
        while fs.exists(&name).await? {
            number += 1;
            name = format!("{path}.damaged-{number}");
        }
        fs.write_file(&name, found).await?;
        fs.write_file(path, restored).await?;
        kept = Some(name);
    }
    remove_if_present(fs, side_index, Removal::One).await?;
    Ok(kept)
}

/// Describes the outcome, and gives the extent that the session's file is to name from now on. There is nothing to say of a log
/// that another program has rewritten.
fn in_words(
    session: &SessionId,
    log: &DamagedLog,
    restored: Result<RestoreOutcome, RestoreError>,
) -> Option<(String, Option<Option<LogExtent>>)> {
    let DamagedLog { expected: ExpectedLog { chat, extent, origin, .. }, fault } = log;
    let which = match chat.as_str() {
        Session::MAIN_CHAT => "its log".to_owned(),
        _ => format!("the log of its chat {chat}"),
    };
    let state = match (fault, extent) {
        (Fault::Missing, _) => "is missing".to_owned(),
        (Fault::Short { bytes }, Some(extent)) => format!("has {bytes} bytes and had {}", extent.bytes),
        (Fault::Short { bytes }, None) => format!("has {bytes} bytes and had turns"),
        (Fault::Changed, _) => "is damaged".to_owned(),
    };
    let sources = match origin {
        None => "the journal".to_owned(),
        Some(origin) => format!("the journal and the log of session {}, which it was copied from", origin.session),
    };
    let (outcome, found) = match restored {
        Ok(restored) if *fault == Fault::Changed && restored.now.is_none() => {
            if restored.was_sound {
                return None;
            }
            let had = extent.as_ref().map_or(0, |extent| extent.turns);
            let before = restored.before;
            (format!("it had {had} turns and has {before}, and nobody has what is missing"), None)
        }
        Ok(RestoreOutcome { before, now, is_exact, kept, lost_leaf, .. }) => {
            let turns = now.as_ref().map_or(0, |now| now.turns);
            let back = count(turns.saturating_sub(before));
            let lost = extent.as_ref().map(|extent| extent.turns.saturating_sub(turns));
            let lost = match lost {
                Some(0) => "none is lost".to_owned(),
                Some(lost) => format!("{} lost", count(lost)),
                None if turns > 0 => "it is not known whether more are lost".to_owned(),
                None => "its turns are lost".to_owned(),
            };
            let mut words = match (fault, is_exact) {
                (Fault::Changed, true) => format!("it is restored as it was from {sources}, {lost}"),
                _ => format!("{back} restored from {sources}, {lost}"),
            };
            if let Some(leaf) = lost_leaf {
                words += &format!("; entry {leaf}, at which the conversation stood, is not in it any more");
            }
            if let Some(kept) = kept {
                words += &format!("; the damaged log is kept in {kept}");
            }
            (words, Some(now))
        }
        Err(error) => (format!("it cannot be restored: {error}"), None),
    };
    Some((format!("session {session}: {which} {state}; {outcome}"), found))
}

fn count(turns: u64) -> String {
    if turns == 1 { "1 turn is".to_owned() } else { format!("{turns} turns are") }
}
