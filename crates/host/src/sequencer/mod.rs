//! The sequencer: the one place where events get their numbers.
//!
//! It holds the published state. Giving a number, applying the event and handing it to the subscribers are one step;
//! so are cutting a snapshot and subscribing. It never waits for a client: each connection's queue is bounded, and a
//! full one closes its own connection.

mod event;
mod replay;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use grove_core::*;
use tokio::sync::{mpsc, oneshot};

use std::time::Duration;

use event::confirms;
pub(crate) use event::{Origin, Resource, Sequenced};
pub(crate) use replay::Replay;

use crate::config::{Config, Durability};
use crate::connection::{Close, Encode, Events, Outgoing, Queue};
use crate::dialect::Dialect;
use crate::env::Clock;
use crate::journal::{Journal, RecordRef, Recovered, Sync};

/// How many messages may wait for the sequencer before their senders do.
const INBOX: usize = 1_024;
/// How many messages are written to the journal together.
const BATCH: usize = 256;
/// How many numbers are reserved at a time.
const RESERVE: u64 = 1_000;
/// How long to wait before a write that failed is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// Names a connection for as long as it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// What everybody can see, and the number of the last event in it.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) state: State,
    /// Sessions that are listed and not loaded.
    pub(crate) cold: HashMap<SessionId, Cold>,
    pub(crate) seq: u64,
}

/// A session that lies in its folder: what lists show of it.
#[derive(Debug)]
pub(crate) struct Cold {
    /// The session without its turns.
    pub(crate) session: Session,
    /// Whether its last turn ended in error.
    pub(crate) failed: bool,
}

impl Published {
    /// The session that was created under exactly this URI.
    pub(crate) fn session_at(&self, uri: &SessionUri) -> Option<&Session> {
        self.state.sessions.get(&uri.id()?).filter(|session| session.uri == *uri)
    }
}

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
pub struct NotWritten(String);

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

/// The way to the sequencer.
#[derive(Clone)]
pub(crate) struct SequencerHandle(mpsc::Sender<ToSequencer>);

/// The sequencer has ended, and the host with it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the host is stopping")]
pub struct Stopped;

impl SequencerHandle {
    pub(crate) async fn tell(&self, message: ToSequencer) -> Result<(), Stopped> {
        self.0.send(message).await.map_err(|_| Stopped)
    }

    /// Publishes; gives what tells when it is done.
    pub(crate) async fn publish(
        &self,
        mut publication: Publication,
    ) -> Result<oneshot::Receiver<Result<u64, NotWritten>>, Stopped> {
        let (done, told) = oneshot::channel();
        publication.done = Some(done);
        self.tell(ToSequencer::Publish(publication)).await?;
        Ok(told)
    }

    /// Publishes and waits until it is done.
    pub(crate) async fn publish_now(&self, publication: Publication) -> Result<Result<u64, NotWritten>, Stopped> {
        self.publish(publication).await?.await.map_err(|_| Stopped)
    }

    /// Looks at the published state, behind everything told before.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Published, Counters) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (sender, seen) = oneshot::channel();
        let read = Box::new(move |published: &Published, counters| {
            // Whoever asked may have gone meanwhile.
            sender.send(look(published, counters)).ok();
        });
        self.tell(ToSequencer::Read(read)).await?;
        seen.await.map_err(|_| Stopped)
    }
}

/// A connection that has said who it is.
struct Connection {
    queue: Arc<Queue>,
    client: ClientId,
    dialect: Dialect,
    subscriptions: HashSet<Resource>,
}

/// One of those who hear of a resource; holds what each event needs, so that publishing looks nothing up.
struct Subscriber {
    connection: ConnectionId,
    queue: Arc<Queue>,
    dialect: Dialect,
}

/// A client that was here.
struct Client {
    dialect: Dialect,
    connection: Option<ConnectionId>,
    /// When it last came or went, in the sequencer's own count.
    touched: u64,
}

pub(crate) struct Sequencer {
    inbox: mpsc::Receiver<ToSequencer>,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    journal: Box<dyn Journal>,
    /// What happened and could not be written yet, oldest first. At most one publication a session, since each waits
    /// for its last.
    held: Vec<Publication>,
    /// Numbers up to here are reserved in the journal.
    reserved: u64,
    published: Published,
    /// The first event of each session that is in the journal alone, and the last one.
    unpersisted: HashMap<SessionId, u64>,
    last_of: HashMap<SessionId, u64>,
    release_due: bool,
    /// Events of one resource that are published and not handed out yet: within a step only.
    undelivered: Vec<Arc<Sequenced>>,
    replay: Replay,
    connections: HashMap<ConnectionId, Connection>,
    subscribers: HashMap<Resource, Vec<Subscriber>>,
    clients: HashMap<ClientId, Client>,
    touches: u64,
}

impl Sequencer {
    /// A sequencer that goes on where the journal ends.
    pub(crate) fn new(
        config: Arc<Config>,
        clock: Arc<dyn Clock>,
        journal: Box<dyn Journal>,
        recovered: Recovered,
    ) -> (Self, SequencerHandle) {
        let (sender, inbox) = mpsc::channel(INBOX);
        let Recovered { state, cold, seq, unpersisted, replay, clients, damage: _ } = recovered;
        let known = |(id, version)| (id, Client { dialect: Dialect::V1 { version }, connection: None, touched: 0 });
        let sequencer = Self {
            inbox,
            config,
            clock,
            journal,
            held: Vec::new(),
            reserved: seq,
            published: Published { state, cold, seq },
            last_of: unpersisted.keys().map(|session| (session.clone(), seq)).collect(),
            unpersisted,
            release_due: false,
            undelivered: Vec::new(),
            replay,
            connections: HashMap::new(),
            subscribers: HashMap::new(),
            clients: clients.into_iter().map(known).collect(),
            touches: 0,
        };
        (sequencer, SequencerHandle(sender))
    }

    /// Works until nobody can tell it anything any more.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let received = if self.held.is_empty() {
                self.inbox.recv_many(&mut batch, BATCH).await
            } else {
                let retry = self.clock.sleep(RETRY);
                tokio::select! {
                    received = self.inbox.recv_many(&mut batch, BATCH) => received,
                    () = retry => 1,
                }
            };
            if received == 0 {
                break;
            }
            self.step(&mut batch).await;
        }
    }

    /// Writes what a batch of messages makes happen, then lets it happen.
    async fn step(&mut self, batch: &mut Vec<ToSequencer>) {
        let written = match self.lines(batch) {
            Ok(lines) if lines.bytes.is_empty() => Ok(lines.reserved),
            Ok(lines) => {
                let sync = if self.config.durability == Durability::Power { lines.sync } else { Sync::Later };
                let written = self.journal.append(lines.bytes, sync, lines.last_seq).await;
                written.map(|()| lines.reserved).map_err(|error| NotWritten(error.to_string()))
            }
            Err(error) => Err(NotWritten(error.to_string())),
        };
        match written {
            Ok(reserved) => {
                self.reserved = reserved;
                if !self.held.is_empty() {
                    tracing::info!("the journal can be written again");
                }
                for publication in std::mem::take(&mut self.held) {
                    self.publish(publication);
                }
            }
            Err(error) => {
                if self.held.is_empty() {
                    tracing::error!(%error, "the journal cannot be written");
                }
                for message in batch.iter_mut() {
                    self.withhold(message, &error);
                }
            }
        }
        for message in batch.drain(..) {
            self.handle(message);
        }
        self.deliver();
        if std::mem::take(&mut self.release_due) {
            let needed = self.unpersisted.values().min().map_or(u64::MAX, |first| first - 1);
            self.journal.release(needed.min(self.replay.complete_above())).await;
        }
    }

    /// Notes that a session's folder has everything up to a number.
    fn persisted(&mut self, session: &SessionId, upto: u64) {
        match self.last_of.get(session) {
            Some(last) if *last > upto => {
                self.unpersisted.insert(session.clone(), upto + 1);
            }
            Some(_) | None => {
                self.unpersisted.remove(session);
                self.last_of.remove(session);
            }
        }
        self.release_due = true;
    }

    /// The lines that a batch adds to the journal. Numbers are given here in the order in which [`Self::handle`] gives
    /// them.
    fn lines(&self, batch: &[ToSequencer]) -> serde_json::Result<Lines> {
        let mut lines = Vec::new();
        let mut sync = Sync::Later;
        let mut seq = self.published.seq;
        let held = self.held.iter();
        let mut publish = |publication: &Publication, seq: &mut u64, lines: &mut Vec<u8>| {
            let mut origin = publication.origin.as_ref();
            for event in &publication.events {
                *seq += 1;
                RecordRef::Event { seq: *seq, origin: origin.take(), event }.write(lines)?;
                if confirms(&event.change) {
                    sync = Sync::Now;
                }
            }
            Ok::<_, serde_json::Error>(())
        };
        for publication in held {
            publish(publication, &mut seq, &mut lines)?;
        }
        for message in batch {
            match message {
                ToSequencer::Publish(publication) => publish(publication, &mut seq, &mut lines)?,
                ToSequencer::Refuse(_) => seq += 1,
                ToSequencer::Attach(attach) => {
                    if let AttachAs::New(Dialect::V1 { version }) = attach.how {
                        RecordRef::Client { id: &attach.client, version }.write(&mut lines)?;
                    }
                }
                ToSequencer::Nothing
                | ToSequencer::Subscribe(_)
                | ToSequencer::Unsubscribe(..)
                | ToSequencer::Detach(_)
                | ToSequencer::Load(_)
                | ToSequencer::Persisted(..)
                | ToSequencer::Read(_)
                | ToSequencer::CloseAll => {}
            }
        }
        let mut reserved = self.reserved;
        let anew = !lines.is_empty() && self.journal.begins_segment();
        if seq > reserved || anew {
            reserved = reserved.max(seq + RESERVE);
            RecordRef::Reserved(reserved).write(&mut lines)?;
        }
        if anew {
            for (id, client) in &self.clients {
                let Dialect::V1 { version } = client.dialect;
                RecordRef::Client { id, version }.write(&mut lines)?;
            }
        }
        Ok(Lines { bytes: lines, sync, reserved, last_seq: seq })
    }

    /// Takes a publication out of a message that cannot be written: it is refused, or held for the next try.
    fn withhold(&mut self, message: &mut ToSequencer, error: &NotWritten) {
        if !matches!(message, ToSequencer::Publish(_)) {
            return;
        }
        let ToSequencer::Publish(publication) = std::mem::replace(message, ToSequencer::Nothing) else { return };
        match (publication.unwritten, publication.done) {
            (Unwritten::Refused, Some(done)) => {
                // Whoever wanted it may have gone meanwhile.
                done.send(Err(error.clone())).ok();
            }
            (Unwritten::Refused, None) => {}
            (Unwritten::Held, done) => self.held.push(Publication { done, ..publication }),
        }
    }

    fn handle(&mut self, message: ToSequencer) {
        // What else happens has its place behind what was published before.
        if !matches!(message, ToSequencer::Publish(_)) {
            self.deliver();
        }
        match message {
            ToSequencer::Nothing => {}
            ToSequencer::Publish(publication) => self.publish(publication),
            ToSequencer::Refuse(refusal) => self.refuse(refusal),
            ToSequencer::Attach(attach) => self.attach(attach),
            ToSequencer::Subscribe(subscribe) => self.subscribe(subscribe),
            ToSequencer::Unsubscribe(connection, resource) => self.unsubscribe(connection, &resource),
            ToSequencer::Detach(connection) => self.detach(connection),
            ToSequencer::Load(session) => {
                if self.published.cold.remove(&session.id).is_some() {
                    self.published.state.sessions.insert(session.id.clone(), *session);
                }
            }
            ToSequencer::Persisted(session, upto) => self.persisted(&session, upto),
            ToSequencer::Read(look) => {
                look(&self.published, Counters { connections: self.connections.len() });
            }
            ToSequencer::CloseAll => {
                let queues = self.connections.values().map(|connection| &connection.queue);
                queues.for_each(|queue| queue.push(Outgoing::Last(Close::Stopping)));
            }
        }
    }

    fn publish(&mut self, publication: Publication) {
        let mut origin = publication.origin;
        for event in publication.events {
            self.publish_one(event, origin.take());
        }
        for (session, chat, turn) in publication.finished {
            if let Some(chat) = self.published.state.sessions.get_mut(&session).and_then(|s| s.chat_mut(&chat)) {
                chat.share(turn);
            }
        }
        if let Some(done) = publication.done {
            // Whoever waited may have gone meanwhile.
            done.send(Ok(self.published.seq)).ok();
        }
    }

    fn publish_one(&mut self, event: Event, origin: Option<Origin>) {
        self.published.seq += 1;
        let removed = match &event.change {
            Change::Session(id, SessionEvent::Removed) => self.published.state.sessions.get(id).cloned(),
            _ => None,
        };
        apply(&mut self.published.state, &event);
        if let Some(session) = event.change.session() {
            self.unpersisted.entry(session.clone()).or_insert(self.published.seq);
            self.last_of.insert(session.clone(), self.published.seq);
        }
        let session = event.change.session().and_then(|id| self.published.state.sessions.get(id));
        let uri = session.map(|session| session.uri.clone());

        if let Change::Session(_, change) = &event.change
            && let Some(session) = session.or(removed.as_ref())
            && is_news(change)
        {
            let (change, session) = (change.clone(), session.clone());
            self.deliver();
            self.notify(&change, &session);
        }

        let sequenced = Arc::new(Sequenced::new(self.published.seq, event, origin, uri));
        let resource = sequenced.resource();
        if self.undelivered.first().is_some_and(|first| first.resource() != resource) {
            self.deliver();
        }
        self.undelivered.push(sequenced);

        if removed.is_some() {
            self.deliver();
            for subscriber in self.subscribers.remove(&resource).unwrap_or_default() {
                if let Some(connection) = self.connections.get_mut(&subscriber.connection) {
                    connection.subscriptions.remove(&resource);
                }
            }
        }
    }

    /// Hands what was published in a row of one resource to those who hear of it: one push a subscriber, whatever the
    /// number of events, and one list of frames a dialect.
    fn deliver(&mut self) {
        let Some(first) = self.undelivered.first() else { return };
        if let Some(subscribers) = self.subscribers.get(&first.resource()) {
            let mut told: HashMap<Dialect, Option<Arc<Events>>> = HashMap::new();
            for subscriber in subscribers {
                let events = told.entry(subscriber.dialect).or_insert_with(|| {
                    let frame = |event: &Arc<Sequenced>| {
                        Some((event.clone(), event.frame(subscriber.dialect, &self.config.registry)?))
                    };
                    let frames: Vec<_> = self.undelivered.iter().filter_map(frame).collect();
                    (!frames.is_empty()).then(|| Arc::new(Events::new(subscriber.dialect, frames)))
                });
                if let Some(events) = events {
                    subscriber.queue.push(Outgoing::Events(events.clone()));
                }
            }
        }
        for event in self.undelivered.drain(..) {
            self.replay.push(event);
        }
    }

    /// Tells every connection what is news rather than state.
    fn notify(&self, change: &SessionEvent, session: &Session) {
        let mut frames: HashMap<Dialect, Option<Arc<str>>> = HashMap::new();
        for connection in self.connections.values() {
            let frame = frames
                .entry(connection.dialect)
                .or_insert_with(|| connection.dialect.notification(change, session, &self.config.registry));
            if let Some(frame) = frame {
                connection.queue.push(Outgoing::Frame(frame.clone()));
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        // A number that is not reserved might be given again after a crash: without one, nothing is sent.
        if self.published.seq >= self.reserved {
            return;
        }
        self.published.seq += 1;
        if let Some(connection) = self.connections.get(&refusal.connection)
            && let Some(frame) = (refusal.frame)(self.published.seq)
        {
            connection.queue.push(Outgoing::Frame(frame));
        }
    }

    fn attach(&mut self, attach: Attach) {
        let known = self.clients.get(&attach.client);
        let (dialect, seen) = match attach.how {
            AttachAs::New(dialect) => (dialect, None),
            AttachAs::Returning { seen, unless_known } => match known {
                Some(client) => (client.dialect, Some(seen)),
                None => (unless_known, None),
            },
        };
        if let Some(older) = known.and_then(|client| client.connection) {
            if let Some(connection) = self.connections.get(&older) {
                connection.queue.push(Outgoing::Last(Close::TakenOver));
            }
            self.detach(older);
        }
        self.connections.insert(
            attach.connection,
            Connection { queue: attach.queue, client: attach.client.clone(), dialect, subscriptions: HashSet::new() },
        );
        self.touches += 1;
        let client = Client { dialect, connection: Some(attach.connection), touched: self.touches };
        self.clients.insert(attach.client, client);
        self.forget_clients();

        let mut subscribed = Vec::with_capacity(attach.subscriptions.len());
        for resource in &attach.subscriptions {
            subscribed.push(matches!(self.add_subscription(attach.connection, resource), Added::Yes));
        }
        let missed = seen.filter(|seen| *seen <= self.published.seq).and_then(|seen| {
            let wanted = &self.connections.get(&attach.connection)?.subscriptions;
            let missed = self.replay.after(seen)?.filter(|event| wanted.contains(&event.resource()));
            let missed: Vec<_> = missed.cloned().collect();
            // A session that was created meanwhile is not the one that the client knows, if it knows one of that URI.
            let created =
                |event: &Arc<Sequenced>| matches!(event.event.change, Change::Session(_, SessionEvent::Created(_)));
            if missed.iter().any(created) { None } else { Some(missed) }
        });
        (attach.reply)((attach.answer)(Attached { published: &self.published, dialect, subscribed, missed }));
    }

    fn subscribe(&mut self, subscribe: Subscribe) {
        let added = self.add_subscription(subscribe.connection, &subscribe.resource);
        let outcome = match added {
            Added::Yes => Subscribed::Yes(&self.published),
            Added::Unknown => Subscribed::Unknown,
            Added::TooMany => Subscribed::TooMany,
        };
        (subscribe.reply)((subscribe.answer)(outcome));
    }

    fn add_subscription(&mut self, id: ConnectionId, resource: &SessionOrRoot) -> Added {
        let Some(resource) = self.resolve(resource) else { return Added::Unknown };
        let Some(connection) = self.connections.get_mut(&id) else { return Added::Unknown };
        if connection.subscriptions.contains(&resource) {
            return Added::Yes;
        }
        if connection.subscriptions.len() >= self.config.limits.subscriptions {
            return Added::TooMany;
        }
        connection.subscriptions.insert(resource.clone());
        self.subscribers.entry(resource).or_default().push(Subscriber {
            connection: id,
            queue: connection.queue.clone(),
            dialect: connection.dialect,
        });
        Added::Yes
    }

    fn resolve(&self, resource: &SessionOrRoot) -> Option<Resource> {
        match resource {
            SessionOrRoot::Root => Some(Resource::Root),
            SessionOrRoot::Session(uri) => {
                self.published.session_at(uri).map(|session| Resource::Session(session.id.clone()))
            }
        }
    }

    fn unsubscribe(&mut self, id: ConnectionId, resource: &SessionOrRoot) {
        let Some(resource) = self.resolve(resource) else { return };
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.subscriptions.remove(&resource);
        }
        self.drop_subscriber(id, &resource);
    }

    fn drop_subscriber(&mut self, id: ConnectionId, resource: &Resource) {
        if let Some(subscribers) = self.subscribers.get_mut(resource) {
            subscribers.retain(|subscriber| subscriber.connection != id);
            if subscribers.is_empty() {
                self.subscribers.remove(resource);
            }
        }
    }

    fn detach(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        for resource in &connection.subscriptions {
            self.drop_subscriber(id, resource);
        }
        self.touches += 1;
        if let Some(client) = self.clients.get_mut(&connection.client)
            && client.connection == Some(id)
        {
            client.connection = None;
            client.touched = self.touches;
        }
    }

    /// Keeps the number of remembered clients bounded. Those longest gone go, a tenth at a time, so that the search
    /// is not made for every newcomer.
    fn forget_clients(&mut self) {
        let limit = self.config.limits.known_clients;
        if self.clients.len() <= limit {
            return;
        }
        let gone = self.clients.iter().filter(|(_, client)| client.connection.is_none());
        let mut gone: Vec<_> = gone.map(|(id, client)| (client.touched, id.clone())).collect();
        gone.sort_unstable_by_key(|(touched, _)| *touched);
        for (_, id) in gone.into_iter().take(limit / 10 + 1) {
            self.clients.remove(&id);
        }
    }
}

/// What is to be written of a batch.
struct Lines {
    bytes: Vec<u8>,
    sync: Sync,
    /// Up to where numbers are reserved once it is written.
    reserved: u64,
    last_seq: u64,
}

/// Whether an event is told to everybody, beside the subscribers.
fn is_news(change: &SessionEvent) -> bool {
    matches!(change, SessionEvent::Listed | SessionEvent::Removed)
}

enum Added {
    Yes,
    Unknown,
    TooMany,
}
