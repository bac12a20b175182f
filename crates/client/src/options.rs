//! What can be chosen, and the limits of everything that could grow or take for ever.

use std::sync::Arc;
use std::time::Duration;

/// How a client is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who this client is, to the host and among other clients. Without one, a random one: two connections of one id
    /// push each other out.
    pub client_id: Option<String>,
    /// What is subscribed with the first message, and stays so as long as the client lives.
    pub subscriptions: Vec<String>,
    /// Whether the session list is kept.
    pub list_sessions: bool,
    pub limits: ClientLimits,
    pub reconnect: Backoff,
    /// Sees every frame, both ways.
    pub log: Option<FrameLog>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            client_id: None,
            subscriptions: Vec::new(),
            list_sessions: true,
            limits: ClientLimits::default(),
            reconnect: Backoff::default(),
            log: None,
        }
    }
}

/// The bound of every wait and every queue. What happens beyond each is said beside it.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// How long a connection may take to be there; then the attempt failed.
    pub connect: Duration,
    /// How long an answer may take; then the request failed, and a late answer is dropped.
    pub answer: Duration,
    /// How long the host may be silent, pings included, which go out three times as often; then the connection is
    /// given up for lost.
    pub silence: Duration,
    /// How long a host may take to hear that this client goes.
    pub farewell: Duration,
    /// The largest message taken from the host; a larger one ends the connection.
    pub message_bytes: usize,
    /// Requests without an answer; the next one is refused.
    pub open_requests: usize,
    /// Dispatched actions without an answer; the next one is refused.
    pub unanswered: usize,
    /// Changes kept for each follower of a resource; one that falls behind is told so, and reads the state again.
    pub changes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            silence: Duration::from_secs(45),
            farewell: Duration::from_secs(2),
            message_bytes: 128 << 20,
            open_requests: 256,
            unanswered: 1_024,
            changes: 1_024,
        }
    }
}

/// When to try again after a connection is lost.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The wait before the first attempt; each further one waits twice as long.
    pub first: Duration,
    /// No wait is longer.
    pub longest: Duration,
    /// After so many attempts in a row the client is closed. `None`: never.
    pub attempts: Option<u32>,
    /// A connection that held so long has worked: the next loss begins at the first wait again.
    pub steady: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            attempts: None,
            steady: Duration::from_secs(10),
        }
    }
}

impl Backoff {
    /// No second attempt: the client is closed when its connection is lost.
    pub fn never() -> Self {
        Self { attempts: Some(0), ..Self::default() }
    }

    /// The wait before an attempt, counted from one. `random` spreads it over its upper half, so that the clients of
    /// one host do not all come back at once.
    pub(crate) fn wait(&self, attempt: u32, random: u64) -> Duration {
        let doubled = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = self.first.saturating_mul(doubled).min(self.longest);
        let part = (random >> 32) as f64 / f64::from(u32::MAX);
        whole.mul_f64(0.5 + part / 2.0)
    }
}

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDirection {
    ToHost,
    FromHost,
}

/// Something that sees every frame.
#[derive(Clone)]
pub struct FrameLog(Arc<FrameCallback>);

type FrameCallback = dyn Fn(FrameDirection, &str) + Send + Sync;

impl FrameLog {
    /// It is called from the connection's task, and should take no time.
    pub fn new(log: impl Fn(FrameDirection, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(log))
    }

    pub(crate) fn note(&self, direction: FrameDirection, frame: &str) {
        (self.0)(direction, frame);
    }
}

impl std::fmt::Debug for FrameLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FrameLog")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread_over_their_upper_half() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5), ..Backoff::default() };
        let range = |attempt| (backoff.wait(attempt, 0).as_millis(), backoff.wait(attempt, u64::MAX).as_millis());
        assert_eq!(range(1), (500, 1_000));
        assert_eq!(range(2), (1_000, 2_000));
        assert_eq!(range(3), (2_000, 4_000));
        assert_eq!(range(4), (2_500, 5_000));
        assert_eq!(range(u32::MAX), (2_500, 5_000));
    }
}
