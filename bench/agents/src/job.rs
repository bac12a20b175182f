//! The job of a load client, and its result.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

/// The agent of the sessions, by its name in the settings.
pub(crate) const PROVIDER: &str = "scripted-acp";

/// The size of the load.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Shape {
    pub(crate) agents: usize,
    pub(crate) clients: usize,
    /// Chunks per second of each agent.
    pub(crate) rate: u32,
    pub(crate) seconds: u32,
}

impl Shape {
    /// Chunks of each agent.
    pub(crate) fn chunks(&self) -> u64 {
        u64::from(self.rate) * u64::from(self.seconds)
    }

    /// Chunks that arrive at all clients together.
    pub(crate) fn messages(&self) -> u64 {
        self.chunks() * (self.agents * self.clients) as u64
    }

    /// The time of the first memory reading: by then every buffer has been used.
    pub(crate) fn settled(&self) -> Duration {
        Duration::from_secs(10).min(Duration::from_secs(self.seconds.into()) / 2)
    }

    /// The time limit of a run.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds) * 2 + 120)
    }

    /// The prompt that makes an agent stream.
    pub(crate) fn prompt(&self) -> String {
        grove_testkit::acp::prompt(&json!([{"stream": {"count": self.chunks(), "per_second": self.rate}}]))
    }
}

/// The compared programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Contestant {
    Grove,
    Relay,
}

impl Contestant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grove => "grove",
            Self::Relay => "relay",
        }
    }
}

/// The address of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Target {
    Grove {
        /// The address of its WebSockets, and the token.
        ws: String,
        token: String,
        /// The parent of the sessions' working folders.
        folder: PathBuf,
    },
    Relay {
        address: SocketAddr,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) target: Target,
    /// The process whose processor time and memory count.
    pub(crate) pid: u32,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    /// From the first prompt until every agent has answered one, if the run starts them.
    pub(crate) start_seconds: Option<f64>,
    /// From the prompt of the first chunk until the last client has the last chunk.
    pub(crate) wall_seconds: f64,
    /// Chunks that arrived at all clients together.
    pub(crate) messages: u64,
    /// Chunks that a client missed, got twice or out of order; the first few are described.
    pub(crate) faults: u64,
    pub(crate) described: Vec<String>,
    /// The latency from an agent to a client.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) cpu: Cpu,
    pub(crate) settled_bytes: u64,
    pub(crate) end_bytes: u64,
    pub(crate) peak_bytes: u64,
    /// The private memory of all shims together at the end.
    pub(crate) shim_bytes: u64,
}

/// Processor seconds during the streams.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cpu {
    pub(crate) server: f64,
    /// All shims together; a relay has none.
    pub(crate) shims: f64,
    pub(crate) agents: f64,
    pub(crate) load: f64,
}
