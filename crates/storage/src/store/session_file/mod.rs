//! `session.json`: the data of a session beside its conversation.
//!
//! It is replaced as a whole, and only while no turn is running: log and file together are then the session as of the
//! sequence number in the file, and the journal is needed for nothing up to there.

mod chat_file;
mod load;
mod portable;

use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_tree::turns::LoggedTurns;
use serde::{Deserialize, Serialize};

use self::chat_file::{ChatFile, StartedTurn};
pub use self::chat_file::{ExpectedLog, LogExtent, LogExtents};
pub use self::load::{LoadError, floor, load, read, read_turns, with_turns};
pub(crate) use self::load::{load_turns, rebuild};
pub use self::portable::{adopt_staged, read_portable};
use super::paths;

/// The version of this file's format.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFile {
    version: u32,
    /// Everything up to this sequence number is in here or in the log.
    pub seq: u64,
    /// Not listed any more; the folder stays.
    pub disposed: bool,
    /// Says whether the last turn ended in error, which lists show.
    pub(crate) failed: bool,
    id: SessionId,
    uri: SessionUri,
    /// The name of the store that it was written for. In any other it is a copy, and no session.
    #[serde(default, skip_serializing_if = "StoreName::is_local")]
    backend: StoreName,
    #[serde(rename = "provider")]
    agent: AgentId,
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

fn given_by_person() -> TitleSource {
    TitleSource::Person
}

/// A session that is only in its folder: its row in lists.
#[derive(Debug)]
pub struct EvictedSession {
    /// The session without its turns.
    pub session: Session,
    /// Says whether its last turn ended in error.
    pub failed: bool,
}

/// The names under which clients know a session and its chats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionNames {
    pub uri: SessionUri,
    pub agent: AgentId,
    /// The chats beside the main one, each with the URI that a client gave it.
    pub chats: Vec<(ChatId, Option<String>)>,
}

/// Says whether a session stays listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    Kept,
    Disposed,
}

impl SessionFile {
    /// The file of a session. `None` while a turn runs.
    fn of(session: &Session, seq: u64, fate: Disposition) -> Option<Self> {
        let is_at_rest = session.chats.iter().all(|chat| chat.active.is_none());
        if is_at_rest { Self::with_running_turns(session, seq, fate) } else { None }
    }

    /// The file of a session for lists. `None` while a turn runs.
    pub fn at_rest(session: &Session) -> Option<Self> {
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
            agent: session.agent.clone(),
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
    pub fn expected_logs(&self) -> Vec<ExpectedLog> {
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

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn uri(&self) -> &SessionUri {
        &self.uri
    }

    /// The store that it was written for.
    pub(crate) fn backend(&self) -> &StoreName {
        &self.backend
    }

    /// The same session in another store.
    pub fn in_store(self, backend: StoreName) -> Self {
        Self { backend, ..self }
    }

    /// The session without its turns.
    pub fn without_turns(self) -> Session {
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

    /// The session as an evicted one.
    pub fn into_evicted(self) -> EvictedSession {
        EvictedSession { failed: self.failed, session: self.without_turns() }
    }

    /// Says whether messages are queued while no turn runs: a stopped host left them so.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.disposed
            && std::iter::once(&self.chat)
                .chain(&self.chats)
                .any(|chat| chat.steering.is_some() || !chat.queued.is_empty())
    }

    /// The names of the session and its chats.
    pub(crate) fn names(&self) -> SessionNames {
        let chats = self.chats.iter().map(|chat| (chat.id.clone(), chat.uri.clone())).collect();
        SessionNames { uri: self.uri.clone(), agent: self.agent.clone(), chats }
    }

    fn chats(&self) -> impl Iterator<Item = &ChatFile> {
        std::iter::once(&self.chat).chain(&self.chats)
    }

    /// The session with these turns for each chat.
    fn session(self, turns: Vec<LoggedTurns>) -> Session {
        let new = NewSession {
            id: self.id,
            uri: self.uri,
            agent: self.agent,
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
    details.warnings.retain(|words| !warning::is_shared_folder(words));
    details
}

/// Writes the file, unless a turn is running. Returns whether it did.
pub async fn write(
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
pub async fn write_any(fs: &dyn SessionFs, session: &Session, seq: u64, fate: Disposition) -> Result<(), FsError> {
    match SessionFile::with_running_turns(session, seq, fate) {
        Some(file) => save(fs, &file).await,
        // Every session has its main chat.
        None => Ok(()),
    }
}

/// Writes the file of a session into its staging folder. It becomes a session when that is renamed.
pub async fn write_staged(
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

/// Renames the folder of a disposed session whose id a new one takes.
pub async fn make_room(fs: &dyn SessionFs, session: &SessionId) -> Result<(), FsError> {
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
pub async fn make_room_for_chat(fs: &dyn SessionFs, session: &SessionId, chat: &ChatId) -> Result<(), FsError> {
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
