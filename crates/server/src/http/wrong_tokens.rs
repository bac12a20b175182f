//! Wrong tokens: each is answered later than the one before, and the log of the host says so.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::http::header;
use axum::response::Response;
use grove_checks::Check;
use grove_core::Timestamp;
use grove_host::Host;
use grove_host::audit::{AuditAction, AuditOutcome, AuditRecord};

use super::access::{AccessError, in_query};
use crate::listener::PeerAddress;

/// Failures this long ago count no more.
pub const WINDOW: Duration = Duration::from_secs(60);
/// The delay of the answer to the first wrong token. It doubles with each.
pub const FIRST_DELAY: Duration = Duration::from_millis(50);
/// The number of times that the delay doubles.
pub const MAX_DOUBLINGS: u32 = 5;
/// The members of a query that hold a secret.
const SECRETS: [&str; 3] = ["tkn", "ticket", "answer"];
/// The address whose requests have a secret in their body.
const PAIRING: &str = "/pair";

/// The addresses that are counted one by one. With more, the address with the fewest failures is forgotten.
pub const MAX_ADDRESSES: usize = 1_024;

/// The wrong tokens of an address within a minute that are recorded one by one.
pub const RECORDED_FAILURES: u32 = 16;

/// The wrong tokens that the listeners of a host have been given lately, by address.
#[derive(Debug, Default)]
pub(crate) struct WrongTokens(Mutex<FailureWindow>);

#[derive(Debug, Default)]
struct FailureWindow {
    began: Timestamp,
    /// The failures of each address, so that a guesser delays itself alone.
    failures: HashMap<Option<IpAddr>, u32>,
}

/// The delay of the answer to a wrong token, and the number of wrong tokens of its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TokenFailure {
    delay: Duration,
    failures: u32,
}

impl WrongTokens {
    /// Records a wrong token, and waits before it is answered.
    pub(crate) async fn delay(&self, host: &Host, from: PeerAddress, operation: &str) {
        let clock = &host.env().clock;
        let now = clock.now();
        let TokenFailure { delay, failures } = self.count(from, now);
        host.env().metrics.wrong_tokens.increment();
        // The log is for people: of a flood of guesses, the growing number is recorded.
        if failures <= RECORDED_FAILURES || failures.is_power_of_two() {
            let record = AuditRecord::new(now, "", from.to_string(), AuditAction::LogIn, operation);
            let detail = format!("wrong token number {failures} of this address within a minute");
            let record = record.with_detail(Some(&detail));
            host.audit(record.with_outcome(AuditOutcome::Refused, Some("the token is wrong")));
        }
        if Check::WrongTokenDelay.is_enforced() {
            clock.sleep(delay).await;
        }
    }

    /// Counts a wrong token.
    ///
    /// All connections of an address share the count: a guess on many connections is no faster. Right tokens are never
    /// delayed.
    fn count(&self, from: PeerAddress, now: Timestamp) -> TokenFailure {
        let address = from.network();
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.0.saturating_sub(window.began.0) >= WINDOW.as_millis() as u64 {
            *window = FailureWindow { began: now, failures: HashMap::new() };
        }
        if window.failures.len() >= MAX_ADDRESSES && !window.failures.contains_key(&address) {
            let fewest = window.failures.iter().min_by_key(|(_, failures)| **failures).map(|(address, _)| *address);
            window.failures.remove(&fewest.unwrap_or_default());
        }
        let failures = window.failures.entry(address).or_default();
        *failures = failures.saturating_add(1);
        let failures = *failures;
        if failures.is_power_of_two() {
            tracing::warn!(failures, %from, "a connection gave a wrong token");
        }
        TokenFailure { delay: FIRST_DELAY * 2_u32.pow((failures - 1).min(MAX_DOUBLINGS)), failures }
    }
}

/// Says whether a request gives a token, right or wrong.
pub(super) fn gives_token(request: &Request) -> bool {
    request.headers().contains_key(header::AUTHORIZATION)
        || request.uri().path() == PAIRING
        || SECRETS.iter().any(|name| in_query(request.uri().query(), name).is_some())
}

/// Marks the answer to a request whose token, ticket, proof or code is wrong. Other refusals say nothing about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedToken;

impl AccessError {
    /// Says whether the request was refused for its token, ticket, proof or code.
    pub(super) fn refuses_token(self) -> bool {
        match self {
            AccessError::Token
            | AccessError::Bearer
            | AccessError::Ticket
            | AccessError::ChallengeResponse
            | AccessError::Code => true,
            // It is refused whatever the token is.
            AccessError::QueryToken
            | AccessError::HostCount
            | AccessError::TransferEncoding
            | AccessError::LengthCount
            | AccessError::UpgradeWithBody
            | AccessError::ForeignHost
            | AccessError::UnlistedHost
            | AccessError::ContentType
            | AccessError::ForeignOrigin
            | AccessError::NoPage
            | AccessError::LoopbackName => false,
        }
    }
}

/// Says whether an answer refuses a token.
pub(super) fn refuses_token(answer: &Response) -> bool {
    answer.extensions().get::<RefusedToken>().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_token_is_answered_later_than_the_one_before_up_to_a_limit_and_for_a_minute() {
        let tokens = WrongTokens::default();
        let start = 1_700_000_000_000;
        let from = |peer: &str| PeerAddress::Tcp { peer: peer.parse().unwrap(), local: "10.0.0.1:1".parse().unwrap() };
        let delay = |peer: &str, at| tokens.count(from(peer), Timestamp(at)).delay.as_millis();
        let delays: Vec<u128> = (0..8).map(|ms| delay(&format!("10.0.0.2:{}", 1_000 + ms), start + ms)).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1_600, 1_600, 1_600]);
        assert_eq!(delay("10.0.0.3:1", start + 8), 50, "another address");
        assert_eq!([delay("[2001:db8::1]:1", start), delay("[2001:db8::2]:1", start)], [50, 100], "one network");
        assert_eq!(delay("10.0.0.2:1", start + 60_000), 50);
        // A clock that was set back starts no new minute, and does not panic.
        assert_eq!(delay("10.0.0.2:1", 0), 100);
    }

    #[test]
    fn many_addresses_do_not_make_one_forgotten_that_guesses_most() {
        let tokens = WrongTokens::default();
        let local = "10.0.0.1:1".parse().unwrap();
        let count = |address: u32| {
            let peer = (std::net::Ipv4Addr::from_bits(address), 1).into();
            tokens.count(PeerAddress::Tcp { peer, local }, Timestamp(1)).failures
        };
        assert_eq!((count(7), count(7)), (1, 2));
        (100..5_000).for_each(|address| assert_eq!(count(address), 1));
        assert_eq!(count(7), 3);
        assert!(tokens.0.lock().unwrap().failures.len() <= MAX_ADDRESSES);
    }
}
