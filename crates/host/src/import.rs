//! Imported sessions: another host's, or another program's.
//!
//! Their files are staged in a folder whose name no session has, in their future store. Committing checks that the log
//! can be read, writes `session.json` beside it and renames the folder: from that moment on the session exists, even if
//! the host is killed. A staged folder that is not committed is removed with its connection, or at the next start
//! ([`grove_storage::store_scan`]).
//!
//! The journal is not involved: the session's folder has all of it, so it is listed like one from before the host's
//! start, and loaded when it is needed.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use grove_core::*;
use grove_fs::copy::{self, CopyError};
use grove_fs::names::RelativeName;
use grove_fs::{Confined, FsError, SessionFs};
use grove_storage::StoreError;
use grove_storage::session_file::{self, Disposition, LoadError};
use grove_storage::{paths, store_move};
use grove_tree::turns::{self, TurnLimit};
use grove_tree::{LogError, LogIndex, Role, store as log};
use grove_work::{FileError, local_path};

use crate::env::Spawn;
use crate::host::{CreateError, Host};
use crate::sequencer::{HostStopped, PublishedState};
use crate::session::{read_checkout, scan_workspace};

/// The damage in a log that is reported, in items.
pub const MAX_DAMAGE_ITEMS: usize = 20;

/// The file that makes a folder a session's.
const LOG: &str = "events.jsonl";

/// The facts about an imported session that are not in its files.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    pub id: Option<SessionId>,
    pub agent: Option<AgentId>,
    /// The agent that continues it, if none is named and the host has this one.
    pub preferred_agent: Option<AgentId>,
    pub store: Option<StoreName>,
    pub title: Option<String>,
    pub working_directory: Option<String>,
    pub created_at: Option<Timestamp>,
    pub modified_at: Option<Timestamp>,
    pub from: Option<RemoteSession>,
    pub seal: Option<String>,
    /// The session of another tool that it is a copy of.
    pub imported_from: Option<ImportSource>,
}

/// A session that is being imported.
pub struct ImportJob {
    host: Host,
    new: NewSession,
    title: Option<String>,
    created_at: Timestamp,
    modified_at: Timestamp,
    /// Its origin, if that is another Grove: then it comes complete.
    from: Option<RemoteSession>,
    /// The hash of all arriving files, if the sender gives it.
    seal: Option<String>,
    imported_from: Option<ImportSource>,
    fs: Arc<dyn SessionFs>,
    staged: Confined,
    /// The length of each file so far.
    files: HashMap<String, u64>,
    bytes: u64,
    _place: ImportReservation,
}

impl fmt::Debug for ImportJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportJob").field("session", &self.new.uri).finish_non_exhaustive()
    }
}

/// An imported session.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    pub session: SessionUri,
    pub entries: usize,
    /// Descriptions of the damage in its log.
    pub damage: Vec<String>,
}

/// The reason why a session, or a file of it, is not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(
        "{path} does not belong in a session's folder: put {LOG}, plan.md, session.db, workspace.yaml, or files \
         below checkpoints/, files/, research/ or content/"
    )]
    NotAFile { path: String },
    #[error("{path} has {size} bytes so far, so its next bytes begin there and not at {offset}")]
    Offset { path: String, size: u64, offset: u64 },
    #[error("an imported session may have at most {most} files")]
    TooManyFiles { most: usize },
    #[error("an imported session may have at most {most} bytes")]
    TooLarge { most: u64 },
    #[error("there is no {LOG}: put the session's log before you commit it")]
    NoLog,
    #[error("{LOG} cannot be read: {0}")]
    Log(#[from] LogError),
    #[error("session.json cannot be used: {0}")]
    SessionFile(#[from] LoadError),
    #[error("the received files differ from the sent ones: move the session again")]
    NotTheSame,
    #[error(transparent)]
    Inventory(#[from] CopyError),
    #[error("the session could not be stored: {0}")]
    Fs(#[from] FsError),
}

impl From<HostStopped> for ImportError {
    fn from(stopped: HostStopped) -> Self {
        ImportError::Create(stopped.into())
    }
}

/// The ids of sessions that are being imported: no other session may use them. Clones share the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImportReservations(Arc<Mutex<HashSet<SessionId>>>);

/// Reserves an id until it is dropped.
#[derive(Debug)]
struct ImportReservation {
    id: SessionId,
    places: ImportReservations,
}

impl ImportReservations {
    pub(crate) fn has(&self, id: &SessionId) -> bool {
        self.with(|taken| taken.contains(id))
    }

    fn take(&self, id: &SessionId) -> Option<ImportReservation> {
        let is_new = self.with(|taken| taken.insert(id.clone()));
        is_new.then(|| ImportReservation { id: id.clone(), places: self.clone() })
    }

    fn with<T>(&self, look: impl FnOnce(&mut HashSet<SessionId>) -> T) -> T {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for ImportReservation {
    fn drop(&mut self) {
        self.places.with(|taken| taken.remove(&self.id));
    }
}

impl Host {
    /// Starts an import. Nobody hears of it before it is committed.
    pub async fn begin_import(&self, wanted: ImportRequest) -> Result<ImportJob, ImportError> {
        let agent = match wanted.agent {
            Some(agent) if self.has_agent(&agent) => agent,
            Some(agent) => {
                let hint = self.install_hint(&agent);
                return Err(CreateError::UnknownAgent { agent, hint }.into());
            }
            None => {
                let preferred = wanted.preferred_agent.filter(|agent| self.has_agent(agent));
                let agent = preferred.or_else(|| self.default_agent());
                agent.ok_or_else(|| CreateError::UnknownAgent { agent: "".into(), hint: String::new() })?
            }
        };
        let id = match wanted.id {
            Some(id) => id,
            None => SessionId::from(self.new_id().map_err(CreateError::from)?),
        };
        let uri = SessionUri::from(format!("{agent}:/{id}"));
        if uri.id().as_ref() != Some(&id) {
            return Err(CreateError::BadUri(uri).into());
        }
        if uri.is_reserved() {
            return Err(CreateError::ReservedUri(uri).into());
        }
        if let Some(folder) = &wanted.working_directory {
            local_path(folder).map_err(|error: FileError| CreateError::from(error))?;
        }
        let stores = &self.0.env.stores;
        let store = wanted.store.unwrap_or_else(|| stores.default_name());
        let fs = stores.reach(&store).await.map_err(|error: StoreError| CreateError::from(error))?;
        let place = self.0.imports.take(&id).ok_or_else(|| CreateError::BeingImported(id.clone()))?;
        // The id is reserved first, so that no other session can take it.
        self.require_unused_id(&uri, &id).await?;
        let staging = paths::staged(&id);
        // Leftovers of a removal that failed.
        store_move::remove_renamed(fs.as_ref(), &staging).await?;
        let now = self.0.env.clock.now();
        let created_at = wanted.created_at.unwrap_or(now);
        let new = NewSession {
            id,
            uri,
            agent,
            model: None,
            working_directories: wanted.working_directory.into_iter().collect(),
            config: None,
            store,
        };
        Ok(ImportJob {
            host: self.clone(),
            new,
            title: wanted.title.as_deref().and_then(normalized_title),
            created_at,
            modified_at: wanted.modified_at.unwrap_or(created_at),
            from: wanted.from,
            seal: wanted.seal,
            imported_from: wanted.imported_from.filter(has_fitting_names),
            staged: Confined::new(fs.as_ref(), &staging)?,
            fs,
            files: HashMap::new(),
            bytes: 0,
            _place: place,
        })
    }
}

impl ImportJob {
    /// The URI that the session will have.
    pub fn session(&self) -> &SessionUri {
        &self.new.uri
    }

    /// Appends bytes to a file, which is created with its first ones. Returns its new length.
    pub async fn put(&mut self, path: &str, offset: u64, bytes: &[u8]) -> Result<u64, ImportError> {
        let name = RelativeName::parse(path)?;
        let fits = if self.from.is_some() { is_of_moved_session(&name) } else { is_of_session(&name) };
        if !fits {
            return Err(ImportError::NotAFile { path: path.to_owned() });
        }
        let limits = &self.host.0.config.limits;
        let known = self.files.get(path).copied();
        let size = known.unwrap_or(0);
        if size != offset {
            return Err(ImportError::Offset { path: path.to_owned(), size, offset });
        }
        if known.is_none() && self.files.len() >= limits.import_files {
            return Err(ImportError::TooManyFiles { most: limits.import_files });
        }
        let all = self.bytes.saturating_add(bytes.len() as u64);
        if all > limits.import_bytes {
            return Err(ImportError::TooLarge { most: limits.import_bytes });
        }
        if let Err(error) = self.staged.append_file(path, bytes).await {
            // The remains of a failed append are cut off, so that it can be retried.
            self.staged.truncate(path, size).await.ok();
            return Err(error.into());
        }
        self.bytes = all;
        let size = size + bytes.len() as u64;
        self.files.insert(path.to_owned(), size);
        Ok(size)
    }

    /// Turns the files into a session. Invalid ones are removed.
    pub async fn commit(self) -> Result<ImportedSession, ImportError> {
        let committed = self.settle().await;
        if committed.is_err() {
            self.discard().await;
        }
        committed
    }

    /// Removes the staged files.
    pub async fn discard(self) {
        if let Err(error) = store_move::remove_renamed(self.fs.as_ref(), &paths::staged(&self.new.id)).await {
            tracing::warn!(session = %self.new.id, %error, "the staged files of an import could not be removed");
        }
    }

    async fn settle(&self) -> Result<ImportedSession, ImportError> {
        let staging = paths::staged(&self.new.id);
        let index = self.check_log(&staging).await?;
        let (fs, host) = (self.fs.as_ref(), &self.host);
        for name in self.files.keys() {
            self.staged.sync(name).await?;
        }
        // Journal records about an earlier session of this id are older than this.
        let seq = host.0.sequencer.read(|published: &PublishedState| published.seq);
        let file = match &self.from {
            Some(from) => {
                self.compare(&staging, &from.stamp).await?;
                let folder = self.new.working_directories.first().map(String::as_str);
                let checkout = read_checkout(host.0.env.spawn.as_ref(), folder).await.unwrap_or_default();
                session_file::adopt_staged(fs, &staging, &self.new, seq, from.clone(), checkout).await?
            }
            None => {
                let session = self.session_of(&staging, &index, host.0.env.spawn.as_ref()).await?;
                session_file::write_staged(fs, &staging, &session, seq, Disposition::Kept).await?
            }
        };
        host.make_room(&self.new, fs).await?;
        fs.rename(&staging, &paths::folder(&self.new.id)).await?;
        host.0.sequencer.add_evicted(file.into_evicted()).await?;
        host.active_sessions_changed().await?;
        let damage = index.damage().into_iter().take(MAX_DAMAGE_ITEMS);
        let damage = damage.map(|damage| format!("line {}: {}", damage.line, damage.message)).collect();
        Ok(ImportedSession { session: self.new.uri.clone(), entries: index.len(), damage })
    }

    /// Checks that everything that was sent has arrived.
    async fn compare(&self, staging: &str, stamp: &str) -> Result<(), ImportError> {
        let staged = copy::SessionFolder { store: self.fs.as_ref(), folder: staging, database: None };
        let arrived = copy::inventory(&staged).await?;
        let is_sealed = self.seal.as_ref().is_none_or(|seal| *seal == arrived.seal());
        match arrived.stamp() == stamp && is_sealed {
            true => Ok(()),
            false => Err(ImportError::NotTheSame),
        }
    }

    /// Reads the log, and upgrades an older one.
    async fn check_log(&self, staging: &str) -> Result<LogIndex, ImportError> {
        if !self.files.contains_key(LOG) {
            return Err(ImportError::NoLog);
        }
        let path = format!("{staging}/{LOG}");
        let mut made = 0u32;
        let mut new_id = || {
            made += 1;
            format!("{:08x}", made.wrapping_mul(0x9e37_79b9))
        };
        let opened = log::open_log(self.fs.as_ref(), &path, &mut new_id).await?;
        if let Some(migrated) = &opened.migrated {
            self.fs.write_file(&path, &migrated.bytes).await?;
        }
        // A cut-off end is repaired when something is appended.
        match opened.index.header() {
            Some(_) => Ok(opened.index),
            None => Err(LogError::NothingReadable.into()),
        }
    }

    /// The title according to the first prompt on the path to the leaf.
    async fn title_by_prompt(&self, staging: &str, index: &LogIndex) -> Result<Option<SessionTitle>, ImportError> {
        let branch = index.leaf().map(|leaf| index.branch(leaf)).unwrap_or_default();
        let first = branch.into_iter().find(|entry| index.role(*entry) == Some(Role::User));
        let path = format!("{staging}/{LOG}");
        let limit = TurnLimit { turns: 1, bytes: u64::MAX };
        let window = turns::newest_turns_at(self.fs.as_ref(), &path, index, first, limit).await?;
        let title = window.turns.last().and_then(|turn| title_of_prompt(&turn.message.text));
        Ok(title.map(|title| SessionTitle::new(&title, TitleSource::Prompt)).filter(|title| !title.is_none()))
    }

    /// The session as it is listed, with its last turn.
    async fn session_of(&self, staging: &str, index: &LogIndex, spawn: &dyn Spawn) -> Result<Session, ImportError> {
        let mut session = Session::new(&self.new, self.created_at);
        session.lifecycle = Lifecycle::Ready;
        session.modified_at = self.modified_at;
        session.details.imported_from = self.imported_from.clone();
        let title = self.title.clone().or_else(|| index.name()).or_else(|| index.header()?.title());
        let title = title.map(SessionTitle::from).filter(|title| !title.is_none());
        let title = match title {
            Some(title) => Some(title),
            None => self.title_by_prompt(staging, index).await?,
        };
        if let Some(title) = title {
            let change = Change::Session(session.id.clone(), SessionEvent::TitleChanged(title));
            session.apply(&Event { at: self.modified_at, change });
        }
        let found = scan_workspace(self.fs.as_ref(), staging).await;
        // A plan that cannot be read is no reason to refuse the conversation.
        let found = found.unwrap_or_default();
        session.details.workspace = Some(found).filter(|found| *found != WorkspaceDetails::default());
        let folder = session.working_directories.first();
        session.checkout = read_checkout(spawn, folder.map(String::as_str)).await.unwrap_or_default();
        let path = format!("{staging}/{LOG}");
        let limit = TurnLimit { turns: 1, bytes: u64::MAX };
        let window = turns::newest_turns_at(self.fs.as_ref(), &path, index, index.leaf(), limit).await?;
        if let Some(chat) = session.chats.first_mut() {
            chat.modified_at = self.modified_at;
            chat.touched_at = self.modified_at;
            chat.turns = window.turns;
            chat.has_older_turns = window.older;
        }
        Ok(session)
    }
}

/// The largest name of a tool or of its session that is kept: every list carries it.
pub const MOST_SOURCE_BYTES: usize = 256;

fn has_fitting_names(from: &ImportSource) -> bool {
    from.source.len() <= MOST_SOURCE_BYTES && from.source_id.len() <= MOST_SOURCE_BYTES
}

/// Returns true if a file belongs in a session's folder. The host makes the folders of chats itself.
fn is_of_session(name: &RelativeName) -> bool {
    let parts: Vec<&str> = name.parts().collect();
    match parts.as_slice() {
        [LOG | "plan.md" | "session.db" | "workspace.yaml"] | ["checkpoints" | "content", _] => true,
        ["files" | "research", rest @ ..] => !rest.is_empty(),
        _ => false,
    }
}

/// Says whether a file belongs to another Grove's session. Files that a host makes for itself do not.
fn is_of_moved_session(name: &RelativeName) -> bool {
    let Some(first) = name.parts().next() else { return false };
    !(first.starts_with('.') || first.starts_with("inuse.") || first == "temp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_session_has_is_taken_in() {
        let fits = |name: &str| RelativeName::parse(name).is_ok_and(|name| is_of_session(&name));
        for good in
            [LOG, "plan.md", "files/a/b.txt", "research/x.md", "checkpoints/index.md", "content/abc", "session.db"]
        {
            assert!(fits(good), "{good}");
        }
        for bad in [
            "session.json",
            "events.idx",
            "files",
            "checkpoints/a/b",
            "chats/c/events.jsonl",
            "../x",
            "files/../session.json",
            "/etc/passwd",
            "other",
        ] {
            assert!(!fits(bad), "{bad}");
        }
    }

    #[test]
    fn a_place_is_taken_once_and_free_again() {
        let places = ImportReservations::default();
        let id = SessionId::from("s");
        let place = places.take(&id);
        assert!(place.is_some() && places.has(&id) && places.take(&id).is_none());
        drop(place);
        assert!(!places.has(&id) && places.take(&id).is_some());
    }
}
