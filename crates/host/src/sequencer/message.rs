//! The messages to the sequencer, and the data for its answers.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_core::*;
use grove_metrics::ReconnectLabel;
use grove_storage::ActionOrigin;
use grove_storage::session_file::EvictedSession;
use grove_wire::ahp::TerminalInfo;
use grove_wire::ahp::uri::{ChatName, SessionName, Spelling};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::{ConnectionId, PublishedState, Resource, SequencedEvent};
use crate::presence::ClientParty;
use crate::subscriber::{Dialect, DisconnectReason, Encode, Queue};
use crate::tokens::TokenPublicId;
use crate::usage::LimitReached;

/// Events that happened together.
pub(crate) struct Publication {
    pub(crate) events: Vec<Event>,
    /// The client's action behind the first event.
    pub(crate) origin: Option<ActionOrigin>,
    /// Turns that these events finish, shared with the session's task instead of kept twice.
    pub(crate) finished: Vec<(SessionId, ChatId, Arc<Turn>)>,
    /// The frame cursors of agents when this is written.
    pub(crate) marks: Vec<(SessionId, ChatId, FrameCursor)>,
    /// The handling while nothing can be written.
    pub(crate) on_write_failure: WriteFailurePolicy,
    pub(crate) scope: JournalScope,
    /// Resolves when all is published, or will not be.
    pub(crate) done: Option<PublishReply>,
}

/// Resolves with the sequence number of a publication's last event, or the error if it is not published.
pub(crate) type PublishReply = oneshot::Sender<Result<u64, JournalWriteError>>;

/// The part of a publication that is on this machine's disk when it is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalScope {
    /// All of it is in the journal.
    AllEvents,
    /// Only its sequence numbers: a storage client keeps the session.
    NumbersOnly,
}

/// The handling of a publication that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFailurePolicy {
    /// It did not happen; the caller gets the error.
    Refuse,
    /// It did happen, and is held until it can be written.
    Hold,
}

impl Publication {
    /// Tells the publisher that nothing of this is published.
    pub(super) fn refuse(self, error: JournalWriteError) {
        if let Some(done) = self.done {
            // The caller may have stopped waiting.
            done.send(Err(error)).ok();
        }
    }
}

/// The reason why a publication is not in the journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalWriteError {
    #[error("cannot write to the journal: {0}")]
    Failed(String),
    #[error("the session belongs to another host now")]
    NotOwned,
}

impl From<std::io::Error> for JournalWriteError {
    fn from(error: std::io::Error) -> Self {
        // Grove's own errors say what to do.
        match error.kind() {
            std::io::ErrorKind::Other => Self::Failed(error.to_string()),
            _ => Self::Failed(format!("{error}; free some space or repair the disk, then try again")),
        }
    }
}

/// A message to one connection alone, with the next number of that connection: a refusal, for example.
pub struct DirectReply {
    pub connection: ConnectionId,
    /// Makes the frame from the sequence number.
    pub frame: Box<dyn FnOnce(u64) -> Option<Arc<str>> + Send>,
    /// An answer to be sent right after it.
    pub answer: Option<(ReplySink, Encode)>,
    /// Held until the message is written, if only so many of its kind may wait.
    pub permit: Option<OwnedSemaphorePermit>,
}

impl fmt::Debug for DirectReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectReply").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl DirectReply {
    /// Sends the answer without the message.
    pub(super) fn send_answer(self) {
        if let Some((reply, answer)) = self.answer {
            reply(answer);
        }
    }
}

/// The destination of an answer: the connection's queue, or the batch that it is part of.
pub type ReplySink = Box<dyn FnOnce(Encode) + Send>;

/// A connection that identifies its client.
pub struct Attach {
    pub connection: ConnectionId,
    pub queue: Arc<Queue>,
    pub client: ClientId,
    /// The named token that the client's id belongs to; none for the owner of the host.
    pub token: Option<TokenPublicId>,
    /// The party behind the client, for other clients to see.
    pub party: ClientParty,
    pub how: AttachMode,
    pub subscriptions: Vec<SubscriptionTarget>,
    /// The client's spelling of sessions, if it differs from the published one.
    pub spellings: Arc<Spellings>,
    pub answer: AttachAnswer,
    pub reply: ReplySink,
}

impl fmt::Debug for Attach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attach")
            .field("connection", &self.connection)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// Prepares the answer to a connection that attached.
pub type AttachAnswer = Box<dyn FnOnce(AttachOutcome<'_>) -> Encode + Send>;

/// The kind of attachment.
#[derive(Debug)]
pub enum AttachMode {
    /// For the first time, in this dialect.
    New(Dialect),
    /// Again, after some events; in its earlier dialect, or in this one if that is forgotten.
    Returning { seen: ReconnectPosition, unless_known: Dialect },
}

/// The events that a reconnecting client has seen.
#[derive(Debug)]
pub enum ReconnectPosition {
    /// Everything up to a sequence number.
    UpTo(u64),
    /// Everything up to a sequence number for each subscription, in order.
    Each(Vec<u64>),
}

/// The target of a subscription, as clients name it.
#[derive(Clone, Debug)]
pub enum SubscriptionTarget {
    Root,
    /// A session together with its main chat, under exactly this URI: a session of version 1.
    SessionWithMainChat(SessionUri),
    Session(SessionName),
    Chat(ChatName),
}

impl ReconnectPosition {
    /// The highest sequence number that the client names.
    pub(super) fn highest(&self) -> u64 {
        match self {
            ReconnectPosition::UpTo(seen) => *seen,
            ReconnectPosition::Each(seen) => seen.iter().copied().max().unwrap_or(0),
        }
    }
}

impl SubscriptionTarget {
    /// The session that must be loaded to read this.
    pub fn session(&self, published: &PublishedState) -> Option<SessionId> {
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

    /// The session, if its name identifies it.
    pub fn names_session(&self) -> Option<&SessionId> {
        match self {
            SubscriptionTarget::Session(name)
            | SubscriptionTarget::Chat(ChatName::Main(name) | ChatName::Of(name, _)) => Some(&name.id),
            SubscriptionTarget::Root
            | SubscriptionTarget::SessionWithMainChat(_)
            | SubscriptionTarget::Chat(ChatName::ById(_)) => None,
        }
    }

    /// The subscriber's spelling.
    pub fn spelling(&self) -> Spelling {
        match self {
            SubscriptionTarget::Root | SubscriptionTarget::SessionWithMainChat(_) => Spelling::Computed,
            SubscriptionTarget::Session(name) => name.spelling(),
            SubscriptionTarget::Chat(name) => name.spelling(),
        }
    }
}

/// The resource that a target's name refers to.
#[derive(Clone, Copy, Debug)]
pub enum ResolvedTarget<'a> {
    Root,
    SessionWithMainChat(&'a Session),
    Session(&'a Session),
    Chat(&'a Session, &'a Chat),
}

impl ResolvedTarget<'_> {
    /// The resources that this consists of.
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

/// The data for the answer to an attached connection.
#[derive(Debug)]
pub struct AttachOutcome<'a> {
    pub published: &'a PublishedState,
    /// The requested subscriptions that it has now, in order.
    pub subscribed: Vec<bool>,
    pub missed: MissedEvents,
}

/// The events that a reconnecting client has missed.
#[derive(Debug)]
pub enum MissedEvents {
    /// All of them in order, each in its subscriber's dialect; `None` if some are not available any more.
    Together(Option<Vec<ReplayedEvent>>),
    /// The same for each subscription separately.
    Each(Vec<Option<Vec<ReplayedEvent>>>),
}

impl MissedEvents {
    /// The answer's label in metrics. With a snapshot for one subscription it is one of snapshots.
    pub(super) fn label(&self) -> ReconnectLabel {
        let is_replay = match self {
            MissedEvents::Together(events) => events.is_some(),
            MissedEvents::Each(each) => each.iter().all(Option::is_some),
        };
        if is_replay { ReconnectLabel::Replay } else { ReconnectLabel::Snapshots }
    }
}

/// An event, and the dialect in which it is sent.
pub type ReplayedEvent = (Arc<SequencedEvent>, Dialect);

/// The sessions that a client refers to by the protocol's plain names.
///
/// Their number is bounded; past it the client is answered in the other spelling.
#[derive(Debug, Default)]
pub struct Spellings(Mutex<HashSet<SessionId>>);

impl Spellings {
    const MAX_SPELLINGS: usize = 10_000;

    /// Notes the spelling in which the client refers to a session.
    pub fn note(&self, session: &SessionId, spelling: Spelling) {
        let mut plain = self.plain();
        match spelling {
            Spelling::Computed => drop(plain.remove(session)),
            Spelling::Plain | Spelling::Derived if plain.len() < Self::MAX_SPELLINGS => {
                plain.insert(session.clone());
            }
            Spelling::Plain | Spelling::Derived => {}
        }
    }

    /// The spelling in which the client refers to a session.
    pub fn of(&self, session: &SessionId) -> Spelling {
        if self.plain().contains(session) { Spelling::Plain } else { Spelling::Computed }
    }

    // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
    fn plain(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sequencer's record of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRecord {
    pub dialect: Dialect,
    /// Its own name, if it sent one to this host.
    pub name: Option<Arc<str>>,
    /// The named token that its id belongs to; none for the owner of the host.
    pub token: Option<TokenPublicId>,
    pub connected: bool,
    /// The time of its last connect or disconnect, in the sequencer's own count.
    pub touched: u64,
}

/// A request to subscribe to a resource.
pub struct Subscribe {
    pub connection: ConnectionId,
    pub wanted: SubscriptionTarget,
    /// The time for which text may wait to be merged.
    pub patience: Duration,
    pub answer: SubscribeAnswer,
    pub reply: ReplySink,
}

impl fmt::Debug for Subscribe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscribe")
            .field("connection", &self.connection)
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

/// Prepares the answer to a subscription.
pub type SubscribeAnswer = Box<dyn FnOnce(SubscribeOutcome<'_>) -> Encode + Send>;

/// The outcome of a request to subscribe.
#[derive(Debug)]
pub enum SubscribeOutcome<'a> {
    Yes(&'a PublishedState),
    Unknown,
    TooMany(LimitReached),
}

/// A subscription inside this process to sessions' events, in no dialect.
pub(crate) struct Listen {
    pub(crate) what: ListenScope,
    pub(crate) listener: EventListener,
    /// Called with the published state at the moment from which on events are sent.
    pub(crate) begin: Box<dyn FnOnce(&PublishedState) + Send>,
}

/// The events of an in-process subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenScope {
    /// All of one session.
    Session(SessionId),
    /// Those of all sessions that concern lists.
    News,
    /// Those of all sessions by which a person learns that an agent waits or has ended a turn, and that this is settled.
    Attention,
}

/// The channel of an in-process subscriber. The sequencer never waits: a full one is closed, which its owner notices.
pub(crate) type EventListener = mpsc::Sender<Arc<SequencedEvent>>;

/// A message to the sequencer.
pub(crate) enum ToSequencer {
    /// The rest of a message that was handled.
    Nothing,
    Publish(Publication),
    /// Publishes two publications in one write.
    PublishBoth(Box<[Publication; 2]>),
    SendDirect(DirectReply),
    /// The list of clients' terminals, which is no part of the journal.
    SetTerminals(Vec<TerminalInfo>),
    Attach(Attach),
    Subscribe(Subscribe),
    Unsubscribe(ConnectionId, SubscriptionTarget),
    Detach(ConnectionId, oneshot::Sender<()>),
    /// A session from its folder. It is dropped if the session is loaded already.
    Load(Box<Session>, oneshot::Sender<()>),
    /// A new session with everything that it has. It is dropped if the session exists already.
    AddLoaded(Box<Session>),
    /// An imported session, all of it in its folder: it is listed from now on.
    AddEvicted(Box<EvictedSession>, oneshot::Sender<()>),
    /// A session's folder has everything of it up to a sequence number.
    Persisted(SessionId, u64),
    /// Lists the loaded sessions without subscribers and without work.
    ListIdle(oneshot::Sender<Vec<(SessionId, StoreName)>>),
    /// Evicts a loaded session, all of which is in its folder. One with subscribers stays, and one that is used again.
    Evict(SessionId, UnusedCheck),
    /// Reads the published state, after everything sent before.
    Read(StateQuery),
    /// Subscribes a part of this process to sessions.
    Listen(Listen),
    /// Closes every connection: the host stops.
    CloseAll(DisconnectReason),
}

/// A read of the published state.
pub(crate) type StateQuery = Box<dyn FnOnce(&PublishedState) + Send>;

/// Says whether a session is still unused. It is asked while nobody else can read the published state.
pub(crate) type UnusedCheck = Box<dyn FnOnce() -> bool + Send>;
