//! Bodies that are too large for the state, each written once and named by its hash.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use grove_core::*;
use grove_fs::{Backend, FsError, SessionFs};

use super::paths;

/// Stores a body. An existing file is the same, since it is named by its hash.
pub async fn put(fs: &dyn SessionFs, session: &SessionId, content: &ContentId, bytes: &Bytes) -> Result<(), FsError> {
    let path = paths::content(session, content);
    if fs.exists(&path).await? {
        return Ok(());
    }
    match fs.write_file(&path, bytes).await {
        // A storage client may accept text alone.
        Err(FsError::NotText { .. }) => fs.write_file(&as_text(&path), STANDARD.encode(bytes).as_bytes()).await,
        written => written,
    }
}

/// The path of a body as text, in a store that accepts no bytes.
fn as_text(path: &str) -> String {
    format!("{path}.base64")
}

/// Copies the bodies of a session into the folder of its fork.
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

pub async fn get(fs: &dyn SessionFs, session: &SessionId, content: &ContentId) -> Result<Vec<u8>, FsError> {
    let path = paths::content(session, content);
    match fs.read_file(&path).await {
        Err(FsError::NotFound { .. }) if fs.backend() == Backend::Rpc => {
            let text = fs.read_file(&as_text(&path)).await.map_err(|error| error.at(&path))?;
            STANDARD.decode(text).map_err(|error| FsError::Other { path, reason: error.to_string() })
        }
        read => read,
    }
}

/// The stored bodies that a part names.
pub fn named_in(part: &Part) -> Vec<&ContentRef> {
    let attached = match part {
        Part::Content(content) => return vec![content],
        Part::ToolCall(call) => match (&call.status, &call.output) {
            (ToolCallStatus::Completed(result) | ToolCallStatus::PendingResultConfirmation(result), _) => {
                &result.attached
            }
            (_, Some(output)) => &output.attached,
            (_, None) => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let named = attached.iter().flat_map(|attached| match attached {
        ToolAttachment::Content(content) => [Some(content), None],
        ToolAttachment::Edit(change) => [change.before.as_ref(), change.after.as_ref()],
    });
    named.flatten().collect()
}
