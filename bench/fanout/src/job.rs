//! The job of a load client, and its result.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

/// A compared program, with the protocols of its subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Contestant {
    Grove,
    GroveAhp,
    /// Each of three dialects has a third of the subscribers.
    GroveMixed,
    Bare,
    BareAhp,
    Node,
    Opencode,
    Codex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
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
            Self::GroveAhp => "grove-ahp",
            Self::GroveMixed => "grove-mixed",
            Self::Bare => "bare",
            Self::BareAhp => "bare-ahp",
            Self::Node => "node",
            Self::Opencode => "opencode",
            Self::Codex => "codex",
        }
    }

    pub(crate) fn program(self) -> Program {
        match self {
            Self::Grove | Self::GroveAhp | Self::GroveMixed => Program::Grove,
            Self::Bare | Self::BareAhp => Program::Bare,
            Self::Node => Program::Node,
            Self::Opencode => Program::Opencode,
            Self::Codex => Program::Codex,
        }
    }

    /// The dialects of its subscribers, in turn.
    pub(crate) fn dialects(self) -> &'static [Dialect] {
        match self {
            Self::Grove | Self::Bare | Self::Node => &[Dialect::V1],
            Self::GroveAhp | Self::BareAhp => &[Dialect::Ahp],
            Self::GroveMixed => &[Dialect::V1, Dialect::Ahp, Dialect::AhpPlain],
            Self::Opencode => &[Dialect::Opencode],
            Self::Codex => &[Dialect::Codex],
        }
    }

    pub(crate) fn dialect_of(self, subscriber: usize) -> Dialect {
        let dialects = self.dialects();
        dialects[subscriber % dialects.len()]
    }
}

/// The address of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) contestant: Contestant,
    pub(crate) address: SocketAddr,
    /// The path of its URL.
    pub(crate) path: String,
    /// The process whose processor time and memory count.
    pub(crate) pid: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) target: Target,
    pub(crate) subscribers: usize,
    pub(crate) measure: Measure,
    /// The time limit of the load client.
    pub(crate) limit_seconds: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Measure {
    /// Streams of this many deltas at full speed, one after the other.
    Throughput { deltas: usize, rounds: usize },
    /// One stream with a fixed pause between deltas.
    Paced { deltas: usize, delay_ms: u64 },
    /// Single events, each timed from its cause until the last subscriber has it.
    Last { events: usize },
    /// Subscribers without events.
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
    /// Deltas that arrived at all subscribers together.
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
