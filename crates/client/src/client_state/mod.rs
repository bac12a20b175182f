//! The state shared by the client's handles and its connection: subscriptions, actions, the list, the status.

mod incoming;
mod sender;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use grove_wire::jsonrpc;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, oneshot, watch};
use tokio::time::Instant;

pub(crate) use self::sender::{CallPurpose, ConnectionSender, TrackedCall};
use crate::dialect::{Dialect, method};
use crate::error::{DispatchError, NotConnected, RequestError};
use crate::options::ClientLimits;
use crate::resource::Resource;
use crate::sessions::SessionList;
use crate::status::ConnectionStatus;

/// The number of other notifications kept for a listener; a slower one misses the oldest.
const NOTIFICATIONS: usize = 256;

/// The outcome of a dispatched action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DispatchOutcome {
    /// The host accepted it, under this sequence number.
    Confirmed(u64),
    /// The host rejected it; its effect is reverted.
    Rejected(String),
    /// There will be no answer. The host may have accepted it: the state shows that.
    Lost,
}

/// A notification of the host that is neither an action nor about the session list.
#[derive(Debug)]
pub struct HostNotification {
    pub method: String,
    pub params: Box<RawValue>,
}

pub(crate) struct ClientState<D: Dialect> {
    pub(crate) dialect: D,
    pub(crate) client_id: String,
    pub(crate) limits: ClientLimits,
    pub(crate) list_sessions: bool,
    pub(crate) status: watch::Sender<ConnectionStatus>,
    table: Mutex<SubscriptionTable<D>>,
    list: Mutex<SessionList<D>>,
    pub(crate) list_version: watch::Sender<u64>,
    notifications: OnceLock<broadcast::Sender<Arc<HostNotification>>>,
}

struct SubscriptionTable<D: Dialect> {
    sender: Option<ConnectionSender>,
    server: Option<D::HostDescription>,
    /// The highest sequence number seen: the subscribed resources are up to date to it.
    last_seen_seq: u64,
    last_client_seq: u64,
    slots: HashMap<String, Slot<D>>,
    waiting: HashMap<u64, PendingDispatch>,
    /// Callers that wait for the session list.
    list_waiters: Vec<oneshot::Sender<Result<(), RequestError>>>,
}

/// A subscribed resource, or one that is being subscribed.
struct Slot<D: Dialect> {
    /// Set once the host has sent its state.
    resource: Option<Arc<Resource<D>>>,
    holders: usize,
    /// The host has not answered the request on this connection yet.
    asking: bool,
    waiters: Vec<oneshot::Sender<Result<SubscriptionGuard<D>, RequestError>>>,
}

/// A dispatched action without an answer.
struct PendingDispatch {
    resource: String,
    until: Instant,
    answer: oneshot::Sender<DispatchOutcome>,
}

impl<D: Dialect> Slot<D> {
    const fn new(holders: usize) -> Self {
        Self { resource: None, holders, asking: false, waiters: Vec::new() }
    }

    /// The resource, unless it was removed.
    fn live(&self) -> Option<&Arc<Resource<D>>> {
        self.resource.as_ref().filter(|resource| !resource.is_gone())
    }
}

/// Keeps a resource subscribed.
pub(crate) struct SubscriptionGuard<D: Dialect> {
    pub(crate) resource: Arc<Resource<D>>,
    pub(crate) uri: String,
    shared: Arc<ClientState<D>>,
}

impl<D: Dialect> Clone for SubscriptionGuard<D> {
    fn clone(&self) -> Self {
        if let Some(slot) = self.shared.table().slots.get_mut(&self.uri) {
            slot.holders += 1;
        }
        Self { resource: self.resource.clone(), uri: self.uri.clone(), shared: self.shared.clone() }
    }
}

impl<D: Dialect> Drop for SubscriptionGuard<D> {
    fn drop(&mut self) {
        let mut table = self.shared.table();
        let Some(slot) = table.slots.get_mut(&self.uri) else { return };
        slot.holders -= 1;
        if slot.holders > 0 || slot.asking {
            return;
        }
        let live = slot.live().is_some();
        table.slots.remove(&self.uri);
        let lost = table.lose(|waiting| waiting.resource == self.uri);
        if let Some(sender) = table.sender.as_ref().filter(|_| live) {
            sender.unsubscribe(&self.shared.dialect, &self.uri);
        }
        drop(table);
        drop(lost);
    }
}

impl<D: Dialect> SubscriptionTable<D> {
    /// Removes unanswered actions from the table. Dropping them reports them as lost.
    fn lose(&mut self, which: impl Fn(&PendingDispatch) -> bool) -> Vec<(u64, PendingDispatch)> {
        self.waiting.extract_if(|_, waiting| which(waiting)).collect()
    }
}

impl<D: Dialect> ClientState<D> {
    pub(crate) fn new(
        dialect: D,
        client_id: String,
        limits: ClientLimits,
        list_sessions: bool,
        subscriptions: &[String],
    ) -> Self {
        let listing = dialect.list_resource().filter(|_| list_sessions);
        let resources = subscriptions.iter().map(String::as_str).chain(listing);
        let slots = resources.map(|uri| (dialect.canonical(uri).to_owned(), Slot::new(1))).collect();
        Self {
            client_id,
            limits,
            list_sessions,
            status: watch::Sender::new(ConnectionStatus::Reconnecting { attempt: 0, why: String::new() }),
            table: Mutex::new(SubscriptionTable {
                sender: None,
                server: None,
                last_seen_seq: 0,
                last_client_seq: 0,
                slots,
                waiting: HashMap::new(),
                list_waiters: Vec::new(),
            }),
            list: Mutex::new(SessionList::new()),
            list_version: watch::Sender::new(0),
            notifications: OnceLock::new(),
            dialect,
        }
    }

    pub(crate) fn server(&self) -> Option<D::HostDescription> {
        self.table().server.clone()
    }

    pub(crate) fn seen(&self) -> u64 {
        self.table().last_seen_seq
    }

    pub(crate) fn sender(&self) -> Result<ConnectionSender, NotConnected> {
        self.table().sender.clone().ok_or(NotConnected)
    }

    /// Subscribes to a resource: at once if it is subscribed already, else once the host has sent its state.
    pub(crate) async fn hold(self: &Arc<Self>, uri: &str) -> Result<SubscriptionGuard<D>, RequestError> {
        let uri = self.dialect.canonical(uri);
        let answer = {
            let mut table = self.table();
            let SubscriptionTable { sender, slots, .. } = &mut *table;
            let sender = sender.as_ref().ok_or(NotConnected)?;
            if let Some(slot) = slots.get_mut(uri)
                && let Some(resource) = slot.live()
            {
                let resource = resource.clone();
                slot.holders += 1;
                return Ok(SubscriptionGuard { resource, uri: uri.to_owned(), shared: self.clone() });
            }
            if !slots.get(uri).is_some_and(|slot| slot.asking) {
                let (params, purpose) = (self.dialect.subscribe(uri), CallPurpose::Subscribe(uri.to_owned()));
                sender
                    .track(method::SUBSCRIBE, &params, purpose)
                    .map_err(|error| RequestError::new(method::SUBSCRIBE, error))?;
            }
            let slot = slots.entry(uri.to_owned()).or_insert_with(|| Slot::new(0));
            slot.asking = true;
            let (waiter, answer) = oneshot::channel();
            slot.waiters.push(waiter);
            answer
        };
        answer.await.unwrap_or_else(|_| Err(RequestError::Lost { method: method::SUBSCRIBE.to_owned() }))
    }

    /// Sends an action, and applies it at once if the resource is subscribed.
    pub(crate) fn dispatch(
        &self,
        uri: &str,
        change: D::ActionBody,
    ) -> Result<(u64, oneshot::Receiver<DispatchOutcome>), DispatchError> {
        let uri = self.dialect.canonical(uri);
        // All under one lock: actions are queued in the order of their numbers.
        let mut table = self.table();
        let SubscriptionTable { sender: Some(sender), server: Some(server), slots, waiting, last_client_seq, .. } =
            &mut *table
        else {
            return Err(NotConnected.into());
        };
        if waiting.len() >= self.limits.unanswered {
            // Without a subscription only rejections are reported; forget actions whose callers are gone.
            waiting.retain(|_, waiting| !waiting.answer.is_closed() || slots.contains_key(&waiting.resource));
            if waiting.len() >= self.limits.unanswered {
                return Err(DispatchError::TooMany(self.limits.unanswered));
            }
        }
        let resource = slots.get(uri).and_then(|slot| slot.resource.as_ref());
        // The host would ignore it silently.
        if resource.is_some_and(|resource| resource.is_gone()) {
            return Err(DispatchError::Gone(uri.to_owned()));
        }
        let action = self.dialect.address(server, uri, change)?;
        let client_seq = *last_client_seq + 1;
        let params = self.dialect.dispatch(uri, client_seq, &action);
        sender.send(jsonrpc::notification(method::DISPATCH_ACTION, &params)?)?;
        drop(params);
        *last_client_seq = client_seq;
        let (answer, outcome) = oneshot::channel();
        let until = Instant::now() + self.limits.answer;
        waiting.insert(client_seq, PendingDispatch { resource: uri.to_owned(), until, answer });
        if let Some(resource) = resource {
            resource.dispatched(client_seq, action);
        }
        Ok((client_seq, outcome))
    }

    pub(crate) fn read_list<T>(&self, read: impl FnOnce(&SessionList<D>) -> T) -> T {
        read(&self.list())
    }

    /// Fetches the list, or waits for the fetch in progress.
    pub(crate) async fn fetch_list(&self) -> Result<(), RequestError> {
        let answer = {
            let mut table = self.table();
            let sender = table.sender.as_ref().ok_or(NotConnected)?;
            if !self.list().is_fetching() {
                self.begin_list(sender, Vec::new())?;
            }
            let (waiter, answer) = oneshot::channel();
            table.list_waiters.push(waiter);
            answer
        };
        answer.await.unwrap_or_else(|_| Err(RequestError::Lost { method: method::LIST_SESSIONS.to_owned() }))
    }

    pub(crate) fn notifications(&self) -> broadcast::Receiver<Arc<HostNotification>> {
        self.notifications.get_or_init(|| broadcast::Sender::new(NOTIFICATIONS)).subscribe()
    }

    // No panic can leave the table half changed while the lock is held, so a poisoned one is still sound.
    fn table(&self) -> MutexGuard<'_, SubscriptionTable<D>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list(&self) -> MutexGuard<'_, SessionList<D>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Dialect> std::fmt::Debug for ClientState<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientState").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}
