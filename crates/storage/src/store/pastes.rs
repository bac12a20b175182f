//! The pasted files that messages name: those of a fork name its own.

use std::sync::Arc;

use grove_core::{DerivedCache, Message, SessionId, Turn};
use grove_fs::SessionFs;
use grove_fs::copy::PastePathRewriter;
use grove_fs::workspace::{FilesFolder, PASTE};
use grove_work::file_uri;

use super::paths;

/// The paths of the pasted files of a session, and those of its fork. Messages name them by path and by URI.
///
/// A store that cannot spell paths has told nobody one, so nothing is replaced.
pub fn moved(
    (from, source): (&dyn SessionFs, &SessionId),
    (to, fork): (&dyn SessionFs, &SessionId),
) -> PastePathRewriter {
    let begins =
        |fs: &dyn SessionFs, id| fs.location(&format!("{}/{PASTE}", paths::files_folder(id, FilesFolder::Files)));
    match (begins(from, source), begins(to, fork)) {
        (Ok(old), Ok(new)) => PastePathRewriter::new([(old.as_str(), new.as_str()), (&uri(&old), &uri(&new))]),
        (Err(_), _) | (_, Err(_)) => PastePathRewriter::new([]),
    }
}

/// A path as attachments spell it; other systems' paths stay as they are.
fn uri(path: &str) -> String {
    if path.starts_with('/') { file_uri(path.as_ref()) } else { path.to_owned() }
}

/// The turn with a message that names the fork's files, if its own names others.
pub fn in_turn(moved: &PastePathRewriter, turn: &Turn) -> Option<Arc<Turn>> {
    let message = in_message(moved, &turn.message)?;
    Some(Arc::new(Turn { message, derived: DerivedCache::default(), ..turn.clone() }))
}

/// The message with the fork's files. It is compared as the log has it, so that both are the same.
pub fn in_message(moved: &PastePathRewriter, message: &Message) -> Option<Message> {
    // Most messages name no file, and need not be serialized.
    if message.attachments.is_empty() && message.extra.is_none() && !message.text.contains(PASTE) {
        return None;
    }
    let rewritten = moved.rewrite(&serde_json::to_vec(message).ok()?)?;
    serde_json::from_slice(&rewritten).ok()
}
