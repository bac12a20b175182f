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
pub(super) struct Places {
    common: Arc<Semaphore>,
    owners: Arc<Semaphore>,
    tokens: Arc<Mutex<HashMap<TokenId, usize>>>,
    limits: PlaceLimits,
}

/// How many places there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceLimits {
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
pub(crate) type Place = Arc<ConnectionPermit>;

#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// One of a token's places.
#[derive(Debug)]
struct Share {
    tokens: Arc<Mutex<HashMap<TokenId, usize>>>,
    token: TokenId,
}

impl Drop for Share {
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
pub(crate) enum Full {
    #[error("{limit} connections are open, and no more are taken: close one and try again")]
    Host { limit: usize },
    #[error("{limit} connections of this token are open, and no more of it are taken: close one and try again")]
    Token { limit: usize },
}

impl Places {
    pub(super) fn new(limits: PlaceLimits) -> Self {
        Self {
            common: Arc::new(Semaphore::new(limits.all)),
            owners: Arc::new(Semaphore::new(limits.owner)),
            tokens: Arc::default(),
            limits,
        }
    }

    /// A place for somebody who showed a token.
    fn take(&self, token: TokenId) -> Result<Place, Full> {
        let full = Full::Host { limit: self.limits.all };
        let permit = self.common.clone().try_acquire_owned().map_err(|_| full)?;
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let count = tokens.entry(token).or_default();
        if *count >= self.limits.per_token {
            return Err(Full::Token { limit: self.limits.per_token });
        }
        *count += 1;
        drop(tokens);
        let share = Some(Share { tokens: self.tokens.clone(), token });
        Ok(Arc::new(ConnectionPermit { _permit: permit, _share: share }))
    }

    /// A place for the owner.
    fn take_as_owner(&self) -> Result<Place, Full> {
        let permit = self.common.clone().try_acquire_owned().or_else(|_| self.owners.clone().try_acquire_owned());
        let permit = permit.map_err(|_| Full::Host { limit: self.limits.all + self.limits.owner })?;
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

impl IntoResponse for Full {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{self}\n")).into_response()
    }
}

/// Where strangers wait. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Doorstep {
    limit: usize,
    waiting: Arc<Mutex<Waiting>>,
    /// Somebody has left.
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// Who waits, the one who has waited longest first, and how they are told to go.
    strangers: BTreeMap<u64, oneshot::Sender<()>>,
    /// How many are there, with those who were told to go and are about to.
    present: usize,
}

/// A stranger on the doorstep, until this is dropped.
#[derive(Debug)]
pub(super) struct Stranger {
    doorstep: Doorstep,
    number: u64,
}

/// Tells a stranger to go.
#[derive(Debug)]
pub(crate) struct ShownOut(Option<oneshot::Receiver<()>>);

impl Doorstep {
    /// For at most so many, and for one at least.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), waiting: Arc::default(), left: Arc::default() }
    }

    /// Somebody comes. Where it is full, the one who has waited longest has to go.
    pub(super) fn enter(&self) -> (Stranger, ShownOut) {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        while waiting.strangers.len() >= self.limit {
            let Some((_, oldest)) = waiting.strangers.pop_first() else { break };
            // They may have gone by themselves.
            oldest.send(()).ok();
            tracing::debug!(limit = self.limit, "a connection that showed no token gives way to the next");
        }
        waiting.strangers.insert(number, sender);
        waiting.present += 1;
        (Stranger { doorstep: self.clone(), number }, ShownOut(Some(receiver)))
    }

    /// Waits until those who were told to go are gone. Whoever lets somebody in at the door waits for it before the next one
    /// comes: otherwise those who come faster than others go would be without a bound.
    pub(super) async fn settled(&self) {
        // Who leaves between the look and the wait is remembered by it.
        while self.waiting().present > self.limit {
            self.left.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards whole data.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut waiting = self.doorstep.waiting();
        waiting.strangers.remove(&self.number);
        waiting.present -= 1;
        drop(waiting);
        self.doorstep.left.notify_one();
    }
}

impl ShownOut {
    /// Waits until the stranger has to go, which never happens to somebody who came in.
    pub(crate) async fn told(&mut self) {
        let told = match &mut self.0 {
            Some(told) => told.await.is_ok(),
            None => false,
        };
        // It is asked once.
        self.0 = None;
        if !told {
            std::future::pending().await
        }
    }
}

/// Whether somebody has to show a token before they come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Needed,
    Unneeded,
}

/// Somebody who is connected. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    places: Places,
    standing: Arc<Mutex<Standing>>,
}

#[derive(Debug)]
enum Standing {
    AtTheDoor {
        _stranger: Stranger,
        /// The place that the connection already has as a carrier of bytes.
        place: Option<Place>,
    },
    Inside(Place),
}

impl Guest {
    /// Somebody who has to show a token first.
    pub(super) fn stranger(places: Places, doorstep: &Doorstep) -> (Self, ShownOut) {
        let (stranger, shown_out) = doorstep.enter();
        let standing = Standing::AtTheDoor { _stranger: stranger, place: None };
        (Self { places, standing: Arc::new(Mutex::new(standing)) }, shown_out)
    }

    /// Somebody whose bytes a program carries that has a place itself.
    pub(super) fn carried(places: Places, place: Place, doorstep: &Doorstep) -> (Self, ShownOut) {
        let (stranger, shown_out) = doorstep.enter();
        let standing = Standing::AtTheDoor { _stranger: stranger, place: Some(place) };
        (Self { places, standing: Arc::new(Mutex::new(standing)) }, shown_out)
    }

    /// Somebody who needs none.
    pub(super) fn inside(places: Places) -> Result<(Self, ShownOut), Full> {
        let standing = Standing::Inside(places.take_as_owner()?);
        Ok((Self { places, standing: Arc::new(Mutex::new(standing)) }, ShownOut(None)))
    }

    /// They have shown what opens the host. A WebSocket outlives the HTTP connection that it began as, so the place is given
    /// to whoever keeps it.
    pub(crate) fn let_in(&self, token: TokenId) -> Result<Place, Full> {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match &*standing {
            Standing::Inside(place) => return Ok(place.clone()),
            Standing::AtTheDoor { place: Some(place), .. } => place.clone(),
            Standing::AtTheDoor { place: None, .. } => self.places.take(token)?,
        };
        *standing = Standing::Inside(place.clone());
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_shown_out(guest: &mut (Guest, ShownOut)) -> bool {
        guest.1.told().now_or_never().is_some()
    }

    #[test]
    fn the_stranger_who_waited_longest_gives_way_and_nobody_who_came_in() {
        let limits = PlaceLimits { all: 2, per_token: 2, owner: 1 };
        let (places, doorstep) = (Places::new(limits), Doorstep::new(2));
        let mut first = Guest::stranger(places.clone(), &doorstep);
        let mut second = Guest::stranger(places.clone(), &doorstep);
        let place = first.0.let_in(TokenId::Host).unwrap();
        let mut third = Guest::stranger(places.clone(), &doorstep);
        assert!(![&mut first, &mut second, &mut third].into_iter().any(is_shown_out));
        let mut fourth = Guest::stranger(places.clone(), &doorstep);
        assert!(is_shown_out(&mut second) && !is_shown_out(&mut first));
        drop(third);
        let mut fifth = Guest::stranger(places.clone(), &doorstep);
        assert!(!is_shown_out(&mut fourth) && !is_shown_out(&mut fifth), "one has gone by itself");
        // A place is held until the last who has it lets go.
        fourth.0.let_in(TokenId::Host).unwrap();
        drop(first);
        assert_eq!(fifth.0.let_in(TokenId::Host).unwrap_err(), Full::Host { limit: 2 });
        drop(place);
        fifth.0.let_in(TokenId::Host).unwrap();
    }

    #[test]
    fn one_token_cannot_take_all_places_and_nobody_can_take_the_owners() {
        let places = Places::new(PlaceLimits { all: 3, per_token: 2, owner: 2 });
        let doorstep = Doorstep::new(10);
        let arrives = |token| Guest::stranger(places.clone(), &doorstep).0.let_in(token);
        let held = [arrives(TokenId::Host).unwrap(), arrives(TokenId::Host).unwrap()];
        assert_eq!(arrives(TokenId::Host).unwrap_err(), Full::Token { limit: 2 });
        let lease = TokenId::lease("a hook's");
        let other = arrives(lease).unwrap();
        assert_eq!(arrives(lease).unwrap_err(), Full::Host { limit: 3 });
        let owner = [Guest::inside(places.clone()).unwrap(), Guest::inside(places.clone()).unwrap()];
        assert_eq!(Guest::inside(places.clone()).unwrap_err(), Full::Host { limit: 5 });
        drop((held, other));
        arrives(TokenId::Host).unwrap();
        drop(owner);
        assert!(places.tokens.lock().unwrap().is_empty(), "what is free again is not counted");
    }
}
