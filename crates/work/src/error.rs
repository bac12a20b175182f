//! The errors of files and folders.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a file or folder is not shown.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0} is neither a file URI nor an absolute path")]
    NotAFileUri(String),
    #[error("{beginning}… is longer than the limit of {limit} bytes for a path")]
    LongPath { beginning: String, limit: usize },
    #[error("{} cannot be opened: it does not exist", .path.display())]
    NotFound { path: PathBuf },
    /// Outside the roots or in a private folder. It does not reveal whether anything exists there.
    #[error(
        "{} is outside the folders that this host shows: configure `browse-roots` or `read-roots`, or start a session \
         there",
        .path.display()
    )]
    Outside { path: PathBuf },
    #[error("{} cannot be opened: permission denied for the user of this host", .path.display())]
    PermissionDenied { path: PathBuf },
    #[error("{} is not a folder", .path.display())]
    NotAFolder { path: PathBuf },
    #[error("{} is not a file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("{} has more than {limit} entries", .path.display())]
    TooManyEntries { path: PathBuf, limit: usize },
    #[error("{} is larger than {limit} bytes", .path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{} cannot be opened: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    /// It may be seen, and is in no working directory.
    #[error("{} cannot be changed: only files in working directories of sessions can; start a session there", .path.display())]
    ReadOnly { path: PathBuf },
    #[error("{} cannot be changed before it is asked for: send `resourceRequest` with `write`", .path.display())]
    NotGranted { path: PathBuf },
    /// It decides what runs.
    #[error("{} {reason}: changing it is for holders of the scope `approve`", .path.display())]
    Protected { path: PathBuf, reason: &'static str },
    #[error("{} is or contains a working directory, a root or private files of this host: it stays in its place", .path.display())]
    Landmark { path: PathBuf },
    #[error("{} exists already: delete it first, or choose another name", .path.display())]
    Exists { path: PathBuf },
    #[error("{} was changed meanwhile: read it again, then try again", .path.display())]
    Conflict { path: PathBuf },
    #[error("{} is not empty: delete it with `recursive`", .path.display())]
    NotEmpty { path: PathBuf },
    #[error("the position is beyond {size} bytes, the size of {}", .path.display())]
    PastEnd { path: PathBuf, size: u64 },
    #[error("{} has folders below more than {limit} others", .path.display())]
    TooDeep { path: PathBuf, limit: usize },
    #[error("{} is on another file system than its destination: copy it, then delete it", .path.display())]
    OtherFileSystem { path: PathBuf },
    #[error("{} cannot be put inside of itself", .path.display())]
    InsideItself { path: PathBuf },
    #[error("a connection can have {limit} paths to change: ask for a folder instead of its files, or connect again")]
    TooManyGrants { limit: usize },
}

impl FileError {
    /// The system's error about a path that may be shown.
    pub fn from_io(error: io::Error, path: &Path) -> Self {
        let path = path.to_owned();
        match error.kind() {
            // A file in the middle of the path: nothing can be below it.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound { path },
            io::ErrorKind::PermissionDenied => FileError::PermissionDenied { path },
            _ => FileError::Io { path, error },
        }
    }
}

/// Runs blocking work on a path on tokio's threads for it.
pub(crate) async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let owned = path.to_owned();
    match tokio::task::spawn_blocking(move || work(&owned)).await {
        Ok(result) => result,
        Err(error) => Err(FileError::Io { path: path.to_owned(), error: io::Error::other(error) }),
    }
}
