//! `session.json`: the data of a session beside its conversation.
//!
//! It is replaced as a whole, and only while no turn is running: log and file together are then the session as of the
//! sequence number in the file, and the journal is needed for nothing up to there.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_tree::turns::{self, EntryRange, LoggedTurns, TurnLimit};
use grove_tree::{EntryNo, LogError, LogIndex, Role, store};
use grove_wire::ahp::uri;
use serde::{Deserialize, Serialize};

use super::stores::StoreError;
use super::{log_lock, paths};
use crate::config::Limits;
use crate::sequencer::Names;
use crate::session::{is_collision, moved_message, read_checkout};

/// The version of this file's format.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionFile {
    version: u32,
    /// Everything up to this sequence number is in here or in the log.
    pub(crate) seq: u64,
    /// Not listed any more; the folder stays.
    pub(crate) disposed: bool,
    /// Says whether the last turn ended in error, which lists show.
    pub(crate) failed: bool,
    id: SessionId,
    uri: SessionUri,
    /// The name of the store that it was written for. In any other it is a copy, and no session.
    #[serde(default, skip_serializing_if = "StoreName::is_local")]
    backend: StoreName,
    provider: ProviderId,
    title: String,
    /// The title's origin. Older files lack it: their titles are kept as if the user had given them.
    #[serde(default = "given_by_person")]
    title_source: TitleSource,
    lifecycle: Lifecycle,
    model: Option<ModelId>,
    working_directories: Vec<String>,
    is_read: bool,
    is_archived: bool,
    created_at: Timestamp,
    modified_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<SessionConfig>,
    #[serde(default)]
    details: SessionDetails,
    #[serde(default, skip_serializing_if = "Checkout::is_unknown")]
    checkout: Checkout,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    active_clients: Vec<ActiveClient>,
    /// The main chat.
    chat: ChatFile,
    /// The other chats, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chats: Vec<ChatFile>,
    /// Times that were replaced when it was read, since no clock shows them.
    #[serde(skip)]
    replaced_times: Vec<&'static str>,
}

/// A chat, without its turns.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChatFile {
    #[serde(default = "main_chat")]
    id: ChatId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    #[serde(default)]
    is_read: bool,
    #[serde(default)]
    is_archived: bool,
    /// Says whether its last turn ended in error, which lists show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    #[serde(deserialize_with = "stored_chat_title")]
    title: String,
    /// Its origin, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Arc<ChatOrigin>>,
    steering: Option<PendingMessage>,
    queued: Vec<PendingMessage>,
    draft: Option<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent_session: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_agent_retold: bool,
    modified_at: Timestamp,
    #[serde(default)]
    touched_at: Timestamp,
    /// Says whether the log had turns: a missing log is then a loss.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_turns: bool,
    /// The log's extent when this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<LogExtent>,
    /// The turn that was running, in a session without a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<StartedTurn>,
}

/// How much of a log belongs to a session's file. A log only grows, so its beginning stays what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogExtent {
    pub(crate) bytes: u64,
    /// The number of turns that end in these bytes, on any branch.
    pub(crate) turns: u64,
    /// The checksum of these bytes.
    pub(crate) crc32: u32,
    /// The id of the leaf in them; empty before the first entry. Older files do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) leaf: Option<String>,
}

/// The extents of a session's logs.
pub(crate) type LogExtents = HashMap<ChatId, LogExtent>;

/// A session file's facts about a chat's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedLog {
    pub(crate) chat: ChatId,
    pub(crate) extent: Option<LogExtent>,
    pub(crate) has_turns: bool,
    /// The log that it began as a copy of.
    pub(crate) origin: Option<Arc<ChatOrigin>>,
}

/// A turn that started and is not in the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartedTurn {
    turn: TurnId,
    message: Message,
    started_at: Timestamp,
}

fn given_by_person() -> TitleSource {
    TitleSource::Person
}

fn main_chat() -> ChatId {
    Session::MAIN_CHAT.into()
}

impl ChatFile {
    fn of(chat: &Chat) -> Self {
        Self {
            id: chat.id.clone(),
            uri: chat.uri.clone(),
            is_read: chat.is_read,
            is_archived: chat.is_archived,
            failed: chat.status() == ChatStatus::Error,
            title: chat.title.clone(),
            origin: chat.origin.clone(),
            steering: chat.steering.clone(),
            queued: chat.queued.clone(),
            draft: chat.draft.clone(),
            agent_session: chat.agent_session.clone(),
            is_agent_retold: chat.is_agent_retold,
            modified_at: chat.modified_at,
            touched_at: chat.touched_at,
            has_turns: chat.has_older_turns || !chat.turns.is_empty(),
            log: None,
            begun: chat.active.as_deref().map(|active| StartedTurn {
                turn: active.id.clone(),
                message: active.message.clone(),
                started_at: active.started_at,
            }),
        }
    }

    fn chat(self, turns: LoggedTurns) -> Chat {
        Chat {
            id: self.id,
            uri: self.uri,
            title: self.title,
            origin: self.origin,
            turns: turns.turns,
            has_older_turns: turns.older,
            active: None,
            steering: self.steering,
            queued: self.queued,
            draft: self.draft,
            activity: None,
            agent_session: self.agent_session,
            is_agent_retold: self.is_agent_retold,
            has_failed: self.failed,
            unlogged: Vec::new(),
            is_read: self.is_read,
            is_archived: self.is_archived,
            modified_at: self.modified_at,
            touched_at: self.touched_at,
        }
    }
}

/// Says whether a session stays listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    Kept,
    Disposed,
}

/// The reason why a session cannot be read from its folder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
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

impl SessionFile {
    /// The file of a session. `None` while a turn runs.
    fn of(session: &Session, seq: u64, fate: Disposition) -> Option<Self> {
        let is_at_rest = session.chats.iter().all(|chat| chat.active.is_none());
        if is_at_rest { Self::with_running_turns(session, seq, fate) } else { None }
    }

    /// The file of a session for lists. `None` while a turn runs.
    pub(crate) fn at_rest(session: &Session) -> Option<Self> {
        Self::of(session, 0, Disposition::Kept)
    }

    /// The file of a session, even while a turn runs. The parts of a running turn are not included.
    fn with_running_turns(session: &Session, seq: u64, fate: Disposition) -> Option<Self> {
        let (main, others) = session.chats.split_first()?;
        Some(Self {
            version: VERSION,
            seq,
            disposed: fate == Disposition::Disposed,
            failed: main.status() == ChatStatus::Error,
            id: session.id.clone(),
            uri: session.uri.clone(),
            backend: session.store.clone(),
            provider: session.provider.clone(),
            title: session.title.clone(),
            title_source: session.title_source,
            lifecycle: session.lifecycle.clone(),
            model: session.model.clone(),
            working_directories: session.working_directories.clone(),
            is_read: session.is_read,
            is_archived: session.is_archived,
            created_at: session.created_at,
            modified_at: session.modified_at,
            config: session.config.clone(),
            details: lasting(&session.details),
            checkout: session.checkout.clone(),
            active_clients: session.active_clients.clone(),
            chat: ChatFile::of(main),
            chats: others.iter().map(ChatFile::of).collect(),
            replaced_times: Vec::new(),
        })
    }

    /// The same with times that a clock may have shown: one that no clock shows would stand first in every list.
    fn with_plausible_times(mut self) -> Self {
        let mut replaced = Vec::new();
        let mut replace = |name: &'static str, time: &mut Timestamp, by: Timestamp| {
            if !time.is_plausible() {
                *time = by;
                replaced.push(name);
            }
        };
        let chats = || std::iter::once(&self.chat).chain(&self.chats);
        let times = chats().flat_map(|chat| [chat.touched_at, chat.modified_at]);
        let newest = times.chain([self.created_at]).filter(|time| time.is_plausible()).max().unwrap_or_default();
        replace("modifiedAt", &mut self.modified_at, newest);
        replace("createdAt", &mut self.created_at, self.modified_at);
        for chat in std::iter::once(&mut self.chat).chain(&mut self.chats) {
            replace("a chat's modifiedAt", &mut chat.modified_at, self.modified_at);
            replace("a chat's touchedAt", &mut chat.touched_at, self.modified_at);
            if let Some(begun) = &mut chat.begun {
                replace("a turn's startedAt", &mut begun.started_at, self.modified_at);
            }
        }
        self.replaced_times = replaced;
        self
    }

    /// Names times of the file that no clock shows, if there are any.
    pub(crate) fn implausible_times(&self) -> Option<String> {
        let names = &self.replaced_times;
        (!names.is_empty()).then(|| {
            format!(
                "session {}: session.json has times that no clock shows ({}): others are used in their place",
                self.id,
                names.join(", ")
            )
        })
    }

    /// Sets the extents of the chats' logs.
    fn with_logs(mut self, logs: &LogExtents) -> Self {
        for chat in std::iter::once(&mut self.chat).chain(&mut self.chats) {
            chat.log = logs.get(&chat.id).cloned();
            chat.has_turns |= chat.log.as_ref().is_some_and(|log| log.turns > 0);
        }
        self
    }

    /// Sets the extent of a log that turned out to be shorter.
    pub(crate) fn with_log_as_found(mut self, id: &ChatId, found: Option<LogExtent>) -> Self {
        for chat in std::iter::once(&mut self.chat).chain(&mut self.chats).filter(|chat| chat.id == *id) {
            chat.has_turns = found.as_ref().is_some_and(|log| log.turns > 0);
            chat.log.clone_from(&found);
        }
        self
    }

    /// The logs that the session should have.
    pub(crate) fn expected_logs(&self) -> Vec<ExpectedLog> {
        let expected = self.chats().map(|chat| ExpectedLog {
            chat: chat.id.clone(),
            extent: chat.log.clone(),
            has_turns: chat.has_turns,
            origin: chat.origin.clone(),
        });
        expected.collect()
    }

    pub(crate) fn created_at(&self) -> Timestamp {
        self.created_at
    }

    pub(crate) fn modified_at(&self) -> Timestamp {
        self.modified_at
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) fn uri(&self) -> &SessionUri {
        &self.uri
    }

    /// The store that it was written for.
    pub(crate) fn backend(&self) -> &StoreName {
        &self.backend
    }

    /// The same session in another store.
    pub(crate) fn in_store(self, backend: StoreName) -> Self {
        Self { backend, ..self }
    }

    /// The session without its turns.
    pub(crate) fn without_turns(self) -> Session {
        let none = self.chats().map(|_| LoggedTurns { turns: Vec::new(), older: true });
        let none = none.collect();
        let failed: Vec<bool> = std::iter::once(&self.chat).chain(&self.chats).map(|chat| chat.failed).collect();
        let mut session = self.session(none);
        // A chat without its turns does not know it.
        for (row, _) in session.catalogue.iter_mut().zip(failed).filter(|(_, failed)| *failed) {
            row.status = ChatStatus::Error;
        }
        session
    }

    /// Says whether messages are queued while no turn runs: a stopped host left them so.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.disposed
            && std::iter::once(&self.chat)
                .chain(&self.chats)
                .any(|chat| chat.steering.is_some() || !chat.queued.is_empty())
    }

    /// The names of the session and its chats.
    pub(crate) fn names(&self) -> Arc<Names> {
        let mut ahp = uri::SessionUris::new(&self.provider, &self.id);
        for chat in &self.chats {
            ahp.add(&chat.id, chat.uri.as_deref());
        }
        Arc::new(Names { uri: self.uri.clone(), ahp })
    }

    fn chats(&self) -> impl Iterator<Item = &ChatFile> {
        std::iter::once(&self.chat).chain(&self.chats)
    }

    /// The session with these turns for each chat.
    fn session(self, turns: Vec<LoggedTurns>) -> Session {
        let new = NewSession {
            id: self.id,
            uri: self.uri,
            provider: self.provider,
            model: self.model,
            working_directories: self.working_directories,
            config: self.config,
            store: self.backend,
        };
        let mut session = Session::new(&new, self.created_at);
        session.lifecycle = self.lifecycle;
        session.is_read = self.is_read;
        session.is_archived = self.is_archived;
        session.modified_at = self.modified_at;
        session.active_clients = self.active_clients;
        session.details = lasting(&self.details);
        session.checkout = self.checkout;
        let mut chats: Vec<ChatFile> = std::iter::once(self.chat).chain(self.chats).collect();
        let begun: Vec<_> = chats.iter_mut().filter_map(|chat| Some((chat.id.clone(), chat.begun.take()?))).collect();
        session.chats = chats.into_iter().zip(turns).map(|(chat, turns)| chat.chat(turns)).collect();
        session.set_title(&SessionTitle::new(&self.title, self.title_source));
        for (chat, StartedTurn { turn, message, started_at }) in begun {
            // The log may have it by now.
            if session.chat(&chat).is_some_and(|chat| chat.position(&turn).is_none()) {
                let started = ChatEvent::TurnStarted { turn, message, started_at: Some(started_at), queued: None };
                session.apply(&Event { at: started_at, change: Change::Chat(session.id.clone(), chat, started) });
            }
        }
        session.catalogue = session.chats.iter().map(Chat::row).collect();
        for event in mirror::pending_events(&session) {
            let change = Change::Session(session.id.clone(), event);
            session.apply(&Event { at: self.modified_at, change });
        }
        session
    }
}

/// The details that outlast the moment: without warnings about sessions that run in the same folder.
fn lasting(details: &SessionDetails) -> SessionDetails {
    let mut details = SessionDetails { unsaved: None, ..details.clone() };
    details.warnings.retain(|words| !is_collision(words));
    details
}

/// Writes the file, unless a turn is running. Returns whether it did.
pub(crate) async fn write(
    fs: &dyn SessionFs,
    session: &Session,
    logs: &LogExtents,
    seq: u64,
    fate: Disposition,
) -> Result<bool, FsError> {
    match SessionFile::of(session, seq, fate) {
        Some(file) => save(fs, &file.with_logs(logs)).await.map(|()| true),
        None => Ok(false),
    }
}

/// Writes the file, even while a turn runs.
pub(crate) async fn write_any(
    fs: &dyn SessionFs,
    session: &Session,
    seq: u64,
    fate: Disposition,
) -> Result<(), FsError> {
    match SessionFile::with_running_turns(session, seq, fate) {
        Some(file) => save(fs, &file).await,
        // Every session has its main chat.
        None => Ok(()),
    }
}

/// Writes the file of a session into its staging folder. It becomes a session when that is renamed.
pub(crate) async fn write_staged(
    fs: &dyn SessionFs,
    staging: &str,
    session: &Session,
    seq: u64,
    fate: Disposition,
) -> Result<SessionFile, FsError> {
    let path = paths::session_file_in(staging);
    let runs = || FsError::Other { path: path.clone(), reason: "a turn of it runs".to_owned() };
    let file = SessionFile::of(session, seq, fate).ok_or_else(runs)?;
    save_at(fs, path, &file).await?;
    Ok(file)
}

/// Writes the file as it is.
pub(crate) async fn save(fs: &dyn SessionFs, file: &SessionFile) -> Result<(), FsError> {
    save_at(fs, paths::session_file(&file.id), file).await
}

async fn save_at(fs: &dyn SessionFs, path: String, file: &SessionFile) -> Result<(), FsError> {
    // Plain data with string keys always serializes.
    let bytes = serde_json::to_vec_pretty(file)
        .map_err(|error| FsError::Other { path: path.clone(), reason: error.to_string() })?;
    fs.write_file(&path, &bytes).await
}

impl SessionFile {
    /// The file for another host, or from one.
    ///
    /// It lacks this host's permissions, the folders of this machine, and the data that an agent or a client keeps
    /// here. It also lacks everything that reading changes: the same session gives the same file.
    fn portable(self) -> Self {
        let here = |chat: ChatFile| ChatFile {
            agent_session: None,
            is_agent_retold: false,
            begun: None,
            log: None,
            is_read: true,
            ..chat
        };
        Self {
            seq: 0,
            disposed: false,
            backend: StoreName::default(),
            working_directories: Vec::new(),
            is_read: true,
            config: self.config.map(SessionConfig::without_mode),
            details: self.details.without_permissions(),
            checkout: Checkout { own_pull_request: self.checkout.own_pull_request, ..Checkout::default() },
            active_clients: Vec::new(),
            chat: here(self.chat),
            chats: self.chats.into_iter().map(here).collect(),
            ..self
        }
    }

    /// Removes the permissions, which a storage that others may write must not decide.
    pub(crate) fn without_permissions(self) -> Self {
        let config = self.config.map(SessionConfig::without_mode);
        Self { details: self.details.without_permissions(), config, ..self }
    }
}

/// The bytes of the file for another host.
pub(crate) async fn read_portable(fs: &dyn SessionFs, session: &SessionId) -> Result<Vec<u8>, LoadError> {
    Ok(serde_json::to_vec_pretty(&read(fs, session).await?.portable())?)
}

/// Reads another host's file in the folder in which its session is staged, and adapts it to this host.
pub(crate) async fn adopt_staged(
    fs: &dyn SessionFs,
    staging: &str,
    new: &NewSession,
    seq: u64,
    from: RemoteSession,
) -> Result<SessionFile, LoadError> {
    let path = paths::session_file_in(staging);
    let file: SessionFile = serde_json::from_slice(&fs.read_file(&path).await?)?;
    if file.version > VERSION {
        return Err(LoadError::Version(file.version));
    }
    // An agent keeps its own conversation on the machine that it ran on: here it is told what was said. Whatever the other
    // host left in, it allows nothing here, and no folder is used that nobody named here.
    let file = file.with_plausible_times().portable();
    let folders = new.working_directories.clone();
    // The checkout is that of this machine's folder; a pull request is valid everywhere.
    let seen = read_checkout(folders.first().map(String::as_str)).await.unwrap_or_default();
    let checkout = Checkout { own_pull_request: file.checkout.own_pull_request, ..seen };
    let mut details = SessionDetails { moved_from: Some(from), ..file.details };
    if let Some(left) = details.moved_to.take() {
        // The session is back here.
        details.warnings.retain(|words| *words != moved_message(&left));
    }
    let file = SessionFile {
        seq,
        disposed: false,
        id: new.id.clone(),
        uri: new.uri.clone(),
        backend: new.store.clone(),
        provider: new.provider.clone(),
        lifecycle: Lifecycle::Ready,
        working_directories: folders,
        details,
        checkout,
        ..file
    };
    save_at(fs, path, &file).await?;
    Ok(file)
}

/// Renames the folder of a disposed session whose id a new one takes.
pub(crate) async fn make_room(fs: &dyn SessionFs, session: &SessionId) -> Result<(), FsError> {
    let folder = paths::folder(session);
    if !fs.exists(&folder).await? {
        return Ok(());
    }
    let mut number = 1;
    while fs.exists(&paths::disposed_folder(session, number)).await? {
        number += 1;
    }
    fs.rename(&folder, &paths::disposed_folder(session, number)).await
}

/// Renames the folder of a deleted chat whose id a new one takes.
pub(crate) async fn make_room_for_chat(fs: &dyn SessionFs, session: &SessionId, chat: &ChatId) -> Result<(), FsError> {
    let folder = paths::chat_folder(session, chat);
    if !fs.exists(&folder).await? {
        return Ok(());
    }
    let mut number = 1;
    while fs.exists(&paths::disposed_chat_folder(session, chat, number)).await? {
        number += 1;
    }
    fs.rename(&folder, &paths::disposed_chat_folder(session, chat, number)).await
}

/// Marks a session as disposed, and leaves the rest of its file.
pub(crate) async fn mark_disposed(fs: &dyn SessionFs, session: &SessionId, seq: u64) -> Result<(), FsError> {
    let file = read(fs, session)
        .await
        .map_err(|error| FsError::Other { path: paths::session_file(session), reason: error.to_string() })?;
    save(fs, &SessionFile { disposed: true, seq, ..file }).await
}

/// Reads the file of a session.
pub(crate) async fn read(fs: &dyn SessionFs, session: &SessionId) -> Result<SessionFile, LoadError> {
    let bytes = fs.read_file(&paths::session_file(session)).await?;
    let file: SessionFile = serde_json::from_slice(&bytes)?;
    if file.version > VERSION { Err(LoadError::Version(file.version)) } else { Ok(file.with_plausible_times()) }
}

/// Reads a session from its folder, with its newest turns.
pub(crate) async fn load(fs: &dyn SessionFs, session: &SessionId, limits: &Limits) -> Result<Session, LoadError> {
    load_turns(read(fs, session).await?, fs, limits).await
}

/// The session of a file that is read already, with its newest turns.
pub(crate) async fn load_turns(file: SessionFile, fs: &dyn SessionFs, limits: &Limits) -> Result<Session, LoadError> {
    let limit = TurnLimit { turns: limits.snapshot_turns, bytes: limits.snapshot_bytes as u64 };
    let mut turns = Vec::new();
    for chat in file.chats() {
        let window = read_turns(fs, file.id(), &chat.id, chat.origin.as_deref(), None, limit).await?;
        turns.push(window);
    }
    Ok(file.session(turns))
}

/// The session with its newest turns, and the first chat whose log had turns and has none any more.
pub(crate) async fn with_turns(
    file: SessionFile,
    fs: &dyn SessionFs,
    limits: &Limits,
) -> Result<(Session, Option<ChatId>), LoadError> {
    let had: Vec<ChatId> = file.chats().filter(|chat| chat.has_turns).map(|chat| chat.id.clone()).collect();
    let session = load_turns(file, fs, limits).await?;
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
pub(crate) async fn read_turns(
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
pub(crate) fn floor(origin: Option<&ChatOrigin>, index: &LogIndex) -> Option<EntryNo> {
    let origin = origin.filter(|origin| !origin.is_shown())?;
    index.find(origin.log.leaf.as_deref()?)
}

/// Rebuilds and writes the file of a session of which only the main chat's log is left.
pub(crate) async fn rebuild(
    fs: &dyn SessionFs,
    id: &SessionId,
    store: &StoreName,
    limits: &Limits,
) -> Result<SessionFile, LoadError> {
    let main = main_chat();
    let limit = TurnLimit { turns: limits.snapshot_turns, bytes: limits.snapshot_bytes as u64 };
    let window = read_turns(fs, id, &main, None, None, limit).await?;
    let path = paths::log(id, &main);
    let index = store::open_log(fs, &path, &mut String::new).await?.index;
    let provider = provider_in(fs, &path, &index).await?;
    let new = NewSession {
        id: id.clone(),
        uri: SessionUri::from(format!("{provider}:/{id}")),
        provider,
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
async fn provider_in(fs: &dyn SessionFs, path: &str, index: &LogIndex) -> Result<ProviderId, LoadError> {
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
    Ok(ProviderId::from(name.filter(is_scheme).unwrap_or("scripted")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use grove_fs::MemoryFs;

    #[tokio::test]
    async fn of_another_machines_checkout_the_pull_request_alone_comes_along() {
        let new = NewSession {
            id: "s".into(),
            uri: "scripted:/s".into(),
            provider: "scripted".into(),
            model: None,
            working_directories: vec!["/there/only".into()],
            config: None,
            store: StoreName::default(),
        };
        let mut session = Session::new(&new, Timestamp(1));
        let own_pull_request = Some("https://github.com/acme/site/pull/7".to_owned());
        session.checkout = Checkout { branch: Some("fix".into()), own_pull_request, ..Checkout::default() };
        let fs = MemoryFs::default();
        write_staged(&fs, "s~import", &session, 1, Disposition::Kept).await.unwrap();
        let adopted = adopt_staged(&fs, "s~import", &new, 2, RemoteSession::default()).await.unwrap();
        let expected = Checkout { branch: None, ..session.checkout };
        assert_eq!(adopted.checkout, expected);
    }

    #[tokio::test]
    async fn what_was_allowed_on_one_host_never_comes_to_another() {
        let new = |folders: Vec<String>| NewSession {
            id: "s".into(),
            uri: "scripted:/s".into(),
            provider: "scripted".into(),
            model: None,
            working_directories: folders,
            config: Some(SessionConfig::of(
                serde_json::from_str(r#"{"mode": "bypassPermissions", "effort": "high"}"#).unwrap(),
            )),
            store: StoreName::default(),
        };
        let mut session = Session::new(&new(vec!["/there/only".into()]), Timestamp(1));
        session.details.permissions = Some(Permissions { allow_all: true, ..Permissions::default() });
        session.details.remembered = vec![RememberedPermission {
            kind: PermissionKind::Shell,
            about: "rm -rf /".into(),
            option: PermissionOption { id: "a".into(), label: "Always".into(), allows: true, lasting: true },
        }];
        let fs = MemoryFs::default();
        save(&fs, &SessionFile::of(&session, 7, Disposition::Kept).unwrap()).await.unwrap();
        let portable = read_portable(&fs, &session.id).await.unwrap();
        let text = String::from_utf8(portable).unwrap();
        for secret in ["allowAll", "rm -rf", "/there/only", "bypassPermissions"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        // A host that hands over too much changes nothing.
        write_staged(&fs, "s~import", &session, 1, Disposition::Kept).await.unwrap();
        let here = new(vec!["/here".into()]);
        let adopted = adopt_staged(&fs, "s~import", &here, 2, RemoteSession::default()).await.unwrap();
        assert_eq!(adopted.working_directories, ["/here"]);
        assert_eq!(adopted.details.permissions, None);
        assert_eq!(adopted.details.remembered, Vec::new());
        let values = adopted.config.unwrap().values;
        assert_eq!((values.get("mode"), values.get("effort").and_then(|value| value.as_str())), (None, Some("high")));
        let none = adopt_staged(&fs, "s~import", &new(Vec::new()), 2, RemoteSession::default()).await.unwrap();
        assert_eq!(none.working_directories, Vec::<String>::new());
    }
}
