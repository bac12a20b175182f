//! The interface of a store.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use crate::workspace::database::Database;
use crate::{Backend, Conventions, FileLines, FsError, Result};

/// A store of files. Every method may be called from several tasks at once.
#[async_trait]
pub trait SessionFs: Debug + Send + Sync {
    /// The kind of store.
    fn backend(&self) -> Backend;

    /// The path conventions of the store's machine.
    fn conventions(&self) -> Conventions {
        Conventions::native()
    }

    /// A path in the store's own spelling, usable on the store's machine. The empty path is the root.
    fn location(&self, path: &str) -> Result<String>;

    /// The key under which a path is locked. Two keys are equal exactly if two paths name the same file of the same
    /// store, whichever handles gave them.
    fn lock_key(&self, path: &str) -> Result<String> {
        self.location(path)
    }

    /// Joins paths in the store's own spelling.
    fn join(&self, parts: &[&str]) -> String {
        self.conventions().join(parts)
    }

    /// The folder of the session in this store, in the store's own spelling: the root. `None` if the store holds
    /// something else, the sessions of a host for instance, or if nothing of the session is kept. Then there is no
    /// workspace.
    fn session_state_path(&self) -> Option<String> {
        None
    }

    /// The default working directory of a session, in the store's own spelling.
    fn initial_cwd(&self) -> Option<String> {
        None
    }

    /// The folder for temporary files, as its own store. It is created with the first file in it.
    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>>;

    /// Folders for temporary files that earlier handles on this store left: their process was killed, or files were
    /// kept on purpose. Nobody else may use the store. Empty if such folders cannot be recognized.
    async fn leftover_tmpdirs(&self) -> Result<Vec<Arc<dyn SessionFs>>> {
        Ok(Vec::new())
    }

    /// One session as its own store, if this store separates its sessions: paths begin in the session's folder, and
    /// temporary files are its own. `None` if all sessions share one root.
    fn session_store(&self, _session: &str) -> Option<Arc<dyn SessionFs>> {
        None
    }

    /// The database of the session in `folder`, if the store supports one. Asking does not create it.
    fn database(&self, _folder: &str) -> Option<Arc<dyn Database>> {
        None
    }

    /// The same store without following symbolic links on the way from the root: it returns [`FsError::Link`] instead.
    /// For folders in which others than Grove write; see [`Confined`](crate::Confined).
    fn without_links(&self) -> Arc<dyn SessionFs>;

    /// All bytes of a file.
    async fn read_file(&self, path: &str) -> Result<Vec<u8>>;

    /// All of a file that is text.
    async fn read_text(&self, path: &str) -> Result<String> {
        let bytes = self.read_file(path).await?;
        String::from_utf8(bytes).map_err(|_| FsError::NotText { path: path.to_owned() })
    }

    /// The bytes of a file from `offset`, at most `length`: fewer if the file ends before, none past its end.
    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// The lines of a file, one after the other, without holding more of it than a line and a chunk if the store
    /// allows it. A line may have `longest` bytes.
    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines>;

    /// Replaces the content of a file. A reader sees the old bytes or the new ones, also after a power cut: when this
    /// returns, they are on the disk. Folders that lead to it are created.
    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// The same with text.
    async fn write_text(&self, path: &str, text: &str) -> Result<()> {
        self.write_file(path, text.as_bytes()).await
    }

    /// Adds bytes to the end of a file, which is created, with its folders, if it is missing. Appends to one file
    /// happen one after the other, in the order in which they were begun. The caller cuts off what a failed call left
    /// behind ([`SessionFs::truncate`]).
    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// The same with text.
    async fn append_text(&self, path: &str, text: &str) -> Result<()> {
        self.append_file(path, text.as_bytes()).await
    }

    /// Returns when everything that was appended to the file is on the disk. Earlier appends are waited for, even if
    /// their callers timed out.
    async fn sync(&self, path: &str) -> Result<()>;

    /// Truncates a file to `length` bytes. A shorter file stays as it is.
    async fn truncate(&self, path: &str, length: u64) -> Result<()>;

    /// Returns whether anything exists at this path.
    async fn exists(&self, path: &str) -> Result<bool> {
        match self.stat(path).await {
            Ok(_) => Ok(true),
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn stat(&self, path: &str) -> Result<Stat>;

    /// Creates a folder and those that lead to it. An existing folder is fine.
    async fn mkdir(&self, path: &str) -> Result<()>;

    /// The names in a folder, sorted.
    async fn readdir(&self, path: &str) -> Result<Vec<String>> {
        Ok(self.readdir_with_types(path).await?.into_iter().map(|entry| entry.name).collect())
    }

    /// The names in a folder and the kind of each, sorted by name. Names that are not UTF-8 are left out.
    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>>;

    /// Removes a file, or a folder.
    async fn rm(&self, path: &str, what: Removal) -> Result<()>;

    /// Renames a file or folder. An existing file of the new name is replaced; its folders must exist.
    async fn rename(&self, from: &str, to: &str) -> Result<()>;
}

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub kind: FileKind,
    /// In bytes; 0 for a folder.
    pub size: u64,
    pub modified: SystemTime,
    /// The creation time; if the store does not know it, the time of the last change.
    pub created: SystemTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    File,
    Folder,
    /// A socket, a device, a link that is not followed: nothing that a session has.
    Other,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: String,
    pub kind: FileKind,
}

/// The extent of [`SessionFs::rm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A file, or an empty folder.
    One,
    /// A file, or a folder with everything in it.
    Everything,
}
