//! The tasks of sessions, and loading sessions from their folders.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use grove_core::*;
use grove_fs::temp_files::TempFilePolicy;
use grove_storage::session_file;
use tokio::sync::oneshot;

use super::Host;
use super::agents::MissingAgent;
use super::clients::waited_for;
use crate::eviction::EvictionState;
use crate::sequencer::{HostStopped, PublishedState};
use crate::session::{self, CommandError, SessionContext, SessionHandle, SessionStart, ToSession};

#[derive(Default)]
pub(crate) struct OpenSessions {
    pub(crate) stopping: bool,
    pub(crate) open: HashMap<SessionId, SessionHandle>,
    pub(crate) rest: EvictionState,
}

impl Host {
    /// The task of the session with this URI. A session from before the host's start gets its task now.
    pub async fn session(&self, uri: &SessionUri) -> Result<Option<SessionHandle>, HostStopped> {
        let Some(id) = uri.id() else { return Ok(None) };
        self.mark_used(&id);
        let open = |sessions: &OpenSessions| sessions.open.get(&id).cloned();
        if let Some(handle) = open(&self.sessions()) {
            return Ok(Some(handle).filter(|handle| handle.uri == *uri));
        }
        self.load(&id).await?;
        // A session without a task does not change, so its published state is its tip.
        let found = self.0.sequencer.read_in_order({
            let uri = uri.clone();
            move |published: &PublishedState| published.session_at(&uri).map(|session| (session.clone(), published.seq))
        });
        let Some((tip, seq)) = found.await? else {
            self.sessions().rest.forget(&id);
            return Ok(None);
        };
        let agent = self.agents().iter().find(|agent| agent.info().id == tip.agent).cloned();
        let agent = agent.unwrap_or_else(|| Arc::new(MissingAgent { id: tip.agent.clone() }));
        // Sessions of missing stores are not listed either.
        let Ok(fs) = self.0.env.stores.get(&tip.store) else { return Ok(None) };
        let mut sessions = self.sessions();
        if let Some(handle) = open(&sessions) {
            return Ok(Some(handle));
        }
        let mine =
            self.marks().extract_if(|(session, _), _| *session == id).map(|((_, chat), mark)| (chat, mark)).collect();
        let session_context = self.new_session_context(&id, &mut sessions);
        let handle = session::start(tip, fs, agent, session_context, SessionStart::Known { seq, marks: mine });
        sessions.open.insert(id, handle.clone());
        Ok(Some(handle))
    }

    /// The task of a session, if it has one now.
    pub fn open_session(&self, id: &SessionId) -> Option<SessionHandle> {
        self.sessions().open.get(id).cloned()
    }

    /// Loads an evicted session of this id from its folder. It stays long enough to be used.
    pub async fn load(&self, id: &SessionId) -> Result<(), HostStopped> {
        self.mark_used(id);
        let evicted = |published: &PublishedState| {
            let store = published.evicted.get(id).map(|evicted| evicted.session.store.clone());
            (store, published.is_known(id))
        };
        let store = match self.0.sequencer.read(evicted) {
            (Some(store), _) => store,
            (None, true) => return Ok(()),
            (None, false) => {
                self.sessions().rest.forget(id);
                return Ok(());
            }
        };
        let loaded = match self.0.env.stores.get(&store) {
            Ok(fs) => session_file::load(fs.as_ref(), id, self.0.config.limits.snapshot()).await,
            Err(error) => Err(error.into()),
        };
        match loaded {
            Ok(session) => {
                waited_for(&session).collect::<HashSet<_>>().into_iter().for_each(|client| self.client_left(client));
                self.0.sequencer.load(session).await
            }
            Err(error) => {
                tracing::error!(session = %id, %error, "a session cannot be read from its folder");
                Ok(())
            }
        }
    }

    pub(super) fn new_session_context(&self, id: &SessionId, sessions: &mut OpenSessions) -> SessionContext {
        let keeps = self.0.keeping.lock().unwrap_or_else(PoisonError::into_inner).contains(id);
        SessionContext {
            temp_files: if keeps { TempFilePolicy::Kept } else { self.0.config.temp_files },
            env: self.0.env.clone(),
            config: self.0.config.clone(),
            sequencer: self.0.sequencer.clone(),
            agents: self.0.agent_infos.subscribe(),
            active_folders: self.0.active_folders.clone(),
            departures: self.0.departures.clone(),
            hooks: self.0.hooks.clone(),
            host: Arc::downgrade(&self.0),
            copies: self.0.copies.clone(),
            left: self.0.left.clone(),
            spills: sessions.rest.take_spills(id),
        }
    }

    /// Sends a command to a session, and waits until it is done. The error gives the reason if it is not.
    pub async fn carry_out(
        &self,
        session: &SessionHandle,
        command: impl Into<HostCommand>,
    ) -> Result<Result<(), CommandError>, HostStopped> {
        let (done, outcome) = oneshot::channel();
        // A session that ends at this moment counts as gone.
        let gone = || Ok(Err(CommandError::Gone));
        if session.inbox.send(ToSession::Do(command.into(), done)).await.is_err() {
            return gone();
        }
        match outcome.await {
            Ok(result) => Ok(result),
            Err(_) => gone(),
        }
    }

    /// Keeps the temporary files of a session, from the start of its task.
    pub fn keep_temp_files(&self, id: &SessionId) {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        self.0.keeping.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
    }

    /// Ends a session's task, and leaves the session as it is.
    pub(crate) async fn end_session_task(&self, id: &SessionId) {
        let Some(handle) = self.sessions().open.remove(id) else { return };
        let (done, stopped) = oneshot::channel();
        if handle.inbox.send(ToSession::Stop(done)).await.is_ok() {
            // It may have ended by itself.
            stopped.await.ok();
        }
    }

    /// Disposes a session: cancels its turn, releases its agent and removes it from state and lists.
    ///
    /// Returns `false` if there is none.
    pub async fn dispose_session(&self, uri: &SessionUri) -> Result<bool, HostStopped> {
        let (Some(id), Some(handle)) = (uri.id(), self.session(uri).await?) else { return Ok(false) };
        let host = self.clone();
        let (outcome, removed) = oneshot::channel();
        // Its id is free only once it is gone, so that a new session under its URI is not taken for the old one. That
        // happens in a task of its own, since the caller may be dropped in the middle.
        self.0.env.spawn.spawn(Box::pin(async move {
            let (done, disposed) = oneshot::channel();
            let sent = handle.inbox.send(ToSession::Dispose(done)).await.is_ok();
            // Of two concurrent calls, one finds it gone already.
            let disposed = sent && disposed.await.is_ok();
            let mut result = Ok(disposed);
            if disposed {
                host.forget_session(&id);
                result = host.active_sessions_changed().await.map(|()| true);
            }
            outcome.send(result).ok();
        }));
        removed.await.unwrap_or(Err(HostStopped))
    }

    /// Removes a session that is gone from every table: tables must not grow with the sessions that there once were.
    fn forget_session(&self, id: &SessionId) {
        let mut sessions = self.sessions();
        sessions.open.remove(id);
        sessions.rest.forget(id);
        drop(sessions);
        self.0.keeping.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, OpenSessions> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn marks(&self) -> MutexGuard<'_, HashMap<(SessionId, ChatId), FrameCursor>> {
        self.0.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
