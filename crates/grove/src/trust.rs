//! The trusted folders, in a file of the data folder.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use grove_checks::Check;
use grove_host::FolderTrust;

use crate::data_folder::write_private;

/// The maximum number of folders. Beyond it, the oldest is dropped and asked for again.
pub(crate) const MAX_FOLDERS: usize = 10_000;

/// The list and its file.
pub(crate) struct TrustedFolders {
    path: PathBuf,
    folders: Mutex<Vec<PathBuf>>,
}

impl TrustedFolders {
    /// Reads the list of a data folder. An unreadable file is logged, and no folder is trusted.
    pub(crate) fn of(data_dir: &Path) -> Self {
        let path = data_dir.join("trusted-folders.json");
        let folders = read(&path).unwrap_or_else(|error| {
            tracing::warn!("no folder is trusted for now: {error:#}");
            Vec::new()
        });
        Self { path, folders: Mutex::new(folders) }
    }

    /// Writes the list before it takes effect.
    fn keep(&self, folders: &mut Vec<PathBuf>, new_folders: Vec<PathBuf>) -> Result<(), String> {
        let text = serde_json::to_string_pretty(&new_folders).map_err(|error| error.to_string())?;
        write_private(&self.path, &text).map_err(|error| format!("{error:#}"))?;
        *folders = new_folders;
        Ok(())
    }
}

impl FolderTrust for TrustedFolders {
    fn is_trusted(&self, folder: &Path) -> bool {
        let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let climbs = folder.components().any(|part| part == std::path::Component::ParentDir);
        !(Check::TrustedPath.is_enforced() && climbs) && folders.iter().any(|trusted| folder.starts_with(trusted))
    }

    fn trust(&self, folder: &Path) -> Result<(), String> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.iter().any(|trusted| trusted == folder) {
            return Ok(());
        }
        let mut new_folders: Vec<PathBuf> =
            folders.iter().skip((folders.len() + 1).saturating_sub(MAX_FOLDERS)).cloned().collect();
        new_folders.push(folder.to_owned());
        self.keep(&mut folders, new_folders)
    }

    fn distrust(&self, folder: &Path) -> Result<(), String> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let new_folders: Vec<PathBuf> = folders.iter().filter(|trusted| *trusted != folder).cloned().collect();
        if new_folders.len() == folders.len() {
            return Ok(());
        }
        self.keep(&mut folders, new_folders)
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("{} is damaged: remove it", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_folder_stays_trusted_with_what_is_below_it_and_nothing_beside_it() {
        let data = tempfile::tempdir().unwrap();
        let trust = TrustedFolders::of(data.path());
        assert!(!trust.is_trusted(Path::new("/w/a")));
        trust.trust(Path::new("/w/a")).unwrap();
        let later = TrustedFolders::of(data.path());
        assert!(later.is_trusted(Path::new("/w/a")) && later.is_trusted(Path::new("/w/a/b")));
        assert!(!later.is_trusted(Path::new("/w/ab")) && !later.is_trusted(Path::new("/w")));
        assert!(!later.is_trusted(Path::new("/w/a/../b")));
        later.distrust(Path::new("/w/a/b")).unwrap();
        assert!(later.is_trusted(Path::new("/w/a/b")), "the folder above it is trusted");
        later.distrust(Path::new("/w/a")).unwrap();
        assert!(!later.is_trusted(Path::new("/w/a")));
        assert!(!TrustedFolders::of(data.path()).is_trusted(Path::new("/w/a")));
    }

    #[test]
    fn a_damaged_list_trusts_nothing() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("trusted-folders.json"), "[\"/w\"").unwrap();
        assert!(!TrustedFolders::of(data.path()).is_trusted(Path::new("/w")));
    }
}
