//! The kinds of metrics: counters, gauges, histograms, and families of them by a label.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::encode::SampleWriter;
use crate::labels::Label;

/// A metric that can be written in the text format.
pub(crate) trait Metric: Default {
    /// The type, as the text format names it.
    const KIND: &'static str;
    /// The label of its samples, and the values that it may have.
    fn label() -> Option<(&'static str, Vec<&'static str>)> {
        None
    }
    /// Writes all samples. `label` is a label and its value.
    fn write(&self, out: &mut SampleWriter, label: Option<(&'static str, &'static str)>);
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts several.
    pub fn add(&self, count: u64) {
        // Numbers of other places need not be visible together with this one.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metric for Counter {
    const KIND: &'static str = "counter";

    fn write(&self, out: &mut SampleWriter, label: Option<(&'static str, &'static str)>) {
        out.sample("", label, None, self.get());
    }
}

/// A number that grows and shrinks.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Subtracts one.
    pub fn decrement(&self) {
        self.add(-1);
    }

    /// Adds a number, which may be negative.
    pub fn add(&self, count: i64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Sets the number. A larger one than the type can hold becomes the largest.
    pub fn set(&self, value: u64) {
        self.0.store(i64::try_from(value).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// The current number.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metric for Gauge {
    const KIND: &'static str = "gauge";

    fn write(&self, out: &mut SampleWriter, label: Option<(&'static str, &'static str)>) {
        out.sample("", label, None, self.get());
    }
}

/// A constant 1, whose label is the version of the program.
#[derive(Debug, Default)]
pub struct Info;

impl Metric for Info {
    const KIND: &'static str = "gauge";

    fn label() -> Option<(&'static str, Vec<&'static str>)> {
        Some(("version", vec![env!("CARGO_PKG_VERSION")]))
    }

    fn write(&self, out: &mut SampleWriter, _: Option<(&'static str, &'static str)>) {
        out.sample("", Some(("version", env!("CARGO_PKG_VERSION"))), None, 1);
    }
}

/// A histogram of integers with fixed bounds. The last bucket has none.
#[derive(Debug)]
struct Buckets<const N: usize> {
    counts: [AtomicU64; N],
    over: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Default for Buckets<N> {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; N], over: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }
}

impl<const N: usize> Buckets<N> {
    fn observe(&self, bounds: &[u64; N], value: u64) {
        let at = bounds.partition_point(|bound| *bound < value);
        self.counts.get(at).unwrap_or(&self.over).fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.counts.iter().chain([&self.over]).map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Writes buckets, sum and count. `shown` turns a value into its text.
    fn write(
        &self,
        bounds: &[u64; N],
        shown: impl Fn(u64) -> String,
        out: &mut SampleWriter,
        label: Option<(&'static str, &'static str)>,
    ) {
        let mut total = 0;
        for (bound, count) in bounds.iter().zip(&self.counts) {
            total += count.load(Ordering::Relaxed);
            out.sample("_bucket", label, Some(&shown(*bound)), total);
        }
        total += self.over.load(Ordering::Relaxed);
        out.sample("_bucket", label, Some("+Inf"), total);
        out.sample("_sum", label, None, shown(self.sum.load(Ordering::Relaxed)));
        out.sample("_count", label, None, total);
    }
}

/// The upper bounds of [`Seconds`], in microseconds: from a copy into the page cache to a person's answer.
const SECONDS_BOUNDS: [u64; 16] = [
    10,
    50,
    100,
    500,
    1_000,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
    600_000_000,
    3_600_000_000,
];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Seconds(Buckets<16>);

impl Seconds {
    /// Adds a duration.
    pub fn observe(&self, time: Duration) {
        self.0.observe(&SECONDS_BOUNDS, u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// The number of durations so far.
    pub fn count(&self) -> u64 {
        self.0.count()
    }
}

impl Metric for Seconds {
    const KIND: &'static str = "histogram";

    fn write(&self, out: &mut SampleWriter, label: Option<(&'static str, &'static str)>) {
        self.0.write(&SECONDS_BOUNDS, |micros| (micros as f64 / 1e6).to_string(), out, label);
    }
}

/// The upper bounds of [`Sizes`].
const SIZE_BOUNDS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// A histogram of small counts.
#[derive(Debug, Default)]
pub struct Sizes(Buckets<9>);

impl Sizes {
    /// Adds a count.
    pub fn observe(&self, count: usize) {
        self.0.observe(&SIZE_BOUNDS, count as u64);
    }

    /// The number of counts so far.
    pub fn count(&self) -> u64 {
        self.0.count()
    }
}

impl Metric for Sizes {
    const KIND: &'static str = "histogram";

    fn write(&self, out: &mut SampleWriter, label: Option<(&'static str, &'static str)>) {
        self.0.write(&SIZE_BOUNDS, |count| count.to_string(), out, label);
    }
}

/// A metric for each value of a label.
#[derive(Debug)]
pub struct Labelled<L, M> {
    metrics: Box<[M]>,
    label: PhantomData<fn(L)>,
}

impl<L: Label, M: Default> Default for Labelled<L, M> {
    fn default() -> Self {
        Self { metrics: L::ALL.iter().map(|_| M::default()).collect(), label: PhantomData }
    }
}

impl<L: Label, M> Labelled<L, M> {
    /// The metric of this value.
    pub fn of(&self, label: L) -> &M {
        // There is one for each value.
        &self.metrics[label.index()]
    }
}

impl<L: Label, M: Metric> Metric for Labelled<L, M> {
    const KIND: &'static str = M::KIND;

    fn label() -> Option<(&'static str, Vec<&'static str>)> {
        Some((L::NAME, L::ALL.iter().map(|value| value.value()).collect()))
    }

    fn write(&self, out: &mut SampleWriter, _: Option<(&'static str, &'static str)>) {
        for value in L::ALL {
            self.of(*value).write(out, Some((L::NAME, value.value())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let sizes = Sizes::default();
        [0, 1, 2, 3, 256, 257].into_iter().for_each(|count| sizes.observe(count));
        let counts: Vec<u64> = sizes.0.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [2, 1, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!((sizes.0.over.load(Ordering::Relaxed), sizes.count()), (1, 6));
    }
}
