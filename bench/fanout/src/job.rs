//! What the driver asks of a load client, and what it answers.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The servers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Contestant {
    Grove,
    Bare,
    Node,
    Opencode,
    Codex,
}

impl Contestant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grove => "grove",
            Self::Bare => "bare",
            Self::Node => "node",
            Self::Opencode => "opencode",
            Self::Codex => "codex",
        }
    }
}

/// Where a server is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) contestant: Contestant,
    pub(crate) address: SocketAddr,
    /// What stands after the address in its URL.
    pub(crate) path: String,
    /// Whose processor time and memory count.
    pub(crate) pid: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) target: Target,
    pub(crate) subscribers: usize,
    pub(crate) measure: Measure,
    /// After this the load client gives up.
    pub(crate) limit_seconds: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Measure {
    /// Streams of as many deltas as fast as the server can, one after the other.
    Throughput { deltas: usize, rounds: usize },
    /// One stream, a delta every so often.
    Paced { deltas: usize, delay_ms: u64 },
    /// Single events, each timed from its cause until the last subscriber has it.
    Last { events: usize },
    /// Subscribers to whom nothing happens.
    Idle,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Finding {
    Throughput(Throughput),
    Paced(Paced),
    Last { milliseconds: Vec<f64> },
    Idle { bytes_per_connection: f64 },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Throughput {
    /// Deltas that arrived, all subscribers together.
    pub(crate) messages: u64,
    pub(crate) bytes_per_message: f64,
    /// From the first arrival of a stream's first delta to the last arrival of its last one.
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) memory: Memory,
}

/// A server's memory at the end of its run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) resident_bytes: u64,
    pub(crate) peak_bytes: u64,
}

/// From the earliest arrival of a delta at any subscriber to its arrival at each.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Paced {
    pub(crate) deltas_per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) messages: u64,
}
