//! Options of a client, and the limits of its queues and waits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use grove_wire::jsonrpc::ErrorObject;
use serde_json::value::RawValue;

/// The options of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// The client's id for the host. `None`: a random one.
    ///
    /// Two connections with one id replace each other.
    pub client_id: Option<String>,
    /// Resources that are subscribed with the first message, and for the client's life.
    pub subscriptions: Vec<String>,
    /// Keep the session list up to date.
    pub list_sessions: bool,
    pub limits: ClientLimits,
    pub reconnect: Backoff,
    /// Receives every frame, in both directions.
    pub log: Option<FrameLog>,
    /// Answers requests of the host. `None`: all but pings are refused.
    pub requests: Option<RequestHandler>,
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
            requests: None,
        }
    }
}

/// The limits of every wait and every queue, with what happens beyond each.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// How long connecting may take; beyond it the attempt fails.
    pub connect: Duration,
    /// How long a response may take; beyond it the request fails, and a late response is dropped.
    pub answer: Duration,
    /// How long the host may be silent; beyond it the connection counts as lost. Pings are sent three times as often.
    pub silence: Duration,
    /// How long closing the connection may take.
    pub farewell: Duration,
    /// The maximum size of a received message; a larger one ends the connection.
    pub message_bytes: usize,
    /// The maximum number of open requests; the next one fails.
    pub open_requests: usize,
    /// The maximum number of pending actions; the next one fails.
    pub unanswered: usize,
    /// The maximum number of pages of a list; a host that gives the cursor of another one fails the request.
    pub list_pages: usize,
    /// The number of changes kept for each follower of a resource; a slower one must read the state again.
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
            list_pages: 10_000,
            changes: 1_024,
        }
    }
}

/// The pauses between attempts to reconnect.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The pause before the first attempt; it doubles for each further one.
    pub first: Duration,
    /// The maximum pause.
    pub longest: Duration,
    /// The number of failed attempts in a row after which the client is closed. `None`: never.
    pub attempts: Option<u32>,
    /// The duration after which a connection counts as stable: its loss starts with the first pause again.
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
    /// No reconnecting: the client is closed when its connection is lost.
    pub fn never() -> Self {
        Self { attempts: Some(0), ..Self::default() }
    }

    /// The pause before an attempt, counted from one.
    ///
    /// `random` spreads it over its upper half, so that the clients of one host do not all reconnect at once.
    pub(crate) fn wait(&self, attempt: u32, random: u64) -> Duration {
        let doubled = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = self.first.saturating_mul(doubled).min(self.longest);
        let part = (random >> 32) as f64 / f64::from(u32::MAX);
        whole.mul_f64(0.5 + part / 2.0)
    }
}

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDirection {
    ToHost,
    FromHost,
}

/// A callback for every frame.
#[derive(Clone)]
pub struct FrameLog(Arc<FrameCallback>);

type FrameCallback = dyn Fn(FrameDirection, &str) + Send + Sync;

impl FrameLog {
    /// It is called from the connection's task, and should be fast.
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

/// A request of the host.
#[derive(Clone, Debug)]
pub struct HostRequest {
    pub method: String,
    /// `null` if it has none.
    pub params: Box<RawValue>,
}

/// Answers requests of the host.
#[derive(Clone)]
pub struct RequestHandler(Arc<RequestCallback>);

type RequestCallback = dyn Fn(HostRequest) -> BoxFuture<'static, Result<Box<RawValue>, ErrorObject>> + Send + Sync;

impl RequestHandler {
    /// It is called from the connection's task, and the future runs there: both must not block. A lost connection drops
    /// the future.
    pub fn new<F>(answer: impl Fn(HostRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Box<RawValue>, ErrorObject>> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(answer(request))))
    }

    pub(crate) fn answer(&self, request: HostRequest) -> BoxFuture<'static, Result<Box<RawValue>, ErrorObject>> {
        (self.0)(request)
    }
}

impl std::fmt::Debug for RequestHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestHandler")
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
