//! The file in the shim's folder with the secret of an agent's tools, for a host that comes back.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The name of the file.
const FILE: &str = "tools.json";
/// The bytes of the file that are read.
const FILE_BYTES: u64 = 1 << 20;

/// The tools' secret, and the calls that the agent has announced in its turn.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct ToolsRecord {
    pub(super) secret: String,
    /// The tools by the agent's ids of the calls.
    #[serde(default)]
    pub(super) announced: BTreeMap<String, String>,
}

impl ToolsRecord {
    /// A record with a new secret.
    pub(super) fn new() -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { secret: hex::encode(bytes), announced: BTreeMap::new() })
    }

    pub(super) fn read(folder: &Path) -> Option<Self> {
        let mut json = String::new();
        let file = OpenOptions::new().read(true).open(folder.join(FILE)).ok()?;
        file.take(FILE_BYTES).read_to_string(&mut json).ok()?;
        let record: Self = serde_json::from_str(&json).ok()?;
        (!record.secret.is_empty()).then_some(record)
    }

    /// Replaces the file.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let (path, part) = (folder.join(FILE), folder.join("tools.json.new"));
        let json = serde_json::to_vec(self)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(&json)?;
        std::fs::rename(part, path)
    }

    /// Removes the file of an earlier process.
    pub(super) fn forget(folder: &Path) {
        std::fs::remove_file(folder.join(FILE)).ok();
        std::fs::remove_file(folder.join(super::SOCKET)).ok();
    }

    /// Returns whether this is the secret. The time it takes says nothing about the secret.
    pub(super) fn knows(&self, secret: &str) -> bool {
        Sha256::digest(secret) == Sha256::digest(&self.secret)
    }
}
