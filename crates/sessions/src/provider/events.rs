//! The events of providers.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::session::Session;

/// The changes of a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionsChange {
    /// Sessions that are new in the list.
    pub added: Vec<Session>,
    /// Sessions that are no longer in the list.
    pub removed: Vec<Session>,
    /// Sessions that changed. One that replaced another is listed here, too, so a listener inserts sessions that it
    /// does not know yet.
    pub changed: Vec<Session>,
}

impl SessionsChange {
    /// A change that adds sessions.
    pub fn added(sessions: impl IntoIterator<Item = Session>) -> Self {
        Self { added: sessions.into_iter().collect(), ..Self::default() }
    }

    /// A change that removes sessions.
    pub fn removed(sessions: impl IntoIterator<Item = Session>) -> Self {
        Self { removed: sessions.into_iter().collect(), ..Self::default() }
    }

    /// A change that updates sessions.
    pub fn changed(sessions: impl IntoIterator<Item = Session>) -> Self {
        Self { changed: sessions.into_iter().collect(), ..Self::default() }
    }

    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// The replacement of a temporary session by the permanent one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReplacement {
    /// The temporary one.
    pub from: Session,
    /// The permanent one. Its id may be the same.
    pub to: Session,
}

/// An event of a provider. All events use one channel, so that they arrive in order.
#[derive(Clone, Debug)]
pub enum ProviderEvent {
    /// Its list changed.
    Sessions(Arc<SessionsChange>),
    /// A session replaced another in its list.
    SessionReplacement(SessionReplacement),
    /// Its session types changed.
    SessionTypes,
    /// It became reachable or unreachable.
    Availability,
}

/// The sending end, which a provider keeps. A listener that is too slow loses events, notices it, and lists again.
#[derive(Clone, Debug)]
pub struct Announcer {
    sender: broadcast::Sender<ProviderEvent>,
}

impl Announcer {
    /// The events that wait for a slow listener.
    pub const CAPACITY: usize = 1024;

    /// An announcer with this capacity, beyond which slow listeners lose events. Any number is accepted.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { sender: broadcast::Sender::new(capacity.clamp(1, 1 << 16)) }
    }

    /// For [`SessionsProvider::subscribe`](super::SessionsProvider::subscribe).
    pub fn subscribe(&self) -> broadcast::Receiver<ProviderEvent> {
        self.sender.subscribe()
    }

    /// Announces changes of the list, if there are any.
    pub fn sessions(&self, change: SessionsChange) {
        if !change.is_empty() {
            self.tell(ProviderEvent::Sessions(Arc::new(change)));
        }
    }

    /// Announces that a session replaced another.
    pub fn replaced(&self, from: Session, to: Session) {
        self.tell(ProviderEvent::SessionReplacement(SessionReplacement { from, to }));
    }

    /// Announces that the session types changed.
    pub fn session_types(&self) {
        self.tell(ProviderEvent::SessionTypes);
    }

    /// Announces that the provider became reachable or unreachable.
    pub fn availability(&self) {
        self.tell(ProviderEvent::Availability);
    }

    fn tell(&self, event: ProviderEvent) {
        // Without a listener, nothing is lost.
        self.sender.send(event).ok();
    }
}

impl Default for Announcer {
    fn default() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }
}
