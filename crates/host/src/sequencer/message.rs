//! What the sequencer can be told, and what it answers from.

use std::sync::Arc;

use grove_core::*;
use tokio::sync::oneshot;

use super::{ConnectionId, Origin, Published, Sequenced};
use crate::connection::{Encode, Queue};
use crate::dialect::Dialect;

/// Events that happened together.
pub(crate) struct Publication {
    pub(crate) events: Vec<Event>,
    /// Whose action the first event is.
    pub(crate) origin: Option<Origin>,
    /// Turns that these events finish, to be shared with the session's task instead of kept twice.
    pub(crate) finished: Vec<(SessionId, ChatId, Arc<Turn>)>,
    /// What becomes of it while nothing can be written.
    pub(crate) unwritten: Unwritten,
    /// Told when all is published, or that it will not be.
    pub(crate) done: Option<Done>,
}

/// Told the number of a publication's last event, or that it is not published.
pub(crate) type Done = oneshot::Sender<Result<u64, NotWritten>>;

/// What becomes of a publication that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// It did not happen; whoever wanted it is told.
    Refused,
    /// It did happen, and is held until it can be written.
    Held,
}

/// The journal could not be written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("nothing can be stored at the moment ({0}): make room or mend the disk, then try again")]
pub struct NotWritten(pub(super) String);

/// An action that is refused: told to its sender alone, under a number of its own.
pub(crate) struct Refusal {
    pub(crate) connection: ConnectionId,
    /// Makes the frame from the number.
    pub(crate) frame: Box<dyn FnOnce(u64) -> Option<Arc<str>> + Send>,
}

/// Where an answer goes: into the connection's queue, or to the batch that it is part of.
pub(crate) type Reply = Box<dyn FnOnce(Encode) + Send>;

/// A connection that says who it is.
pub(crate) struct Attach {
    pub(crate) connection: ConnectionId,
    pub(crate) queue: Arc<Queue>,
    pub(crate) client: ClientId,
    pub(crate) how: AttachAs,
    pub(crate) subscriptions: Vec<SessionOrRoot>,
    pub(crate) answer: AttachAnswer,
    pub(crate) reply: Reply,
}

/// Prepares the answer to a connection that attached.
pub(crate) type AttachAnswer = Box<dyn FnOnce(Attached<'_>) -> Encode + Send>;

/// How a connection begins.
pub(crate) enum AttachAs {
    /// For the first time, in this dialect.
    New(Dialect),
    /// Again, having seen everything up to a number; speaks what it spoke before, or this if it is not remembered.
    Returning { seen: u64, unless_known: Dialect },
}

/// A resource as a client names it.
#[derive(Clone, Debug)]
pub(crate) enum SessionOrRoot {
    Root,
    Session(SessionUri),
}

/// What an attached connection is answered from.
pub(crate) struct Attached<'a> {
    pub(crate) published: &'a Published,
    pub(crate) dialect: Dialect,
    /// Which of the subscriptions asked for it has now, in their order.
    pub(crate) subscribed: Vec<bool>,
    /// What was missed, where all of it is still there. Else snapshots are due.
    pub(crate) missed: Option<Vec<Arc<Sequenced>>>,
}

/// A wish to hear of a resource.
pub(crate) struct Subscribe {
    pub(crate) connection: ConnectionId,
    pub(crate) resource: SessionOrRoot,
    pub(crate) answer: SubscribeAnswer,
    pub(crate) reply: Reply,
}

/// Prepares the answer to a subscription.
pub(crate) type SubscribeAnswer = Box<dyn FnOnce(Subscribed<'_>) -> Encode + Send>;

pub(crate) enum Subscribed<'a> {
    Yes(&'a Published),
    Unknown,
    TooMany,
}

/// What the sequencer can be told.
pub(crate) enum ToSequencer {
    /// What is left of a message that was dealt with.
    Nothing,
    Publish(Publication),
    Refuse(Refusal),
    Attach(Attach),
    Subscribe(Subscribe),
    Unsubscribe(ConnectionId, SessionOrRoot),
    Detach(ConnectionId),
    /// A session from its folder. If it is loaded already, this one is let go.
    Load(Box<Session>),
    /// A session's folder has everything of it up to a number.
    Persisted(SessionId, u64),
    /// Looks at the published state.
    Read(Look),
    /// Closes every connection: the host stops.
    CloseAll,
}

/// A look at the published state.
pub(crate) type Look = Box<dyn FnOnce(&Published, Counters) + Send>;

/// What is going on, in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub(crate) connections: usize,
}
