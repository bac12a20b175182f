//! Presence: the clients that are attached to each session, for other clients to see.
//!
//! It is live state of the host and never written to disk. A client is attached to a session while it is subscribed to
//! the session or to one of its chats. A client whose connection ends stays for [`RETURN_GRACE`], so that a reconnect
//! changes nothing. Watchers are told of changes together, at most once in [`NOTICE_DELAY`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_core::{Answerer, ClientId, SessionId, Timestamp, party_name};
use grove_wire::jsonrpc;
use grove_wire::x_grove::presence::{
    AttachedClient, AttachedKind, MAX_ATTACHED_CLIENTS, PRESENCE_CHANGED, PresenceChangedParams, PresenceResult,
};
use tokio::sync::Semaphore;

use crate::env::{Clock, Env, Spawn};
use crate::sequencer::ConnectionId;
use crate::subscriber::{Outgoing, Queue, QueuedNotice};

/// The time for which a client whose connection ended still counts as attached.
pub const RETURN_GRACE: Duration = Duration::from_secs(5);
/// The shortest time between two notices about one session.
pub const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// The looks at a session within that grace. They are counted, since a clock may be set.
const RETURN_LOOKS: u32 = (RETURN_GRACE.as_millis() / NOTICE_DELAY.as_millis()) as u32;

/// The party behind a client: names for people, and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientParty {
    /// The client's own name, if it has sent one.
    pub name: Option<Arc<str>>,
    /// The name of its token.
    pub token: Arc<str>,
    pub kind: AttachedKind,
}

impl ClientParty {
    /// The party with the name that a client sent, made fit to be shown.
    pub fn new(token: Arc<str>, name: Option<&str>, kind: AttachedKind) -> Self {
        let name = name.map(party_name).filter(|name| !name.is_empty()).map(Arc::from);
        Self { name, token, kind }
    }

    /// The party as the answerer of a question.
    pub fn answerer(&self) -> Answerer {
        Answerer::client(&self.token, self.name.as_deref())
    }
}

/// The attached clients of all sessions.
pub struct Presence {
    clock: Arc<dyn Clock>,
    spawn: Arc<dyn Spawn>,
    sessions: Mutex<HashMap<SessionId, SessionPresence>>,
}

/// The attached clients of one session.
#[derive(Default)]
struct SessionPresence {
    clients: BTreeMap<ClientId, PresenceEntry>,
    /// True while a task will tell the watchers and remove clients that do not return. That task removes this too: a
    /// session that returns within its delay would get a second one, which would count the looks twice.
    is_scheduled: bool,
}

struct PresenceEntry {
    connection: ConnectionId,
    party: ClientParty,
    dialect: &'static str,
    since: Timestamp,
    /// The looks at the session until the client counts as gone, if its connection has ended.
    looks_left: Option<u32>,
    watch: Option<PresenceWatch>,
}

/// A client's wish to be told of changes.
struct PresenceWatch {
    queue: Arc<Queue>,
    /// The name by which the client knows the session.
    channel: String,
    /// The list that the client knows, shared by all that know the same.
    known: Arc<PresenceResult>,
    /// One notice waits to be written, not more.
    room: Arc<Semaphore>,
}

impl fmt::Debug for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presence").finish_non_exhaustive()
    }
}

impl Presence {
    pub(crate) fn new(env: &Env) -> Arc<Self> {
        let (clock, spawn) = (env.clock.clone(), env.spawn.clone());
        Arc::new(Self { clock, spawn, sessions: Mutex::default() })
    }

    /// Attaches a client to a session. One that returns keeps its time.
    pub fn enter(
        self: &Arc<Self>,
        session: &SessionId,
        client: &ClientId,
        connection: ConnectionId,
        party: &ClientParty,
        dialect: &'static str,
    ) {
        let mut sessions = self.sessions();
        let known = sessions.entry(session.clone()).or_default();
        let (since, watch) = match known.clients.remove(client) {
            Some(entry) if entry.connection == connection => (entry.since, entry.watch),
            Some(entry) => (entry.since, None),
            None => (self.clock.now(), None),
        };
        let party = party.clone();
        let entry = PresenceEntry { connection, party, dialect, since, looks_left: None, watch };
        known.clients.insert(client.clone(), entry);
        self.schedule(session, known);
    }

    /// Detaches a client from a session at once.
    pub fn leave(self: &Arc<Self>, session: &SessionId, client: &ClientId, connection: ConnectionId) {
        let mut sessions = self.sessions();
        let Some(known) = sessions.get_mut(session) else { return };
        if known.clients.get(client).is_some_and(|entry| entry.connection == connection) {
            known.clients.remove(client);
            match known.is_over() {
                true => drop(sessions.remove(session)),
                false => self.schedule(session, known),
            }
        }
    }

    /// Notes that the connection of an attached client has ended. It may return.
    pub(crate) fn disconnect(self: &Arc<Self>, session: &SessionId, client: &ClientId, connection: ConnectionId) {
        let mut sessions = self.sessions();
        let Some(known) = sessions.get_mut(session) else { return };
        if let Some(entry) = known.clients.get_mut(client)
            && entry.connection == connection
        {
            entry.looks_left = Some(RETURN_LOOKS);
            entry.watch = None;
            self.schedule(session, known);
        }
    }

    /// Detaches the client of a connection that does not return from every session, at once.
    ///
    /// Its token has ended, or its program.
    pub fn expel(self: &Arc<Self>, connection: ConnectionId) {
        self.sessions().retain(|session, known| {
            let count = known.clients.len();
            known.clients.retain(|_, entry| entry.connection != connection);
            if known.clients.len() != count && !known.is_over() {
                self.schedule(session, known);
            }
            !known.is_over()
        });
    }

    /// The attached clients of a session.
    pub fn list(&self, session: &SessionId) -> PresenceResult {
        self.sessions().get(session).map(|known| known.list(MAX_ATTACHED_CLIENTS)).unwrap_or_default()
    }

    /// The sessions with attached clients and the number of further ones, each list with at most so many entries.
    pub fn list_all(&self, most: usize, most_clients: usize) -> (Vec<(SessionId, PresenceResult)>, usize) {
        let sessions = self.sessions();
        let attended = sessions.iter().filter(|(_, known)| !known.clients.is_empty());
        let mut ids: Vec<&SessionId> = attended.map(|(id, _)| id).collect();
        ids.sort_unstable();
        let more = ids.len().saturating_sub(most);
        ids.truncate(most);
        let listed =
            ids.into_iter().filter_map(|id| Some((id.clone(), sessions.get(id)?.list(most_clients)))).collect();
        (listed, more)
    }

    /// The number of sessions in the table.
    pub(crate) fn sessions_len(&self) -> usize {
        self.sessions().len()
    }

    /// Lists the attached clients of a session, and has a client told of changes from now on, or not any longer.
    ///
    /// Returns `None` if the client is not attached to the session.
    pub fn watch(
        &self,
        session: &SessionId,
        client: &ClientId,
        connection: ConnectionId,
        watching: Option<(Arc<Queue>, String)>,
    ) -> Option<PresenceResult> {
        let mut sessions = self.sessions();
        let known = sessions.get_mut(session)?;
        let list = known.list(MAX_ATTACHED_CLIENTS);
        let entry = known.clients.get_mut(client).filter(|entry| entry.connection == connection)?;
        entry.watch = watching.map(|(queue, channel)| PresenceWatch {
            queue,
            channel,
            known: Arc::new(list.clone()),
            room: Arc::new(Semaphore::new(1)),
        });
        Some(list)
    }

    /// Has a task tell the watchers, and remove the clients that do not return.
    fn schedule(self: &Arc<Self>, session: &SessionId, known: &mut SessionPresence) {
        if std::mem::replace(&mut known.is_scheduled, true) {
            return;
        }
        let (presence, session) = (Arc::downgrade(self), session.clone());
        let clock = self.clock.clone();
        self.spawn.spawn(Box::pin(async move {
            loop {
                clock.sleep(NOTICE_DELAY).await;
                // A stopped host has no clients.
                let Some(presence) = presence.upgrade() else { return };
                if presence.settle(&session) == SettleOutcome::Done {
                    return;
                }
            }
        }));
    }

    /// Removes the clients of a session that did not return, and tells the watchers of a changed list.
    fn settle(&self, session: &SessionId) -> SettleOutcome {
        let mut sessions = self.sessions();
        let Some(known) = sessions.get_mut(session) else { return SettleOutcome::Done };
        known.clients.retain(|_, entry| entry.is_awaited());
        if known.clients.is_empty() {
            sessions.remove(session);
            return SettleOutcome::Done;
        }
        let is_all_told = known.tell();
        if is_all_told && known.clients.values().all(|entry| entry.looks_left.is_none()) {
            known.is_scheduled = false;
            return SettleOutcome::Done;
        }
        SettleOutcome::Again
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, SessionPresence>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome of a look at a session's clients: nothing is left to do, or something is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettleOutcome {
    Done,
    Again,
}

impl SessionPresence {
    /// Returns true if nothing is left of it, and no task will look at it.
    fn is_over(&self) -> bool {
        self.clients.is_empty() && !self.is_scheduled
    }

    /// The attached clients, those who came first at the front.
    fn list(&self, most: usize) -> PresenceResult {
        let mut attached: Vec<_> = self.clients.iter().collect();
        attached.sort_by_key(|(_, entry)| entry.since);
        let more = attached.len().saturating_sub(most);
        let clients = attached.into_iter().take(most).map(|(id, entry)| AttachedClient {
            client_id: party_name(id.as_str()),
            name: entry.party.name.as_deref().map(ToOwned::to_owned),
            token: party_name(&entry.party.token),
            dialect: entry.dialect.to_owned(),
            since: entry.since.0,
            kind: entry.party.kind,
        });
        PresenceResult { clients: clients.collect(), more }
    }

    /// Tells the watchers the list if it has changed. Returns false if some of them have not read the last notice.
    fn tell(&mut self) -> bool {
        if self.clients.values().all(|entry| entry.watch.is_none()) {
            return true;
        }
        let list = Arc::new(self.list(MAX_ATTACHED_CLIENTS));
        let watches = self.clients.values_mut().filter_map(|entry| entry.watch.as_mut());
        // Every watcher is told, also after one that has not read its last notice.
        let mut is_all_told = true;
        for watch in watches {
            is_all_told &= watch.tell(&list);
        }
        is_all_told
    }
}

impl PresenceEntry {
    /// Counts a look at the session; returns false if the client has left and did not return in time.
    fn is_awaited(&mut self) -> bool {
        match &mut self.looks_left {
            None => true,
            Some(left) => {
                *left = left.saturating_sub(1);
                *left > 0
            }
        }
    }
}

impl PresenceWatch {
    /// Queues a notice if the list is news; returns false if the last one is not written yet.
    fn tell(&mut self, list: &Arc<PresenceResult>) -> bool {
        if self.known == *list {
            return true;
        }
        let Ok(permit) = self.room.clone().try_acquire_owned() else { return false };
        let params = PresenceChangedParams { channel: &self.channel, presence: list };
        // Numbers and texts always serialize.
        if let Ok(frame) = jsonrpc::notification(PRESENCE_CHANGED, &params) {
            self.queue.push(Outgoing::QueuedNotice(QueuedNotice::new(frame.into(), permit)));
        }
        self.known = list.clone();
        true
    }
}
