//! Bodies that are too large for the state, each written once and named by its hash.

use bytes::Bytes;
use grove_core::{ContentId, SessionId};
use grove_fs::{FsError, SessionFs};

use super::paths;

/// Keeps a body. What is there already is the same, since it is named by its hash.
pub(crate) async fn put(
    fs: &dyn SessionFs,
    session: &SessionId,
    content: &ContentId,
    bytes: &Bytes,
) -> Result<(), FsError> {
    let path = paths::content(session, content);
    if fs.exists(&path).await? { Ok(()) } else { fs.write_file(&path, bytes).await }
}

pub(crate) async fn get(fs: &dyn SessionFs, session: &SessionId, content: &ContentId) -> Result<Vec<u8>, FsError> {
    fs.read_file(&paths::content(session, content)).await
}
