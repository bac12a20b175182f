//! Pasted text and attachments that are too large for a message.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use super::{FilesFolder, Workspace, WorkspaceError};
use crate::SessionFs;

/// The prefix of such a file's name. A time in milliseconds, a dot and an extension follow.
pub const PASTE: &str = "paste-";
/// The most bytes that stay in a message. Larger pastes go to a file.
pub const PASTE_LIMIT: usize = 64 * 1024;

/// The location of a paste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasteLocation {
    /// In the message itself: it is small.
    Inline,
    /// In a file, to which the message refers.
    Stored(StoredPaste),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPaste {
    /// Below `files/`.
    pub name: String,
    pub size: usize,
}

/// The text in the message in place of the bytes. Code that knows the backend's spelling uses the full path instead.
impl fmt::Display for StoredPaste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[pasted: {} bytes, in the session's file {}/{}]", self.size, FilesFolder::Files.folder(), self.name)
    }
}

impl Workspace<'_> {
    /// Stores pasted bytes in a file of the session, if there are more than `limit`. `extension` is a suggestion.
    pub async fn paste(
        &self,
        bytes: &[u8],
        extension: &str,
        limit: usize,
        at: Timestamp,
    ) -> Result<PasteLocation, WorkspaceError> {
        if bytes.len() <= limit {
            return Ok(PasteLocation::Inline);
        }
        let extension = usable(extension);
        let files = self.folder_view(FilesFolder::Files)?;
        loop {
            let name = format!("{PASTE}{}.{extension}", next_millisecond(at));
            // It may exist from before the host's start, or before the clock was set back.
            if !files.exists(&name).await? {
                files.write_file(&name, bytes).await?;
                return Ok(PasteLocation::Stored(StoredPaste { name, size: bytes.len() }));
            }
        }
    }
}

/// The time in milliseconds, or the first one after it that is unused: two pastes may come within one.
fn next_millisecond(at: Timestamp) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = u64::try_from(at.as_millisecond()).unwrap_or(0);
    let next = |last: u64| Some(now.max(last.saturating_add(1)));
    match LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
        Ok(last) | Err(last) => now.max(last.saturating_add(1)),
    }
}

/// The suggested extension, if it is a plain one.
fn usable(extension: &str) -> &str {
    let extension = extension.strip_prefix('.').unwrap_or(extension);
    let plain = (1..=16).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { extension } else { "bin" }
}
