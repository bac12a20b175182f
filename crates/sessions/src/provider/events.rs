//! What providers tell.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::session::Session;

/// What changed in a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionsChange {
    /// Sessions that are new in the list.
    pub added: Vec<Session>,
    /// Sessions that are not in the list any more.
    pub removed: Vec<Session>,
    /// Sessions that say something else than before. One that took another's place is told here, too, so a listener puts
    /// in what it does not know yet.
    pub changed: Vec<Session>,
}

impl SessionsChange {
    /// Sessions that came.
    pub fn added(sessions: impl IntoIterator<Item = Session>) -> Self {
        Self { added: sessions.into_iter().collect(), ..Self::default() }
    }

    /// Sessions that went.
    pub fn removed(sessions: impl IntoIterator<Item = Session>) -> Self {
        Self { removed: sessions.into_iter().collect(), ..Self::default() }
    }

    /// Sessions that say something else.
    pub fn changed(sessions: impl IntoIterator<Item = Session>) -> Self {
        Self { changed: sessions.into_iter().collect(), ..Self::default() }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// A temporary session gave its place to the one that came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReplacement {
    /// The temporary one.
    pub from: Session,
    /// The one that stays. Its id may be the same.
    pub to: Session,
}

/// What a provider tells. Everything comes through one channel, so that what happened first is told first.
#[derive(Clone, Debug)]
pub enum ProviderEvent {
    /// Its list changed.
    Sessions(Arc<SessionsChange>),
    /// A session took another's place in its list.
    SessionReplacement(SessionReplacement),
    /// It offers other session types.
    SessionTypes,
    /// It can or cannot be reached any more.
    Availability,
}

/// The telling end, which a provider keeps. Who does not listen fast enough loses events, notices it, and lists anew.
#[derive(Clone, Debug)]
pub struct Announcer {
    sender: broadcast::Sender<ProviderEvent>,
}

impl Announcer {
    /// How many events wait for a slow listener.
    pub const CAPACITY: usize = 1024;

    /// An announcer of which slow listeners lose events beyond a number. No number is too small or too large.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { sender: broadcast::Sender::new(capacity.clamp(1, 1 << 16)) }
    }

    /// For [`SessionsProvider::subscribe`](super::SessionsProvider::subscribe).
    pub fn subscribe(&self) -> broadcast::Receiver<ProviderEvent> {
        self.sender.subscribe()
    }

    /// Tells that the list changed. Nothing is told where nothing did.
    pub fn sessions(&self, change: SessionsChange) {
        if !change.is_empty() {
            self.tell(ProviderEvent::Sessions(Arc::new(change)));
        }
    }

    /// Tells that a session took another's place.
    pub fn replaced(&self, from: Session, to: Session) {
        self.tell(ProviderEvent::SessionReplacement(SessionReplacement { from, to }));
    }

    /// Tells that the session types are others.
    pub fn session_types(&self) {
        self.tell(ProviderEvent::SessionTypes);
    }

    /// Tells that the provider can or cannot be reached any more.
    pub fn availability(&self) {
        self.tell(ProviderEvent::Availability);
    }

    fn tell(&self, event: ProviderEvent) {
        // An error says that nobody listens, which is nobody's loss.
        self.sender.send(event).ok();
    }
}

impl Default for Announcer {
    fn default() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }
}
