//! Messages that are too large for a conversation: large pastes and attachments go to files of the session.
//!
//! The message refers to them. It happens before the message is an event, so that clients, log and agent see the same
//! one.

use std::sync::Arc;

use grove_agents::SpillStore;
use grove_core::*;
use grove_fs::workspace::{FilesFolder, PasteLocation, Workspace, WorkspaceError};
use grove_fs::{FsError, Removal, SessionFs};
use grove_storage::paths;
use grove_wire::ahp::embedded;
use grove_work::local_path;

use super::SessionTask;
use super::spills::SessionSpills;

/// The beginning of a text that stays in its message, in bytes.
pub const INLINE_BYTES: usize = 2 << 10;

/// The reason why a message could not be made smaller.
#[derive(Debug, thiserror::Error)]
pub enum PasteError {
    #[error("the message contains a part that is too large for the conversation, and {0}")]
    Unreadable(String),
    #[error("the message is too large for the conversation and cannot be kept as a file: {0}")]
    Workspace(#[from] WorkspaceError),
    #[error("the message is too large for the conversation and cannot be kept as a file: {0}")]
    Fs(#[from] FsError),
    #[error(transparent)]
    Rejected(#[from] Rejection),
}

/// Files that were made for a message.
#[derive(Debug, Default)]
pub(super) struct Pastes(Vec<String>);

impl Pastes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A file that was made.
struct PasteFile {
    name: String,
    /// As the store spells it.
    path: String,
}

/// The destination of the files.
struct PasteTarget {
    store: Arc<dyn SessionFs>,
    session: SessionId,
    limit: usize,
    at: jiff::Timestamp,
}

impl SessionTask {
    /// Moves large parts of a command's message into files, with references in their place.
    ///
    /// Nothing is written for a command that would be refused.
    pub(super) async fn store_pastes(&mut self, command: &mut Command) -> Result<Pastes, PasteError> {
        let limit = self.session_context.config.limits.spill_bytes;
        let Some(message) = message_of(command) else { return Ok(Pastes::default()) };
        let carried = embedded::embedded_content(message, limit).map_err(PasteError::Unreadable)?;
        if message.text.len() <= limit && carried.is_empty() {
            return Ok(Pastes::default());
        }
        self.check(command.clone())?;
        let Some(message) = message_of(command) else { return Ok(Pastes::default()) };
        let clipboard = self.clipboard();
        let mut made = Pastes::default();
        match clipboard.take(message, &carried, &mut made).await {
            Ok(()) => Ok(made),
            Err(error) => {
                clipboard.remove(made).await;
                Err(error)
            }
        }
    }

    /// Removes the files of a message that was not published.
    pub(super) async fn forget(&mut self, pastes: Pastes) {
        self.clipboard().remove(pastes).await;
    }

    fn clipboard(&self) -> PasteTarget {
        let now = i64::try_from(self.session_context.env.clock.now().0).ok();
        PasteTarget {
            store: self.logs.store(),
            session: self.tip.id.clone(),
            limit: self.session_context.config.limits.spill_bytes,
            at: now.and_then(|now| jiff::Timestamp::from_millisecond(now).ok()).unwrap_or_default(),
        }
    }
}

impl PasteTarget {
    async fn take(
        &self,
        message: &mut Message,
        carried: &[embedded::EmbeddedContent],
        made: &mut Pastes,
    ) -> Result<(), PasteError> {
        for one in carried {
            let extension = extension(&one.label, one.content_type.as_deref());
            if let Some(file) = self.paste(&one.bytes, &extension, made).await? {
                embedded::replace_with_reference(message, one, &file.path);
            }
        }
        if let Some(file) = self.paste(message.text.as_bytes(), "txt", made).await? {
            message.text = paste_reference(&message.text, &file.path);
            let (kind, display_name) = (AttachmentKind::File, Some(file.name));
            embedded::attach(message, Attachment { kind, path: file.path, display_name });
        }
        Ok(())
    }

    async fn paste(&self, bytes: &[u8], extension: &str, made: &mut Pastes) -> Result<Option<PasteFile>, PasteError> {
        let folder = paths::folder(&self.session);
        let workspace = Workspace::of(self.store.as_ref(), Some(&folder))?;
        match workspace.paste(bytes, extension, self.limit, self.at).await? {
            PasteLocation::Inline => Ok(None),
            PasteLocation::Stored(stored) => {
                made.0.push(stored.name.clone());
                let path = self.store.location(&self.path(&stored.name))?;
                Ok(Some(PasteFile { name: stored.name, path }))
            }
        }
    }

    async fn remove(&self, pastes: Pastes) {
        for name in pastes.0 {
            if let Err(error) = self.store.rm(&self.path(&name), Removal::One).await {
                tracing::warn!(session = %self.session, %error, "a file of a refused message could not be removed");
            }
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", paths::files_folder(&self.session, FilesFolder::Files))
    }
}

/// The message for an agent, with pictures that were too large for the conversation.
///
/// A model sees nothing of a picture that is only mentioned.
pub(super) async fn with_pictures(mut message: Message, spills: &SessionSpills, most: usize) -> Message {
    for picture in embedded::image_references(&message) {
        let Ok(path) = local_path(&picture.uri) else { continue };
        // A larger one did not come with a message.
        if let Some(Ok(bytes)) = spills.read(&path, most.saturating_add(1)).await
            && bytes.len() <= most
        {
            embedded::embed(&mut message, &picture, &bytes);
        }
    }
    message
}

fn message_of(command: &mut Command) -> Option<&mut Message> {
    match command.client_command_mut()? {
        ClientCommand::StartTurn { message, .. } => Some(message),
        ClientCommand::Enqueue { message, .. } | ClientCommand::SetSteering { message, .. } => {
            Some(&mut message.message)
        }
        _ => None,
    }
}

/// The beginning of a text, and the location of all of it.
fn paste_reference(text: &str, path: &str) -> String {
    let end = (0..=INLINE_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let (beginning, size) = (&text[..end], text.len());
    format!("{beginning}\n\n[This is the beginning of a text of {size} bytes. All of it is in the file {path}.]")
}

/// The extension of a file: its client's, or one for its type.
fn extension(label: &str, content_type: Option<&str>) -> String {
    let named = label.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let plain = |extension: &String| {
        (1..=8).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let by_kind = match kind {
        "text/plain" => "txt",
        "text/markdown" => "md",
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        kind => kind.split_once('/').map_or("bin", |(_, sub)| sub),
    };
    named.filter(plain).unwrap_or_else(|| Some(by_kind.to_owned()).filter(plain).unwrap_or_else(|| "bin".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_what_it_is() {
        let cases = [
            ("shot.PNG", Some("image/png"), "png"),
            ("shot", Some("image/jpeg"), "jpg"),
            ("notes", Some("text/markdown; charset=utf-8"), "md"),
            ("odd.../../x", Some("application/vnd.some-thing"), "bin"),
            ("nothing", None, "bin"),
            ("data", Some("application/json"), "json"),
        ];
        for (label, kind, wanted) in cases {
            assert_eq!(extension(label, kind), wanted, "{label}");
        }
    }

    #[test]
    fn a_text_is_never_cut_inside_a_character() {
        let text = "ä".repeat(INLINE_BYTES);
        let short = paste_reference(&format!("x{text}"), "/p");
        assert!(short.starts_with(&format!("x{}\n\n[", "ä".repeat(INLINE_BYTES / 2 - 1))), "{short}");
        assert!(short.ends_with("of 4097 bytes. All of it is in the file /p.]"), "{short}");
    }
}
