//! The sequencer: the one place where events are put in order and published.
//!
//! It plans batches, the journal writes them and answers with the position of each entry. Applying a written event and
//! handing it to the subscribers are one step; so are taking a snapshot and subscribing. It never waits for a client:
//! each connection's queue is bounded, and a full one closes its own connection.

mod event;
mod eviction;
mod handle;
mod message;
mod observation;
mod publish;
mod replay;
mod state;
mod storage;
mod subscriptions;
#[cfg(test)]
mod tests;
mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grove_core::*;
use grove_metrics::Metrics;
use grove_storage::{AppendOutcome, ClientProfile, Journal, JournalStart, RecoveredState, SyncMode};
use tokio::sync::mpsc;

pub use event::{SequencedEvent, ahp_echo, v1_origin};
pub use handle::{HostStopped, SequencerHandle};
pub use message::{
    Attach, AttachAnswer, AttachMode, AttachOutcome, ClientRecord, DirectReply, JournalWriteError, ListenScope,
    MissedEvents, ReconnectPosition, ReplayedEvent, ReplySink, ResolvedTarget, Spellings, Subscribe, SubscribeAnswer,
    SubscribeOutcome, SubscriptionTarget,
};
pub use state::{ClientClaim, PublishedState};

pub(crate) use event::{Names, Resource};
pub(crate) use message::{
    EventListener, JournalScope, Listen, Publication, ToSequencer, UnusedCheck, WriteFailurePolicy,
};
use observation::EventObserver;
use replay::ReplayWindow;
pub(crate) use storage::StorageHealth;

use crate::config::Config;
use crate::env::{Clock, Env};
use crate::presence::{ClientParty, Presence};
use crate::subscriber::{Dialect, Outgoing, Queue};
use crate::tokens::TokenPublicId;
use crate::usage::UsageSlot;
use state::{RememberedClient, SharedState};

/// The messages that may wait for the sequencer before their senders do.
pub const INBOX: usize = 1_024;
/// The messages that are written to the journal together.
pub const BATCH: usize = 256;
/// The time for which streamed text of several sessions is gathered.
const GATHERING: Duration = Duration::from_millis(1);
/// A batch with this many publications is large enough, so the next one is not delayed.
const MANY_PUBLICATIONS: usize = 64;
/// The times that other tasks may run after a sync, before the next batch is taken.
const YIELDS: usize = 2;
/// The delay before a failed write is retried.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The id of a connection while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// A connection whose client is known.
struct Connection {
    queue: Arc<Queue>,
    client: ClientId,
    party: ClientParty,
    dialect: Dialect,
    /// Its subscriptions, with the dialect of each.
    subscriptions: HashMap<Resource, (Dialect, UsageSlot)>,
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

pub(crate) struct Sequencer {
    inbox: mpsc::Receiver<ToSequencer>,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    observer: EventObserver,
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
    shared: Arc<SharedState>,
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
    attention_listeners: Vec<EventListener>,
    touches: u64,
}

impl Sequencer {
    /// A sequencer that continues at the end of the journal.
    pub(crate) async fn start(
        config: Arc<Config>,
        env: &Env,
        journal: Box<dyn Journal>,
        recovered: RecoveredState,
    ) -> (Self, SequencerHandle) {
        let (clock, metrics) = (env.clock.clone(), env.metrics.clone());
        let (sender, inbox) = mpsc::channel(INBOX);
        let RecoveredState { state, evicted, seq, last_published, unpersisted, replay, clients, .. } = recovered;
        let replay = ReplayWindow::recovered(replay, &config.limits);
        let clients: Vec<_> = clients.into_iter().collect();
        let start = JournalStart { used: seq, last_published, now: clock.now(), clients: clients.clone() };
        let known = |(id, profile): (ClientId, ClientProfile)| {
            let token = profile.token.as_deref().and_then(TokenPublicId::parse);
            let dialect = Dialect::of(&profile.version)?;
            Some((id, RememberedClient { dialect, name: None, token, connection: None, touched: 0 }))
        };
        let clients = clients.into_iter().filter_map(known).collect();
        let presence = Presence::new(env);
        let shared =
            Arc::new(SharedState::new(PublishedState { state, evicted, seq, terminals: None }, clients, presence));
        let mut sequencer = Self {
            inbox,
            config,
            clock,
            observer: EventObserver::new(metrics.clone()),
            metrics,
            journal,
            start: Some(start),
            held: Vec::new(),
            unsettled: Vec::new(),
            exhausted: Vec::new(),
            storage: StorageHealth::default(),
            shared: shared.clone(),
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
            attention_listeners: Vec::new(),
            touches: 0,
        };
        // A journal that cannot be written now is tried again with each batch.
        sequencer.step(&mut Vec::new()).await;
        (sequencer, SequencerHandle::new(sender, shared))
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
            self.metrics.sequencer_batch.observe(batch.len());
            let publications = batch.iter().filter(|message| matches!(message, ToSequencer::Publish(_))).count();
            match self.step(&mut batch).await {
                // Tasks that were just answered may send more: they run first, so that one sync serves them all.
                SyncMode::Now => {
                    for _ in 0..YIELDS {
                        tokio::task::yield_now().await;
                    }
                }
                // Several sessions stream: more text arrives at once, and one write and one wake-up of each subscriber
                // serve all of it.
                SyncMode::Later if (2..MANY_PUBLICATIONS).contains(&publications) => self.clock.sleep(GATHERING).await,
                SyncMode::Later => {}
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
            // Each is a message of its own by now.
            ToSequencer::PublishBoth(both) => self.held.extend(*both),
            ToSequencer::SendDirect(direct_reply) => self.send_direct_reply(direct_reply),
            ToSequencer::SetTerminals(terminals) => self.set_terminals(terminals),
            ToSequencer::Attach(attach) => self.attach(attach),
            ToSequencer::Subscribe(subscribe) => self.subscribe(subscribe),
            ToSequencer::Unsubscribe(connection, resource) => self.unsubscribe(connection, &resource),
            ToSequencer::Detach(connection, done) => {
                self.detach(connection);
                // The caller may have stopped waiting.
                done.send(()).ok();
            }
            ToSequencer::Load(session, done) => {
                let mut published = self.shared.published_mut();
                if published.evicted.remove(&session.id).is_some() {
                    published.state.sessions.insert(session.id.clone(), *session);
                }
                done.send(()).ok();
            }
            ToSequencer::AddLoaded(session) => {
                let mut published = self.shared.published_mut();
                if !published.is_known(&session.id) {
                    self.entered.insert(session.id.clone(), published.seq);
                    published.state.sessions.insert(session.id.clone(), *session);
                }
            }
            ToSequencer::AddEvicted(evicted, done) => {
                // Lists are notified; nothing of it is in the journal, so it has no number.
                self.notify(&SessionEvent::Listed, &evicted.session);
                self.shared.published_mut().evicted.insert(evicted.session.id.clone(), *evicted);
                done.send(()).ok();
            }
            ToSequencer::Persisted(session, upto) => self.persisted(&session, upto),
            ToSequencer::ListIdle(reply) => {
                // The caller may have stopped waiting.
                reply.send(self.idle_sessions()).ok();
            }
            ToSequencer::Evict(session, is_unused) => self.rest(&session, is_unused),
            ToSequencer::Read(look) => look(&self.shared.published()),
            ToSequencer::Listen(listen) => {
                match listen.what {
                    ListenScope::Session(session) => self.listeners.entry(session).or_default().push(listen.listener),
                    ListenScope::News => self.news_listeners.push(listen.listener),
                    ListenScope::Attention => self.attention_listeners.push(listen.listener),
                }
                (listen.begin)(&self.shared.published());
            }
            ToSequencer::CloseAll(reason) => {
                let queues = self.connections.values().map(|connection| &connection.queue);
                queues.for_each(|queue| queue.push(Outgoing::Last(reason)));
            }
        }
    }
}
