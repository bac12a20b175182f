//! Metrics as numbers, and in the text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

use crate::value::Metric;

/// The content type of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric with all of its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricFamily {
    pub name: &'static str,
    pub help: &'static str,
    /// The type, as the text format names it: `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    pub samples: Vec<Sample>,
}

/// One number of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The part of a histogram: `_bucket`, `_sum` or `_count`. Empty for other metrics.
    pub suffix: &'static str,
    pub label: Option<(&'static str, &'static str)>,
    /// The upper bound of a bucket, which counts everything up to it.
    pub bound: Option<String>,
    /// The number, in decimal.
    pub value: String,
}

/// Collects the samples of one metric.
pub(crate) struct SampleWriter(Vec<Sample>);

impl SampleWriter {
    pub(crate) fn sample(
        &mut self,
        suffix: &'static str,
        label: Option<(&'static str, &'static str)>,
        bound: Option<&str>,
        value: impl Display,
    ) {
        self.0.push(Sample { suffix, label, bound: bound.map(str::to_owned), value: value.to_string() });
    }
}

impl MetricFamily {
    pub(crate) fn of<M: Metric>(name: &'static str, help: &'static str, metric: &M) -> Self {
        let mut samples = SampleWriter(Vec::new());
        metric.write(&mut samples, None);
        Self { name, help, kind: M::KIND, samples: samples.0 }
    }

    /// Appends the metric in the text format. Names and label values are ours and need no escaping.
    pub(crate) fn write(&self, out: &mut String) {
        let Self { name, help, kind, samples } = self;
        // A string takes everything.
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
        for Sample { suffix, label, bound, value } in samples {
            let bound = bound.as_deref().map(|bound| ("le", bound));
            let labels = label.iter().copied().chain(bound).map(|(label, value)| format!("{label}=\"{value}\""));
            let labels: Vec<String> = labels.collect();
            let written = match labels.is_empty() {
                true => writeln!(out, "{name}{suffix} {value}"),
                false => writeln!(out, "{name}{suffix}{{{}}} {value}", labels.join(",")),
            };
            written.ok();
        }
    }
}
