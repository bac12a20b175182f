//! Who is at the door, and who has come in.
//!
//! Whoever connects over a network is a stranger until they show a token. Strangers wait on the doorstep of their listener,
//! which is small: where it is full, the one who has waited longest goes, so that many who say nothing keep nobody out and use
//! up nothing. Those who came in have one of the host's places.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

/// The places for those who came in. Clones are the same.
///
/// A token has a share of them, so that its holder cannot keep out the holders of others. The owner of the host has
/// places beside them, which no token opens: there is always a way in through the host's own socket.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlots {
    common: Arc<Semaphore>,
    owners: Arc<Semaphore>,
    tokens: Arc<Mutex<HashMap<TokenId, usize>>>,
    limits: ConnectionSlotLimits,
}

/// How many places there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionSlotLimits {
    pub(super) all: usize,
    pub(super) per_token: usize,
    pub(super) owner: usize,
}

/// Identifies the token that opened the host, without holding the token itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TokenId {
    /// The host's own.
    Host,
    /// A digest of one that is good for one thing alone.
    Lease([u8; 32]),
}

impl TokenId {
    pub(super) fn lease(token: &str) -> Self {
        TokenId::Lease(Sha256::digest(token).into())
    }
}

/// A place, for as long as somebody holds it.
pub(crate) type ConnectionSlot = Arc<ConnectionPermit>;

#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _share: Option<TokenSlot>,
}

/// One of a token's places.
#[derive(Debug)]
struct TokenSlot {
    tokens: Arc<Mutex<HashMap<TokenId, usize>>>,
    token: TokenId,
}

impl Drop for TokenSlot {
    fn drop(&mut self) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = tokens.get_mut(&self.token) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                tokens.remove(&self.token);
            }
        }
    }
}

/// All places are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectionLimitReached {
    #[error("{limit} connections are open, and no more are taken: close one and try again")]
    Host { limit: usize },
    #[error("{limit} connections of this token are open, and no more of it are taken: close one and try again")]
    Token { limit: usize },
}

impl ConnectionSlots {
    pub(super) fn new(limits: ConnectionSlotLimits) -> Self {
        Self {
            common: Arc::new(Semaphore::new(limits.all)),
            owners: Arc::new(Semaphore::new(limits.owner)),
            tokens: Arc::default(),
            limits,
        }
    }

    /// A place for somebody who showed a token.
    fn take(&self, token: TokenId) -> Result<ConnectionSlot, ConnectionLimitReached> {
        let full = ConnectionLimitReached::Host { limit: self.limits.all };
        let permit = self.common.clone().try_acquire_owned().map_err(|_| full)?;
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let count = tokens.entry(token).or_default();
        if *count >= self.limits.per_token {
            return Err(ConnectionLimitReached::Token { limit: self.limits.per_token });
        }
        *count += 1;
        drop(tokens);
        let share = Some(TokenSlot { tokens: self.tokens.clone(), token });
        Ok(Arc::new(ConnectionPermit { _permit: permit, _share: share }))
    }

    /// A place for the owner.
    fn take_as_owner(&self) -> Result<ConnectionSlot, ConnectionLimitReached> {
        let permit = self.common.clone().try_acquire_owned().or_else(|_| self.owners.clone().try_acquire_owned());
        let permit = permit.map_err(|_| ConnectionLimitReached::Host { limit: self.limits.all + self.limits.owner })?;
        Ok(Arc::new(ConnectionPermit { _permit: permit, _share: None }))
    }

    /// Waits until nobody has one.
    pub(super) async fn all_free(&self) {
        for (places, count) in [(&self.common, self.limits.all), (&self.owners, self.limits.owner)] {
            let all = u32::try_from(count).unwrap_or(u32::MAX);
            // The semaphores are never closed, so this only ends with all permits in hand.
            drop(places.acquire_many(all).await);
        }
    }
}

impl IntoResponse for ConnectionLimitReached {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{self}\n")).into_response()
    }
}

/// Where strangers wait. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct PendingConnections {
    limit: usize,
    waiting: Arc<Mutex<PendingQueue>>,
    /// Somebody has left.
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct PendingQueue {
    next: u64,
    /// Who waits, the one who has waited longest first, and how they are told to go.
    unauthenticated_connections: BTreeMap<u64, oneshot::Sender<()>>,
    /// How many are there, with those who were told to go and are about to.
    present: usize,
}

/// A stranger on the doorstep, until this is dropped.
#[derive(Debug)]
pub(super) struct PendingConnection {
    pending_connections: PendingConnections,
    number: u64,
}

/// Tells a stranger to go.
#[derive(Debug)]
pub(crate) struct Rejected(Option<oneshot::Receiver<()>>);

impl PendingConnections {
    /// For at most so many, and for one at least.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), waiting: Arc::default(), left: Arc::default() }
    }

    /// Somebody comes. Where it is full, the one who has waited longest has to go.
    pub(super) fn enter(&self) -> (PendingConnection, Rejected) {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        while waiting.unauthenticated_connections.len() >= self.limit {
            let Some((_, oldest)) = waiting.unauthenticated_connections.pop_first() else { break };
            // They may have gone by themselves.
            oldest.send(()).ok();
            tracing::debug!(limit = self.limit, "a connection that showed no token gives way to the next");
        }
        waiting.unauthenticated_connections.insert(number, sender);
        waiting.present += 1;
        (PendingConnection { pending_connections: self.clone(), number }, Rejected(Some(receiver)))
    }

    /// Waits until those who were told to go are gone. Whoever lets somebody in at the door waits for it before the next one
    /// comes: otherwise those who come faster than others go would be without a bound.
    pub(super) async fn settled(&self) {
        // Who leaves between the look and the wait is remembered by it.
        while self.waiting().present > self.limit {
            self.left.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, PendingQueue> {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards whole data.
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
    /// Waits until the stranger has to go, which never happens to somebody who came in.
    pub(crate) async fn signaled(&mut self) {
        let signaled = match &mut self.0 {
            Some(signaled) => signaled.await.is_ok(),
            None => false,
        };
        // It is asked once.
        self.0 = None;
        if !signaled {
            std::future::pending().await
        }
    }
}

/// Whether somebody has to show a token before they come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Authentication {
    Required,
    NotRequired,
}

/// Somebody who is connected. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    places: ConnectionSlots,
    admission_state: Arc<Mutex<AdmissionState>>,
}

#[derive(Debug)]
enum AdmissionState {
    Pending {
        _stranger: PendingConnection,
        /// The place that the connection already has as a carrier of bytes.
        place: Option<ConnectionSlot>,
    },
    Admitted(ConnectionSlot),
}

impl Admission {
    /// Somebody who has to show a token first.
    pub(super) fn pending_connection(
        places: ConnectionSlots,
        pending_connections: &PendingConnections,
    ) -> (Self, Rejected) {
        let (pending_connection, rejected) = pending_connections.enter();
        let admission_state = AdmissionState::Pending { _stranger: pending_connection, place: None };
        (Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, rejected)
    }

    /// Somebody whose bytes a program carries that has a place itself.
    pub(super) fn carried(
        places: ConnectionSlots,
        place: ConnectionSlot,
        pending_connections: &PendingConnections,
    ) -> (Self, Rejected) {
        let (pending_connection, rejected) = pending_connections.enter();
        let admission_state = AdmissionState::Pending { _stranger: pending_connection, place: Some(place) };
        (Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, rejected)
    }

    /// Somebody who needs none.
    pub(super) fn admitted(places: ConnectionSlots) -> Result<(Self, Rejected), ConnectionLimitReached> {
        let admission_state = AdmissionState::Admitted(places.take_as_owner()?);
        Ok((Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, Rejected(None)))
    }

    /// They have shown what opens the host. A WebSocket outlives the HTTP connection that it began as, so the place is given
    /// to whoever keeps it.
    pub(crate) fn admit(&self, token: TokenId) -> Result<ConnectionSlot, ConnectionLimitReached> {
        let mut admission_state = self.admission_state.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match &*admission_state {
            AdmissionState::Admitted(place) => return Ok(place.clone()),
            AdmissionState::Pending { place: Some(place), .. } => place.clone(),
            AdmissionState::Pending { place: None, .. } => self.places.take(token)?,
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
        let limits = ConnectionSlotLimits { all: 2, per_token: 2, owner: 1 };
        let (places, pending_connections) = (ConnectionSlots::new(limits), PendingConnections::new(2));
        let mut first = Admission::pending_connection(places.clone(), &pending_connections);
        let mut second = Admission::pending_connection(places.clone(), &pending_connections);
        let place = first.0.admit(TokenId::Host).unwrap();
        let mut third = Admission::pending_connection(places.clone(), &pending_connections);
        assert!(![&mut first, &mut second, &mut third].into_iter().any(is_rejected));
        let mut fourth = Admission::pending_connection(places.clone(), &pending_connections);
        assert!(is_rejected(&mut second) && !is_rejected(&mut first));
        drop(third);
        let mut fifth = Admission::pending_connection(places.clone(), &pending_connections);
        assert!(!is_rejected(&mut fourth) && !is_rejected(&mut fifth), "one has gone by itself");
        // A place is held until the last who has it lets go.
        fourth.0.admit(TokenId::Host).unwrap();
        drop(first);
        assert_eq!(fifth.0.admit(TokenId::Host).unwrap_err(), ConnectionLimitReached::Host { limit: 2 });
        drop(place);
        fifth.0.admit(TokenId::Host).unwrap();
    }

    #[test]
    fn one_token_cannot_take_all_places_and_nobody_can_take_the_owners() {
        let places = ConnectionSlots::new(ConnectionSlotLimits { all: 3, per_token: 2, owner: 2 });
        let pending_connections = PendingConnections::new(10);
        let arrives = |token| Admission::pending_connection(places.clone(), &pending_connections).0.admit(token);
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
        assert!(places.tokens.lock().unwrap().is_empty(), "what is free again is not counted");
    }
}
