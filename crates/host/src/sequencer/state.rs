//! The published state.

use std::collections::HashMap;

use grove_core::*;
use grove_wire::ahp::uri::{ChatName, SessionName};

use super::{ResolvedTarget, SubscriptionTarget};

/// The state that everybody can see, and the sequence number of its last event.
#[derive(Debug, Default)]
pub(crate) struct PublishedState {
    pub(crate) state: State,
    /// Sessions that are listed and not loaded.
    pub(crate) evicted: HashMap<SessionId, EvictedSession>,
    pub(crate) seq: u64,
}

/// A session that is only in its folder: its row in lists.
#[derive(Debug)]
pub(crate) struct EvictedSession {
    /// The session without its turns.
    pub(crate) session: Session,
    /// Says whether its last turn ended in error.
    pub(crate) failed: bool,
}

impl PublishedState {
    /// The session that was created under exactly this URI.
    pub(crate) fn session_at(&self, uri: &SessionUri) -> Option<&Session> {
        self.state.sessions.get(&uri.id()?).filter(|session| session.uri == *uri)
    }

    /// Says whether there is a session of this id, loaded or not.
    pub(crate) fn is_known(&self, id: &SessionId) -> bool {
        self.state.sessions.contains_key(id) || self.evicted.contains_key(id)
    }

    /// All listed sessions, and whether the last turn of the main chat ended in error.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&Session, bool)> {
        let failed = |session: &Session| session.main_chat().is_some_and(|chat| chat.status() == ChatStatus::Error);
        let loaded = self.state.sessions.values().map(move |session| (session, failed(session)));
        loaded.chain(self.evicted.values().map(|evicted| (&evicted.session, evicted.failed)))
    }

    /// The session with this chat, beside its main one.
    pub(crate) fn session_of_chat(&self, chat: &ChatId) -> Option<&Session> {
        self.listed().map(|(session, _)| session).find(|session| {
            session.catalogue.len() > 1 && session.catalogue.iter().skip(1).any(|row| row.chat == *chat)
        })
    }

    /// The loaded resource that a name refers to.
    pub(crate) fn find(&self, wanted: &SubscriptionTarget) -> Option<ResolvedTarget<'_>> {
        let session = |name: &SessionName| self.state.sessions.get(&name.id).filter(|session| name.fits(session));
        match wanted {
            SubscriptionTarget::Root => Some(ResolvedTarget::Root),
            SubscriptionTarget::SessionWithMainChat(uri) => {
                self.session_at(uri).map(ResolvedTarget::SessionWithMainChat)
            }
            SubscriptionTarget::Session(name) => session(name).map(ResolvedTarget::Session),
            SubscriptionTarget::Chat(ChatName::Main(name)) => {
                session(name).and_then(|session| Some(ResolvedTarget::Chat(session, session.main_chat()?)))
            }
            SubscriptionTarget::Chat(ChatName::Of(name, chat)) => {
                session(name).and_then(|session| Some(ResolvedTarget::Chat(session, session.chat(chat)?)))
            }
            SubscriptionTarget::Chat(ChatName::ById(id)) => {
                match self.state.sessions.get(&SessionId::from(id.as_str())) {
                    Some(session) => Some(ResolvedTarget::Chat(session, session.main_chat()?)),
                    None => {
                        let session = self.state.sessions.get(&self.session_of_chat(id)?.id)?;
                        Some(ResolvedTarget::Chat(session, session.chat(id)?))
                    }
                }
            }
        }
    }
}
