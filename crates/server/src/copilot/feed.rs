//! Feeds: the events of a session as SDK events, translated once for all subscribers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_core::{Change, ChatEvent, InputRequest, Session, SessionEvent, SessionId};
use grove_host::Host;
use grove_host::sequencer::{ConnectionId, HostStopped, ListenScope, PublishedState, SequencedEvent};
use grove_host::subscriber::{Outgoing, Queue};
use grove_wire::copilot::events::{CapabilitiesChanged, CommandsChanged};
use grove_wire::copilot::methods::server::{SESSION_EVENT, SessionEventParams};
use grove_wire::copilot::methods::{CommandDeclaration, UiCapabilities};
use grove_wire::copilot::project::Projector;
use grove_wire::copilot::{Event, EventData, EventId};
use grove_wire::jsonrpc;
use tokio::sync::{mpsc, oneshot, watch};

use super::client_requests::{self, ClientRequests};
use super::history;
use super::peer::CopilotPeer;
use super::recent_events::RecentEvents;

/// Events of the endpoint itself that may wait; more are left out.
pub const ENDPOINT_EVENT_BUFFER: usize = 64;
/// Events that a session may be ahead of its feed; past it the feed restarts from the session's current state.
pub const FEED_BUFFER: usize = 4_096;

/// The feeds of the sessions that SDKs have open.
#[derive(Debug, Default)]
pub(crate) struct Feeds(Mutex<HashMap<SessionId, Arc<Feed>>>);

/// The event stream of one session.
pub(super) struct Feed {
    session: SessionId,
    subscribers: Mutex<HashMap<ConnectionId, FeedSubscriber>>,
    /// The number of events sent, for clients that wait for more of them.
    updates: watch::Sender<u64>,
    /// Events of the endpoint itself, ordered among the others.
    asides: mpsc::Sender<EndpointEvent>,
    /// Its pending requests to the clients.
    requests: Mutex<ClientRequests>,
    /// The newest ephemeral events.
    recent: Mutex<RecentEvents>,
}

/// An event that no event of the session stands for.
struct EndpointEvent {
    /// Without data it only waits until the events before it are in the queues of the subscribers.
    data: Option<EventData>,
    /// The client that gets it; without one, all do.
    only: Option<ConnectionId>,
    /// Gets the event's id once it is in the queues of the subscribers.
    sent: Option<oneshot::Sender<EventId>>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("session", &self.session).finish_non_exhaustive()
    }
}

/// A subscriber of a session's feed.
#[derive(Clone)]
pub(super) struct FeedSubscriber {
    pub(super) queue: Arc<Queue>,
    /// Sends text while it streams, and not only when it is complete.
    pub(super) streaming: bool,
    /// The peer that answers the agent's requests, if this client does.
    pub(super) answers: Option<CopilotPeer>,
    /// Says whether this client shows forms to a person.
    pub(super) shows_forms: bool,
    /// The commands that this client runs.
    pub(super) commands: Vec<CommandDeclaration>,
}

impl Feeds {
    /// The feed of a session, if it has subscribers.
    pub(super) fn of(&self, session: &SessionId) -> Option<Arc<Feed>> {
        self.all().get(session).cloned()
    }

    /// Subscribes a client to a session.
    pub(super) async fn attach(
        self: &Arc<Self>,
        host: &Host,
        session: &SessionId,
        connection: ConnectionId,
        subscriber: FeedSubscriber,
    ) -> Result<(), HostStopped> {
        let before = self.of(session).map(|feed| feed.abilities());
        if let Some((feed, asides)) = self.add(session, connection, subscriber.clone()) {
            let begun = begin(host, session).await?;
            host.env().spawn.spawn(Box::pin(run(host.clone(), self.clone(), feed, begun, asides)));
        }
        if let (Some(feed), Some(before)) = (self.of(session), before) {
            feed.tell_abilities(&before);
        }
        self.send_pending_requests(host, session, &subscriber).await
    }

    /// Drops the feed of a session that is gone.
    fn forget(&self, feed: &Feed) {
        feed.subscribers().clear();
        self.all().remove(&feed.session);
    }

    /// Adds a subscriber to a session. Returns the feed if it is new and has to be started.
    fn add(
        &self,
        session: &SessionId,
        connection: ConnectionId,
        subscriber: FeedSubscriber,
    ) -> Option<(Arc<Feed>, mpsc::Receiver<EndpointEvent>)> {
        let mut all = self.all();
        if let Some(feed) = all.get(session) {
            feed.subscribers().insert(connection, subscriber);
            return None;
        }
        let subscribers = Mutex::new(HashMap::from([(connection, subscriber)]));
        let (asides, aside_receiver) = mpsc::channel(ENDPOINT_EVENT_BUFFER);
        let (updates, requests, recent) = (watch::Sender::new(0), Mutex::default(), Mutex::default());
        let feed = Arc::new(Feed { session: session.clone(), subscribers, updates, asides, requests, recent });
        all.insert(session.clone(), feed.clone());
        Some((feed, aside_receiver))
    }

    /// Sends the pending requests to a client that subscribes during a turn.
    async fn send_pending_requests(
        &self,
        host: &Host,
        session: &SessionId,
        subscriber: &FeedSubscriber,
    ) -> Result<(), HostStopped> {
        let (id, now) = (session.clone(), host.env().clock.now());
        let look = move |published: &PublishedState| {
            let session = published.state.sessions.get(&id)?;
            session.main_chat()?.active.as_ref()?;
            Some(Projector::new(session, &[]).waiting(now))
        };
        for event in host.sequencer().read(look).into_iter().flatten() {
            if let Some(text) = frame(session, event) {
                subscriber.queue.push(Outgoing::Frame(text));
            }
        }
        Ok(())
    }

    /// Unsubscribes a client from a session. A feed without subscribers ends.
    pub(super) fn detach(&self, session: &SessionId, connection: ConnectionId) {
        let mut all = self.all();
        if let Some(feed) = all.get(session).cloned() {
            let before = feed.abilities();
            feed.subscribers().remove(&connection);
            feed.requests().client_left(connection, feed.shows_forms());
            if feed.subscribers().is_empty() {
                all.remove(session);
            }
            feed.tell_abilities(&before);
        }
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Feed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    fn subscribers(&self) -> MutexGuard<'_, HashMap<ConnectionId, FeedSubscriber>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Persisted events with the newest ephemeral ones among them.
    pub(super) fn with_recent(&self, persisted: Vec<Event>) -> Vec<Event> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).merged_into(persisted)
    }

    /// Changes with every event that is sent, except for pieces of texts.
    pub(super) fn updates(&self) -> watch::Receiver<u64> {
        self.updates.subscribe()
    }

    /// The pending requests to the clients.
    pub(super) fn requests(&self) -> MutexGuard<'_, ClientRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether a client shows forms.
    pub(super) fn shows_forms(&self) -> bool {
        self.subscribers().values().any(|subscriber| subscriber.shows_forms)
    }

    /// The commands that clients run.
    pub(super) fn commands(&self) -> Vec<CommandDeclaration> {
        client_requests::merged(self.subscribers().values().flat_map(|subscriber| &subscriber.commands))
    }

    /// A client that runs a command.
    pub(super) fn client_of(&self, command: &str) -> Option<ConnectionId> {
        let subscribers = self.subscribers();
        let has = |subscriber: &FeedSubscriber| subscriber.commands.iter().any(|mine| mine.name == command);
        subscribers.iter().find(|(_, subscriber)| has(subscriber)).map(|(connection, _)| *connection)
    }

    /// The abilities of the clients together.
    fn abilities(&self) -> (bool, Vec<CommandDeclaration>) {
        (self.shows_forms(), self.commands())
    }

    /// Tells the clients what they can do together, if that has changed.
    fn tell_abilities(&self, before: &(bool, Vec<CommandDeclaration>)) {
        let (shows_forms, commands) = self.abilities();
        if shows_forms != before.0 {
            self.say(CapabilitiesChanged { ui: Some(UiCapabilities { elicitation: Some(shows_forms) }) });
        }
        if commands != before.1 {
            self.say(CommandsChanged { commands });
        }
    }

    /// Sends an event to all subscribers that no event of the session stands for.
    pub(super) fn say(&self, data: impl Into<EventData>) {
        // A full buffer drops the event: it is not essential.
        self.asides.try_send(EndpointEvent { data: Some(data.into()), only: None, sent: None }).ok();
    }

    /// Sends such an event to one subscriber.
    pub(super) fn say_to(&self, connection: ConnectionId, data: impl Into<EventData>) {
        let event = EndpointEvent { data: Some(data.into()), only: Some(connection), sent: None };
        self.asides.try_send(event).ok();
    }

    /// Waits until the events of the session so far are in the queues of the subscribers.
    pub(super) async fn settle(&self) {
        let (sent, reached) = oneshot::channel();
        if self.asides.send(EndpointEvent { data: None, only: None, sent: Some(sent) }).await.is_ok() {
            reached.await.ok();
        }
    }

    /// Sends such an event, and returns its id once it is in the queues of the subscribers.
    pub(super) async fn say_and_wait(&self, data: impl Into<EventData>) -> Option<EventId> {
        let (sent, id) = oneshot::channel();
        self.asides.send(EndpointEvent { data: Some(data.into()), only: None, sent: Some(sent) }).await.ok()?;
        id.await.ok()
    }

    /// Sends an event to all subscribers.
    pub(super) fn tell(&self, event: Event) {
        self.tell_only(event, None);
    }

    /// Sends an event to one subscriber, or to all of them.
    fn tell_only(&self, event: Event, only: Option<ConnectionId>) {
        let streamed = is_streamed(&event);
        let is_recent = event.ephemeral && !streamed && only.is_none();
        let copy = is_recent.then(|| event.clone());
        let Some(text) = frame(&self.session, event) else { return };
        if let Some(event) = copy {
            self.recent.lock().unwrap_or_else(PoisonError::into_inner).push(event, text.len());
        }
        let is_meant = |connection: &ConnectionId| only.is_none_or(|only| only == *connection);
        for (_, subscriber) in self.subscribers().iter().filter(|(connection, _)| is_meant(connection)) {
            if subscriber.streaming || !streamed {
                subscriber.queue.push(Outgoing::Frame(text.clone()));
            }
        }
        if !streamed {
            self.updates.send_modify(|count| *count += 1);
        }
    }

    /// Asks the subscribers that answer requests. The first answer counts.
    fn ask(&self, request: &InputRequest) {
        let answering: Vec<CopilotPeer> =
            self.subscribers().values().filter_map(|subscriber| subscriber.answers.clone()).collect();
        for peer in answering {
            peer.ask(&self.session, request.clone());
        }
    }
}

/// The current state of a session, and its events from then on.
type FeedStart = (Option<Projector>, mpsc::Receiver<Arc<SequencedEvent>>);

async fn begin(host: &Host, session: &SessionId) -> Result<FeedStart, HostStopped> {
    let id = session.clone();
    let entries = history::logged_entries(host, session).await;
    let look = move |published: &PublishedState| {
        let session: &Session = published.state.sessions.get(&id)?;
        let entries = history::placed_entries(session, entries.as_ref());
        Some(Projector::new(session, &entries))
    };
    host.sequencer().listen(ListenScope::Session(session.clone()), FEED_BUFFER, look).await
}

/// Sends events until nobody subscribes or the session is gone.
async fn run(
    host: Host,
    feeds: Arc<Feeds>,
    feed: Arc<Feed>,
    mut begun: FeedStart,
    mut asides: mpsc::Receiver<EndpointEvent>,
) {
    loop {
        let (Some(mut projector), mut events) = begun else { break };
        loop {
            let event = tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(event) => event,
                    None => break,
                },
                Some(EndpointEvent { data, only, sent }) = asides.recv() => {
                    let id = match data {
                        Some(data) => {
                            let event = projector.aside(host.env().clock.now(), data);
                            let id = event.id.clone();
                            feed.tell_only(event, only);
                            id
                        }
                        None => EventId::from(""),
                    };
                    sent.map(|sent| sent.send(id));
                    continue;
                }
            };
            for event in projector.tell(&event.event) {
                feed.tell(event);
            }
            match &event.event.change {
                Change::Chat(_, chat, ChatEvent::InputRequested { request, .. })
                    if chat.as_str() == Session::MAIN_CHAT =>
                {
                    feed.ask(request);
                }
                Change::Session(_, SessionEvent::Removed) => return feeds.forget(&feed),
                _ => {}
            }
            if feed.subscribers().is_empty() {
                return;
            }
        }
        // The feed could not keep up, or the host stops.
        tracing::warn!(session = %feed.session, "a session's event feed restarts from its current state");
        match begin(&host, &feed.session).await {
            Ok(restarted) => begun = restarted,
            Err(HostStopped) => return,
        }
    }
    feeds.forget(&feed);
}

fn frame(session: &SessionId, event: Event) -> Option<Arc<str>> {
    let params = SessionEventParams { session_id: session.to_string(), event };
    match jsonrpc::notification(SESSION_EVENT, &params) {
        Ok(text) => Some(text.into()),
        Err(error) => {
            tracing::error!(%session, %error, "an event could not be written as JSON");
            None
        }
    }
}

/// Says whether an event is a fragment of something that is sent whole later.
fn is_streamed(event: &Event) -> bool {
    matches!(event.data, EventData::MessageStart(_) | EventData::MessageDelta(_) | EventData::ReasoningDelta(_))
}
