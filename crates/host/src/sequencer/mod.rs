//! The sequencer: the one place where events get their numbers.
//!
//! It holds the published state. Giving a number, applying the event and handing it to the subscribers are one step;
//! so are cutting a snapshot and subscribing. It never waits for a client: each connection's queue is bounded, and a
//! full one closes its own connection.

mod event;
mod replay;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use grove_core::*;
use tokio::sync::{mpsc, oneshot};

pub(crate) use event::{Origin, Resource, Sequenced};
use replay::Replay;

use crate::config::Config;
use crate::connection::{Close, Encode, Outgoing, Queue};
use crate::dialect::Dialect;

/// How many messages may wait for the sequencer before their senders do.
const INBOX: usize = 1_024;

/// Names a connection for as long as it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// What everybody can see, and the number of the last event in it.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) state: State,
    pub(crate) seq: u64,
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
    /// Told when all is published.
    pub(crate) done: Option<oneshot::Sender<()>>,
}

/// An action that is refused: told to its sender alone, under a number of its own.
pub(crate) struct Refusal {
    pub(crate) connection: ConnectionId,
    /// Makes the frame from the number.
    pub(crate) frame: Box<dyn FnOnce(u64) -> Option<Utf8Bytes> + Send>,
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
    Publish(Publication),
    Refuse(Refusal),
    Attach(Attach),
    Subscribe(Subscribe),
    Unsubscribe(ConnectionId, SessionOrRoot),
    Detach(ConnectionId),
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

    /// Publishes and waits until it is done.
    pub(crate) async fn publish_now(&self, mut publication: Publication) -> Result<(), Stopped> {
        let (done, told) = oneshot::channel();
        publication.done = Some(done);
        self.tell(ToSequencer::Publish(publication)).await?;
        told.await.map_err(|_| Stopped)
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
    published: Published,
    replay: Replay,
    connections: HashMap<ConnectionId, Connection>,
    subscribers: HashMap<Resource, Vec<Subscriber>>,
    clients: HashMap<ClientId, Client>,
    touches: u64,
}

impl Sequencer {
    pub(crate) fn new(config: Arc<Config>) -> (Self, SequencerHandle) {
        let (sender, inbox) = mpsc::channel(INBOX);
        let limits = &config.limits;
        let sequencer = Self {
            inbox,
            published: Published::default(),
            replay: Replay::new(limits.replay_actions, limits.replay_bytes, 0),
            connections: HashMap::new(),
            subscribers: HashMap::new(),
            clients: HashMap::new(),
            touches: 0,
            config,
        };
        (sequencer, SequencerHandle(sender))
    }

    /// Works until nobody can tell it anything any more.
    pub(crate) async fn run(mut self) {
        while let Some(message) = self.inbox.recv().await {
            match message {
                ToSequencer::Publish(publication) => self.publish(publication),
                ToSequencer::Refuse(refusal) => self.refuse(refusal),
                ToSequencer::Attach(attach) => self.attach(attach),
                ToSequencer::Subscribe(subscribe) => self.subscribe(subscribe),
                ToSequencer::Unsubscribe(connection, resource) => self.unsubscribe(connection, &resource),
                ToSequencer::Detach(connection) => self.detach(connection),
                ToSequencer::Read(look) => {
                    look(&self.published, Counters { connections: self.connections.len() });
                }
                ToSequencer::CloseAll => {
                    let queues = self.connections.values().map(|connection| &connection.queue);
                    queues.for_each(|queue| queue.push(Outgoing::Last(Close::Stopping)));
                }
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
            done.send(()).ok();
        }
    }

    fn publish_one(&mut self, event: Event, origin: Option<Origin>) {
        self.published.seq += 1;
        let removed = match &event.change {
            Change::Session(id, SessionEvent::Removed) => self.published.state.sessions.get(id).cloned(),
            _ => None,
        };
        apply(&mut self.published.state, &event);
        let session = event.change.session().and_then(|id| self.published.state.sessions.get(id));
        let uri = session.map(|session| session.uri.clone());

        if let Change::Session(_, change) = &event.change
            && let Some(session) = session.or(removed.as_ref())
        {
            self.notify(change, session);
        }

        let sequenced = Arc::new(Sequenced::new(self.published.seq, event, origin, uri));
        let resource = sequenced.resource();
        if let Some(subscribers) = self.subscribers.get(&resource) {
            for subscriber in subscribers {
                if let Some(frame) = sequenced.frame(subscriber.dialect, &self.config.registry) {
                    subscriber.queue.push(Outgoing::Event(sequenced.clone(), subscriber.dialect, frame));
                }
            }
        }
        self.replay.push(sequenced);

        if removed.is_some() {
            for subscriber in self.subscribers.remove(&resource).unwrap_or_default() {
                if let Some(connection) = self.connections.get_mut(&subscriber.connection) {
                    connection.subscriptions.remove(&resource);
                }
            }
        }
    }

    /// Tells every connection what is news rather than state.
    fn notify(&self, change: &SessionEvent, session: &Session) {
        let mut frames: HashMap<Dialect, Option<Utf8Bytes>> = HashMap::new();
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

enum Added {
    Yes,
    Unknown,
    TooMany,
}
