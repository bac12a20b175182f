//! The threshold above which an operation is slow.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::labels::SlowLabel;
use crate::table::Metrics;

/// The duration above which an operation is slow; zero means that none is.
#[derive(Debug, Default)]
pub struct SlowThreshold(AtomicU64);

impl SlowThreshold {
    /// Sets the duration. Zero means that no operation is slow.
    pub fn set(&self, threshold: Duration) {
        self.0.store(u64::try_from(threshold.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Metrics {
    /// Says whether an operation was slow, and counts it then. The caller logs it.
    pub fn is_slow(&self, operation: SlowLabel, took: Duration) -> bool {
        let threshold = self.slow_threshold.0.load(Ordering::Relaxed);
        let is_slow = threshold > 0 && took.as_micros() > u128::from(threshold);
        if is_slow {
            self.slow_operations.of(operation).increment();
        }
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operations_above_the_threshold_are_slow_and_without_one_none_is() {
        let metrics = Metrics::default();
        assert!(!metrics.is_slow(SlowLabel::Request, Duration::MAX));
        metrics.slow_threshold.set(Duration::from_millis(5));
        assert!(!metrics.is_slow(SlowLabel::Request, Duration::from_millis(5)));
        assert!(metrics.is_slow(SlowLabel::Request, Duration::from_millis(6)));
        assert_eq!(metrics.slow_operations.of(SlowLabel::Request).get(), 1);
    }
}
