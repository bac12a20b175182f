//! The delays between retries.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use grove_client::Backoff;

/// Delays that double up to the longest, each spread over its upper half: the clients of one host do not all come back
/// at once.
#[derive(Debug)]
pub(super) struct RetryDelays {
    first: Duration,
    longest: Duration,
    tried: u32,
}

impl RetryDelays {
    pub(super) fn new(backoff: &Backoff) -> Self {
        Self { first: backoff.first, longest: backoff.longest.max(backoff.first), tried: 0 }
    }

    /// Starts over after a success.
    pub(super) fn reset(&mut self) {
        self.tried = 0;
    }

    pub(super) fn next(&mut self) -> Duration {
        self.whole(random())
    }

    /// The longest delay: for failures that will not change soon.
    pub(super) fn longest(&mut self) -> Duration {
        self.tried = u32::BITS;
        self.next()
    }

    fn whole(&mut self, random: u64) -> Duration {
        let doubled = 1u32.checked_shl(self.tried).unwrap_or(u32::MAX);
        self.tried = self.tried.saturating_add(1);
        let part = (random >> 32) as f64 / f64::from(u32::MAX);
        self.first.saturating_mul(doubled).min(self.longest).mul_f64(0.5 + part / 2.0)
    }
}

/// A random number. It is not a secret.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A unique name.
pub(super) fn new_name() -> String {
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_success() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5), ..Backoff::default() };
        let mut retry_delays = RetryDelays::new(&backoff);
        let most: Vec<u64> = (0..5).map(|_| retry_delays.whole(u64::MAX).as_secs()).collect();
        assert_eq!(most, [1, 2, 4, 5, 5]);
        retry_delays.reset();
        assert_eq!(retry_delays.whole(0), Duration::from_millis(500));
        assert!(retry_delays.longest() >= Duration::from_millis(2_500));
    }

    #[test]
    fn no_name_is_given_twice() {
        assert_ne!(new_name(), new_name());
    }
}
