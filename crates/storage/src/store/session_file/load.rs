//! Reading a session from its folder: `session.json`, and the newest turns of its logs.

use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_tree::turns::{self, EntryRange, LoggedTurns, TurnLimit};
use grove_tree::{EntryNo, LogError, LogIndex, Role, store};

use super::chat_file::main_chat;
use super::{Disposition, SessionFile, VERSION, save};
use crate::store::stores::StoreError;
use crate::store::{log_lock, paths};

/// The reason why a session cannot be read from its folder.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error("session.json cannot be read: {0}")]
    File(#[from] serde_json::Error),
    #[error("session.json is of version {0}, and this Grove knows version {VERSION}")]
    Version(u32),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the session has no turn {0}")]
    UnknownTurn(TurnId),
}

/// Reads the file of a session.
pub async fn read(fs: &dyn SessionFs, session: &SessionId) -> Result<SessionFile, LoadError> {
    let bytes = fs.read_file(&paths::session_file(session)).await?;
    let file: SessionFile = serde_json::from_slice(&bytes)?;
    if file.version > VERSION { Err(LoadError::Version(file.version)) } else { Ok(file.with_plausible_times()) }
}

/// Reads a session from its folder, with its newest turns.
pub async fn load(fs: &dyn SessionFs, session: &SessionId, limit: TurnLimit) -> Result<Session, LoadError> {
    load_turns(read(fs, session).await?, fs, limit).await
}

/// The session of a file that is read already, with its newest turns.
pub(crate) async fn load_turns(file: SessionFile, fs: &dyn SessionFs, limit: TurnLimit) -> Result<Session, LoadError> {
    let mut turns = Vec::new();
    for chat in file.chats() {
        let window = read_turns(fs, file.id(), &chat.id, chat.origin.as_deref(), None, limit).await?;
        turns.push(window);
    }
    Ok(file.session(turns))
}

/// The session with its newest turns, and the first chat whose log had turns and has none any more.
pub async fn with_turns(
    file: SessionFile,
    fs: &dyn SessionFs,
    limit: TurnLimit,
) -> Result<(Session, Option<ChatId>), LoadError> {
    let had: Vec<ChatId> = file.chats().filter(|chat| chat.has_turns).map(|chat| chat.id.clone()).collect();
    let session = load_turns(file, fs, limit).await?;
    let shows_none = |id: &&ChatId| session.chat(id).is_some_and(|chat| chat.turns.is_empty() && !chat.has_older_turns);
    for chat in had.iter().filter(shows_none) {
        // Another program may have moved the leaf: that is no loss.
        let path = paths::log(&session.id, chat);
        let is_lost = !fs.exists(&path).await? || store::open_log(fs, &path, &mut String::new).await?.index.is_empty();
        if is_lost {
            let lost = Some(chat.clone());
            return Ok((session, lost));
        }
    }
    Ok((session, None))
}

/// Reads the turns before `before`, or the last ones, from a chat's log.
pub async fn read_turns(
    fs: &dyn SessionFs,
    session: &SessionId,
    chat: &ChatId,
    origin: Option<&ChatOrigin>,
    before: Option<&TurnId>,
    limit: TurnLimit,
) -> Result<LoggedTurns, LoadError> {
    let path = paths::log(session, chat);
    let _held = log_lock::hold(fs, &path).await?;
    if !fs.exists(&path).await? {
        return Ok(LoggedTurns { turns: Vec::new(), older: false });
    }
    // A log that Grove wrote has ids.
    let opened =
        store::open_log_with_side_index(fs, &path, &paths::side_index(session, chat), &mut String::new).await?;
    let index = opened.index;
    let stretch = match before {
        None => EntryRange::to(index.leaf()),
        Some(turn) => match turns::locate_turn(fs, &path, &index, turn).await? {
            Some(place) => EntryRange::before(&index, place.first),
            None => return Err(LoadError::UnknownTurn(turn.clone())),
        },
    };
    Ok(turns::newest_turns_in(fs, &path, &index, stretch.above(floor(origin, &index)), limit).await?)
}

/// The entry after which the shown part of a chat starts, if that is not the first one.
pub fn floor(origin: Option<&ChatOrigin>, index: &LogIndex) -> Option<EntryNo> {
    let origin = origin.filter(|origin| !origin.is_shown())?;
    index.find(origin.log.leaf.as_deref()?)
}

/// Rebuilds and writes the file of a session of which only the main chat's log is left.
pub(crate) async fn rebuild(
    fs: &dyn SessionFs,
    id: &SessionId,
    store: &StoreName,
    limit: TurnLimit,
) -> Result<SessionFile, LoadError> {
    let main = main_chat();
    let window = read_turns(fs, id, &main, None, None, limit).await?;
    let path = paths::log(id, &main);
    let index = store::open_log(fs, &path, &mut String::new).await?.index;
    let agent = agent_in(fs, &path, &index).await?;
    let new = NewSession {
        id: id.clone(),
        uri: SessionUri::from(format!("{agent}:/{id}")),
        agent,
        model: None,
        working_directories: index.header().and_then(|header| header.cwd()).into_iter().collect(),
        config: None,
        store: store.clone(),
    };
    let mut session = Session::new(&new, window.turns.first().map_or(Timestamp(0), |turn| turn.started_at));
    session.title = index.name().unwrap_or_else(|| Session::UNTITLED.to_owned());
    session.lifecycle = Lifecycle::Ready;
    session.modified_at = window.turns.last().map_or(session.created_at, |turn| turn.ended_at);
    if let Some(chat) = session.chats.first_mut() {
        (chat.turns, chat.has_older_turns) = (window.turns, window.older);
        chat.title.clone_from(&session.title);
        (chat.modified_at, chat.touched_at) = (session.modified_at, session.modified_at);
    }
    let runs = || LoadError::Fs(FsError::Other { path, reason: "it has no chat".to_owned() });
    let file = SessionFile::of(&session, 0, Disposition::Kept).ok_or_else(runs)?;
    save(fs, &file).await?;
    Ok(file)
}

/// The agent that gave the newest answer in a log. Another program's log may name one that this host lacks.
async fn agent_in(fs: &dyn SessionFs, path: &str, index: &LogIndex) -> Result<AgentId, LoadError> {
    let mut answers = index.entries().filter(|entry| index.role(*entry) == Some(Role::Assistant));
    let newest: Vec<EntryNo> = answers.next_back().into_iter().collect();
    let lines = store::read_lines(fs, path, index, &newest).await?;
    let line = lines.first().and_then(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let name = line.as_ref().and_then(|line| line["message"]["provider"].as_str());
    // A name that is valid as a URI's scheme cannot lead out of the folder.
    let is_scheme = |name: &&str| {
        name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-')
    };
    Ok(AgentId::from(name.filter(is_scheme).unwrap_or("scripted")))
}
