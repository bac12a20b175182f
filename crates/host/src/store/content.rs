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

/// Copies the bodies of a session into the folder of another, which comes from it.
pub(crate) async fn copy_all(
    (from, source): (&dyn SessionFs, &SessionId),
    (to, target): (&dyn SessionFs, &SessionId),
) -> Result<(), FsError> {
    let folder = paths::contents(source);
    if !from.exists(&folder).await? {
        return Ok(());
    }
    for name in from.readdir(&folder).await? {
        let content = ContentId::from(name);
        let bytes = get(from, source, &content).await?;
        put(to, target, &content, &bytes.into()).await?;
    }
    Ok(())
}

pub(crate) async fn get(fs: &dyn SessionFs, session: &SessionId, content: &ContentId) -> Result<Vec<u8>, FsError> {
    fs.read_file(&paths::content(session, content)).await
}
