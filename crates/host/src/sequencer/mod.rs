//! The sequencer: the one place where events get their numbers.
//!
//! It holds the published state. Giving a number, applying the event and handing it to the subscribers are one step;
//! so are cutting a snapshot and subscribing. It never waits for a client: each connection's queue is bounded, and a
//! full one closes its own connection.

mod event;
mod eviction;
mod message;
mod publish;
mod replay;
mod storage;
mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grove_core::*;
use grove_wire::ahp::uri::{self, ChatName, SessionName, Spelling};
use tokio::sync::{mpsc, oneshot};

pub(crate) use event::{ActionOrigin, Names, Resource, SequencedEvent};
pub use message::JournalWriteError;
pub(crate) use message::*;
pub(crate) use replay::ReplayWindow;
pub(crate) use storage::StorageHealth;

use crate::config::Config;
use crate::connection::{DisconnectReason, Outgoing, Queue};
use crate::dialect::Dialect;
use crate::env::Clock;
use crate::journal::{Journal, RecoveredState, number_at_start};

/// How many messages may wait for the sequencer before their senders do.
const INBOX: usize = 1_024;
/// How many messages are written to the journal together.
const BATCH: usize = 256;
/// How often others get their turn before the next batch is taken.
const YIELDS: usize = 2;
/// How many numbers are reserved at a time.
const RESERVE: u64 = 1_000;
/// How long to wait before a write that failed is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// Names a connection for as long as it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// What everybody can see, and the number of the last event in it.
#[derive(Debug, Default)]
pub(crate) struct PublishedState {
    pub(crate) state: State,
    /// Sessions that are listed and not loaded.
    pub(crate) evicted: HashMap<SessionId, EvictedSession>,
    pub(crate) seq: u64,
}

/// A session that lies in its folder: what lists show of it.
#[derive(Debug)]
pub(crate) struct EvictedSession {
    /// The session without its turns.
    pub(crate) session: Session,
    /// Whether its last turn ended in error.
    pub(crate) failed: bool,
}

impl PublishedState {
    /// The session that was created under exactly this URI.
    pub(crate) fn session_at(&self, uri: &SessionUri) -> Option<&Session> {
        self.state.sessions.get(&uri.id()?).filter(|session| session.uri == *uri)
    }

    /// Whether there is a session of this id, loaded or not.
    pub(crate) fn is_known(&self, id: &SessionId) -> bool {
        self.state.sessions.contains_key(id) || self.evicted.contains_key(id)
    }

    /// All sessions that are listed, with whether the last turn of the main chat ended in error.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&Session, bool)> {
        let failed = |session: &Session| session.main_chat().is_some_and(|chat| chat.status() == ChatStatus::Error);
        let loaded = self.state.sessions.values().map(move |session| (session, failed(session)));
        loaded.chain(self.evicted.values().map(|evicted| (&evicted.session, evicted.failed)))
    }

    /// The session that has this chat beside its main one.
    pub(crate) fn session_of_chat(&self, chat: &ChatId) -> Option<&Session> {
        self.listed().map(|(session, _)| session).find(|session| {
            session.catalogue.len() > 1 && session.catalogue.iter().skip(1).any(|row| row.chat == *chat)
        })
    }

    /// What a name leads to, of what is loaded.
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

/// The way to the sequencer.
#[derive(Clone)]
pub(crate) struct SequencerHandle(mpsc::Sender<ToSequencer>);

/// The sequencer has ended, and the host with it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the host is stopping")]
pub struct HostStopped;

impl SequencerHandle {
    pub(crate) async fn tell(&self, message: ToSequencer) -> Result<(), HostStopped> {
        self.0.send(message).await.map_err(|_| HostStopped)
    }

    /// The same without waiting: whether it was told.
    pub(crate) fn tell_now(&self, message: ToSequencer) -> bool {
        self.0.try_send(message).is_ok()
    }

    /// The loaded sessions that nobody looks at, and that have nothing that runs or waits; each with where it lies.
    pub(crate) async fn idle_sessions(&self) -> Result<Vec<(SessionId, StoreName)>, HostStopped> {
        let (sender, told) = oneshot::channel();
        self.tell(ToSequencer::ListIdle(sender)).await?;
        told.await.map_err(|_| HostStopped)
    }

    /// Publishes; gives what tells when it is done.
    pub(crate) async fn publish(
        &self,
        mut publication: Publication,
    ) -> Result<oneshot::Receiver<Result<u64, JournalWriteError>>, HostStopped> {
        let (done, told) = oneshot::channel();
        publication.done = Some(done);
        self.tell(ToSequencer::Publish(publication)).await?;
        Ok(told)
    }

    /// Publishes and waits until it is done.
    pub(crate) async fn publish_now(
        &self,
        publication: Publication,
    ) -> Result<Result<u64, JournalWriteError>, HostStopped> {
        self.publish(publication).await?.await.map_err(|_| HostStopped)
    }

    /// What is known of a client.
    pub(crate) async fn find_client(&self, client: ClientId) -> Result<Option<ClientRecord>, HostStopped> {
        let (sender, known) = oneshot::channel();
        self.tell(ToSequencer::FindClient(client, sender)).await?;
        known.await.map_err(|_| HostStopped)
    }

    /// Hears of sessions from now on, beginning with a look at the published state. At most this many events may wait:
    /// past it nothing more is heard.
    pub(crate) async fn listen<T: Send + 'static>(
        &self,
        what: ListenScope,
        most: usize,
        look: impl FnOnce(&PublishedState) -> T + Send + 'static,
    ) -> Result<(T, mpsc::Receiver<Arc<SequencedEvent>>), HostStopped> {
        let (listener, heard) = mpsc::channel(most);
        let (sender, seen) = oneshot::channel();
        let begin = Box::new(move |published: &PublishedState| {
            // Whoever asked may have gone meanwhile.
            sender.send(look(published)).ok();
        });
        self.tell(ToSequencer::Listen(Listen { what, listener, begin })).await?;
        Ok((seen.await.map_err(|_| HostStopped)?, heard))
    }

    /// Looks at the published state, behind everything told before.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&PublishedState, Counters) -> T + Send + 'static,
    ) -> Result<T, HostStopped> {
        let (sender, seen) = oneshot::channel();
        let read = Box::new(move |published: &PublishedState, counters| {
            // Whoever asked may have gone meanwhile.
            sender.send(look(published, counters)).ok();
        });
        self.tell(ToSequencer::Read(read)).await?;
        seen.await.map_err(|_| HostStopped)
    }
}

/// A connection that has said who it is.
struct Connection {
    queue: Arc<Queue>,
    client: ClientId,
    dialect: Dialect,
    /// What it hears of, and how each is told.
    subscriptions: HashMap<Resource, Dialect>,
    spellings: Arc<Spellings>,
}

/// One of those who hear of a resource; holds what each event needs, so that publishing looks nothing up.
struct Subscriber {
    connection: ConnectionId,
    queue: Arc<Queue>,
    dialect: Dialect,
    /// How long text may wait for more of it.
    patience: Duration,
}

/// A client that was here.
struct RememberedClient {
    dialect: Dialect,
    connection: Option<ConnectionId>,
    /// When it last came or went, in the sequencer's own count.
    touched: u64,
}

/// Numbers above `from` and below `to` were never given.
#[derive(Clone, Copy, Debug)]
struct Jump {
    from: u64,
    to: u64,
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
    /// The numbers that this host passed over at its start, until the journal says so.
    jump: Option<Jump>,
    storage: StorageHealth,
    published: PublishedState,
    /// The first event of each session that is in the journal alone, and the last one.
    unpersisted: HashMap<SessionId, u64>,
    last_of: HashMap<SessionId, u64>,
    release_due: bool,
    /// Events of one resource that are published and not handed out yet: within a step only.
    undelivered: Vec<Arc<SequencedEvent>>,
    /// Sessions that came in with what they had, and at which number. What happened to them before is not in the replay.
    entered: HashMap<SessionId, u64>,
    /// How sessions are called, of those of which something was published.
    names: HashMap<SessionId, Arc<Names>>,
    replay: ReplayWindow,
    connections: HashMap<ConnectionId, Connection>,
    subscribers: HashMap<Resource, Vec<Subscriber>>,
    /// Those in this process who hear of one session, and of all.
    listeners: HashMap<SessionId, Vec<EventListener>>,
    news_listeners: Vec<EventListener>,
    clients: HashMap<ClientId, RememberedClient>,
    touches: u64,
}

impl Sequencer {
    /// A sequencer that goes on where the journal ends.
    pub(crate) fn new(
        config: Arc<Config>,
        clock: Arc<dyn Clock>,
        journal: Box<dyn Journal>,
        recovered: RecoveredState,
    ) -> (Self, SequencerHandle) {
        let (sender, inbox) = mpsc::channel(INBOX);
        let RecoveredState { state, evicted, seq: last, last_event, unpersisted, mut replay, clients, .. } = recovered;
        let seq = number_at_start(last, clock.now());
        replay.skip(last_event, seq);
        let known = |(id, journal_version)| {
            Some((id, RememberedClient { dialect: Dialect::of(&journal_version)?, connection: None, touched: 0 }))
        };
        let sequencer = Self {
            inbox,
            config,
            clock,
            journal,
            held: Vec::new(),
            reserved: seq,
            jump: Some(Jump { from: last_event, to: seq }),
            storage: StorageHealth::default(),
            published: PublishedState { state, evicted, seq },
            last_of: unpersisted.keys().map(|session| (session.clone(), seq)).collect(),
            unpersisted,
            release_due: false,
            undelivered: Vec::new(),
            entered: HashMap::new(),
            names: HashMap::new(),
            replay,
            connections: HashMap::new(),
            subscribers: HashMap::new(),
            listeners: HashMap::new(),
            news_listeners: Vec::new(),
            clients: clients.into_iter().filter_map(known).collect(),
            touches: 0,
        };
        (sequencer, SequencerHandle(sender))
    }

    /// Whether the journal can be written.
    pub(crate) fn storage(&self) -> StorageHealth {
        self.storage.clone()
    }

    /// Works until nobody can tell it anything any more.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        // The journal says from where on this host gives numbers.
        self.step(&mut batch).await;
        loop {
            let received = if self.held.is_empty() {
                self.inbox.recv_many(&mut batch, BATCH).await
            } else {
                let retry = self.clock.sleep(RETRY_DELAY);
                tokio::select! {
                    received = self.inbox.recv_many(&mut batch, BATCH) => received,
                    () = retry => 1,
                }
            };
            if received == 0 {
                break;
            }
            self.step(&mut batch).await;
            // Those who were told just now may have more to say: let them, so that one write serves them all.
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
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
            ToSequencer::SendDirect(direct_reply) => self.send_direct_reply(direct_reply),
            ToSequencer::Attach(attach) => self.attach(attach),
            ToSequencer::Subscribe(subscribe) => self.subscribe(subscribe),
            ToSequencer::Unsubscribe(connection, resource) => self.unsubscribe(connection, &resource),
            ToSequencer::Detach(connection) => self.detach(connection),
            ToSequencer::Load(session) => {
                if self.published.evicted.remove(&session.id).is_some() {
                    self.published.state.sessions.insert(session.id.clone(), *session);
                }
            }
            ToSequencer::AddLoaded(session) => {
                if !self.published.is_known(&session.id) {
                    self.entered.insert(session.id.clone(), self.published.seq);
                    self.published.state.sessions.insert(session.id.clone(), *session);
                }
            }
            ToSequencer::AddEvicted(evicted) => {
                // Lists hear of it; nothing of it is in the journal, so it has no number.
                self.notify(&SessionEvent::Listed, &evicted.session);
                self.published.evicted.insert(evicted.session.id.clone(), *evicted);
            }
            ToSequencer::Persisted(session, upto) => self.persisted(&session, upto),
            ToSequencer::ListIdle(told) => {
                // Whoever asked may have gone meanwhile.
                told.send(self.idle_sessions()).ok();
            }
            ToSequencer::Evict(session) => self.rest(&session),
            ToSequencer::Read(look) => {
                look(&self.published, Counters { connections: self.connections.len() });
            }
            ToSequencer::Listen(listen) => {
                match listen.what {
                    ListenScope::Session(session) => self.listeners.entry(session).or_default().push(listen.listener),
                    ListenScope::News => self.news_listeners.push(listen.listener),
                }
                (listen.begin)(&self.published);
            }
            ToSequencer::FindClient(client, told) => {
                let client = self.clients.get(&client);
                let known = client.map(|client| ClientRecord {
                    dialect: client.dialect,
                    connected: client.connection.is_some(),
                    touched: client.touched,
                });
                // Whoever asked may have gone meanwhile.
                told.send(known).ok();
            }
            ToSequencer::CloseAll(reason) => {
                let queues = self.connections.values().map(|connection| &connection.queue);
                queues.for_each(|queue| queue.push(Outgoing::Last(reason)));
            }
        }
    }

    fn attach(&mut self, attach: Attach) {
        let known = self.clients.get(&attach.client);
        let (dialect, seen) = match attach.how {
            AttachMode::New(dialect) => (dialect, None),
            AttachMode::Returning { seen, unless_known } => match known {
                Some(client) => (client.dialect, Some(seen)),
                None => (unless_known, None),
            },
        };
        if let Some(older) = known.and_then(|client| client.connection) {
            if let Some(connection) = self.connections.get(&older) {
                connection.queue.push(Outgoing::Last(DisconnectReason::TakenOver));
            }
            self.detach(older);
        }
        self.connections.insert(
            attach.connection,
            Connection {
                queue: attach.queue,
                client: attach.client.clone(),
                dialect,
                subscriptions: HashMap::new(),
                spellings: attach.spellings,
            },
        );
        self.touches += 1;
        let client = RememberedClient { dialect, connection: Some(attach.connection), touched: self.touches };
        self.clients.insert(attach.client, client);
        self.forget_clients();

        let mut subscribed = Vec::with_capacity(attach.subscriptions.len());
        for wanted in &attach.subscriptions {
            subscribed.push(matches!(
                self.add_subscription(attach.connection, wanted, Duration::ZERO),
                AddSubscriptionOutcome::Yes
            ));
        }
        let missed = match seen {
            None => MissedEvents::Together(None),
            Some(ReconnectPosition::UpTo(seen)) => {
                let wanted = self.connections.get(&attach.connection).map(|connection| &connection.subscriptions);
                MissedEvents::Together(
                    wanted.and_then(|wanted| self.missed(seen, |resource| wanted.get(resource).copied())),
                )
            }
            Some(ReconnectPosition::Each(seen)) => {
                let each = attach.subscriptions.iter().zip(seen).map(|(wanted, seen)| {
                    let resources = self.published.find(wanted)?.resources();
                    let dialect = dialect.spelled(wanted.spelling());
                    // A client that has seen nothing has nothing to which something could be added.
                    if seen == 0 {
                        return None;
                    }
                    self.missed(seen, |resource| resources.contains(resource).then_some(dialect))
                });
                MissedEvents::Each(each.collect())
            }
        };
        (attach.reply)((attach.answer)(AttachOutcome { published: &self.published, subscribed, missed }));
    }

    /// The events after a number of what is wanted, where all of them are there.
    fn missed(&self, seen: u64, wanted: impl Fn(&Resource) -> Option<Dialect>) -> Option<Vec<ReplayedEvent>> {
        if seen > self.published.seq || self.replay.is_skipped(seen) {
            return None;
        }
        let is_wanted = |session: &Session| {
            let chats = session.chats.iter().map(|chat| Resource::Chat(session.id.clone(), chat.id.clone()));
            chats.chain([Resource::Session(session.id.clone())]).any(|resource| wanted(&resource).is_some())
        };
        let entered = self.entered.iter().filter(|(_, at)| seen < **at);
        if entered.filter_map(|(id, _)| self.published.state.sessions.get(id)).any(is_wanted) {
            return None;
        }
        let events = self.replay.after(seen)?;
        let missed: Vec<_> = events.filter_map(|event| Some((event.clone(), wanted(&event.resource())?))).collect();
        // A session or a chat that came to be meanwhile is not the one that the client knows, if it knows one of that
        // name. A chat's beginning is told on its session's channel.
        let begun = |event: &Arc<SequencedEvent>| match &event.event.change {
            Change::Session(session, SessionEvent::Created(_)) => wanted(&Resource::Session(session.clone()))
                .or_else(|| wanted(&Resource::Chat(session.clone(), Session::MAIN_CHAT.into())))
                .is_some(),
            Change::Session(session, SessionEvent::ChatAdded(row)) => {
                wanted(&Resource::Chat(session.clone(), row.chat.clone())).is_some()
            }
            // What it began with is not in the journal.
            Change::Chat(session, chat, ChatEvent::TurnsInherited { .. }) => {
                wanted(&Resource::Chat(session.clone(), chat.clone())).is_some()
            }
            change => {
                let told = publish::unspeakable_in_v1(change).and_then(|chat| wanted(&chat));
                matches!(told, Some(Dialect::V1 { .. }))
            }
        };
        if self.replay.after(seen)?.any(begun) { None } else { Some(missed) }
    }

    fn subscribe(&mut self, subscribe: Subscribe) {
        // A connection that is being closed is told nothing more.
        if !self.connections.contains_key(&subscribe.connection) {
            return;
        }
        let added = self.add_subscription(subscribe.connection, &subscribe.wanted, subscribe.patience);
        let outcome = match added {
            AddSubscriptionOutcome::Yes => SubscribeOutcome::Yes(&self.published),
            AddSubscriptionOutcome::Unknown => SubscribeOutcome::Unknown,
            AddSubscriptionOutcome::TooMany => SubscribeOutcome::TooMany,
        };
        (subscribe.reply)((subscribe.answer)(outcome));
    }

    fn add_subscription(
        &mut self,
        id: ConnectionId,
        wanted: &SubscriptionTarget,
        patience: Duration,
    ) -> AddSubscriptionOutcome {
        let Some(found) = self.published.find(wanted) else { return AddSubscriptionOutcome::Unknown };
        let Some(connection) = self.connections.get_mut(&id) else { return AddSubscriptionOutcome::Unknown };
        match usage(wanted, &found) {
            None => return AddSubscriptionOutcome::Unknown,
            Some(SpellingHint::FromSession(session)) => connection.spellings.note(session, wanted.spelling()),
            Some(SpellingHint::NoHint) => {}
        }
        let dialect = connection.dialect.spelled(wanted.spelling());
        // A session together with its main chat counts once.
        let counts = |resource: &&Resource| match found {
            ResolvedTarget::SessionWithMainChat(_) => !matches!(resource, Resource::Chat(..)),
            ResolvedTarget::Root | ResolvedTarget::Session(_) | ResolvedTarget::Chat(..) => true,
        };
        let full = connection.subscriptions.keys().filter(counts).count() >= self.config.limits.subscriptions;
        for resource in found.resources() {
            match connection.subscriptions.get_mut(&resource) {
                // The same resource once more, perhaps under another name: from now on it is told so.
                Some(known) => {
                    *known = dialect;
                    let subscribers = self.subscribers.get_mut(&resource).into_iter().flatten();
                    for subscriber in subscribers.filter(|subscriber| subscriber.connection == id) {
                        subscriber.dialect = dialect;
                        subscriber.patience = patience;
                    }
                }
                None if full => return AddSubscriptionOutcome::TooMany,
                None => {
                    connection.subscriptions.insert(resource.clone(), dialect);
                    let queue = connection.queue.clone();
                    let subscriber = Subscriber { connection: id, queue, dialect, patience };
                    self.subscribers.entry(resource).or_default().push(subscriber);
                }
            }
        }
        AddSubscriptionOutcome::Yes
    }

    fn unsubscribe(&mut self, id: ConnectionId, wanted: &SubscriptionTarget) {
        let Some(found) = self.published.find(wanted) else { return };
        for resource in found.resources() {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.subscriptions.remove(&resource);
            }
            self.drop_subscriber(id, &resource);
        }
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
        for resource in connection.subscriptions.keys() {
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

enum AddSubscriptionOutcome {
    Yes,
    Unknown,
    TooMany,
}

/// What a name that leads somewhere says of how its client names sessions.
enum SpellingHint<'a> {
    /// It names this session, in one of the ways.
    FromSession(&'a SessionId),
    NoHint,
}

/// What can be heard of under a name; nothing, where it is not one under which anything is told: a client would never
/// know what that is about.
fn usage<'a>(wanted: &SubscriptionTarget, found: &ResolvedTarget<'a>) -> Option<SpellingHint<'a>> {
    match (wanted, found) {
        (SubscriptionTarget::Session(name), ResolvedTarget::Session(session)) => {
            uri::SessionUris::of(session).has_session(name).then_some(SpellingHint::FromSession(&session.id))
        }
        (SubscriptionTarget::Chat(name), ResolvedTarget::Chat(session, chat)) => {
            let names = uri::SessionUris::of(session);
            let own = names.chat(&chat.id, name.spelling());
            // A chat that was plainly named is so in every way.
            let usage = match name.spelling() != Spelling::Computed && own == names.chat(&chat.id, Spelling::Computed) {
                true => SpellingHint::NoHint,
                false => SpellingHint::FromSession(&session.id),
            };
            names.has_chat(&chat.id, name).then_some(usage)
        }
        (_, _) => Some(SpellingHint::NoHint),
    }
}
