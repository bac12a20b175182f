//! The folder for temporary files, inside the system's.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The bytes of a hash that distinguish two stores.
const OWNER_BYTES: usize = 8;
/// The random bytes of a name.
const RANDOM_BYTES: usize = 16;

/// A folder below the system's folder for temporary files. It is created with the first write, and removed with the
/// last handle if it is empty: files that were kept on purpose stay.
#[derive(Debug)]
pub(super) struct TempFolder(PathBuf);

impl TempFolder {
    /// Chooses a folder for the store at `root`, which is part of its name. The system's folder is shared, so nobody
    /// may be able to guess the rest of the name and create it first.
    pub(super) fn choose(root: &Path) -> io::Result<Self> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(format!("no random numbers: {error}")))?;
        Ok(Self(std::env::temp_dir().join(format!("{}{}", prefix(root)?, hex::encode(random)))))
    }

    /// The folders chosen earlier for the store at `root` that still exist. A folder that another user created under
    /// such a name is not ours.
    pub(super) fn left(root: &Path) -> io::Result<Vec<Self>> {
        let prefix = prefix(root)?;
        let mut left = Vec::new();
        for entry in fs::read_dir(std::env::temp_dir())? {
            let entry = entry?;
            let random = entry.file_name().to_str().and_then(|name| name.strip_prefix(&prefix).map(str::to_owned));
            if random.and_then(|random| hex::decode(random).ok()).is_none_or(|random| random.len() != RANDOM_BYTES) {
                continue;
            }
            // Other processes remove theirs at the same time.
            let Ok(found) = fs::symlink_metadata(entry.path()) else { continue };
            if found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() {
                left.push(Self(entry.path()));
            }
        }
        Ok(left)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// The prefix of all folder names of one store.
fn prefix(root: &Path) -> io::Result<String> {
    let hash = Sha256::digest(std::path::absolute(root)?.as_os_str().as_encoded_bytes());
    Ok(format!("grove-{}-", hex::encode(&hash[..OWNER_BYTES])))
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // It was never created, or is not empty: both are fine.
        fs::remove_dir(&self.0).ok();
    }
}
