//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

use crate::value::Metric;

/// The content type of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes the samples of one metric.
pub(crate) struct SampleWriter<'a> {
    name: &'static str,
    out: &'a mut String,
}

impl SampleWriter<'_> {
    /// Writes one sample. Names and label values are ours and need no escaping.
    pub(crate) fn sample(
        &mut self,
        suffix: &str,
        label: Option<(&str, &str)>,
        bound: Option<&str>,
        value: impl Display,
    ) {
        let Self { name, out } = self;
        let bound = bound.map(|bound| ("le", bound));
        let labels = label.into_iter().chain(bound).map(|(label, value)| format!("{label}=\"{value}\""));
        let labels: Vec<String> = labels.collect();
        let written = match labels.is_empty() {
            true => writeln!(out, "{name}{suffix} {value}"),
            false => writeln!(out, "{name}{suffix}{{{}}} {value}", labels.join(",")),
        };
        // A string takes everything.
        written.ok();
    }
}

/// Appends a metric with its help text and its type.
pub(crate) fn write<M: Metric>(name: &'static str, help: &'static str, metric: &M, out: &mut String) {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {}", M::KIND).ok();
    metric.write(&mut SampleWriter { name, out }, None);
}
