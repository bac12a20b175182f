//! The numbers that a host counts, and their text format for Prometheus.
//!
//! [`Metrics`] is the one table of all metrics: name, type and help text. `storage`, `host` and `server` count in it,
//! so it is a crate of its own below all of them. Counting is an atomic addition: no lock, no allocation. Labels are
//! enums, so the number of time series is known when the program is compiled, and nothing that a client sends
//! becomes a label.

mod encode;
mod labels;
mod process;
mod reference;
mod slow;
mod table;
mod value;

pub use encode::{CONTENT_TYPE, MetricFamily, Sample};
pub use labels::*;
pub use process::ProcessUsage;
pub use reference::reference;
pub use slow::SlowThreshold;
pub use table::{Metrics, Sessions};
pub use value::{Counter, Gauge, Info, Labelled, Seconds, Sizes};
