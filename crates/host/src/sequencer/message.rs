//! What the sequencer can be told, and what it answers from.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_agents::FrameCursor;
use grove_core::*;
use grove_wire::ahp::uri::{ChatName, SessionName, Spelling};
use tokio::sync::{mpsc, oneshot};

use super::{ActionOrigin, ConnectionId, EvictedSession, PublishedState, Resource, SequencedEvent};
use crate::connection::{DisconnectReason, Encode, Queue};
use crate::dialect::Dialect;

/// Events that happened together.
pub(crate) struct Publication {
    pub(crate) events: Vec<Event>,
    /// Whose action the first event is.
    pub(crate) origin: Option<ActionOrigin>,
    /// Turns that these events finish, to be shared with the session's task instead of kept twice.
    pub(crate) finished: Vec<(SessionId, ChatId, Arc<Turn>)>,
    /// Up to where agents have been heard when this is written.
    pub(crate) marks: Vec<(SessionId, ChatId, FrameCursor)>,
    /// What becomes of it while nothing can be written.
    pub(crate) on_write_failure: WriteFailurePolicy,
    pub(crate) trace: JournalScope,
    /// Told when all is published, or that it will not be.
    pub(crate) done: Option<PublishReply>,
}

/// Told the number of a publication's last event, or that it is not published.
pub(crate) type PublishReply = oneshot::Sender<Result<u64, JournalWriteError>>;

/// What of a publication is on this machine's disk when it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalScope {
    /// All of it is in the journal.
    AllEvents,
    /// Only that its numbers were given: the session's storage is somebody else's.
    NumbersOnly,
}

/// What becomes of a publication that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFailurePolicy {
    /// It did not happen; whoever wanted it is told.
    Refuse,
    /// It did happen, and is held until it can be written.
    Hold,
}

/// The journal could not be written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot write to the journal: {0}")]
pub struct JournalWriteError(pub(super) String);

impl From<std::io::Error> for JournalWriteError {
    fn from(error: std::io::Error) -> Self {
        // An error of Grove's own says itself what to do.
        match error.kind() {
            std::io::ErrorKind::Other => Self(error.to_string()),
            _ => Self(format!("{error}; free some space or repair the disk, then try again")),
        }
    }
}

/// Something told to one connection alone, under a number of its own: a refusal, for one.
pub(crate) struct DirectReply {
    pub(crate) connection: ConnectionId,
    /// Makes the frame from the number.
    pub(crate) frame: Box<dyn FnOnce(u64) -> Option<Arc<str>> + Send>,
    /// An answer whose place is right behind it.
    pub(crate) answer: Option<(ReplySink, Encode)>,
}

/// Where an answer goes: into the connection's queue, or to the batch that it is part of.
pub(crate) type ReplySink = Box<dyn FnOnce(Encode) + Send>;

/// A connection that says who it is.
pub(crate) struct Attach {
    pub(crate) connection: ConnectionId,
    pub(crate) queue: Arc<Queue>,
    pub(crate) client: ClientId,
    pub(crate) how: AttachMode,
    pub(crate) subscriptions: Vec<SubscriptionTarget>,
    /// How the client calls sessions, where it calls them other than they are published.
    pub(crate) spellings: Arc<Spellings>,
    pub(crate) answer: AttachAnswer,
    pub(crate) reply: ReplySink,
}

/// Prepares the answer to a connection that attached.
pub(crate) type AttachAnswer = Box<dyn FnOnce(AttachOutcome<'_>) -> Encode + Send>;

/// How a connection begins.
pub(crate) enum AttachMode {
    /// For the first time, in this dialect.
    New(Dialect),
    /// Again, having seen something; speaks what it spoke before, or this if it is not remembered.
    Returning { seen: ReconnectPosition, unless_known: Dialect },
}

/// What a client that comes back has seen.
pub(crate) enum ReconnectPosition {
    /// Everything up to a number.
    UpTo(u64),
    /// Everything up to a number for each subscription, in their order.
    Each(Vec<u64>),
}

/// What clients can hear of, as they name it.
#[derive(Clone, Debug)]
pub(crate) enum SubscriptionTarget {
    Root,
    /// A session together with its main chat, under exactly this URI: what version 1 calls a session.
    SessionWithMainChat(SessionUri),
    Session(SessionName),
    Chat(ChatName),
}

impl SubscriptionTarget {
    /// Which session must be loaded for this to be looked at.
    pub(crate) fn session(&self, published: &PublishedState) -> Option<SessionId> {
        match self {
            SubscriptionTarget::Root => None,
            SubscriptionTarget::SessionWithMainChat(uri) => uri.id(),
            SubscriptionTarget::Session(name)
            | SubscriptionTarget::Chat(ChatName::Main(name) | ChatName::Of(name, _)) => Some(name.id.clone()),
            SubscriptionTarget::Chat(ChatName::ById(id)) => {
                let main = SessionId::from(id.as_str());
                match published.is_known(&main) {
                    true => Some(main),
                    false => published.session_of_chat(id).map(|session| session.id.clone()),
                }
            }
        }
    }

    /// The session, where its name says which it is.
    pub(crate) fn names_session(&self) -> Option<&SessionId> {
        match self {
            SubscriptionTarget::Session(name)
            | SubscriptionTarget::Chat(ChatName::Main(name) | ChatName::Of(name, _)) => Some(&name.id),
            SubscriptionTarget::Root
            | SubscriptionTarget::SessionWithMainChat(_)
            | SubscriptionTarget::Chat(ChatName::ById(_)) => None,
        }
    }

    /// How its subscriber spells.
    pub(crate) fn spelling(&self) -> Spelling {
        match self {
            SubscriptionTarget::Root | SubscriptionTarget::SessionWithMainChat(_) => Spelling::Computed,
            SubscriptionTarget::Session(name) => name.spelling(),
            SubscriptionTarget::Chat(name) => name.spelling(),
        }
    }
}

/// What a wanted name leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResolvedTarget<'a> {
    Root,
    SessionWithMainChat(&'a Session),
    Session(&'a Session),
    Chat(&'a Session, &'a Chat),
}

impl ResolvedTarget<'_> {
    /// The resources that this is made of.
    pub(super) fn resources(&self) -> Vec<Resource> {
        match self {
            ResolvedTarget::Root => vec![Resource::Root],
            ResolvedTarget::SessionWithMainChat(session) => vec![
                Resource::Session(session.id.clone()),
                Resource::Chat(session.id.clone(), Session::MAIN_CHAT.into()),
            ],
            ResolvedTarget::Session(session) => vec![Resource::Session(session.id.clone())],
            ResolvedTarget::Chat(session, chat) => vec![Resource::Chat(session.id.clone(), chat.id.clone())],
        }
    }
}

/// What an attached connection is answered from.
pub(crate) struct AttachOutcome<'a> {
    pub(crate) published: &'a PublishedState,
    /// Which of the subscriptions asked for it has now, in their order.
    pub(crate) subscribed: Vec<bool>,
    pub(crate) missed: MissedEvents,
}

/// What a connection that came back has missed.
pub(crate) enum MissedEvents {
    /// All of it in its order, each with how its subscriber hears of it; `None` where it is not all there any more.
    Together(Option<Vec<ReplayedEvent>>),
    /// The same for each subscription by itself.
    Each(Vec<Option<Vec<ReplayedEvent>>>),
}

/// An event, and the dialect in which it is told.
pub(crate) type ReplayedEvent = (Arc<SequencedEvent>, Dialect);

/// The sessions that a client calls by the protocol's plain names. What a connection can name is bounded, and past the
/// bound it is answered in the other spelling.
#[derive(Debug, Default)]
pub(crate) struct Spellings(Mutex<HashSet<SessionId>>);

impl Spellings {
    const MAX_SPELLINGS: usize = 10_000;

    pub(crate) fn note(&self, session: &SessionId, spelling: Spelling) {
        let mut plain = self.plain();
        match spelling {
            Spelling::Computed => drop(plain.remove(session)),
            Spelling::Plain | Spelling::Derived if plain.len() < Self::MAX_SPELLINGS => {
                plain.insert(session.clone());
            }
            Spelling::Plain | Spelling::Derived => {}
        }
    }

    pub(crate) fn of(&self, session: &SessionId) -> Spelling {
        if self.plain().contains(session) { Spelling::Plain } else { Spelling::Computed }
    }

    // Nothing that can panic happens while it is held, so a poisoned lock still guards whole data.
    fn plain(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientRecord {
    pub(crate) dialect: Dialect,
    pub(crate) connected: bool,
    /// When it last came or went, in the sequencer's own count.
    pub(crate) touched: u64,
}

/// A wish to hear of a resource.
pub(crate) struct Subscribe {
    pub(crate) connection: ConnectionId,
    pub(crate) wanted: SubscriptionTarget,
    /// How long text may wait for more of it.
    pub(crate) patience: Duration,
    pub(crate) answer: SubscribeAnswer,
    pub(crate) reply: ReplySink,
}

/// Prepares the answer to a subscription.
pub(crate) type SubscribeAnswer = Box<dyn FnOnce(SubscribeOutcome<'_>) -> Encode + Send>;

pub(crate) enum SubscribeOutcome<'a> {
    Yes(&'a PublishedState),
    Unknown,
    TooMany,
}

/// A wish of somebody in this process to hear of sessions as they are, in no dialect.
pub(crate) struct Listen {
    pub(crate) what: ListenScope,
    pub(crate) listener: EventListener,
    /// Sees the published state at the moment from which on events are heard.
    pub(crate) begin: Box<dyn FnOnce(&PublishedState) + Send>,
}

/// Which events are heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenScope {
    /// All of one session.
    Session(SessionId),
    /// Of all sessions, what lists are told.
    News,
}

/// Where they go. The sequencer waits for nobody: an ear that is full hears no more, which its owner notices by its end.
pub(crate) type EventListener = mpsc::Sender<Arc<SequencedEvent>>;

/// What the sequencer can be told.
pub(crate) enum ToSequencer {
    /// What is left of a message that was dealt with.
    Nothing,
    Publish(Publication),
    SendDirect(DirectReply),
    Attach(Attach),
    Subscribe(Subscribe),
    Unsubscribe(ConnectionId, SubscriptionTarget),
    Detach(ConnectionId),
    /// A session from its folder. If it is loaded already, this one is let go.
    Load(Box<Session>),
    /// A session that nobody knew, with everything that it has. If it is there already, this one is let go.
    AddLoaded(Box<Session>),
    /// A session that came from outside, all of it in its folder: it is listed from now on.
    AddEvicted(Box<EvictedSession>),
    /// A session's folder has everything of it up to a number.
    Persisted(SessionId, u64),
    /// Asks which loaded sessions nobody looks at, and have nothing that runs or waits.
    ListIdle(oneshot::Sender<Vec<(SessionId, StoreName)>>),
    /// Lets go of a loaded session, which lies in its folder as it is. One that somebody looks at stays.
    Evict(SessionId),
    /// Looks at the published state.
    Read(StateQuery),
    /// Somebody in this process hears of a session from now on.
    Listen(Listen),
    /// Asks whether a client is known.
    FindClient(ClientId, oneshot::Sender<Option<ClientRecord>>),
    /// Closes every connection: the host stops.
    CloseAll(DisconnectReason),
}

/// A look at the published state.
pub(crate) type StateQuery = Box<dyn FnOnce(&PublishedState, Counters) + Send>;

/// What is going on, in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub(crate) connections: usize,
}
