//! Logs that are less than they were: what the journal still has of their turns is written again.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_tree::store;

use super::record::Record;
use super::recover::{Contents, Found};
use crate::config::Limits;
use crate::session::{ChatLog, ChatLogError};
use crate::store::session_file::{self, ExpectedLog, LoadError, LogExtent, SessionFile};
use crate::store::stores::Stores;
use crate::store::verify::count_turns;
use crate::store::{locking, paths};

/// A log that is shorter than its session's file says.
#[derive(Clone, Debug)]
struct ShortLog {
    expected: ExpectedLog,
    /// How long it is; nothing where it is missing.
    bytes: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
enum RestoreError {
    #[error(transparent)]
    Log(#[from] ChatLogError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("it began as a copy of another chat's log, which the journal does not have")]
    Copy,
}

/// Looks whether the logs of sessions are at least as long as the sessions' files say. Those that are not get back what the
/// journal has of them. Gives the files as they are then, and what happened in words.
pub(super) async fn restore_logs(
    contents: &Contents,
    files: Vec<SessionFile>,
    stores: &Stores,
    limits: &Limits,
) -> (Vec<SessionFile>, Vec<String>) {
    let mut damage = Vec::new();
    let mut checked = Vec::with_capacity(files.len());
    for mut file in files {
        if let (false, Ok(fs)) = (file.disposed, stores.get(file.backend())) {
            match short_logs(fs.as_ref(), &file).await {
                Ok(short) => {
                    for log in short {
                        let restored = restore(contents, &file, &fs, &log, limits).await;
                        let (words, found) = in_words(file.id(), &log, restored);
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

async fn short_logs(fs: &dyn SessionFs, file: &SessionFile) -> Result<Vec<ShortLog>, FsError> {
    let mut short = Vec::new();
    for expected in file.expected_logs() {
        let least = match expected.extent {
            Some(extent) => extent.bytes,
            None => u64::from(expected.has_turns),
        };
        if least == 0 {
            continue;
        }
        let bytes = match fs.stat(&paths::log(file.id(), &expected.chat)).await {
            Ok(stat) => Some(stat.size),
            Err(FsError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        // A chat that is being copied has no log yet.
        if bytes.is_none() && expected.is_copy && expected.extent.is_none() {
            continue;
        }
        if bytes.unwrap_or(0) < least {
            short.push(ShortLog { expected, bytes });
        }
    }
    Ok(short)
}

/// Cuts the beginning of a turn off the end of a log, where the journal has the turn whole: a power cut leaves it so. It is kept
/// beside the log. The turn would otherwise be taken for one that the log has.
pub(super) async fn cut_partial_turn(
    contents: &Contents,
    fs: &dyn SessionFs,
    session: &SessionId,
    chat: &ChatId,
) -> Result<(), LoadError> {
    let path = paths::log(session, chat);
    let _held = locking::hold(fs, &path).await?;
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

/// The turn that a message in a log belongs to; `None` for the end of a turn, and for what belongs to none.
fn turn_of(line: &[u8]) -> Option<TurnId> {
    #[derive(serde::Deserialize)]
    struct Line {
        grove: Option<OfTurn>,
    }
    #[derive(serde::Deserialize)]
    struct OfTurn {
        turn: TurnId,
    }
    serde_json::from_slice::<Line>(line).ok()?.grove.map(|grove| grove.turn)
}

/// The outcome of restoring a log.
struct Restored {
    /// How many turns it had before.
    before: u64,
    /// Its extent now.
    now: Option<LogExtent>,
}

async fn restore(
    contents: &Contents,
    file: &SessionFile,
    fs: &Arc<dyn SessionFs>,
    short: &ShortLog,
    limits: &Limits,
) -> Result<Restored, RestoreError> {
    if short.expected.is_copy {
        return Err(RestoreError::Copy);
    }
    let (id, chat) = (file.id(), &short.expected.chat);
    cut_partial_turn(contents, fs.as_ref(), id, chat).await?;
    let before = count_turns(fs.as_ref(), &paths::log(id, chat)).await;
    let mut log = ChatLog::new(fs.clone(), id, chat.clone());
    // What comes behind the file's number is applied to the session later, as ever.
    let events: Vec<&Event> =
        contents.events_of(id).filter(|(seq, _)| *seq <= file.seq).map(|(_, event)| event).collect();
    let is_creation = |event: &&Event| {
        matches!(event.change, Change::Session(_, SessionEvent::Created(_))) && event.at == file.created_at()
    };
    let session = match events.iter().rposition(is_creation) {
        Some(first) => replay_all(&events[first..], chat, &mut log).await?,
        None => replay_newest(&events, fs, id, chat, limits, &mut log).await?,
    };
    let now = match session {
        Some(session) => log.extent(&session).await?,
        None => None,
    };
    Ok(Restored { before, now })
}

/// Replays a session from its creation on, and writes each of a chat's turns when it has ended, as it was written first:
/// what a branch was left with is in the log before the leaf moves.
async fn replay_all(events: &[&Event], chat: &ChatId, log: &mut ChatLog) -> Result<Option<Session>, RestoreError> {
    let Some((Event { at, change: Change::Session(_, SessionEvent::Created(new)) }, rest)) = events.split_first()
    else {
        return Ok(None);
    };
    let mut session = Session::new(new, *at);
    for event in rest {
        session.apply(event);
        if is_of(event, chat) && is_whole(event) {
            write(&mut session, chat, log).await?;
        }
    }
    write(&mut session, chat, log).await?;
    Ok(Some(session))
}

/// Replays what the journal has of a chat whose beginning it let go: turns that begin in it, behind those that the log has.
async fn replay_newest(
    events: &[&Event],
    fs: &Arc<dyn SessionFs>,
    id: &SessionId,
    chat: &ChatId,
    limits: &Limits,
    log: &mut ChatLog,
) -> Result<Option<Session>, RestoreError> {
    let mut session = session_file::load(fs.as_ref(), id, limits).await?;
    let of_chat = || events.iter().filter(|event| is_of(event, chat));
    // Where the leaf moved, nothing tells which of the moves the log has.
    let moves = |event: &&&Event| {
        matches!(event.change, Change::Chat(_, _, ChatEvent::TurnsLeft | ChatEvent::TurnsInherited { .. }))
    };
    if of_chat().any(|event| moves(&event)) {
        return Ok(Some(session));
    }
    for event in of_chat() {
        let Change::Chat(_, _, change) = &event.change else { continue };
        let is_in_log = change.turn().is_none_or(|turn| {
            session.chat(chat).is_some_and(|chat| chat.active_turn(turn).is_none() && chat.position(turn).is_some())
        });
        let is_entry = matches!(change, ChatEvent::EntryAdded(_));
        if is_in_log && !is_entry {
            continue;
        }
        session.apply(event);
        if is_whole(event) {
            write(&mut session, chat, log).await?;
        }
    }
    Ok(Some(session))
}

fn is_of(event: &Event, chat: &ChatId) -> bool {
    matches!(&event.change, Change::Chat(_, mine, _) if mine == chat)
}

/// Whether an event is the last of something that is written to the log.
fn is_whole(event: &Event) -> bool {
    match &event.change {
        Change::Chat(_, _, change) => change.ends_turn() || matches!(change, ChatEvent::EntryAdded(_)),
        Change::Session(..) | Change::Root(_) => false,
    }
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

/// Describes the outcome, and gives the extent that the session's file is to name from now on.
fn in_words(
    session: &SessionId,
    short: &ShortLog,
    restored: Result<Restored, RestoreError>,
) -> (String, Option<Option<LogExtent>>) {
    let ShortLog { expected: ExpectedLog { chat, extent, .. }, bytes } = short;
    let which = match chat.as_str() {
        Session::MAIN_CHAT => "its log".to_owned(),
        _ => format!("the log of its chat {chat}"),
    };
    let state = match (bytes, extent) {
        (None, _) => "is missing".to_owned(),
        (Some(bytes), Some(extent)) => format!("has {bytes} bytes and had {}", extent.bytes),
        (Some(bytes), None) => format!("has {bytes} bytes and had turns"),
    };
    let (outcome, found) = match restored {
        Ok(Restored { before, now }) => {
            let turns = now.map_or(0, |now| now.turns);
            let back = turns.saturating_sub(before);
            let lost = extent.map(|extent| extent.turns.saturating_sub(turns));
            let back = format!("{} restored from the journal", count(back));
            let lost = match lost {
                Some(0) => "none is lost".to_owned(),
                Some(lost) => format!("{} lost", count(lost)),
                None if turns > 0 => "it is not known whether more are lost".to_owned(),
                None => "its turns are lost".to_owned(),
            };
            (format!("{back}, {lost}"), Some(now))
        }
        Err(error) => (format!("it cannot be restored: {error}"), None),
    };
    (format!("session {session}: {which} {state}; {outcome}"), found)
}

fn count(turns: u64) -> String {
    if turns == 1 { "1 turn is".to_owned() } else { format!("{turns} turns are") }
}

impl Contents {
    /// What cannot be read, in words.
    pub(crate) fn damage(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|found| match found {
            Found::Damage(what) => Some(what.as_str()),
            Found::Record(_) => None,
        })
    }

    /// The events of a session, each with its number.
    pub(super) fn events_of(&self, session: &SessionId) -> impl Iterator<Item = (u64, &Event)> {
        self.found.iter().filter_map(move |found| match found {
            Found::Record(Record::Event { seq, event, .. }) => {
                (event.change.session() == Some(session)).then_some((*seq, event))
            }
            Found::Record(_) | Found::Damage(_) => None,
        })
    }

    /// When each session was created, of those whose creation the journal tells of.
    pub(super) fn created(&self) -> HashMap<SessionId, Timestamp> {
        let created = self.found.iter().filter_map(|found| match found {
            Found::Record(Record::Event { event, .. }) => match &event.change {
                Change::Session(id, SessionEvent::Created(_)) => Some((id.clone(), event.at)),
                _ => None,
            },
            Found::Record(_) | Found::Damage(_) => None,
        });
        created.collect()
    }
}
