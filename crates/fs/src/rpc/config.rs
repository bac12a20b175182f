//! The configuration that a storage client sends when it offers to store sessions.

use serde::{Deserialize, Serialize};

use crate::Conventions;

/// The params of `sessionFs.setProvider`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageClientConfig {
    /// The default working directory of a session.
    pub initial_cwd: String,
    /// The folder of a session, in the names of that session.
    pub session_state_path: String,
    pub conventions: Conventions,
    #[serde(default)]
    pub capabilities: StorageCapabilities,
}

/// The abilities of a storage client beside text files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageCapabilities {
    /// Binary files.
    pub binary: bool,
    /// A database for each session.
    pub sqlite: bool,
    /// Parts of a file (`sessionFs.readFileRange`), so that a log need not be sent whole.
    pub ranges: bool,
}

/// The reason why a storage client is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageClientConfigError {
    #[error("initialCwd must be absolute by the client's conventions ({conventions:?}), and {path:?} is not")]
    InitialCwd { path: String, conventions: Conventions },
    #[error("sessionStatePath must be absolute by the client's conventions ({conventions:?}), and {path:?} is not")]
    SessionStatePath { path: String, conventions: Conventions },
}

impl StorageClientConfig {
    /// Checks that sessions can be stored there.
    pub fn check(&self) -> Result<(), StorageClientConfigError> {
        let conventions = self.conventions;
        let relative = |path: &String| (!conventions.is_absolute(path)).then(|| path.clone());
        if let Some(path) = relative(&self.initial_cwd) {
            return Err(StorageClientConfigError::InitialCwd { path, conventions });
        }
        if let Some(path) = relative(&self.session_state_path) {
            return Err(StorageClientConfigError::SessionStatePath { path, conventions });
        }
        Ok(())
    }
}
