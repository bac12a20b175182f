//! Rates: so many units a second, with a burst.

use std::time::Duration;

use grove_core::Timestamp;

/// A rate with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The units that come back each second.
    pub per_second: u64,
    /// The units that may be used at once after a pause.
    pub burst: u64,
}

/// A token bucket: it fills at its rate, up to its burst.
#[derive(Debug)]
pub(super) struct RateBucket {
    rate: Rate,
    /// Thousandths of a unit, so that a millisecond adds `per_second`. Negative after use on credit.
    level: i128,
    filled_at: Option<Timestamp>,
}

impl RateBucket {
    /// A full bucket.
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, level: i128::from(rate.burst) * 1_000, filled_at: None }
    }

    /// Sets another rate. The bucket keeps its level, up to the new burst.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.level = self.level.min(i128::from(rate.burst) * 1_000);
    }

    /// Takes units if there are enough of them.
    pub(super) fn try_take(&mut self, units: u64, now: Timestamp) -> bool {
        self.fill(now);
        let cost = i128::from(units) * 1_000;
        let has_enough = self.level >= cost;
        if has_enough {
            self.level -= cost;
        }
        has_enough
    }

    /// Takes units on credit, and returns the units that were missing.
    pub(super) fn take(&mut self, units: u64, now: Timestamp) -> u64 {
        self.fill(now);
        self.level -= i128::from(units) * 1_000;
        self.missing()
    }

    /// Pays back units that another bucket has.
    pub(super) fn pay_back(&mut self, units: u64) {
        self.level = (self.level + i128::from(units) * 1_000).min(i128::from(self.rate.burst) * 1_000);
    }

    /// The time until nothing is missing.
    pub(super) fn wait(&self) -> Duration {
        let rate = i128::from(self.rate.per_second.max(1));
        let millis = ((-self.level).max(0) + rate - 1) / rate;
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// The units of a full bucket.
    pub(super) fn burst(&self) -> u64 {
        self.rate.burst
    }

    /// The time in which one unit comes back.
    pub(super) fn time_for_one(&self) -> Duration {
        Duration::from_millis(1_000_u64.div_ceil(self.rate.per_second.max(1)))
    }

    fn missing(&self) -> u64 {
        u64::try_from(((-self.level).max(0) + 999) / 1_000).unwrap_or(u64::MAX)
    }

    fn fill(&mut self, now: Timestamp) {
        // A clock that was set back adds nothing.
        let passed = self.filled_at.map_or(0, |earlier| now.0.saturating_sub(earlier.0));
        self.filled_at = Some(now);
        let full = i128::from(self.rate.burst) * 1_000;
        let filled = i128::from(passed).saturating_mul(i128::from(self.rate.per_second));
        self.level = self.level.saturating_add(filled).min(full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_the_rest_comes_at_the_rate() {
        let mut bucket = RateBucket::new(Rate { per_second: 10, burst: 5 });
        assert_eq!((0..5).map(|_| bucket.take(1, Timestamp(0))).sum::<u64>(), 0);
        assert_eq!(bucket.wait(), Duration::ZERO);
        assert_eq!(bucket.take(2, Timestamp(0)), 2);
        assert_eq!(bucket.wait(), Duration::from_millis(200));
        assert_eq!(bucket.take(1, Timestamp(200)), 1);
        assert!(!bucket.try_take(1, Timestamp(250)) && bucket.try_take(1, Timestamp(400)));
    }

    #[test]
    fn a_pause_adds_a_burst_at_most_and_a_clock_that_was_set_back_adds_nothing() {
        let mut bucket = RateBucket::new(Rate { per_second: 1_000, burst: 5 });
        assert!(bucket.try_take(5, Timestamp(1_000_000)) && !bucket.try_take(1, Timestamp(0)));
        assert!(bucket.try_take(5, Timestamp(u64::MAX)) && !bucket.try_take(1, Timestamp(u64::MAX)));
    }

    #[test]
    fn no_number_is_too_large() {
        let mut bucket = RateBucket::new(Rate { per_second: u64::MAX, burst: u64::MAX });
        assert_eq!(bucket.take(u64::MAX, Timestamp(0)), 0);
        assert_eq!(bucket.take(u64::MAX, Timestamp(u64::MAX)), 0);
        let mut slow = RateBucket::new(Rate { per_second: 0, burst: 0 });
        assert_eq!(slow.take(u64::MAX, Timestamp(0)), u64::MAX);
        assert!(slow.wait() > Duration::from_secs(1 << 40));
    }
}
