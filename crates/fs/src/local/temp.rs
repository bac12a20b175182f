//! The folder for temporary files, in the system's.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// How many bytes of a hash tell two stores apart.
const OWNER_BYTES: usize = 8;
/// How many random bytes a name has.
const RANDOM_BYTES: usize = 16;

/// A folder of its own below the system's folder for temporary files. It is made when something is written into it, and
/// removed when the last handle is gone, if nothing is left in it: what was kept on purpose stays.
#[derive(Debug)]
pub(super) struct TempFolder(PathBuf);

impl TempFolder {
    /// Chooses one for the store at `root`, of which its name tells. The system's folder is everybody's, so nobody may
    /// guess the rest of the name and be there first.
    pub(super) fn choose(root: &Path) -> io::Result<Self> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(format!("no random numbers: {error}")))?;
        Ok(Self(std::env::temp_dir().join(format!("{}{}", prefix(root)?, hex::encode(random)))))
    }

    /// Those that were chosen for the store at `root` before, and are still there. What somebody else made under such a
    /// name is not ours.
    pub(super) fn left(root: &Path) -> io::Result<Vec<Self>> {
        let prefix = prefix(root)?;
        let mut left = Vec::new();
        for entry in fs::read_dir(std::env::temp_dir())? {
            let entry = entry?;
            let random = entry.file_name().to_str().and_then(|name| name.strip_prefix(&prefix).map(str::to_owned));
            if random.and_then(|random| hex::decode(random).ok()).is_none_or(|random| random.len() != RANDOM_BYTES) {
                continue;
            }
            // Others remove theirs at the same time.
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

/// What the names of all folders of one store begin with.
fn prefix(root: &Path) -> io::Result<String> {
    let hash = Sha256::digest(std::path::absolute(root)?.as_os_str().as_encoded_bytes());
    Ok(format!("grove-{}-", hex::encode(&hash[..OWNER_BYTES])))
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // It was never made, or something is in it: both are fine.
        fs::remove_dir(&self.0).ok();
    }
}
