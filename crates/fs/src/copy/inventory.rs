//! The inventory of a session's folder, file by file: two distant hosts compare it to tell whether their copies are
//! equal.

use sha2::{Digest, Sha256};

use super::list::{self, CopyList, CopyMethod};
use super::stream::PIECE;
use super::{CopyError, CopyPurpose, SessionFolder};
use crate::workspace::{INDEX, MANIFEST, inside};
use crate::{FsError, SessionFs};

/// The file that a host rewrites at any time. It is copied, but does not count when sessions are compared.
const SESSION_FILE: &str = "session.json";
/// The configuration by a session's creator, with secrets: it stays on its host.
const SETUP_FILE: &str = "setup.json";

/// A file of a session's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryFile {
    /// The path below the session's folder.
    pub path: String,
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
}

/// All files, in the order in which a copy is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    pub files: Vec<InventoryFile>,
    /// Paths that are neither files nor folders, and cannot be copied.
    pub not_files: Vec<String>,
}

impl Inventory {
    /// A hash of the session's own content: two sessions with the same stamp are equal, byte for byte. Files that a
    /// host derives, `session.json`, the manifest and the list of checkpoints, are left out.
    pub fn stamp(&self) -> String {
        self.hashed(is_content)
    }

    /// A hash of everything that goes to another host, including `session.json` as it is handed over: a copy that
    /// arrives with another seal is not what was sent. The manifest and the list of checkpoints are rebuilt from the
    /// rest.
    pub fn seal(&self) -> String {
        self.hashed(|path| is_content(path) || path == SESSION_FILE)
    }

    fn hashed(&self, counts: impl Fn(&str) -> bool) -> String {
        let mut files: Vec<&InventoryFile> = self.files.iter().filter(|file| counts(&file.path)).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut hash = Sha256::new();
        for file in files {
            // No path contains a line end or a NUL.
            hash.update(file.path.as_bytes());
            hash.update([0]);
            hash.update(file.sha256.as_bytes());
            hash.update(b"\n");
        }
        hex::encode(hash.finalize())
    }

    /// The inventory with these bytes as `session.json`, if there is one.
    pub fn with_session_file(mut self, bytes: &[u8]) -> Self {
        for file in self.files.iter_mut().filter(|file| file.path == SESSION_FILE) {
            file.size = bytes.len() as u64;
            file.sha256 = hex::encode(Sha256::digest(bytes));
        }
        self
    }
}

fn is_content(path: &str) -> bool {
    ![SESSION_FILE, MANIFEST, INDEX].contains(&path)
}

/// Reads everything that belongs to a moved session, except for files that are rebuilt from its logs, and its setup.
/// Nobody may write to it meanwhile.
pub async fn inventory(session_folder: &SessionFolder<'_>) -> Result<Inventory, CopyError> {
    // Without links, like a copy.
    let store = session_folder.store.without_links();
    let session_folder = &SessionFolder { store: &*store, ..*session_folder };
    let CopyList { items, others } = list::everything(session_folder, &CopyPurpose::Move).await?;
    let mut files = Vec::new();
    for item in items {
        if item.copy_method == CopyMethod::Folder || list::is_side_file(&item.path) || item.path == SETUP_FILE {
            continue;
        }
        if let Some((size, sha256)) = hashed(session_folder.store, &inside(session_folder.folder, &item.path)).await? {
            files.push(InventoryFile { path: item.path, size, sha256 });
        }
    }
    Ok(Inventory { files, not_files: others })
}

/// The length and hash of a file; `None` if it was deleted meanwhile.
async fn hashed(store: &dyn SessionFs, path: &str) -> Result<Option<(u64, String)>, FsError> {
    let (mut hash, mut size) = (Sha256::new(), 0_u64);
    loop {
        let piece = match store.read_range(path, size, PIECE).await {
            Ok(piece) => piece,
            Err(FsError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            return Ok(Some((size, hex::encode(hash.finalize()))));
        }
        hash.update(&piece);
        size += piece.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(path: &str, sha256: &str) -> InventoryFile {
        InventoryFile { path: path.to_owned(), size: 1, sha256: sha256.to_owned() }
    }

    #[test]
    fn a_stamp_is_of_what_is_kept_and_not_of_what_a_host_writes_for_itself() {
        let of = |files: &[InventoryFile]| Inventory { files: files.to_vec(), not_files: Vec::new() }.stamp();
        let one = of(&[held("events.jsonl", "aa"), held("plan.md", "bb"), held("session.json", "cc")]);
        let order = of(&[held("plan.md", "bb"), held("events.jsonl", "aa"), held("workspace.yaml", "dd")]);
        assert_eq!(one, order);
        assert_ne!(one, of(&[held("events.jsonl", "aa"), held("plan.md", "bc")]));
        assert_ne!(one, of(&[held("events.jsonl", "aa"), held("files/plan.md", "bb")]));
    }

    #[test]
    fn a_seal_covers_the_session_file_and_not_what_is_made_again() {
        let of = |files: &[InventoryFile]| Inventory { files: files.to_vec(), not_files: Vec::new() };
        let one = of(&[held("events.jsonl", "aa"), held("session.json", "cc"), held("workspace.yaml", "dd")]);
        assert_eq!(one.seal(), of(&[held("session.json", "cc"), held("events.jsonl", "aa")]).seal());
        assert_ne!(one.seal(), of(&[held("events.jsonl", "aa"), held("session.json", "ce")]).seal());
        let other = one.clone().with_session_file(b"{}");
        assert_eq!(other.stamp(), one.stamp());
        assert_ne!(other.seal(), one.seal());
    }
}
