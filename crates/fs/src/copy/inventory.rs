//! What a session's folder holds, file by file, so that two who are far apart can tell whether they have the same.

use sha2::{Digest, Sha256};

use super::list::{self, CopyList, CopyMethod};
use super::stream::PIECE;
use super::{CopyError, CopyPurpose, SessionFolder};
use crate::workspace::{INDEX, MANIFEST, inside};
use crate::{FsError, SessionFs};

/// What a host writes anew whenever it likes. It goes along, but says nothing about whether a session is the same.
const SESSION_FILE: &str = "session.json";

/// A file of a session's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryFile {
    /// Below the session's folder.
    pub path: String,
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
}

/// All of them, in the order in which a copy is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    pub files: Vec<InventoryFile>,
    /// What is neither a file nor a folder, and cannot go along.
    pub not_files: Vec<String>,
}

impl Inventory {
    /// One word for all that was said and is kept: two sessions with the same are the same, byte for byte. What a host
    /// makes of it for itself, `session.json`, the manifest and the list of checkpoints, is left out.
    pub fn stamp(&self) -> String {
        self.hashed(is_content)
    }

    /// One word for all that goes to another host, `session.json` as it is handed over among it: what arrives under
    /// another one is not what was sent. The manifest and the list of checkpoints are made again from the rest.
    pub fn seal(&self) -> String {
        self.hashed(|path| is_content(path) || path == SESSION_FILE)
    }

    fn hashed(&self, counts: impl Fn(&str) -> bool) -> String {
        let mut files: Vec<&InventoryFile> = self.files.iter().filter(|file| counts(&file.path)).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut hash = Sha256::new();
        for file in files {
            // No path has a line's end or a zero byte in it.
            hash.update(file.path.as_bytes());
            hash.update([0]);
            hash.update(file.sha256.as_bytes());
            hash.update(b"\n");
        }
        hex(&hash.finalize())
    }

    /// The same with other bytes in the place of `session.json`, where there is one.
    pub fn with_session_file(mut self, bytes: &[u8]) -> Self {
        for file in self.files.iter_mut().filter(|file| file.path == SESSION_FILE) {
            file.size = bytes.len() as u64;
            file.sha256 = hex(&Sha256::digest(bytes));
        }
        self
    }
}

fn is_content(path: &str) -> bool {
    ![SESSION_FILE, MANIFEST, INDEX].contains(&path)
}

/// Reads everything that a moved session takes with it, but what is made anew of its logs. Nobody may write to it meanwhile.
pub async fn inventory(session_folder: &SessionFolder<'_>) -> Result<Inventory, CopyError> {
    // As a copy sees it.
    let store = session_folder.store.without_links();
    let session_folder = &SessionFolder { store: &*store, ..*session_folder };
    let CopyList { items, others } = list::everything(session_folder, &CopyPurpose::Move).await?;
    let mut files = Vec::new();
    for item in items {
        if item.copy_method == CopyMethod::Folder || list::is_side_file(&item.path) {
            continue;
        }
        if let Some((size, sha256)) = hashed(session_folder.store, &inside(session_folder.folder, &item.path)).await? {
            files.push(InventoryFile { path: item.path, size, sha256 });
        }
    }
    Ok(Inventory { files, not_files: others })
}

/// How long a file is and what it hashes to. One that was taken away since is none.
async fn hashed(store: &dyn SessionFs, path: &str) -> Result<Option<(u64, String)>, FsError> {
    let (mut hash, mut size) = (Sha256::new(), 0_u64);
    loop {
        let piece = match store.read_range(path, size, PIECE).await {
            Ok(piece) => piece,
            Err(FsError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            return Ok(Some((size, hex(&hash.finalize()))));
        }
        hash.update(&piece);
        size += piece.len() as u64;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
