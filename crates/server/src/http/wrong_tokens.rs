//! Wrong tokens: each is answered later than the one before, and the log of the host says so.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use grove_core::Timestamp;

use super::access::in_query;

/// Failures this long ago count no more.
pub const WINDOW: Duration = Duration::from_secs(60);
/// The delay of the answer to the first wrong token. It doubles with each.
pub const FIRST_DELAY: Duration = Duration::from_millis(50);
/// The number of times that the delay doubles.
pub const MAX_DOUBLINGS: u32 = 5;
/// The members of a query that hold a secret.
const SECRETS: [&str; 3] = ["tkn", "ticket", "answer"];

/// The wrong tokens that a listener has been given lately.
#[derive(Debug, Default)]
pub(super) struct WrongTokens(Mutex<FailureWindow>);

#[derive(Debug, Default)]
struct FailureWindow {
    began: Timestamp,
    failures: u32,
}

impl WrongTokens {
    /// Counts a wrong token. Returns the delay of its answer.
    ///
    /// All connections of a listener share the count: a guess on many connections is no faster. Right tokens are never
    /// delayed.
    pub(super) fn count(&self, now: Timestamp) -> Duration {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.0.saturating_sub(window.began.0) >= WINDOW.as_millis() as u64 {
            *window = FailureWindow { began: now, failures: 0 };
        }
        window.failures = window.failures.saturating_add(1);
        if window.failures.is_power_of_two() {
            tracing::warn!(failures = window.failures, "a connection gave a wrong token");
        }
        FIRST_DELAY * 2_u32.pow((window.failures - 1).min(MAX_DOUBLINGS))
    }
}

/// Says whether a request gives a token, right or wrong.
pub(super) fn gives_token(request: &Request) -> bool {
    request.headers().contains_key(header::AUTHORIZATION)
        || SECRETS.iter().any(|name| in_query(request.uri().query(), name).is_some())
}

/// Says whether an answer refuses a token.
pub(super) fn refuses_token(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_token_is_answered_later_than_the_one_before_up_to_a_limit_and_for_a_minute() {
        let tokens = WrongTokens::default();
        let start = 1_700_000_000_000;
        let delays: Vec<u128> = (0..8).map(|ms| tokens.count(Timestamp(start + ms)).as_millis()).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1_600, 1_600, 1_600]);
        assert_eq!(tokens.count(Timestamp(start + 60_000)).as_millis(), 50);
        // A clock that was set back starts no new minute, and does not panic.
        assert_eq!(tokens.count(Timestamp(0)).as_millis(), 100);
    }
}
