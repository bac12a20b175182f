//! The use that connections make of the host, and its bounds: per connection and per token.
//!
//! A connection has rates of its own for messages and bytes. Beyond them it uses the pool that all connections of its
//! token share, and once that is empty, nothing is read from it until its own rate has caught up. A connection within
//! its own rates never touches the pool, so a connection that misbehaves costs only itself.
//!
//! Subscriptions, unanswered requests and expensive calls are counted. Beyond their bounds a request is refused.

mod limits;
mod rate;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_checks::Check;
use grove_core::RefusalKind;

pub use limits::{UsageLimitTable, UsageLimits};
pub use rate::Rate;
use rate::RateBucket;

use crate::env::Clock;
use crate::refusal::Refusal;

/// The time after which a refused request may be tried again, if nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A bound that a request has reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{holder} may have {most} {what}: {advice}")]
pub struct LimitReached {
    /// The name of the limit in `docs/limits.md`.
    pub limit: &'static str,
    holder: &'static str,
    most: usize,
    what: &'static str,
    advice: &'static str,
    /// The time after which the request may be tried again, if waiting helps.
    pub retry_after: Option<Duration>,
}

impl LimitReached {
    /// The bound of a connection's own subscriptions.
    pub fn subscriptions(most: usize) -> Self {
        Self::of_connection("subscriptions", most, "subscriptions", "unsubscribe from one first")
    }

    /// The bound of a connection's own watches.
    pub fn watches(most: usize) -> Self {
        Self::of_connection("watches", most, "watches", "unsubscribe from one first")
    }

    fn of_connection(limit: &'static str, most: usize, what: &'static str, advice: &'static str) -> Self {
        Self { limit, holder: "a connection", most, what, advice, retry_after: None }
    }

    fn of_token(limit: &'static str, most: usize, what: &'static str, retry_after: Duration) -> Self {
        let (holder, advice) = ("the connections of a token together", "wait, then try again");
        Self { limit, holder, most, what, advice, retry_after: Some(retry_after) }
    }
}

impl Refusal for LimitReached {
    fn kind(&self) -> RefusalKind {
        RefusalKind::LimitReached
    }
}

/// The cost of a call beyond that of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallCost {
    /// It reads or changes a little.
    Small,
    /// It searches, summarizes, copies or moves a session.
    Large,
    /// It also starts an agent or creates a session.
    Start,
}

/// The use of all tokens.
#[derive(Debug)]
pub(crate) struct UsageTable {
    limits: Mutex<UsageLimitTable>,
    /// By the name of the token. The host gives the names, so there are few.
    tokens: Mutex<HashMap<Arc<str>, Arc<TokenUsage>>>,
}

/// The use that all connections of a token make together.
#[derive(Debug)]
struct TokenUsage {
    requests: Mutex<RateBucket>,
    bytes: Mutex<RateBucket>,
    starts: Mutex<RateBucket>,
    subscriptions: Arc<Counter>,
    open_requests: Arc<Counter>,
    large_calls: Arc<Counter>,
}

/// The use that one connection makes.
#[derive(Debug)]
pub struct ConnectionUsage {
    limits: UsageLimits,
    /// None for a part of the host's own process.
    bounds: Option<ConnectionBounds>,
}

#[derive(Debug)]
struct ConnectionBounds {
    clock: Arc<dyn Clock>,
    token: Arc<TokenUsage>,
    requests: Mutex<RateBucket>,
    bytes: Mutex<RateBucket>,
    large_calls: Arc<Counter>,
}

/// A bounded number of things in use.
#[derive(Debug)]
struct Counter {
    most: AtomicUsize,
    used: Mutex<usize>,
}

/// A thing in use, until this is dropped.
#[derive(Debug, Default)]
pub struct UsageSlot {
    counters: Vec<Arc<Counter>>,
}

impl Drop for UsageSlot {
    fn drop(&mut self) {
        for counter in &self.counters {
            *lock(&counter.used) -= 1;
        }
    }
}

impl Counter {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: AtomicUsize::new(most), used: Mutex::default() })
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Sets another bound. What is in use beyond it stays in use.
    fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Adds one, unless the bound is reached.
    fn add(self: &Arc<Self>, slot: &mut UsageSlot) -> bool {
        let mut used = lock(&self.used);
        let has_room = *used < self.most();
        if has_room {
            *used += 1;
            slot.counters.push(self.clone());
        }
        has_room
    }
}

impl TokenUsage {
    fn new(limits: &UsageLimits) -> Self {
        Self {
            requests: Mutex::new(RateBucket::new(limits.token_requests)),
            bytes: Mutex::new(RateBucket::new(limits.token_bytes)),
            starts: Mutex::new(RateBucket::new(limits.token_starts)),
            subscriptions: Counter::new(limits.token_subscriptions),
            open_requests: Counter::new(limits.token_open_requests),
            large_calls: Counter::new(limits.token_large_calls),
        }
    }

    fn set_limits(&self, limits: &UsageLimits) {
        lock(&self.requests).set_rate(limits.token_requests);
        lock(&self.bytes).set_rate(limits.token_bytes);
        lock(&self.starts).set_rate(limits.token_starts);
        self.subscriptions.set_most(limits.token_subscriptions);
        self.open_requests.set_most(limits.token_open_requests);
        self.large_calls.set_most(limits.token_large_calls);
    }
}

impl UsageTable {
    pub(crate) fn new(limits: UsageLimitTable) -> Self {
        Self { limits: Mutex::new(limits), tokens: Mutex::default() }
    }

    /// Sets other bounds: for tokens at once, for connections from the next one on.
    pub(crate) fn set_limits(&self, limits: UsageLimitTable) {
        // Locked until the end, so that no token gets the earlier bounds meanwhile.
        let mut current = lock(&self.limits);
        for (token, usage) in lock(&self.tokens).iter() {
            usage.set_limits(&limits.of(token));
        }
        *current = limits;
    }

    /// The use of a new connection with a token.
    pub(crate) fn connection(&self, token: &Arc<str>, clock: Arc<dyn Clock>) -> ConnectionUsage {
        let current = lock(&self.limits);
        let limits = current.of(token);
        // It is kept after the token's last connection, or a new connection would bring a new burst.
        let fresh = || Arc::new(TokenUsage::new(&limits));
        let usage = lock(&self.tokens).entry(token.clone()).or_insert_with(fresh).clone();
        let bounds = ConnectionBounds {
            clock,
            token: usage,
            requests: Mutex::new(RateBucket::new(limits.requests)),
            bytes: Mutex::new(RateBucket::new(limits.bytes)),
            large_calls: Counter::new(limits.large_calls),
        };
        ConnectionUsage { limits, bounds: Some(bounds) }
    }

    /// The use of a part of the host's own process: no rates, and no share of a token.
    pub(crate) fn in_process(&self) -> ConnectionUsage {
        ConnectionUsage::unbounded(lock(&self.limits).common)
    }
}

impl ConnectionUsage {
    /// A use without rates and without a share of a token.
    pub fn unbounded(limits: UsageLimits) -> Self {
        Self { limits, bounds: None }
    }

    /// The bounds of the connection, as they were when it was opened.
    pub fn limits(&self) -> &UsageLimits {
        &self.limits
    }

    /// Counts bytes that a client has sent, and returns the time for which nothing more is to be read from it.
    pub fn count_bytes(&self, bytes: usize) -> Duration {
        self.bounds.as_ref().map_or(Duration::ZERO, |bounds| bounds.count(bytes, &bounds.bytes, &bounds.token.bytes))
    }

    /// Counts messages that a client has sent, and returns the time for which nothing more is to be read from it.
    pub fn count_messages(&self, messages: usize) -> Duration {
        let count = |bounds: &ConnectionBounds| bounds.count(messages, &bounds.requests, &bounds.token.requests);
        self.bounds.as_ref().map_or(Duration::ZERO, count)
    }

    /// Counts a subscription or a watch of a token until it ends. Those of a connection are counted where they are.
    pub fn subscription(&self) -> Result<UsageSlot, LimitReached> {
        let mut slot = UsageSlot::default();
        let Some(ConnectionBounds { token, .. }) = &self.bounds else { return Ok(slot) };
        if Check::TokenSubscriptions.is_enforced() && !token.subscriptions.add(&mut slot) {
            let (most, what) = (token.subscriptions.most(), "subscriptions and watches");
            return Err(LimitReached::of_token("token-subscriptions", most, what, RETRY_AFTER));
        }
        Ok(slot)
    }

    /// Counts a request of this cost until it is answered.
    pub fn request(&self, cost: CallCost) -> Result<UsageSlot, LimitReached> {
        let mut slot = UsageSlot::default();
        let Some(bounds) = &self.bounds else { return Ok(slot) };
        let token = &bounds.token;
        if Check::OpenRequests.is_enforced() && !token.open_requests.add(&mut slot) {
            let most = token.open_requests.most();
            return Err(LimitReached::of_token("token-open-requests", most, "unanswered requests", RETRY_AFTER));
        }
        if cost == CallCost::Small || !Check::LargeCalls.is_enforced() {
            return Ok(slot);
        }
        if !bounds.large_calls.add(&mut slot) {
            let advice = "wait for an answer, then try again";
            let reached =
                LimitReached::of_connection("large-calls", bounds.large_calls.most(), "unanswered large calls", advice);
            return Err(LimitReached { retry_after: Some(RETRY_AFTER), ..reached });
        }
        if !token.large_calls.add(&mut slot) {
            let most = token.large_calls.most();
            return Err(LimitReached::of_token("token-large-calls", most, "unanswered large calls", RETRY_AFTER));
        }
        let mut starts = lock(&token.starts);
        if cost == CallCost::Start && !starts.try_take(1, bounds.clock.now()) {
            let most = usize::try_from(starts.burst()).unwrap_or(usize::MAX);
            let what = "new sessions and chats at once";
            return Err(LimitReached::of_token("token-starts", most, what, starts.time_for_one()));
        }
        Ok(slot)
    }
}

impl ConnectionBounds {
    /// Counts units in the connection's own bucket; the pool of the token pays what is missing there, if it can.
    fn count(&self, units: usize, own: &Mutex<RateBucket>, pool: &Mutex<RateBucket>) -> Duration {
        if !Check::Rates.is_enforced() {
            return Duration::ZERO;
        }
        let now = self.clock.now();
        let mut own = lock(own);
        let missing = own.take(units as u64, now);
        if missing > 0 && lock(pool).try_take(missing, now) {
            own.pay_back(missing);
        }
        own.wait()
    }
}

// Nothing that can panic happens while one of these is held, so a poisoned lock still guards valid numbers.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
