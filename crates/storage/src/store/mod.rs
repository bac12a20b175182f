//! The files of a session's folder, and the stores of these folders.

pub mod artifacts;
pub mod chat_log;
pub mod checkpoints;
pub mod content;
pub mod copies;
pub mod copy;
pub mod info;
pub(crate) mod log_lock;
pub(crate) mod measured;
pub mod pastes;
pub mod paths;
pub(crate) mod register;
pub mod session_file;
pub mod settings;
pub mod setup_file;
pub mod store_move;
pub mod store_scan;
pub(crate) mod stores;

use grove_fs::{FsError, Removal, SessionFs};

/// Removes a file or a folder. One that does not exist is no error.
pub(crate) async fn remove_if_present(fs: &dyn SessionFs, path: &str, what: Removal) -> Result<(), FsError> {
    match fs.rm(path, what).await {
        Ok(()) | Err(FsError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
