//! The sequencer: the one place where events are put in order and published.
//!
//! It plans batches, the journal writes them and answers with the position of each entry. Applying a written event and
//! handing it to the subscribers are one step; so are taking a snapshot and subscribing. It never waits for a client:
//! each connection's queue is bounded, and a full one closes its own connection.

mod event;
mod eviction;
mod message;
mod publish;
mod replay;
mod storage;
#[cfg(test)]
mod tests;
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
use crate::journal::{AppendOutcome, Journal, JournalStart, Position, RecoveredState};

/// The messages that may wait for the sequencer before their senders do.
const INBOX: usize = 1_024;
/// The messages that are written to the journal together.
const BATCH: usize = 256;
/// The times that other tasks may run before the next batch is taken.
const YIELDS: usize = 2;
/// The delay before a failed write is retried.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The id of a connection while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

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

/// The sender of messages to the sequencer.
#[derive(Clone)]
pub(crate) struct SequencerHandle(mpsc::Sender<ToSequencer>);

/// The sequencer has ended, and the host with it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the host is stopping")]
pub struct HostStopped;

impl SequencerHandle {
    /// A handle to the receiver of these messages, which a test serves itself.
    #[cfg(test)]
    pub(crate) fn to(messages: mpsc::Sender<ToSequencer>) -> Self {
        Self(messages)
    }

    pub(crate) async fn tell(&self, message: ToSequencer) -> Result<(), HostStopped> {
        self.0.send(message).await.map_err(|_| HostStopped)
    }

    /// Sends without waiting; returns whether it was sent.
    pub(crate) fn tell_now(&self, message: ToSequencer) -> bool {
        self.0.try_send(message).is_ok()
    }

    /// The loaded sessions without subscribers and without work, with their stores.
    pub(crate) async fn idle_sessions(&self) -> Result<Vec<(SessionId, StoreName)>, HostStopped> {
        let (sender, told) = oneshot::channel();
        self.tell(ToSequencer::ListIdle(sender)).await?;
        told.await.map_err(|_| HostStopped)
    }

    /// Publishes; returns a receiver that resolves when it is done.
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

    /// The record of a client.
    pub(crate) async fn find_client(&self, client: ClientId) -> Result<Option<ClientRecord>, HostStopped> {
        let (sender, known) = oneshot::channel();
        self.tell(ToSequencer::FindClient(client, sender)).await?;
        known.await.map_err(|_| HostStopped)
    }

    /// Subscribes to sessions inside this process, starting with a read of the published state.
    ///
    /// At most this many events may wait; with more, the subscription ends.
    pub(crate) async fn listen<T: Send + 'static>(
        &self,
        what: ListenScope,
        most: usize,
        look: impl FnOnce(&PublishedState) -> T + Send + 'static,
    ) -> Result<(T, mpsc::Receiver<Arc<SequencedEvent>>), HostStopped> {
        let (listener, heard) = mpsc::channel(most);
        let (sender, seen) = oneshot::channel();
        let begin = Box::new(move |published: &PublishedState| {
            // The caller may have stopped waiting.
            sender.send(look(published)).ok();
        });
        self.tell(ToSequencer::Listen(Listen { what, listener, begin })).await?;
        Ok((seen.await.map_err(|_| HostStopped)?, heard))
    }

    /// Reads the published state, after everything sent before.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&PublishedState, Counters) -> T + Send + 'static,
    ) -> Result<T, HostStopped> {
        let (sender, seen) = oneshot::channel();
        let read = Box::new(move |published: &PublishedState, counters| {
            // The caller may have stopped waiting.
            sender.send(look(published, counters)).ok();
        });
        self.tell(ToSequencer::Read(read)).await?;
        seen.await.map_err(|_| HostStopped)
    }
}

/// A connection whose client is known.
struct Connection {
    queue: Arc<Queue>,
    client: ClientId,
    dialect: Dialect,
    /// Its subscriptions, with the dialect of each.
    subscriptions: HashMap<Resource, Dialect>,
    spellings: Arc<Spellings>,
    /// The last sequence number of a message to this connection alone.
    last_direct: u64,
}

/// A subscriber of a resource, with everything that each event needs, so that publishing looks nothing up.
struct Subscriber {
    connection: ConnectionId,
    queue: Arc<Queue>,
    dialect: Dialect,
    /// The time for which text may wait to be merged.
    patience: Duration,
}

/// A client that was connected before.
struct RememberedClient {
    dialect: Dialect,
    connection: Option<ConnectionId>,
    /// The time of its last connect or disconnect, in the sequencer's own count.
    touched: u64,
}

pub(crate) struct Sequencer {
    inbox: mpsc::Receiver<ToSequencer>,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    journal: Box<dyn Journal>,
    /// The start of this host, until the journal has it.
    start: Option<JournalStart>,
    /// Events that happened and could not be written yet, oldest first.
    /// At most one publication per session, since each waits for its last.
    held: Vec<Publication>,
    /// Publications that wait for an outcome which the journal has to look up, with those behind them.
    unsettled: Vec<(Publication, Option<AppendOutcome>)>,
    /// Messages to single connections that have used up the numbers of the current position.
    exhausted: Vec<DirectReply>,
    storage: StorageHealth,
    published: PublishedState,
    /// The first event of each session that is only in the journal, and the last one.
    unpersisted: HashMap<SessionId, u64>,
    last_of: HashMap<SessionId, u64>,
    release_due: bool,
    /// Events of one resource that are published and not sent yet: only within a step.
    undelivered: Vec<Arc<SequencedEvent>>,
    /// Sessions that were added complete, with the sequence number of that. Earlier events are not in the replay.
    entered: HashMap<SessionId, u64>,
    /// The names of sessions with published events.
    names: HashMap<SessionId, Arc<Names>>,
    replay: ReplayWindow,
    connections: HashMap<ConnectionId, Connection>,
    subscribers: HashMap<Resource, Vec<Subscriber>>,
    /// The in-process subscribers of one session, and of all.
    listeners: HashMap<SessionId, Vec<EventListener>>,
    news_listeners: Vec<EventListener>,
    clients: HashMap<ClientId, RememberedClient>,
    touches: u64,
}

impl Sequencer {
    /// A sequencer that continues at the end of the journal.
    pub(crate) async fn start(
        config: Arc<Config>,
        clock: Arc<dyn Clock>,
        journal: Box<dyn Journal>,
        recovered: RecoveredState,
    ) -> (Self, SequencerHandle) {
        let (sender, inbox) = mpsc::channel(INBOX);
        let RecoveredState { state, evicted, seq, last_published, unpersisted, replay, clients, .. } = recovered;
        let clients: Vec<_> = clients.into_iter().collect();
        let start = JournalStart { used: seq, last_published, now: clock.now(), clients: clients.clone() };
        let known = |(id, journal_version)| {
            Some((id, RememberedClient { dialect: Dialect::of(&journal_version)?, connection: None, touched: 0 }))
        };
        let mut sequencer = Self {
            inbox,
            config,
            clock,
            journal,
            start: Some(start),
            held: Vec::new(),
            unsettled: Vec::new(),
            exhausted: Vec::new(),
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
        // A journal that cannot be written now is tried again with each batch.
        sequencer.step(&mut Vec::new()).await;
        (sequencer, SequencerHandle(sender))
    }

    /// The health of the journal.
    pub(crate) fn storage(&self) -> StorageHealth {
        self.storage.clone()
    }

    /// Runs until every sender is dropped.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let received = if self.held.is_empty() && self.unsettled.is_empty() {
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
            // Tasks that were just answered may send more: they run first, so that one write serves them all.
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Handles a message. A publication has an outcome: that of its entry in the journal.
    fn handle(&mut self, message: ToSequencer, outcome: Option<AppendOutcome>) {
        // Other messages take effect after everything published before.
        if !matches!(message, ToSequencer::Publish(_)) {
            self.deliver();
        }
        match message {
            ToSequencer::Nothing => {}
            ToSequencer::Publish(publication) => self.conclude(publication, outcome),
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
                // Lists are notified; nothing of it is in the journal, so it has no number.
                self.notify(&SessionEvent::Listed, &evicted.session);
                self.published.evicted.insert(evicted.session.id.clone(), *evicted);
            }
            ToSequencer::Persisted(session, upto) => self.persisted(&session, upto),
            ToSequencer::ListIdle(told) => {
                // The caller may have stopped waiting.
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
                // The caller may have stopped waiting.
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
        let named = match &attach.how {
            AttachMode::New(_) => 0,
            AttachMode::Returning { seen, .. } => seen.highest(),
        };
        // A number of another journal may be beyond all of this one.
        let last_direct = if Position::of(named) <= Position::of(self.published.seq) { named } else { 0 };
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
                last_direct,
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
                    // A client that has seen nothing has no state to add to.
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

    /// The events after a sequence number for these resources, if all of them are available.
    fn missed(&self, seen: u64, wanted: impl Fn(&Resource) -> Option<Dialect>) -> Option<Vec<ReplayedEvent>> {
        if Position::of(seen) > Position::of(self.published.seq) || self.replay.is_skipped(seen) {
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
        // A session or a chat created meanwhile is not the one that the client knows, if it knows one of that name. A
        // chat's creation is announced on its session's channel.
        let begun = |event: &Arc<SequencedEvent>| match &event.event.change {
            Change::Session(session, SessionEvent::Created(_)) => wanted(&Resource::Session(session.clone()))
                .or_else(|| wanted(&Resource::Chat(session.clone(), Session::MAIN_CHAT.into())))
                .is_some(),
            Change::Session(session, SessionEvent::ChatAdded(row)) => {
                wanted(&Resource::Chat(session.clone(), row.chat.clone())).is_some()
            }
            // Its inherited turns are not in the journal.
            Change::Chat(session, chat, ChatEvent::TurnsInherited { .. }) => {
                wanted(&Resource::Chat(session.clone(), chat.clone())).is_some()
            }
            change => {
                let told = publish::needs_v1_snapshot(change).and_then(|chat| wanted(&chat));
                matches!(told, Some(Dialect::V1 { .. }))
            }
        };
        if self.replay.after(seen)?.any(begun) { None } else { Some(missed) }
    }

    fn subscribe(&mut self, subscribe: Subscribe) {
        // A connection that is being closed gets nothing more.
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
                // The same resource again, perhaps under another name: from now on events use that name.
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

    /// Bounds the number of remembered clients: the ones longest gone are forgotten.
    ///
    /// A tenth is removed at a time, so that not every new client costs a search.
    fn forget_clients(&mut self) {
        let limit = self.config.limits.known_clients;
        if self.clients.len() <= limit {
            return;
        }
        let gone = self.clients.iter().filter(|(_, client)| client.connection.is_none());
        let mut gone: Vec<_> = gone.map(|(id, client)| (client.touched, id.clone())).collect();
        gone.sort_unstable_by_key(|(touched, _)| *touched);
        let gone: Vec<ClientId> = gone.into_iter().take(limit / 10 + 1).map(|(_, id)| id).collect();
        for id in &gone {
            self.clients.remove(id);
        }
        self.journal.forget_clients(&gone);
    }
}

enum AddSubscriptionOutcome {
    Yes,
    Unknown,
    TooMany,
}

/// The information in a client's name for a session about its spelling.
enum SpellingHint<'a> {
    /// It names this session, in one of the spellings.
    FromSession(&'a SessionId),
    NoHint,
}

/// The spelling hint of a name; `None` if no events use that name.
///
/// A client would not know what events under another name are about.
fn usage<'a>(wanted: &SubscriptionTarget, found: &ResolvedTarget<'a>) -> Option<SpellingHint<'a>> {
    match (wanted, found) {
        (SubscriptionTarget::Session(name), ResolvedTarget::Session(session)) => {
            uri::SessionUris::of(session).has_session(name).then_some(SpellingHint::FromSession(&session.id))
        }
        (SubscriptionTarget::Chat(name), ResolvedTarget::Chat(session, chat)) => {
            let names = uri::SessionUris::of(session);
            let own = names.chat(&chat.id, name.spelling());
            // A chat with a plain name is spelled the same in every way.
            let usage = match name.spelling() != Spelling::Computed && own == names.chat(&chat.id, Spelling::Computed) {
                true => SpellingHint::NoHint,
                false => SpellingHint::FromSession(&session.id),
            };
            names.has_chat(&chat.id, name).then_some(usage)
        }
        (_, _) => Some(SpellingHint::NoHint),
    }
}
