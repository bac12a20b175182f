//! Folders that the user trusts: agents may start to work there without asking first.

use std::path::Path;

/// The list of trusted folders.
pub trait FolderTrust: Send + Sync {
    /// Says whether the folder, or one above it, is trusted.
    fn is_trusted(&self, folder: &Path) -> bool;

    /// Trusts a folder from now on; the error says why that cannot be stored.
    fn trust(&self, folder: &Path) -> Result<(), String>;

    /// Revokes that; the error says why that cannot be stored. A trusted folder above it stays trusted.
    fn distrust(&self, folder: &Path) -> Result<(), String>;
}
