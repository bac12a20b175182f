//! `setup.json`: what the creator of a session configured for its agent.
//!
//! It may hold secrets, so nothing else has its content: no event, no state, no journal. It stays on its host, and is
//! removed when the session is disposed.

use grove_core::SessionId;
use grove_fs::{FsError, Removal, SessionFs};

use super::{paths, remove_if_present};

/// The bytes of the file that are read. A larger one is refused.
pub const MAX_BYTES: usize = 2 << 20;

/// Reads the file; `None` if the session has none.
pub async fn read(fs: &dyn SessionFs, session: &SessionId) -> Result<Option<Vec<u8>>, FsError> {
    let path = paths::setup_file(session);
    match fs.read_range(&path, 0, MAX_BYTES + 1).await {
        Ok(bytes) if bytes.len() > MAX_BYTES => {
            Err(FsError::Other { path, reason: format!("it is larger than {MAX_BYTES} bytes") })
        }
        Ok(bytes) => Ok(Some(bytes)),
        Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the file.
pub async fn write(fs: &dyn SessionFs, session: &SessionId, bytes: &[u8]) -> Result<(), FsError> {
    fs.write_file(&paths::setup_file(session), bytes).await
}

/// Removes the file, if there is one.
pub async fn remove(fs: &dyn SessionFs, session: &SessionId) -> Result<(), FsError> {
    remove_if_present(fs, &paths::setup_file(session), Removal::One).await
}
