//! Storage of a session behind one small filesystem interface.
//!
//! # What this crate owns
//!
//! - [`SessionFs`]: what Grove asks of a store. Whoever keeps a session (a log, its side files) does it through this
//!   trait, so that a local folder, memory, and later a client's own storage are the same to everything above.
//! - [`LocalFs`]: a folder on this machine. Files are made with mode 0600 and folders with 0700, and a file is replaced
//!   whole or not at all.
//! - [`MemoryFs`]: the same in memory, for tests and for sessions that nobody wants to keep. A clone is another handle
//!   on the same files.
//! - [`FsError`]: what can go wrong, with the path it went wrong at.
//!
//! # Paths
//!
//! A path is a name inside the store's root, its parts separated by `/`: `session-state/s1/events.jsonl`. The empty
//! path is the root itself. A path that could lead out of the root (absolute, with `.` or `..` as a part) or that no
//! file can have (with NUL, with an empty part) is refused as [`FsError::BadPath`] before the store is asked.
//!
//! # What it never does
//!
//! It knows nothing of what the files mean, holds no lock across an await, and never writes outside its root. It does
//! follow symbolic links that somebody put into the root: the root is Grove's own folder.
//!
//! # Example
//!
//! ```
//! use grove_fs::{FsError, MemoryFs, SessionFs};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = MemoryFs::default();
//! store.append_file("s1/events.jsonl", b"one\n").await?;
//! store.append_file("s1/events.jsonl", b"two\n").await?;
//! assert_eq!(store.read_range("s1/events.jsonl", 4, 100).await?, b"two\n");
//!
//! let missing = store.read_file("s1/session.json").await.unwrap_err();
//! assert_eq!(missing, FsError::NotFound { path: "s1/session.json".into() });
//! # Ok::<(), FsError>(()) }).unwrap();
//! ```

mod error;
mod local;
mod memory;
mod path;

use std::fmt::Debug;
use std::time::SystemTime;

use async_trait::async_trait;

pub use error::{BadPath, FsError};
pub use local::LocalFs;
pub use memory::MemoryFs;

pub type Result<T> = std::result::Result<T, FsError>;

/// A store of files. Every method may be called from several tasks at once.
#[async_trait]
pub trait SessionFs: Debug + Send + Sync {
    /// All bytes of a file.
    async fn read_file(&self, path: &str) -> Result<Vec<u8>>;

    /// The bytes of a file from `offset`, at most `length` of them: fewer where the file ends before, none past its end.
    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// Makes a file hold exactly these bytes. Whoever reads it sees the old bytes or the new ones, also after a power
    /// cut: when this returns, they are on the disk. Folders that lead to it are made.
    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// Adds bytes to the end of a file, which is made, with its folders, where it is missing. What a failed call left
    /// behind is for the caller to cut off ([`SessionFs::truncate`]).
    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// Returns when everything that was appended to the file is on the disk.
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
    pub kind: Kind,
    /// In bytes; 0 for a folder.
    pub size: u64,
    pub modified: SystemTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    File,
    Folder,
    /// A socket, a device: nothing that a session has.
    Other,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: String,
    pub kind: Kind,
}

/// How much [`SessionFs::rm`] takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A file, or an empty folder.
    One,
    /// A file, or a folder with everything in it.
    Everything,
}
