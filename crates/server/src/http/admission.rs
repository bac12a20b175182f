//! Admission: bounds for connections before and after they authenticate.
//!
//! A connection over a network is pending until it shows a token. Each listener has few slots for pending connections;
//! if they are full, the oldest is closed. So many silent connections keep nobody out and use up nothing. Authenticated
//! connections have one of the host's slots.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use grove_checks::Check;
use grove_host::ConnectionLimits;
use grove_host::tokens::{HOST_TOKEN_NAME, TokenPublicId};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, oneshot};

/// The slots for authenticated connections. Clones share them.
///
/// A token has a share of them, so that its holder cannot keep out the holders of others. The owner of the host has
/// additional slots, which no token gives access to: the host's own socket always works.
///
/// The numbers are asked for with each connection, so they can change while the host runs. Connections beyond a smaller
/// number stay; the next one is rejected.
#[derive(Clone)]
pub(super) struct ConnectionSlots {
    used: Arc<Mutex<UsedSlots>>,
    /// Signals that a slot is free again.
    freed: Arc<Notify>,
    limits: Arc<dyn Fn(&str) -> ConnectionLimits + Send + Sync>,
}

/// The slots in use.
#[derive(Debug, Default)]
struct UsedSlots {
    common: usize,
    owner: usize,
    tokens: HashMap<TokenId, usize>,
}

impl std::fmt::Debug for ConnectionSlots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionSlots").field("used", &self.used).finish_non_exhaustive()
    }
}

/// Identifies the token of a connection, without holding the token itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TokenId {
    /// The host's own.
    Host,
    /// A named one.
    Named(TokenPublicId),
    /// A digest of a lease's token.
    Lease([u8; 32]),
}

impl TokenId {
    pub(super) fn lease(token: &str) -> Self {
        TokenId::Lease(Sha256::digest(token).into())
    }
}

/// A slot, until the last clone is dropped.
pub(crate) type ConnectionSlot = Arc<ConnectionPermit>;

#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    slots: ConnectionSlots,
    kind: SlotKind,
}

/// The share that a slot is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotKind {
    /// A common slot, taken by the owner.
    Common,
    Owner,
    Token(TokenId),
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut used = self.slots.used();
        match self.kind {
            SlotKind::Owner => used.owner -= 1,
            SlotKind::Common => used.common -= 1,
            SlotKind::Token(token) => {
                used.common -= 1;
                if let Some(count) = used.tokens.get_mut(&token) {
                    *count -= 1;
                    if *count == 0 {
                        used.tokens.remove(&token);
                    }
                }
            }
        }
        drop(used);
        self.slots.freed.notify_one();
    }
}

/// All slots are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectionLimitReached {
    #[error("{limit} connections are open, which is the limit: close one and try again")]
    Host { limit: usize },
    #[error("{limit} connections of this token are open, which is its limit: close one and try again")]
    Token { limit: usize },
}

impl ConnectionSlots {
    /// Slots whose numbers depend on the name of a token.
    pub(super) fn new(limits: impl Fn(&str) -> ConnectionLimits + Send + Sync + 'static) -> Self {
        Self { used: Arc::default(), freed: Arc::default(), limits: Arc::new(limits) }
    }

    /// Takes a slot for a connection with a token of this name.
    fn take(&self, token: TokenId, name: &str) -> Result<ConnectionSlot, ConnectionLimitReached> {
        let limits = (self.limits)(name);
        let mut used = self.used();
        if used.common >= limits.all {
            return Err(ConnectionLimitReached::Host { limit: limits.all });
        }
        let of_token = used.tokens.get(&token).copied().unwrap_or_default();
        if Check::TokenConnections.is_enforced() && of_token >= limits.per_token {
            return Err(ConnectionLimitReached::Token { limit: limits.per_token });
        }
        used.common += 1;
        used.tokens.insert(token, of_token + 1);
        drop(used);
        Ok(Arc::new(ConnectionPermit { slots: self.clone(), kind: SlotKind::Token(token) }))
    }

    /// Takes a slot for the owner.
    fn take_as_owner(&self) -> Result<ConnectionSlot, ConnectionLimitReached> {
        let limits = (self.limits)(HOST_TOKEN_NAME);
        let mut used = self.used();
        let kind = if used.common < limits.all {
            used.common += 1;
            SlotKind::Common
        } else if used.owner < limits.owner {
            used.owner += 1;
            SlotKind::Owner
        } else {
            return Err(ConnectionLimitReached::Host { limit: limits.all + limits.owner });
        };
        drop(used);
        Ok(Arc::new(ConnectionPermit { slots: self.clone(), kind }))
    }

    /// Waits until all slots are free.
    pub(super) async fn all_free(&self) {
        let is_used = || {
            let used = self.used();
            used.common + used.owner > 0
        };
        // `Notify` remembers a slot that is freed between the check and the wait.
        while is_used() {
            self.freed.notified().await;
        }
    }

    fn used(&self) -> MutexGuard<'_, UsedSlots> {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IntoResponse for ConnectionLimitReached {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{self}\n")).into_response()
    }
}

/// The pending connections of a listener. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct PendingConnections {
    limit: usize,
    waiting: Arc<Mutex<PendingQueue>>,
    /// Signals that a connection has ended.
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct PendingQueue {
    next: u64,
    /// The pending connections, oldest first, with the senders that close them.
    unauthenticated_connections: BTreeMap<u64, oneshot::Sender<()>>,
    /// Their number, including those that are being closed.
    present: usize,
}

/// A pending connection, until this is dropped.
#[derive(Debug)]
pub(super) struct PendingConnection {
    pending_connections: PendingConnections,
    number: u64,
}

/// Tells a pending connection to close.
#[derive(Debug)]
pub(crate) struct Rejected(Option<oneshot::Receiver<()>>);

impl PendingConnections {
    /// For at most so many, and at least one.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), waiting: Arc::default(), left: Arc::default() }
    }

    /// Adds a connection. If the slots are full, the oldest is closed.
    pub(super) fn enter(&self) -> (PendingConnection, Rejected) {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        while Check::PendingConnections.is_enforced() && waiting.unauthenticated_connections.len() >= self.limit {
            let Some((_, oldest)) = waiting.unauthenticated_connections.pop_first() else { break };
            // It may have ended by itself.
            oldest.send(()).ok();
            tracing::debug!(limit = self.limit, "a connection without a token is closed to make room for the next one");
        }
        waiting.unauthenticated_connections.insert(number, sender);
        waiting.present += 1;
        (PendingConnection { pending_connections: self.clone(), number }, Rejected(Some(receiver)))
    }

    /// Waits until closing connections have ended.
    ///
    /// A listener waits for it before it accepts the next one: otherwise connections that come faster than others end
    /// would be unbounded.
    pub(super) async fn settled(&self) {
        // `Notify` remembers a connection that ends between the check and the wait.
        while Check::PendingConnections.is_enforced() && self.waiting().present > self.limit {
            self.left.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, PendingQueue> {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        let mut waiting = self.pending_connections.waiting();
        waiting.unauthenticated_connections.remove(&self.number);
        waiting.present -= 1;
        drop(waiting);
        self.pending_connections.left.notify_one();
    }
}

impl Rejected {
    /// Waits until the connection has to close, which never happens once it is authenticated.
    pub(crate) async fn signaled(&mut self) {
        let signaled = match &mut self.0 {
            Some(signaled) => signaled.await.is_ok(),
            None => false,
        };
        // It is polled once.
        self.0 = None;
        if !signaled {
            std::future::pending().await
        }
    }
}

/// Says whether a connection has to show a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Authentication {
    Required,
    NotRequired,
}

/// A connected client. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    places: ConnectionSlots,
    admission_state: Arc<Mutex<AdmissionState>>,
}

#[derive(Debug)]
enum AdmissionState {
    Pending {
        _stranger: PendingConnection,
        /// The slot that the connection already has as a carrier of bytes.
        place: Option<ConnectionSlot>,
    },
    Admitted(ConnectionSlot),
}

impl Admission {
    /// A client that has to show a token first.
    pub(super) fn pending_connection(
        places: ConnectionSlots,
        pending_connections: &PendingConnections,
    ) -> (Self, Rejected) {
        let (pending_connection, rejected) = pending_connections.enter();
        let admission_state = AdmissionState::Pending { _stranger: pending_connection, place: None };
        (Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, rejected)
    }

    /// A client whose bytes are carried by a program that has a slot itself.
    pub(super) fn carried(
        places: ConnectionSlots,
        place: ConnectionSlot,
        pending_connections: &PendingConnections,
    ) -> (Self, Rejected) {
        let (pending_connection, rejected) = pending_connections.enter();
        let admission_state = AdmissionState::Pending { _stranger: pending_connection, place: Some(place) };
        (Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, rejected)
    }

    /// A client that needs no token.
    pub(super) fn admitted(places: ConnectionSlots) -> Result<(Self, Rejected), ConnectionLimitReached> {
        let admission_state = AdmissionState::Admitted(places.take_as_owner()?);
        Ok((Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, Rejected(None)))
    }

    /// Admits a client that has authenticated, with a token of this name.
    ///
    /// A WebSocket outlives the HTTP connection that it started as, so the caller keeps the slot.
    pub(crate) fn admit(&self, token: TokenId, name: &str) -> Result<ConnectionSlot, ConnectionLimitReached> {
        let mut admission_state = self.admission_state.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match &*admission_state {
            AdmissionState::Admitted(place) => return Ok(place.clone()),
            AdmissionState::Pending { place: Some(place), .. } => place.clone(),
            AdmissionState::Pending { place: None, .. } => self.places.take(token, name)?,
        };
        *admission_state = AdmissionState::Admitted(place.clone());
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_rejected(client_admission: &mut (Admission, Rejected)) -> bool {
        client_admission.1.signaled().now_or_never().is_some()
    }

    #[test]
    fn the_stranger_who_waited_longest_gives_way_and_nobody_who_came_in() {
        let limits = ConnectionLimits { all: 2, per_token: 2, owner: 1 };
        let (places, pending_connections) = (ConnectionSlots::new(move |_| limits), PendingConnections::new(2));
        let mut first = Admission::pending_connection(places.clone(), &pending_connections);
        let mut second = Admission::pending_connection(places.clone(), &pending_connections);
        let place = first.0.admit(TokenId::Host, "host").unwrap();
        let mut third = Admission::pending_connection(places.clone(), &pending_connections);
        assert!(![&mut first, &mut second, &mut third].into_iter().any(is_rejected));
        let mut fourth = Admission::pending_connection(places.clone(), &pending_connections);
        assert!(is_rejected(&mut second) && !is_rejected(&mut first));
        drop(third);
        let mut fifth = Admission::pending_connection(places.clone(), &pending_connections);
        assert!(!is_rejected(&mut fourth) && !is_rejected(&mut fifth), "one has gone by itself");
        // A slot is in use until its last holder drops it.
        fourth.0.admit(TokenId::Host, "host").unwrap();
        drop(first);
        assert_eq!(fifth.0.admit(TokenId::Host, "host").unwrap_err(), ConnectionLimitReached::Host { limit: 2 });
        drop(place);
        fifth.0.admit(TokenId::Host, "host").unwrap();
    }

    #[test]
    fn one_token_cannot_take_all_places_and_nobody_can_take_the_owners() {
        let places = ConnectionSlots::new(|_| ConnectionLimits { all: 3, per_token: 2, owner: 2 });
        let pending_connections = PendingConnections::new(10);
        let arrives = |token| Admission::pending_connection(places.clone(), &pending_connections).0.admit(token, "any");
        let held = [arrives(TokenId::Host).unwrap(), arrives(TokenId::Host).unwrap()];
        assert_eq!(arrives(TokenId::Host).unwrap_err(), ConnectionLimitReached::Token { limit: 2 });
        let lease = TokenId::lease("a hook's");
        let other = arrives(lease).unwrap();
        assert_eq!(arrives(lease).unwrap_err(), ConnectionLimitReached::Host { limit: 3 });
        let owner = [Admission::admitted(places.clone()).unwrap(), Admission::admitted(places.clone()).unwrap()];
        assert_eq!(Admission::admitted(places.clone()).unwrap_err(), ConnectionLimitReached::Host { limit: 5 });
        drop((held, other));
        arrives(TokenId::Host).unwrap();
        drop(owner);
        assert!(places.used().tokens.is_empty(), "what is free again is not counted");
    }

    #[test]
    fn other_numbers_count_from_the_next_connection_on_and_a_token_may_have_its_own() {
        let all = Arc::new(Mutex::new(2));
        let current = all.clone();
        let places = ConnectionSlots::new(move |name| {
            let per_token = if name == "phone" { 1 } else { 9 };
            ConnectionLimits { all: *current.lock().unwrap(), per_token, owner: 0 }
        });
        let pending_connections = PendingConnections::new(10);
        let (phone, laptop) = (TokenId::lease("phone"), TokenId::lease("laptop"));
        let arrives =
            |token, name| Admission::pending_connection(places.clone(), &pending_connections).0.admit(token, name);
        let first = arrives(phone, "phone").unwrap();
        assert_eq!(arrives(phone, "phone").unwrap_err(), ConnectionLimitReached::Token { limit: 1 });
        let second = arrives(laptop, "laptop").unwrap();
        assert_eq!(arrives(laptop, "laptop").unwrap_err(), ConnectionLimitReached::Host { limit: 2 });
        *all.lock().unwrap() = 3;
        let third = arrives(laptop, "laptop").unwrap();
        *all.lock().unwrap() = 1;
        drop(third);
        assert_eq!(arrives(laptop, "laptop").unwrap_err(), ConnectionLimitReached::Host { limit: 1 });
        assert!(places.all_free().now_or_never().is_none());
        drop((first, second));
        assert!(places.all_free().now_or_never().is_some());
        arrives(laptop, "laptop").unwrap();
    }
}
