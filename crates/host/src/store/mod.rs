//! The files of a session's folder, and the stores of these folders.

pub(crate) mod artifacts;
pub(crate) mod chat_log;
pub(crate) mod checkpoints;
pub(crate) mod content;
pub(crate) mod copies;
pub(crate) mod copy;
pub(crate) mod info;
pub(crate) mod log_lock;
pub(crate) mod pastes;
pub mod paths;
pub(crate) mod register;
pub(crate) mod session_file;
pub(crate) mod settings;
pub(crate) mod store_move;
pub(crate) mod store_scan;
pub(crate) mod stores;
pub(crate) mod verify;

use grove_fs::{FsError, Removal, SessionFs};

/// Removes a file or a folder. One that does not exist is no error.
pub(crate) async fn remove_if_present(fs: &dyn SessionFs, path: &str, what: Removal) -> Result<(), FsError> {
    match fs.rm(path, what).await {
        Ok(()) | Err(FsError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
