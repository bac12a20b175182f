//! What a shim is started with.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use grove_work::Program;
use serde::{Deserialize, Serialize};

use crate::ShimError;

/// What a shim is started with. It is handed over on the shim's stdin, since an agent's environment may hold secrets,
/// which neither the list of processes nor a file should show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimOptions {
    /// Where the socket and the logs lie. It is the shim's own, and only its user may enter it (mode 0700).
    pub folder: PathBuf,
    /// The agent.
    pub agent: Program,
    #[serde(default)]
    pub limits: ShimLimits,
}

/// The bounds of a shim. What happens beyond each is said beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShimLimits {
    /// Bytes of one line, in either direction. An agent that says a longer one is ended; a longer write is refused.
    pub line_bytes: usize,
    /// Bytes of lines that were not acknowledged. The agent's stdout is not read any further, so that it waits.
    pub spool_bytes: u64,
    /// Bytes of lines that the agent has not taken from its stdin. The connection of the host that writes more is
    /// closed.
    pub stdin_bytes: usize,
    /// Bytes of what the agent said on stderr. The newest are kept.
    pub log_bytes: u64,
    /// How long an agent runs on without a host. Then it is ended, and sooner where the folder is gone.
    pub alone: Duration,
    /// How long the last words of an agent that has ended wait for a host. Then the shim ends with them.
    pub linger: Duration,
    /// How long an agent may take to end when its stdin closes, and again when it gets SIGTERM. Then it is killed.
    pub grace: Duration,
}

impl Default for ShimLimits {
    fn default() -> Self {
        Self {
            line_bytes: 64 << 20,
            spool_bytes: 256 << 20,
            stdin_bytes: 128 << 20,
            log_bytes: 1 << 20,
            alone: Duration::from_secs(60 * 60),
            linger: Duration::from_secs(60 * 60),
            grace: Duration::from_secs(5),
        }
    }
}

impl ShimOptions {
    /// What a host hands over.
    pub fn from_stdin() -> Result<Self, ShimError> {
        let mut json = Vec::new();
        std::io::stdin().lock().read_to_end(&mut json).map_err(ShimError::Io)?;
        serde_json::from_slice(&json).map_err(|error| ShimError::Options(error.to_string()))
    }
}
