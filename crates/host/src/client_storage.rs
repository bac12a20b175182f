//! Sessions whose files a storage client keeps at the other end of a connection.
//!
//! A storage client has a store of its own name. Sessions created there are written there and nowhere else; this
//! machine keeps their ids, times and counters ([`ClientStorageRegister`](crate::ClientStorageRegister)). A storage
//! client only serves sessions that it has created or resumed. So nothing is read before it is requested, and a fork is
//! a record until it is resumed.

use std::sync::Arc;

use grove_core::*;
use grove_fs::rpc::{Limits, ReconnectingCalls, Remote, RemoteCalls, StorageClientConfig, StorageClientConfigError};
use grove_fs::workspace::Todos;
use grove_fs::workspace::database::DatabaseError;
use grove_fs::{ClientStore, FsError, Removal, SessionFs};
use grove_storage::copy::{CopyError, CopyJob};
use grove_storage::session_file::{self, Disposition, LoadError};
use grove_storage::{ClientStorage, StoreError};
use grove_storage::{ClientStorageRow, ForkRecord};
use grove_storage::{info, paths};
use grove_tree::{LogError, store as logs};
use grove_work::MAX_PATH_BYTES;
use tokio::sync::oneshot;

use crate::branch::SessionRequestError;
use crate::copilot_logs;
use crate::host::{CreateError, Host, IdGenerationError};
use crate::sequencer::{HostStopped, JournalScope, PublishedState, ToSequencer, WriteFailurePolicy};
use crate::session::{ForkPlan, StorageClientPresence, ToSession, TreeAnswer, TreeRequest};

/// The reason why a storage client is not attached.
#[derive(Debug, thiserror::Error)]
pub enum ClientStorageError {
    #[error(transparent)]
    Provider(#[from] StorageClientConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
}

/// The reason why a client-stored session is not resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no session {0}: its storage client has neither a session.json nor an events.jsonl of it")]
    NotThere(SessionId),
    #[error("the storage client does not serve session {id}: {reason}")]
    NoAnswer { id: SessionId, reason: String },
    #[error("{file} of session {id} cannot be read, and the session is left as it is: {reason}")]
    Unreadable { id: SessionId, file: String, reason: String },
    #[error("events.jsonl of session {0} has lost its turns: restore the file, then resume the session")]
    LostTurns(SessionId),
    #[error(
        "session {id} is a fork of {source_id}, which the storage client does not serve ({reason}): \
         resume that one first, then this one"
    )]
    Source { id: SessionId, source_id: SessionId, reason: String },
    #[error("session {0} exists already, and is not stored by this client")]
    Elsewhere(SessionId),
    #[error("no agent can continue session {0}: add one")]
    NoAgent(SessionId),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
}

/// The reason why a client-stored session is not forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("session {0} is not open: resume it first, then fork it")]
    NotOpen(SessionId),
    #[error("session {0} has nothing to fork yet: none of its turns has ended")]
    Empty(SessionId),
    #[error("session {id} cannot be forked: {reason}")]
    Refused { id: SessionId, reason: String },
    #[error(transparent)]
    IdGenerationError(#[from] IdGenerationError),
    #[error("the fork could not be recorded: {0}")]
    ClientStorageRegister(FsError),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
}

/// The reason why a client-stored session is not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no session {0}")]
    NotThere(SessionId),
    #[error("the session is deleted, but that could not be recorded: {0}")]
    ClientStorageRegister(FsError),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
}

/// The fate of the files of a deleted session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// The storage client has removed them.
    Files,
    /// They remain, for this reason: the storage client does not serve sessions that its client has not opened.
    RowOnly(String),
}

impl Host {
    /// Attaches a storage client that keeps the sessions of a store from now on.
    ///
    /// It replaces an earlier one of the same name that has no active session. Sessions of other stores are not
    /// touched.
    pub async fn attach_storage_client(
        &self,
        store: &StoreName,
        config: StorageClientConfig,
        calls: Arc<dyn RemoteCalls>,
    ) -> Result<(), ClientStorageError> {
        let active = |published: &PublishedState| {
            published.state.sessions.values().filter(|session| session.store == *store).count()
        };
        let active = self.0.sequencer.read(active);
        if active > 0 {
            return Err(StoreError::SessionsActive(active).into());
        }
        let line = Arc::new(ReconnectingCalls::default());
        line.connect(calls);
        let limits = &self.0.config.limits;
        let limits = Limits { call: limits.storage_call, late: limits.storage_late, ..Limits::default() };
        let remote = Remote::new(line.clone(), limits);
        let fs = Arc::new(ClientStore::new(Arc::new(remote), config)?);
        Ok(self.stores().attach_storage_client(store, ClientStorage { fs, line })?)
    }

    /// Notes that a storage client's connection is gone. Its sessions accept no changes until it returns.
    pub async fn storage_client_left(&self, store: &StoreName) -> Result<(), HostStopped> {
        let Some(client_storage) = self.stores().client_storage(store) else { return Ok(()) };
        if !client_storage.line.is_connected() {
            return Ok(());
        }
        client_storage.line.disconnect();
        tracing::warn!(
            %store,
            "a storage client is disconnected: until it returns its sessions accept no changes, and new ones are refused"
        );
        self.send_presence(store, StorageClientPresence::Away).await
    }

    /// Notes that a storage client is back on another connection: unsaved changes are sent, in order.
    pub async fn storage_client_returned(
        &self,
        store: &StoreName,
        calls: Arc<dyn RemoteCalls>,
    ) -> Result<(), HostStopped> {
        let Some(client_storage) = self.stores().client_storage(store) else { return Ok(()) };
        client_storage.line.connect(calls);
        tracing::info!(%store, "a storage client is connected again");
        self.send_presence(store, StorageClientPresence::Back).await
    }

    async fn send_presence(&self, store: &StoreName, presence: StorageClientPresence) -> Result<(), HostStopped> {
        let mine = |published: &PublishedState| {
            let mine = published.state.sessions.values().filter(|session| session.store == *store);
            mine.map(|session| session.id.clone()).collect::<Vec<_>>()
        };
        for id in self.0.sequencer.read(mine) {
            if let Some(handle) = self.open_session(&id) {
                // A session that ends at this moment needs no presence.
                handle.inbox.send(ToSession::StorageClient(presence)).await.ok();
            }
        }
        Ok(())
    }

    /// Waits until a storage client has all of a session, for the grace period of a stopping host at most.
    ///
    /// Clients that leave a session serve its files no longer.
    pub async fn flush_client_stored(&self, id: &SessionId) {
        let Some(handle) = self.open_session(id) else { return };
        let (done, saved) = oneshot::channel();
        let flush = async {
            // A session that ends at this moment saves itself.
            handle.inbox.send(ToSession::Flush(done)).await.ok();
            saved.await.ok();
        };
        tokio::select! {
            () = flush => {}
            () = self.0.env.clock.sleep(self.0.config.limits.stop_grace) => {
                tracing::warn!(session = %id, "a storage client does not have all of a session that its client leaves");
            }
        }
    }

    /// Closes the sessions of a storage client that is gone for good. They return when a client resumes them.
    pub async fn release_storage_client(&self, store: &StoreName) -> Result<(), HostStopped> {
        let mine = |published: &PublishedState| {
            let mine = published.state.sessions.values().filter(|session| session.store == *store);
            mine.map(|session| session.id.clone()).collect::<Vec<_>>()
        };
        for id in self.0.sequencer.read(mine) {
            // A storage client that is still connected gets the last changes now.
            self.end_session_task(&id).await;
            let removed = Event { at: self.0.env.clock.now(), change: Change::Session(id, SessionEvent::Removed) };
            // Changes that may be held are never refused.
            self.publish(vec![removed], WriteFailurePolicy::Hold, JournalScope::NumbersOnly).await?.ok();
        }
        self.storage_client_left(store).await?;
        self.stores().release(store);
        self.publish_session_count().await
    }

    /// The sessions that a store is known to have, last touched first.
    pub fn client_storage(&self, store: &StoreName) -> Vec<ClientStorageRow> {
        self.stores().register().rows(store)
    }

    /// Opens a client-stored session, unless it is open already. A fork is written now.
    pub async fn resume_client_stored(&self, store: &StoreName, id: &SessionId) -> Result<SessionUri, ResumeError> {
        self.resume_client_stored_in(store, id, Vec::new()).await
    }

    /// Opens a client-stored session in the folders that the client names now.
    ///
    /// Without any, those folders of the session's file are used that the client has declared as its own: a file that
    /// others may write opens no other folder of this machine.
    pub async fn resume_client_stored_in(
        &self,
        store: &StoreName,
        id: &SessionId,
        folders: Vec<String>,
    ) -> Result<SessionUri, ResumeError> {
        if let Some((uri, lies_in)) = self.uri_and_store(id) {
            return if lies_in == *store { Ok(uri) } else { Err(ResumeError::Elsewhere(id.clone())) };
        }
        if !self.stores().is_client_stored(store) {
            return Err(StoreError::Unknown { name: store.clone(), known: self.stores().to_string() }.into());
        }
        let fs = self.stores().reach(store).await?;
        if let Some(fork) = self.stores().register().unwritten_fork(store, id) {
            self.write_fork(&fs, store, id, fork).await?;
        }
        let mut session = Box::pin(self.read_client_stored(&fs, store, id)).await?;
        let declared = fs.initial_cwd();
        session.working_directories.retain(|folder| declared.as_deref().is_some_and(|home| is_inside(folder, home)));
        if !folders.is_empty() {
            session.working_directories = folders;
        }
        if session.working_directories.is_empty() {
            session.working_directories.extend(declared);
        }
        let (uri, at) = (session.uri.clone(), self.0.env.clock.now());
        let (times, turns) =
            ((session.created_at, session.modified_at), session.main_chat().map_or(0, |c| c.turns.len()));
        let register = self.stores().register();
        let is_new = !register.is_known(store, id);
        if let Err(error) = register.note(store, id, times, if is_new { turns as u64 } else { 0 }).await {
            tracing::warn!(session = %id, %error, "the register of client-stored sessions could not be written");
        }
        self.0.sequencer.tell(ToSequencer::AddLoaded(Box::new(session))).await?;
        let listed = Event { at, change: Change::Session(id.clone(), SessionEvent::Listed) };
        // Changes that may be held are never refused.
        self.publish(vec![listed], WriteFailurePolicy::Hold, JournalScope::NumbersOnly).await?.ok();
        self.session(&uri).await?;
        self.publish_session_count().await?;
        Ok(uri)
    }

    /// Records a fork of an open session, whole or up to the part before a user entry.
    ///
    /// It is written when it is first resumed. Without a name it is named after its source.
    pub async fn fork_client_stored(
        &self,
        store: &StoreName,
        source: &SessionId,
        before: Option<String>,
        name: Option<String>,
    ) -> Result<SessionId, ForkError> {
        self.stores().reach(store).await?;
        let open = self.uri_and_store(source).filter(|(_, lies_in)| lies_in == store);
        let (uri, _) = open.ok_or_else(|| ForkError::NotOpen(source.clone()))?;
        let refused = |reason: String| ForkError::Refused { id: source.clone(), reason };
        let main = ChatId::from(Session::MAIN_CHAT);
        let asked = self.ask_tree(&(uri.clone(), main), TreeRequest::PlanFork { before }).await;
        let cut = match asked {
            Ok(asked) => asked.answer().await,
            Err(error) => Err(error),
        };
        let ForkPlan { chats, title, .. } = match cut {
            Ok(TreeAnswer::PlanFork(fork_plan)) => *fork_plan,
            Ok(_) => return Err(ForkError::NotOpen(source.clone())),
            Err(SessionRequestError::HostStopped(stopped)) => return Err(stopped.into()),
            Err(error) => return Err(refused(error.to_string())),
        };
        let origin = chats.into_iter().next().map(|main| main.origin);
        let Some(origin) = origin.filter(|origin| origin.log.boundary > 0) else {
            return Err(ForkError::Empty(source.clone()));
        };
        let id = SessionId::from(self.new_id()?);
        let record = ForkRecord {
            source: source.clone(),
            at: self.0.env.clock.now(),
            boundary: origin.log.boundary,
            leaf: origin.log.leaf.clone(),
            until: origin.log.until,
            branch: origin.log.extent == LogScope::Branch,
            written: false,
        };
        self.stores().register().note_fork(store, &id, record).await.map_err(ForkError::ClientStorageRegister)?;
        // The title is not for this machine's disk: the source's log has it and is read when the fork is written.
        let title = match name.as_deref().map(SessionTitle::given).filter(|name| !name.is_none()) {
            Some(name) => name,
            None => title.of_fork(),
        };
        let title = title.text().to_owned();
        if let Some(handle) = self.open_session(source) {
            handle.inbox.send(ToSession::Forked { fork: id.clone(), title, origin }).await.ok();
        }
        Ok(id)
    }

    /// Deletes a session: its row here, and its files if the storage client serves it.
    pub async fn delete_client_stored(&self, store: &StoreName, id: &SessionId) -> Result<DeleteOutcome, DeleteError> {
        let fs = self.stores().get(store)?;
        let register = self.stores().register();
        let open = self.uri_and_store(id).filter(|(_, lies_in)| lies_in == store);
        if open.is_none() && !register.is_known(store, id) {
            return Err(DeleteError::NotThere(id.clone()));
        }
        if let Some((uri, _)) = open {
            self.dispose_session(&uri).await?;
        }
        let removed = fs.rm(&paths::folder(id), Removal::Everything).await;
        register.forget(store, id).await.map_err(DeleteError::ClientStorageRegister)?;
        Ok(match removed {
            Ok(()) | Err(FsError::NotFound { .. }) => DeleteOutcome::Files,
            Err(error) => DeleteOutcome::RowOnly(error.to_string()),
        })
    }

    /// The URI and the store of a known session.
    fn uri_and_store(&self, id: &SessionId) -> Option<(SessionUri, StoreName)> {
        let look = |published: &PublishedState| {
            let evicted = || published.evicted.get(id).map(|evicted| &evicted.session);
            let session = published.state.sessions.get(id).or_else(evicted);
            session.map(|session| (session.uri.clone(), session.store.clone()))
        };
        self.0.sequencer.read(look)
    }

    /// Creates the folder of a new session at its storage client, before anybody hears of the session.
    pub(crate) async fn begin_client_stored(&self, fs: &dyn SessionFs, session: &Session) -> Result<(), CreateError> {
        let refused =
            |error: FsError| CreateError::Provider { store: session.store.clone(), reason: reason_of(&error) };
        for path in [paths::session_file(&session.id), paths::log(&session.id, &Session::MAIN_CHAT.into())] {
            if asked(fs, &path).await.map_err(refused)? {
                return Err(CreateError::Kept(session.id.clone()));
            }
        }
        session_file::write_any(fs, session, 0, Disposition::Kept).await.map_err(refused)?;
        let times = (session.created_at, session.modified_at);
        let noted = self.stores().register().note(&session.store, &session.id, times, 0).await;
        noted.map_err(CreateError::Folder)
    }

    /// Reads a session with its newest turns from its storage client.
    async fn read_client_stored(
        &self,
        fs: &Arc<dyn SessionFs>,
        store: &StoreName,
        id: &SessionId,
    ) -> Result<Session, ResumeError> {
        let main = ChatId::from(Session::MAIN_CHAT);
        let no_answer = |error: FsError| ResumeError::NoAnswer { id: id.clone(), reason: reason_of(&error) };
        let unreadable = |file: &str, reason: String| {
            let file = file.to_owned();
            ResumeError::Unreadable { id: id.clone(), file, reason }
        };
        let log = paths::log(id, &main);
        let file = match session_file::read(fs.as_ref(), id).await {
            // The client keeps the file; it does not decide what is permitted on this machine.
            Ok(file) => file.in_store(store.clone()).without_permissions(),
            Err(LoadError::Fs(FsError::NotFound { .. })) if asked(fs.as_ref(), &log).await.map_err(no_answer)? => {
                return self.rebuilt(fs, store, id).await;
            }
            Err(LoadError::Fs(FsError::NotFound { .. })) => return Err(ResumeError::NotThere(id.clone())),
            Err(LoadError::Fs(error)) => return Err(no_answer(error)),
            Err(error) => return Err(unreadable("session.json", error.to_string())),
        };
        if file.id() != id {
            return Err(unreadable("session.json", format!("it is that of session {}", file.id())));
        }
        let had_turns = Box::pin(session_file::with_turns(file, fs.as_ref(), self.0.config.limits.snapshot())).await;
        match had_turns {
            Ok((_, Some(_))) => Err(ResumeError::LostTurns(id.clone())),
            Ok((session, None)) => Ok(session),
            Err(LoadError::Fs(error)) => Err(no_answer(error)),
            Err(error) => Err(unreadable("events.jsonl", error.to_string())),
        }
    }

    /// Rebuilds a session of which only the log is left.
    async fn rebuilt(
        &self,
        fs: &Arc<dyn SessionFs>,
        store: &StoreName,
        id: &SessionId,
    ) -> Result<Session, ResumeError> {
        let main = ChatId::from(Session::MAIN_CHAT);
        let unreadable = |reason: String| {
            let file = "events.jsonl".to_owned();
            ResumeError::Unreadable { id: id.clone(), file, reason }
        };
        let agent = self.default_agent().ok_or_else(|| ResumeError::NoAgent(id.clone()))?;
        let converted = copilot_logs::convert(fs.as_ref(), id, &agent).await;
        converted.map_err(|error| unreadable(error.to_string()))?;
        let limit = self.0.config.limits.snapshot();
        let window = session_file::read_turns(fs.as_ref(), id, &main, None, None, limit).await;
        let window = window.map_err(|error| unreadable(error.to_string()))?;
        let path = paths::log(id, &main);
        let opened = logs::open_log(fs.as_ref(), &path, &mut String::new).await;
        let index = opened.map_err(|error: LogError| unreadable(error.to_string()))?.index;
        let new = NewSession {
            id: id.clone(),
            uri: SessionUri::from(format!("{agent}:/{id}")),
            agent,
            model: None,
            working_directories: index
                .header()
                .and_then(|header| header.cwd())
                .filter(|cwd| cwd.len() <= MAX_PATH_BYTES)
                .into_iter()
                .collect(),
            config: None,
            store: store.clone(),
        };
        let begun = window.turns.first().map_or_else(|| self.0.env.clock.now(), |turn| turn.started_at);
        let mut session = Session::new(&new, begun);
        session.set_title(&SessionTitle::given(&index.name().unwrap_or_default()));
        session.lifecycle = Lifecycle::Ready;
        session.modified_at = window.turns.last().map_or(begun, |turn| turn.ended_at);
        if let Some(chat) = session.chats.first_mut() {
            (chat.turns, chat.has_older_turns) = (window.turns, window.older);
            (chat.modified_at, chat.touched_at) = (session.modified_at, session.modified_at);
        }
        session.catalogue = session.chats.iter().map(Chat::row).collect();
        Ok(session)
    }

    /// Writes a fork that is only a record so far.
    async fn write_fork(
        &self,
        fs: &Arc<dyn SessionFs>,
        store: &StoreName,
        id: &SessionId,
        fork: ForkRecord,
    ) -> Result<(), ResumeError> {
        let from = |reason: String| ResumeError::Source { id: id.clone(), source_id: fork.source.clone(), reason };
        let source = session_file::read(fs.as_ref(), &fork.source).await.map_err(|error| from(error.to_string()))?;
        let source = source.in_store(store.clone()).without_permissions().without_turns();
        let no_answer = |error: FsError| ResumeError::NoAnswer { id: id.clone(), reason: reason_of(&error) };
        // A storage client without a handler for the fork says so before anything is copied.
        asked(fs.as_ref(), &paths::session_file(id)).await.map_err(no_answer)?;
        let main = ChatId::from(Session::MAIN_CHAT);
        let named = named_by_source(fs.as_ref(), &fork.source, id).await;
        let title = named.map_or_else(|| source.session_title().of_fork(), |name| SessionTitle::given(&name));
        let mut origin = ChatOrigin {
            session: fork.source.clone(),
            store: store.clone(),
            chat: main.clone(),
            uri: None,
            turn: None,
            kind: OriginKind::Fork,
            log: fork.log(),
        };
        let mut job = CopyJob {
            from: fs.clone(),
            to: fs.clone(),
            origin: Arc::new(origin.clone()),
            index: None,
            session: id.clone(),
            chat: main.clone(),
            title: title.text().to_owned(),
            at: fork.at,
            cwd: source.working_directories.first().map_or("/", String::as_str).to_owned(),
        };
        job.run().await.map_err(|error: CopyError| from(error.to_string()))?;
        copy_todos(fs.as_ref(), &fork.source, id).await;
        let limit = self.0.config.limits.snapshot();
        let window = session_file::read_turns(fs.as_ref(), id, &main, None, None, limit).await;
        let window = window.map_err(|error| from(error.to_string()))?;
        origin.turn = window.turns.last().map(|turn| turn.id.clone());
        let new = NewSession {
            id: id.clone(),
            uri: SessionUri::from(format!("{}:/{id}", source.agent)),
            agent: source.agent.clone(),
            model: source.model.clone(),
            working_directories: source.working_directories.clone(),
            config: source.config.clone(),
            store: store.clone(),
        };
        let turns = window.turns.len() as u64;
        let mut session = Session::new(&new, fork.at);
        session.set_title(&title);
        session.lifecycle = Lifecycle::Ready;
        if let Some(chat) = session.chats.first_mut() {
            chat.origin = Some(Arc::new(origin));
            (chat.turns, chat.has_older_turns) = (window.turns, window.older);
        }
        session_file::write_any(fs.as_ref(), &session, 0, Disposition::Kept).await.map_err(no_answer)?;
        if let Err(error) = self.stores().register().fork_written(store, id, turns).await {
            tracing::warn!(session = %id, %error, "the register of client-stored sessions could not be written");
        }
        Ok(())
    }
}

/// Says whether a folder equals another one or is inside it. Both may be URIs or paths, of any system.
fn is_inside(folder: &str, home: &str) -> bool {
    let path = |text: &str| {
        let path = grove_work::local_path(text).map_or_else(|_| text.to_owned(), |path| path.display().to_string());
        path.replace('\\', "/")
    };
    let (folder, home) = (path(folder), path(home));
    let has_dots = folder.split('/').any(|part| part == "..");
    let rest = folder.strip_prefix(home.trim_end_matches('/'));
    !has_dots && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Says whether a file exists.
///
/// The file is looked up: asked with `exists`, a storage client without a handler answers that nothing is there.
async fn asked(fs: &dyn SessionFs, path: &str) -> Result<bool, FsError> {
    match fs.stat(path).await {
        Ok(_) => Ok(true),
        Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The error without its path, which is ours and tells a storage client nothing.
fn reason_of(error: &FsError) -> String {
    match error {
        FsError::Other { reason, .. } => reason.clone(),
        error => error.to_string(),
    }
}

/// Copies the todo list of a session, if the storage client has databases (they are no files there).
///
/// A list that cannot be copied does not hold up the fork.
async fn copy_todos(fs: &dyn SessionFs, source: &SessionId, fork: &SessionId) {
    let folders = (paths::folder(source), paths::folder(fork));
    let (Some(from), Some(to)) = (fs.database(&folders.0), fs.database(&folders.1)) else { return };
    let copied = async {
        for todo in Todos::of(&*from).list().await? {
            Todos::of(&*to).put(&todo).await?;
        }
        Ok::<_, DatabaseError>(())
    };
    if copied.await.is_err() {
        tracing::warn!(session = %fork, "the todo list of a client-stored session was not copied to its fork");
    }
}

/// The fork's title according to the log of its source.
async fn named_by_source(fs: &dyn SessionFs, source: &SessionId, fork: &SessionId) -> Option<String> {
    let main = ChatId::from(Session::MAIN_CHAT);
    let (path, side) = (paths::log(source, &main), paths::side_index(source, &main));
    let index = logs::open_log_with_side_index(fs, &path, &side, &mut String::new).await.ok()?.index;
    let entry = index.find(&info::id_of("into", fork))?;
    let lines = logs::read_lines(fs, &path, &index, &[entry]).await.ok()?;
    info::title_of(lines.first()?)
}
