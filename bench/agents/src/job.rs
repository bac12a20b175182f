//! What the driver asks of a load client, and what it answers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

/// The provider of the sessions, as the settings name it.
pub(crate) const PROVIDER: &str = "scripted-acp";

/// How much there is to bring to whom.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Shape {
    pub(crate) agents: usize,
    pub(crate) clients: usize,
    /// Chunks a second of each agent.
    pub(crate) rate: u32,
    pub(crate) seconds: u32,
}

impl Shape {
    /// Chunks of each agent.
    pub(crate) fn chunks(&self) -> u64 {
        u64::from(self.rate) * u64::from(self.seconds)
    }

    /// Chunks that arrive, all clients together.
    pub(crate) fn messages(&self) -> u64 {
        self.chunks() * (self.agents * self.clients) as u64
    }

    /// When memory is read for the first time: by then every buffer has been used.
    pub(crate) fn settled(&self) -> Duration {
        Duration::from_secs(10).min(Duration::from_secs(self.seconds.into()) / 2)
    }

    /// After this a run has failed.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds) * 2 + 120)
    }

    /// The prompt that makes an agent stream.
    pub(crate) fn prompt(&self) -> String {
        grove_testkit::acp::prompt(&json!([{"stream": {"count": self.chunks(), "per_second": self.rate}}]))
    }
}

/// What is compared.
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

/// Where a server is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Target {
    Grove {
        /// The address of its WebSockets, and what opens them.
        ws: String,
        token: String,
        /// Where the sessions' working folders lie.
        folder: PathBuf,
    },
    Relay {
        address: SocketAddr,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) target: Target,
    /// Whose processor time and memory count.
    pub(crate) pid: u32,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    /// From the first prompt until every agent has answered one, where they were started for it.
    pub(crate) start_seconds: Option<f64>,
    /// From the first chunk's prompt until the last client had the last chunk.
    pub(crate) wall_seconds: f64,
    /// Chunks that arrived, all clients together.
    pub(crate) messages: u64,
    /// Chunks that a client never got, got twice or got out of their order; the first few are described.
    pub(crate) faults: u64,
    pub(crate) described: Vec<String>,
    /// From a chunk's being said to its arrival at a client.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) cpu: Cpu,
    pub(crate) settled_bytes: u64,
    pub(crate) end_bytes: u64,
    pub(crate) peak_bytes: u64,
    /// What the shims have in memory of their own at the end, all together.
    pub(crate) shim_bytes: u64,
}

/// Processor seconds while the agents streamed.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cpu {
    pub(crate) server: f64,
    /// All shims together; a relay has none.
    pub(crate) shims: f64,
    pub(crate) agents: f64,
    pub(crate) load: f64,
}
