//! What can go wrong with a file or folder.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file or folder is not shown.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0} is no file URI and no absolute path")]
    NotAFileUri(String),
    #[error("{beginning}… is longer than a path may be, which is {limit} bytes")]
    LongPath { beginning: String, limit: usize },
    #[error("{} cannot be opened: there is nothing of that name", .path.display())]
    NotFound { path: PathBuf },
    /// Outside the roots or in a private folder. It says nothing of whether there is anything.
    #[error(
        "{} is outside the folders that this host shows: configure `browse-roots` or `read-roots`, or start a session \
         there",
        .path.display()
    )]
    Outside { path: PathBuf },
    #[error("{} cannot be opened: its permissions keep the user out whom this host runs as", .path.display())]
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
    /// What the system said of a path that may be seen.
    pub fn from_io(error: io::Error, path: &Path) -> Self {
        let path = path.to_owned();
        match error.kind() {
            // A file where a folder should lead on: nothing can be below it.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound { path },
            io::ErrorKind::PermissionDenied => FileError::PermissionDenied { path },
            _ => FileError::Io { path, error },
        }
    }
}

/// Runs blocking work about a path on tokio's threads for it.
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
