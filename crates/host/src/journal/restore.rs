//! Logs that are not what they were: missing, cut short, or damaged in the middle. They are completed from the journal, and
//! those of forked chats from the logs that they were copied from. Whatever is replaced is kept beside the log.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, MemoryFs, Removal, SessionFs};
use grove_tree::restoration::{Trust, beginning, complete, with_header_of};
use grove_tree::turns::{self, TurnLimit, header_line, parse_turn_end};
use grove_tree::{LogError, Owner, entries, store};
use sha2::{Digest, Sha256};

use super::record::JournalRecord;
use super::recover::{JournalContents, JournalItem};
use crate::config::Limits;
use crate::session::{ChatLog, ChatLogError, entry_id};
use crate::store::copy::{CopyError, CopyJob};
use crate::store::session_file::{self, ExpectedLog, LoadError, LogExtent, SessionFile};
use crate::store::stores::{StoreError, Stores};
use crate::store::verify::checksum;
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
enum RestoreError {
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
enum CopySourceError {
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
    limits: &Limits,
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
                            Restoration { contents, stores, limits, fs: &fs, file: &file, log: &log }.run().await;
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

/// Cuts a partial turn off the end of a log, as a power cut leaves it, if the journal has the turn whole.
///
/// The part is kept beside the log. The turn would otherwise count as one that the log has.
pub(super) async fn cut_partial_turn(
    contents: &JournalContents,
    fs: &dyn SessionFs,
    session: &SessionId,
    chat: &ChatId,
) -> Result<(), LoadError> {
    let path = paths::log(session, chat);
    let _held = log_lock::hold(fs, &path).await?;
    if !fs.exists(&path).await? {
        return Ok(());
    }
    let side_index = paths::side_index(session, chat);
    let index = store::open_log_with_side_index(fs, &path, &side_index, &mut String::new).await?.index;
    let mut newest: Vec<_> = index.entries().collect();
    let (mut partial, mut begins) = (None, None);
    while let Some(entry) = newest.pop() {
        let line = store::read_lines(fs, &path, &index, &[entry]).await?;
        let turn = line.first().and_then(|line| turn_of(line));
        if turn.is_none() || partial.as_ref().is_some_and(|partial| turn.as_ref() != Some(partial)) {
            break;
        }
        partial = turn;
        begins = Some(index.offset(entry));
    }
    let (Some(turn), Some(offset)) = (partial, begins) else { return Ok(()) };
    let starts_it = |event: &Event| {
        matches!(&event.change, Change::Chat(_, mine, ChatEvent::TurnStarted { turn: started, .. })
            if mine == chat && *started == turn)
    };
    if !contents.events_of(session).any(|(_, event)| starts_it(event)) {
        return Ok(());
    }
    let size = fs.stat(&path).await?.size;
    let cut = fs.read_range(&path, offset, usize::try_from(size - offset.min(size)).unwrap_or(0)).await?;
    tracing::warn!(%session, %chat, %turn, bytes = cut.len(), "a log ends within a turn: it is written again");
    fs.append_file(&format!("{path}.torn"), &cut).await?;
    fs.truncate(&path, offset).await?;
    Ok(())
}

/// The turn that a message in a log belongs to; `None` for the end of a turn, and for entries outside turns.
fn turn_of(line: &[u8]) -> Option<TurnId> {
    #[derive(serde::Deserialize)]
    struct TurnLine {
        grove: Option<TurnField>,
    }
    #[derive(serde::Deserialize)]
    struct TurnField {
        turn: TurnId,
    }
    serde_json::from_slice::<TurnLine>(line).ok()?.grove.map(|grove| grove.turn)
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
    limits: &'a Limits,
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
        let session = session_file::load(scratch.as_ref(), id, self.limits).await?;
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
                let inherited = inherited(scratch.as_ref(), &path, origin, self.limits).await?;
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
                let session = session_file::load(scratch.as_ref(), id, self.limits).await?;
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

/// Picks entries, and entries of turns, that the journal has from their beginning on.
fn is_told_by<'a>(events: &[&'a Event], chat: &ChatId) -> impl Fn(&str, Option<&TurnId>) -> bool + use<'a> {
    let (mut turns, mut entries) = (HashSet::new(), HashSet::new());
    for event in events.iter().filter(|event| is_of(event, chat)) {
        match &event.change {
            Change::Chat(_, _, ChatEvent::TurnStarted { turn, .. }) => {
                turns.insert(turn);
            }
            Change::Chat(_, _, ChatEvent::EntryAdded(entry)) => entries.extend(entry_id(&entry.line)),
            _ => {}
        }
    }
    move |id, turn| entries.contains(id) || turn.is_some_and(|turn| turns.contains(turn))
}

/// The turns that a chat began with, from its log.
async fn inherited(
    fs: &dyn SessionFs,
    path: &str,
    origin: &ChatOrigin,
    limits: &Limits,
) -> Result<turns::LoggedTurns, RestoreError> {
    let index = store::open_log(fs, path, &mut String::new).await?.index;
    let limit = TurnLimit { turns: limits.snapshot_turns, bytes: limits.snapshot_bytes as u64 };
    let leaf = origin.log.leaf.as_ref().and_then(|leaf| index.find(leaf)).or_else(|| index.leaf());
    Ok(turns::newest_turns_at(fs, path, &index, leaf, limit).await?)
}

/// Replays a session from its creation on, and writes each of a chat's turns when it has ended, as it was written first:
/// what a branch was left with is in the log before the leaf moves. `inherited` is what the chat began with.
async fn replay_all(
    events: &[&Event],
    chat: &ChatId,
    log: &mut ChatLog,
    inherited: Option<turns::LoggedTurns>,
) -> Result<(), RestoreError> {
    let Some((Event { at, change: Change::Session(_, SessionEvent::Created(new)) }, rest)) = events.split_first()
    else {
        return Ok(());
    };
    let mut session = Session::new(new, *at);
    for event in rest {
        match (&event.change, &inherited) {
            // The journal says only where they are.
            (Change::Chat(id, mine, ChatEvent::TurnsInherited { origin, .. }), Some(window)) if mine == chat => {
                let (turns, older) = (window.turns.clone(), window.older);
                let begun = ChatEvent::TurnsInherited { origin: origin.clone(), turns, older };
                session.apply(&Event { at: event.at, change: Change::Chat(id.clone(), mine.clone(), begun) });
            }
            _ => session.apply(event),
        }
        if is_of(event, chat) && event.change.class().completes_entry {
            write(&mut session, chat, log).await?;
        }
    }
    write(&mut session, chat, log).await
}

/// Replays what the journal has of a chat whose beginning it let go. The log has nothing of it: it ends before.
async fn replay_newest(
    events: &[&Event],
    mut session: Session,
    chat: &ChatId,
    log: &mut ChatLog,
) -> Result<(), RestoreError> {
    for event in events.iter().filter(|event| is_of(event, chat)) {
        if matches!(event.change, Change::Chat(_, _, ChatEvent::TurnsInherited { .. })) {
            // The log begins with them.
            continue;
        }
        session.apply(event);
        if event.change.class().completes_entry {
            write(&mut session, chat, log).await?;
        }
    }
    write(&mut session, chat, log).await
}

fn is_of(event: &Event, chat: &ChatId) -> bool {
    matches!(&event.change, Change::Chat(_, mine, _) if mine == chat)
}

async fn write(session: &mut Session, chat: &ChatId, log: &mut ChatLog) -> Result<(), RestoreError> {
    if session.chat(chat).is_none_or(|chat| chat.active.is_some()) {
        return Ok(());
    }
    log.catch_up(session).await?;
    if let Some(chat) = session.chat_mut(chat) {
        chat.unlogged.clear();
    }
    Ok(())
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

impl JournalContents {
    /// Descriptions of everything that cannot be read.
    pub(crate) fn damage(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|found| match found {
            JournalItem::Damage(what) => Some(what.as_str()),
            JournalItem::JournalRecord(_) => None,
        })
    }

    /// The events of a session, with their sequence numbers.
    pub(super) fn events_of(&self, session: &SessionId) -> impl Iterator<Item = (u64, &Event)> {
        self.found.iter().filter_map(move |found| match found {
            JournalItem::JournalRecord(JournalRecord::Event { seq, event, .. }) => {
                (event.change.session() == Some(session)).then_some((*seq, event))
            }
            JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
        })
    }

    /// The chats of which the journal has something.
    fn chats(&self) -> HashSet<(&SessionId, &ChatId)> {
        let chats = self.found.iter().filter_map(|found| match found {
            JournalItem::JournalRecord(JournalRecord::Event { event, .. }) => match &event.change {
                Change::Chat(session, chat, _) => Some((session, chat)),
                Change::Session(..) | Change::Root(_) => None,
            },
            JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
        });
        chats.collect()
    }

    /// When each session was created, of those whose creation the journal tells of.
    pub(super) fn created(&self) -> HashMap<SessionId, Timestamp> {
        let created = self.found.iter().filter_map(|found| match found {
            JournalItem::JournalRecord(JournalRecord::Event { event, .. }) => match &event.change {
                Change::Session(id, SessionEvent::Created(_)) => Some((id.clone(), event.at)),
                _ => None,
            },
            JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
        });
        created.collect()
    }
}
