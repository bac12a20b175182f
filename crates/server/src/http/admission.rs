//! Admission: bounds for connections before and after they authenticate.
//!
//! A connection over a network is pending until it shows a token; see [`pending`]. Authenticated connections have one of
//! the host's slots.

mod pending;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use grove_checks::Check;
use grove_host::ConnectionLimits;
use grove_host::tokens::{HOST_TOKEN_NAME, TokenPublicId};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use pending::PendingConnection;
pub(super) use pending::PendingConnections;
pub(crate) use pending::{PendingStream, Rejected};

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
        connection: PendingConnection,
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
        let (connection, rejected) = pending_connections.enter();
        let admission_state = AdmissionState::Pending { connection, place: None };
        (Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, rejected)
    }

    /// A client whose bytes are carried by a program that has a slot itself.
    pub(super) fn carried(
        places: ConnectionSlots,
        place: ConnectionSlot,
        pending_connections: &PendingConnections,
    ) -> (Self, Rejected) {
        let (connection, rejected) = pending_connections.enter();
        let admission_state = AdmissionState::Pending { connection, place: Some(place) };
        (Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, rejected)
    }

    /// A client that needs no token.
    pub(super) fn admitted(places: ConnectionSlots) -> Result<(Self, Rejected), ConnectionLimitReached> {
        let admission_state = AdmissionState::Admitted(places.take_as_owner()?);
        Ok((Self { places, admission_state: Arc::new(Mutex::new(admission_state)) }, Rejected::NEVER))
    }

    /// Admits a client that has authenticated, with a token of this name.
    ///
    /// A WebSocket outlives the HTTP connection that it started as, so the caller keeps the slot.
    pub(crate) fn admit(&self, token: TokenId, name: &str) -> Result<ConnectionSlot, ConnectionLimitReached> {
        let mut admission_state = self.admission_state();
        let place = match &*admission_state {
            AdmissionState::Admitted(place) => return Ok(place.clone()),
            AdmissionState::Pending { place: Some(place), .. } => place.clone(),
            AdmissionState::Pending { place: None, .. } => self.places.take(token, name)?,
        };
        *admission_state = AdmissionState::Admitted(place.clone());
        Ok(place)
    }

    /// Notes that the client gave a wrong token: it is the first to be closed.
    pub(crate) fn refuse(&self) {
        if let AdmissionState::Pending { connection, .. } = &*self.admission_state() {
            connection.refuse();
        }
    }

    /// The bytes of the client, by which a pending connection is seen to wait.
    pub(super) fn watch<S>(&self, stream: S) -> PendingStream<S> {
        match &*self.admission_state() {
            AdmissionState::Pending { connection, .. } => connection.watch(stream),
            AdmissionState::Admitted(_) => PendingStream::admitted(stream),
        }
    }

    fn admission_state(&self) -> MutexGuard<'_, AdmissionState> {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        self.admission_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    /// A client of a listener with slots for two pending connections.
    struct Client {
        admission: Admission,
        rejected: Rejected,
        near: PendingStream<DuplexStream>,
        far: DuplexStream,
    }

    impl Client {
        fn arrive(places: &ConnectionSlots, pending_connections: &PendingConnections) -> Self {
            let (admission, rejected) = Admission::pending_connection(places.clone(), pending_connections);
            let (near, far) = duplex(64);
            let near = admission.watch(near);
            Self { admission, rejected, near, far }
        }

        /// The host reads what came. Returns the number of bytes, or none if it has to wait for more.
        fn read(&mut self) -> Option<usize> {
            self.near.read(&mut [0; 64]).now_or_never().map(Result::unwrap)
        }

        fn is_rejected(&mut self) -> bool {
            self.rejected.signaled().now_or_never().is_some()
        }
    }

    fn one_slot() -> ConnectionSlots {
        ConnectionSlots::new(|_| ConnectionLimits { all: 1, per_token: 1, owner: 0 })
    }

    #[test]
    fn the_client_that_the_host_waits_for_longest_gives_way_and_nobody_who_came_in() {
        let (places, pending_connections) = (one_slot(), PendingConnections::new(2));
        let arrive = || Client::arrive(&places, &pending_connections);
        let mut admitted = arrive();
        let place = admitted.admission.admit(TokenId::Host, "host").unwrap();
        assert_eq!(admitted.read(), None);
        let [mut first, mut second] = [arrive(), arrive()];
        assert_eq!((first.read(), second.read()), (None, None));
        let mut third = arrive();
        assert!(first.is_rejected() && !second.is_rejected() && !admitted.is_rejected());
        drop(second);
        let mut fourth = arrive();
        assert!(!third.is_rejected() && !fourth.is_rejected(), "one has gone by itself");
        // A slot is in use until its last holder drops it.
        drop(admitted);
        let full = ConnectionLimitReached::Host { limit: 1 };
        assert_eq!(fourth.admission.admit(TokenId::Host, "host").unwrap_err(), full);
        drop(place);
        fourth.admission.admit(TokenId::Host, "host").unwrap();
    }

    #[tokio::test]
    async fn a_client_whose_bytes_the_host_has_not_read_is_never_closed_and_holds_up_the_next() {
        let (places, pending_connections) = (one_slot(), PendingConnections::new(2));
        let arrive = || Client::arrive(&places, &pending_connections);
        let [mut first, mut silent, mut third] = [arrive(), arrive(), arrive()];
        first.far.write_all(b"token").await.unwrap();
        assert!(pending_connections.settled().now_or_never().is_none(), "the host reads first");
        assert!(![&mut first, &mut silent, &mut third].into_iter().any(Client::is_rejected));
        assert_eq!(silent.read(), None);
        assert!(silent.is_rejected() && !first.is_rejected() && !third.is_rejected());
        assert!(pending_connections.settled().now_or_never().is_none(), "it is still being closed");
        drop(silent);
        assert!(pending_connections.settled().now_or_never().is_some());
        assert_eq!((first.read(), third.read()), (Some(5), None));
        let mut fourth = arrive();
        assert!(third.is_rejected() && !first.is_rejected(), "the older one sent something that is being handled");
        // After that the host waits for it, too.
        assert_eq!(first.read(), None);
        let fifth = arrive();
        assert!(first.is_rejected() && !fourth.is_rejected());
        drop((third, fifth));
    }

    #[test]
    fn who_gave_a_wrong_token_goes_before_those_that_say_nothing() {
        let (places, pending_connections) = (one_slot(), PendingConnections::new(2));
        let arrive = || Client::arrive(&places, &pending_connections);
        let [mut silent, mut guesser] = [arrive(), arrive()];
        assert_eq!(silent.read(), None);
        guesser.admission.refuse();
        // Reading on does not make it better.
        assert_eq!(guesser.read(), None);
        let mut third = arrive();
        assert!(guesser.is_rejected() && !silent.is_rejected() && !third.is_rejected());
    }

    #[test]
    fn a_client_that_does_not_read_its_answer_is_waited_for() {
        let (places, pending_connections) = (one_slot(), PendingConnections::new(1));
        let arrive = || Client::arrive(&places, &pending_connections);
        let mut client = arrive();
        assert!(client.near.write_all(&[0; 65]).now_or_never().is_none(), "the pipe is full");
        let mut next = arrive();
        assert!(client.is_rejected() && !next.is_rejected());
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
