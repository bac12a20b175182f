//! What Grove asks of a store.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use crate::workspace::database::Database;
use crate::{Backend, Conventions, FileLines, FsError, Result};

/// A store of files. Every method may be called from several tasks at once.
#[async_trait]
pub trait SessionFs: Debug + Send + Sync {
    /// What kind of store it is.
    fn backend(&self) -> Backend;

    /// How paths are spelled where the store lies.
    fn conventions(&self) -> Conventions {
        Conventions::native()
    }

    /// A path in the store's own spelling, as one would use it where the store lies. The empty path is the root.
    fn location(&self, path: &str) -> Result<String>;

    /// Under which key a path is locked. Two keys are equal exactly where two paths name the same file of the same
    /// store, whichever handles they were asked of.
    fn lock_key(&self, path: &str) -> Result<String> {
        self.location(path)
    }

    /// Paths in the store's own spelling, one below the other.
    fn join(&self, parts: &[&str]) -> String {
        self.conventions().join(parts)
    }

    /// The folder of the session that this store keeps, in the store's own spelling: the root. `None` where it keeps
    /// something else, the sessions of a host for instance, or where nothing of the session is to be kept. Then there
    /// is no workspace.
    fn session_state_path(&self) -> Option<String> {
        None
    }

    /// Where a session works that was not told where, in the store's own spelling.
    fn initial_cwd(&self) -> Option<String> {
        None
    }

    /// The folder for temporary files, as a store of its own. It is made with the first file in it.
    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>>;

    /// Folders for temporary files that earlier handles on this store had, and that are still there: their process was
    /// killed, or something was to be kept. The store must be in use by nobody else. Where such folders cannot be told
    /// from others there are none.
    async fn leftover_tmpdirs(&self) -> Result<Vec<Arc<dyn SessionFs>>> {
        Ok(Vec::new())
    }

    /// One session by itself, where a store that keeps several keeps each apart from the others: its paths begin in the
    /// session's folder, and its temporary files are its own. `None` where all sessions share one root.
    fn session_store(&self, _session: &str) -> Option<Arc<dyn SessionFs>> {
        None
    }

    /// The database of the session in `folder`, where the store has room for one. Asking does not make it.
    fn database(&self, _folder: &str) -> Option<Arc<dyn Database>> {
        None
    }

    /// The same store, which follows no symbolic link on its way from the root: it says [`FsError::Link`] instead. For
    /// folders in which others than Grove write; see [`Confined`](crate::Confined).
    fn without_links(&self) -> Arc<dyn SessionFs>;

    /// All bytes of a file.
    async fn read_file(&self, path: &str) -> Result<Vec<u8>>;

    /// All of a file that is text.
    async fn read_text(&self, path: &str) -> Result<String> {
        let bytes = self.read_file(path).await?;
        String::from_utf8(bytes).map_err(|_| FsError::NotText { path: path.to_owned() })
    }

    /// The bytes of a file from `offset`, at most `length` of them: fewer where the file ends before, none past its end.
    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// The lines of a file, one after the other, without holding more of it than a line and a chunk where the store
    /// allows it. A line may have `longest` bytes.
    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines>;

    /// Makes a file hold exactly these bytes. Whoever reads it sees the old bytes or the new ones, also after a power
    /// cut: when this returns, they are on the disk. Folders that lead to it are made.
    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// The same with text.
    async fn write_text(&self, path: &str, text: &str) -> Result<()> {
        self.write_file(path, text.as_bytes()).await
    }

    /// Adds bytes to the end of a file, which is made, with its folders, where it is missing. Appends to one file happen
    /// one after the other, in the order in which they were begun. What a failed call left behind is for the caller to
    /// cut off ([`SessionFs::truncate`]).
    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// The same with text.
    async fn append_text(&self, path: &str, text: &str) -> Result<()> {
        self.append_file(path, text.as_bytes()).await
    }

    /// Returns when everything that was appended to the file is on the disk. What was begun before is waited for, also
    /// where its caller was told that it took too long.
    async fn sync(&self, path: &str) -> Result<()>;

    /// Cuts a file at `length` bytes. A file that is shorter stays as it is.
    async fn truncate(&self, path: &str, length: u64) -> Result<()>;

    /// Whether there is anything at this path.
    async fn exists(&self, path: &str) -> Result<bool> {
        match self.stat(path).await {
            Ok(_) => Ok(true),
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn stat(&self, path: &str) -> Result<Stat>;

    /// Makes a folder and those that lead to it. A folder that is there already is fine.
    async fn mkdir(&self, path: &str) -> Result<()>;

    /// The names in a folder, sorted.
    async fn readdir(&self, path: &str) -> Result<Vec<String>> {
        Ok(self.readdir_with_types(path).await?.into_iter().map(|entry| entry.name).collect())
    }

    /// The names in a folder and what each is, sorted by name. Names that are not text are left out.
    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>>;

    /// Removes a file, or a folder.
    async fn rm(&self, path: &str, what: Removal) -> Result<()>;

    /// Gives a file or folder another name. A file that has that name already is replaced; its folders must be there.
    async fn rename(&self, from: &str, to: &str) -> Result<()>;
}

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub kind: FileKind,
    /// In bytes; 0 for a folder.
    pub size: u64,
    pub modified: SystemTime,
    /// When it was made; where a store does not know that, when it was last modified.
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

/// How much [`SessionFs::rm`] takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A file, or an empty folder.
    One,
    /// A file, or a folder with everything in it.
    Everything,
}
