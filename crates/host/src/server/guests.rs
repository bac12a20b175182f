//! Who is at the door, and who has come in.
//!
//! Whoever connects over a network is a stranger until they show a token. Strangers wait on the doorstep of their listener,
//! which is small: where it is full, the one who has waited longest goes, so that many who say nothing keep nobody out and use
//! up nothing. Those who came in have one of the host's places.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

/// The places for those who came in. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    limit: usize,
}

/// A place, for as long as somebody holds it.
pub(crate) type Place = Arc<OwnedSemaphorePermit>;

/// All places are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} connections are open, and no more are taken: close one and try again")]
pub(crate) struct Full {
    limit: usize,
}

impl Places {
    pub(super) fn new(limit: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(limit)), limit }
    }

    fn take(&self) -> Result<Place, Full> {
        self.free.clone().try_acquire_owned().map(Arc::new).map_err(|_| Full { limit: self.limit })
    }

    /// Waits until nobody has one.
    pub(super) async fn all_free(&self) {
        let all = u32::try_from(self.limit).unwrap_or(u32::MAX);
        // The semaphore is never closed, so this only ends with all permits in hand.
        self.free.acquire_many(all).await.ok();
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
        /// A place that the connection has already, whoever speaks on it.
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
        let standing = Standing::Inside(places.take()?);
        Ok((Self { places, standing: Arc::new(Mutex::new(standing)) }, ShownOut(None)))
    }

    /// They have shown what opens the host. A WebSocket outlives the HTTP connection that it began as, so the place is given
    /// to whoever keeps it.
    pub(crate) fn let_in(&self) -> Result<Place, Full> {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match &*standing {
            Standing::Inside(place) => return Ok(place.clone()),
            Standing::AtTheDoor { place: Some(place), .. } => place.clone(),
            Standing::AtTheDoor { place: None, .. } => self.places.take()?,
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
        let (places, doorstep) = (Places::new(2), Doorstep::new(2));
        let mut first = Guest::stranger(places.clone(), &doorstep);
        let mut second = Guest::stranger(places.clone(), &doorstep);
        let place = first.0.let_in().unwrap();
        let mut third = Guest::stranger(places.clone(), &doorstep);
        assert!(![&mut first, &mut second, &mut third].into_iter().any(is_shown_out));
        let mut fourth = Guest::stranger(places.clone(), &doorstep);
        assert!(is_shown_out(&mut second) && !is_shown_out(&mut first));
        drop(third);
        let mut fifth = Guest::stranger(places.clone(), &doorstep);
        assert!(!is_shown_out(&mut fourth) && !is_shown_out(&mut fifth), "one has gone by itself");
        // A place is held until the last who has it lets go.
        fourth.0.let_in().unwrap();
        drop(first);
        assert_eq!(fifth.0.let_in().unwrap_err(), Full { limit: 2 });
        drop(place);
        fifth.0.let_in().unwrap();
    }
}
