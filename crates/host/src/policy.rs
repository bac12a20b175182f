//! The rules that answer permission requests, as the program passes them to the host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_policy::Policy;

/// The rules of the settings and of repositories.
pub trait PermissionRules: Send + Sync {
    /// The rules for sessions in a folder. They are read again if their files have changed.
    fn rules_for(&self, folder: Option<&Path>) -> LoadedRules;

    /// The path without symbolic links, as far as it exists; `None` if that cannot be known.
    fn real_path(&self, path: &Path) -> Option<PathBuf>;
}

/// The rules for one folder.
#[derive(Clone, Debug, Default)]
pub struct LoadedRules {
    pub policy: Arc<Policy>,
    /// The home folder of the user.
    pub home: Option<String>,
    /// A warning for people: rules that do not count yet, or cannot be read.
    pub warning: Option<String>,
}
