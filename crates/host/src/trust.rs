//! Folders that a person trusts: agents may begin to work there without anybody being asked first.

use std::path::Path;

/// Whoever keeps the list.
pub trait FolderTrust: Send + Sync {
    /// Whether the folder, or one that it lies in, is trusted.
    fn is_trusted(&self, folder: &Path) -> bool;

    /// Trusts a folder from now on; the error says why it cannot be kept.
    fn trust(&self, folder: &Path) -> Result<(), String>;

    /// Takes that back; the error says why it cannot be kept. A folder above it that is trusted stays so.
    fn distrust(&self, folder: &Path) -> Result<(), String>;
}
