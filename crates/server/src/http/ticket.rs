//! Tickets: each opens one WebSocket, once and soon.
//!
//! A browser cannot send headers with a WebSocket, and an address with the token in it would stay in logs and
//! histories. So a page requests a ticket with the token in a header, and puts the ticket into the address.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grove_checks::Check;
use grove_core::Timestamp;
use grove_host::Env;
use subtle::{ConditionallySelectable, ConstantTimeEq};

/// The time in which a ticket can be used.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(30);
/// The unused tickets at a time; with more, the oldest are dropped.
pub const MAX_TICKETS: usize = 1_024;

/// The tickets that were issued and not yet used, each with what it was issued for.
pub(super) struct Tickets<T> {
    env: Env,
    issued: Mutex<IssuedTickets<T>>,
}

struct IssuedTickets<T> {
    /// Oldest first.
    tickets: VecDeque<Ticket<T>>,
    /// Says whether a task removes expired tickets.
    swept: bool,
}

struct Ticket<T> {
    purpose: T,
    secret: String,
    since: Timestamp,
}

impl<T> Ticket<T> {
    /// The remaining lifetime. A clock that was set back ends it as well: the ticket's age is unknown then.
    fn left(&self, now: Timestamp) -> Option<Duration> {
        let age = Duration::from_millis(now.0.checked_sub(self.since.0)?);
        TICKET_LIFETIME.checked_sub(age).filter(|left| !left.is_zero())
    }
}

impl<T: Clone + Send + 'static> Tickets<T> {
    pub(super) fn new(env: Env) -> Arc<Self> {
        let issued = Mutex::new(IssuedTickets { tickets: VecDeque::new(), swept: false });
        Arc::new(Self { env, issued })
    }

    /// Issues a ticket of 256 random bits.
    pub(super) fn issue(self: &Arc<Self>, purpose: T) -> io::Result<String> {
        let mut bytes = [0; 32];
        self.env.random.fill(&mut bytes)?;
        let secret = URL_SAFE_NO_PAD.encode(bytes);
        let swept = {
            let mut issued = self.issued();
            while Check::TicketCount.is_enforced() && issued.tickets.len() >= MAX_TICKETS {
                issued.tickets.pop_front();
            }
            issued.tickets.push_back(Ticket { purpose, secret: secret.clone(), since: self.env.clock.now() });
            std::mem::replace(&mut issued.swept, true)
        };
        if !swept {
            self.env.spawn.spawn(Box::pin(self.clone().sweep()));
        }
        Ok(secret)
    }

    /// Uses up a ticket, if it is valid. Returns what it was issued for.
    ///
    /// All are compared, each in constant time, so that timing does not help to guess one.
    pub(super) fn redeem(&self, guess: &str) -> Option<T> {
        let mut issued = self.issued();
        issued.forget_old(self.env.clock.now());
        let mut found = u64::MAX;
        for (place, ticket) in (0..).zip(&issued.tickets) {
            found.conditional_assign(&place, ticket.secret.as_bytes().ct_eq(guess.as_bytes()));
        }
        let place = usize::try_from(found).unwrap_or(usize::MAX);
        if !Check::TicketOnce.is_enforced() {
            return issued.tickets.get(place).map(|ticket| ticket.purpose.clone());
        }
        issued.tickets.remove(place).map(|ticket| ticket.purpose)
    }

    /// Removes each ticket when it expires, until none is left.
    async fn sweep(self: Arc<Self>) {
        let mut left = TICKET_LIFETIME;
        loop {
            self.env.clock.sleep(left).await;
            let mut issued = self.issued();
            let now = self.env.clock.now();
            issued.forget_old(now);
            match issued.tickets.front().and_then(|oldest| oldest.left(now)) {
                Some(more) => left = more,
                None => {
                    issued.swept = false;
                    return;
                }
            }
        }
    }

    // Nothing in here can panic half-way, so a poisoned lock still guards valid data.
    fn issued(&self) -> MutexGuard<'_, IssuedTickets<T>> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> IssuedTickets<T> {
    fn forget_old(&mut self, now: Timestamp) {
        self.tickets.retain(|ticket| !Check::TicketAge.is_enforced() || ticket.left(now).is_some());
    }
}

#[cfg(test)]
mod tests {
    use grove_host::{Clock, Task};

    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct ManualClock(AtomicU64);

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::SeqCst))
        }

        fn sleep(&self, time: Duration) -> Task {
            Box::pin(tokio::time::sleep(time))
        }
    }

    fn tickets() -> (Arc<Tickets<()>>, Arc<ManualClock>) {
        let hand = Arc::new(ManualClock(AtomicU64::new(1_000_000)));
        (Tickets::new(Env { clock: hand.clone(), ..Env::in_memory() }), hand)
    }

    #[tokio::test]
    async fn a_ticket_is_good_once() {
        let (tickets, _) = tickets();
        let (first, second) = (tickets.issue(()).unwrap(), tickets.issue(()).unwrap());
        assert_eq!((first.len(), second.len()), (43, 43), "256 bits");
        assert_ne!(first, second);
        for wrong in ["", "x", &first[1..], &format!("{first}x"), &first.to_ascii_lowercase()] {
            assert!(tickets.redeem(wrong).is_none(), "{wrong}");
        }
        assert!(tickets.redeem(&first).is_some());
        assert!(tickets.redeem(&first).is_none());
        assert!(tickets.redeem(&second).is_some());
    }

    #[tokio::test]
    async fn a_ticket_that_is_too_old_is_no_good() {
        let (tickets, hand) = tickets();
        let (early, late) = (tickets.issue(()).unwrap(), tickets.issue(()).unwrap());
        hand.0.fetch_add(29_999, Ordering::SeqCst);
        assert!(tickets.redeem(&early).is_some());
        hand.0.fetch_add(1, Ordering::SeqCst);
        assert!(tickets.redeem(&late).is_none());
        let before = tickets.issue(()).unwrap();
        hand.0.fetch_sub(1, Ordering::SeqCst);
        assert!(tickets.redeem(&before).is_none(), "the clock was turned back");
    }

    #[tokio::test]
    async fn of_too_many_tickets_the_oldest_go() {
        let (tickets, _) = tickets();
        let all: Vec<String> = (0..MAX_TICKETS + 2).map(|_| tickets.issue(()).unwrap()).collect();
        assert_eq!(tickets.issued().tickets.len(), MAX_TICKETS);
        assert!(tickets.redeem(&all[0]).is_none() && tickets.redeem(&all[1]).is_none());
        assert!(tickets.redeem(&all[2]).is_some() && tickets.redeem(&all[MAX_TICKETS + 1]).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_ticket_is_kept_no_longer_than_it_lives() {
        let (tickets, hand) = tickets();
        let elapse = async |time: Duration| {
            hand.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
            tokio::time::sleep(time).await;
            tokio::task::yield_now().await;
        };
        for _ in 0..2 {
            tickets.issue(()).unwrap();
            elapse(TICKET_LIFETIME / 2).await;
            tickets.issue(()).unwrap();
            elapse(TICKET_LIFETIME / 2).await;
            assert_eq!(tickets.issued().tickets.len(), 1);
            elapse(TICKET_LIFETIME / 2).await;
            assert_eq!(tickets.issued().tickets.len(), 0);
        }
    }
}
