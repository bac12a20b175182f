//! The options of a shim.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use grove_work::Program;
use serde::{Deserialize, Serialize};

use crate::ShimError;

/// The options of a shim. They are passed on the shim's stdin, since an agent's environment may hold secrets, which
/// neither the list of processes nor a file should show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimOptions {
    /// The folder of the socket and the logs. It is the shim's own, and only its user may enter it (mode 0700).
    pub folder: PathBuf,
    /// The agent.
    pub agent: Program,
    #[serde(default)]
    pub limits: ShimLimits,
}

/// The limits of a shim, each with the consequence of exceeding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShimLimits {
    /// Bytes of one line, in either direction. An agent that sends a longer one is ended; a longer write is refused.
    pub line_bytes: usize,
    /// Bytes of lines that are not acknowledged. Beyond it the agent's stdout is not read, so that the agent waits.
    pub spool_bytes: u64,
    /// Bytes of lines that the agent has not read from its stdin. A host that writes more is disconnected.
    pub stdin_bytes: usize,
    /// Bytes of the agent's stderr. The newest are kept.
    pub log_bytes: u64,
    /// The time that an agent runs on without a host. Then it is ended, and sooner if the folder is gone.
    pub alone: Duration,
    /// The time that the last lines of an agent that has ended wait for a host. Then the shim ends with them.
    pub linger: Duration,
    /// The time that an agent may take to end when its stdin closes, and again when it gets SIGTERM. Then it is killed.
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
    /// Reads the options that a host passes.
    pub fn from_stdin() -> Result<Self, ShimError> {
        let mut json = Vec::new();
        std::io::stdin().lock().read_to_end(&mut json).map_err(ShimError::Io)?;
        serde_json::from_slice(&json).map_err(|error| ShimError::Options(error.to_string()))
    }
}
