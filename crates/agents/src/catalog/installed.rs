//! The agents that `grove agents install` has put into the data folder.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file of an installed agent, in its folder `programs/NAME`.
const RECORD: &str = "installed.json";
/// The largest such file that is read.
pub const RECORD_BYTES: u64 = 64 << 10;

/// An agent that Grove has installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledAgent {
    /// The path of its program.
    pub program: PathBuf,
    /// The kind of its package ([`AgentPackage::kind`](super::AgentPackage::kind)).
    pub kind: String,
    pub version: String,
}

impl InstalledAgent {
    /// The folder of an agent below the folder of all of them.
    pub fn folder(programs: &Path, agent: &str) -> PathBuf {
        programs.join(agent)
    }

    /// Reads the record of an agent; `None` if it is not installed. A program outside of the agent's folder is none.
    pub fn read(programs: &Path, agent: &str) -> Option<Self> {
        let folder = Self::folder(programs, agent);
        let mut text = String::new();
        File::open(folder.join(RECORD)).ok()?.take(RECORD_BYTES).read_to_string(&mut text).ok()?;
        let record: Self = serde_json::from_str(&text).ok()?;
        let is_inside =
            record.program.starts_with(&folder) && !record.program.components().any(|c| c.as_os_str() == "..");
        is_inside.then_some(record)
    }

    /// Writes the record of an agent, as a whole: from then on it counts as installed.
    pub fn write(&self, programs: &Path, agent: &str) -> io::Result<()> {
        let folder = Self::folder(programs, agent);
        fs::create_dir_all(&folder)?;
        let draft = folder.join("installed.json.new");
        let mut file = File::create(&draft)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(draft, folder.join(RECORD))
    }
}
