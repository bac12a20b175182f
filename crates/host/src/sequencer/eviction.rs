//! Eviction of idle sessions: memory depends on the sessions in use, not on all sessions.

use grove_core::*;
use grove_storage::session_file;

use super::{Resource, Sequencer, UnusedCheck};

impl Sequencer {
    /// The loaded sessions that could be evicted.
    pub(super) fn idle_sessions(&self) -> Vec<(SessionId, StoreName)> {
        let published = self.shared.published();
        let all = published.state.sessions.values().filter(|session| self.is_evictable(session));
        all.map(|session| (session.id.clone(), session.store.clone())).collect()
    }

    /// Evicts a session, if it is still idle and unused. Its row in lists stays.
    ///
    /// A reader marks a session as used before it looks for it. So it finds the session loaded, and it stays, or in its
    /// folder.
    pub(super) fn rest(&mut self, id: &SessionId, is_unused: UnusedCheck) {
        let mut published = self.shared.published_mut();
        let Some(session) = published.state.sessions.get(id) else { return };
        if !self.is_evictable(session) || !is_unused() {
            return;
        }
        let Some(file) = session_file::SessionFile::at_rest(session) else { return };
        published.state.sessions.remove(id);
        published.evicted.insert(id.clone(), file.into_evicted());
        self.names.remove(id);
        self.metrics.sessions_evicted.increment();
    }

    /// Says whether a session has no subscribers and no work, and its folder has all of it.
    fn is_evictable(&self, session: &Session) -> bool {
        let is_heard = |resource: Resource| self.subscribers.contains_key(&resource);
        let listeners = self.listeners.get(&session.id).into_iter().flatten();
        !self.unpersisted.contains_key(&session.id)
            && session.lifecycle != Lifecycle::Creating
            && session.chats.iter().all(is_at_rest)
            && !is_heard(Resource::Session(session.id.clone()))
            && !session.chats.iter().any(|chat| is_heard(Resource::Chat(session.id.clone(), chat.id.clone())))
            && listeners.filter(|listener| !listener.is_closed()).count() == 0
    }
}

fn is_at_rest(chat: &Chat) -> bool {
    chat.active.is_none() && chat.steering.is_none() && chat.queued.is_empty()
}
