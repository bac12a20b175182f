//! The position of a host in the output of an agent's process.

use serde::{Deserialize, Serialize};

/// The position in an agent's frames up to which they are handled. It is stored together with the resulting events, so
/// that a host that comes back continues exactly there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCursor {
    /// The agent process that sent the frames: each numbers its own from the beginning. 0 is none.
    #[serde(default)]
    pub process: u64,
    /// All frames up to this one are handled,
    pub frame: u64,
    /// except for these, which still need an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<u64>,
}

impl FrameCursor {
    /// The largest number that is believed when it is read from a disk: no agent says so much.
    pub const MOST: u64 = 1 << 53;

    /// Returns false for numbers that no agent comes to.
    pub fn is_plausible(&self) -> bool {
        self.open.iter().chain([&self.process, &self.frame]).all(|number| *number <= Self::MOST)
    }
}
