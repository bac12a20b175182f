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
