//! The use that connections make of the host, and its bounds: per connection and per token.
//!
//! A connection has rates of its own for messages and bytes. Beyond them it uses the pool that all connections of its
//! token share, and once that is empty, nothing is read from it until its own rate has caught up. A connection within
//! its own rates never touches the pool, so a connection that misbehaves costs only itself.
//!
//! Subscriptions, unanswered requests and expensive calls are counted. Beyond their bounds a request is refused.
//!
//! A connection that has not authenticated yet counts for its address, and from its log-in on for its token.

mod limits;
mod rate;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_checks::Check;
use grove_core::RefusalKind;

pub use limits::{ConnectionLimits, UsageLimitTable, UsageLimits};
pub use rate::Rate;
use rate::RateBucket;

use crate::env::Clock;
use crate::refusal::Refusal;
use crate::tokens::HOST_TOKEN_NAME;

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

/// The addresses whose use is kept when they have no connection.
pub const MAX_ADDRESSES: usize = 1_024;

/// The use of all tokens, and of addresses before their connections authenticate.
#[derive(Debug)]
pub(crate) struct UsageTable {
    limits: Mutex<UsageLimitTable>,
    /// By the name of the token. The host gives the names, so there are few.
    tokens: Mutex<HashMap<Arc<str>, Arc<TokenUsage>>>,
    /// By the address; none for connections without one.
    addresses: Mutex<HashMap<Option<IpAddr>, Arc<TokenUsage>>>,
}

/// The use that all connections of a token, or all unauthenticated ones of an address, make together.
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
    /// Another one from the log-in on, if that comes after the first message.
    token: Mutex<Arc<TokenUsage>>,
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
        Self { limits: Mutex::new(limits), tokens: Mutex::default(), addresses: Mutex::default() }
    }

    /// Sets other bounds: for tokens and addresses at once, for connections from the next one on.
    pub(crate) fn set_limits(&self, limits: UsageLimitTable) {
        // Locked until the end, so that no token gets the earlier bounds meanwhile.
        let mut current = lock(&self.limits);
        for (token, usage) in lock(&self.tokens).iter() {
            usage.set_limits(&limits.of(token));
        }
        for usage in lock(&self.addresses).values() {
            usage.set_limits(&limits.common);
        }
        *current = limits;
    }

    /// The current bounds of connections, for a token of this name.
    pub(crate) fn connections_of(&self, token: &str) -> ConnectionLimits {
        lock(&self.limits).connections(token)
    }

    fn of(&self, token: &Arc<str>, limits: &UsageLimits) -> Arc<TokenUsage> {
        // It is kept after the token's last connection, or a new connection would bring a new burst.
        lock(&self.tokens).entry(token.clone()).or_insert_with(|| Arc::new(TokenUsage::new(limits))).clone()
    }

    fn of_address(&self, address: Option<IpAddr>, limits: &UsageLimits) -> Arc<TokenUsage> {
        let mut addresses = lock(&self.addresses);
        if addresses.len() >= MAX_ADDRESSES && !addresses.contains_key(&address) {
            // Listeners bound the connections that have not authenticated, so most of these are unused.
            addresses.retain(|_, usage| Arc::strong_count(usage) > 1);
        }
        addresses.entry(address).or_insert_with(|| Arc::new(TokenUsage::new(limits))).clone()
    }

    /// The use of a new connection with a token.
    pub(crate) fn connection(&self, token: &Arc<str>, clock: Arc<dyn Clock>) -> ConnectionUsage {
        let current = lock(&self.limits);
        let limits = current.of(token);
        ConnectionUsage::of(self.of(token, &limits), limits, clock)
    }

    /// The use of a new connection that has not authenticated.
    pub(crate) fn pending_connection(&self, address: Option<IpAddr>, clock: Arc<dyn Clock>) -> ConnectionUsage {
        if !Check::AddressUsage.is_enforced() {
            return self.connection(&HOST_TOKEN_NAME.into(), clock);
        }
        let limits = lock(&self.limits).common;
        ConnectionUsage::of(self.of_address(address, &limits), limits, clock)
    }

    /// Counts a connection for its token from now on.
    pub(crate) fn log_in(&self, usage: &ConnectionUsage, token: &Arc<str>) {
        if let Some(bounds) = &usage.bounds {
            let current = lock(&self.limits);
            *lock(&bounds.token) = self.of(token, &current.of(token));
        }
    }

    /// The use of a part of the host's own process: no rates, and no share of a token.
    pub(crate) fn in_process(&self) -> ConnectionUsage {
        ConnectionUsage::unbounded(lock(&self.limits).common)
    }
}

impl ConnectionUsage {
    fn of(token: Arc<TokenUsage>, limits: UsageLimits, clock: Arc<dyn Clock>) -> Self {
        let bounds = ConnectionBounds {
            clock,
            token: Mutex::new(token),
            requests: Mutex::new(RateBucket::new(limits.requests)),
            bytes: Mutex::new(RateBucket::new(limits.bytes)),
            large_calls: Counter::new(limits.large_calls),
        };
        Self { limits, bounds: Some(bounds) }
    }

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
        let count = |bounds: &ConnectionBounds| bounds.count(bytes, &bounds.bytes, |token| &token.bytes);
        self.bounds.as_ref().map_or(Duration::ZERO, count)
    }

    /// Counts messages that a client has sent, and returns the time for which nothing more is to be read from it.
    pub fn count_messages(&self, messages: usize) -> Duration {
        let count = |bounds: &ConnectionBounds| bounds.count(messages, &bounds.requests, |token| &token.requests);
        self.bounds.as_ref().map_or(Duration::ZERO, count)
    }

    /// Counts a subscription or a watch of a token until it ends. Those of a connection are counted where they are.
    pub fn subscription(&self) -> Result<UsageSlot, LimitReached> {
        let mut slot = UsageSlot::default();
        let Some(bounds) = &self.bounds else { return Ok(slot) };
        let token = bounds.token();
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
        let token = bounds.token();
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
    fn token(&self) -> Arc<TokenUsage> {
        lock(&self.token).clone()
    }

    /// Counts units in the connection's own bucket; the pool of the token pays what is missing there, if it can.
    fn count(
        &self,
        units: usize,
        own: &Mutex<RateBucket>,
        pool: impl Fn(&TokenUsage) -> &Mutex<RateBucket>,
    ) -> Duration {
        if !Check::Rates.is_enforced() {
            return Duration::ZERO;
        }
        let now = self.clock.now();
        let mut own = lock(own);
        let missing = own.take(units as u64, now);
        if missing > 0 && lock(pool(&self.token())).try_take(missing, now) {
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
