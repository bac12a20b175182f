//! Messages to an agent.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::ids::Uri;

/// The longest query.
pub const MAX_QUERY_BYTES: usize = 1 << 20;
/// The most attachments of a message.
pub const MAX_ATTACHMENTS: usize = 100;
/// The largest attached text or image, for any provider. A provider with a lower limit refuses the rest itself, before
/// it sends anything: it alone knows the size of a message in transit.
pub const MAX_ATTACHMENT_BYTES: usize = 16 << 20;

/// A message to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// The person's text.
    pub query: String,
    /// The attachments.
    pub attached_context: Vec<AttachedContext>,
}

impl SendOptions {
    /// A query without attachments.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), attached_context: Vec::new() }
    }

    /// Checks that it may be sent to a provider that accepts these attachments.
    pub fn check(&self, taken: SupportedAttachments) -> Result<(), SendError> {
        if self.query.len() > MAX_QUERY_BYTES {
            return Err(SendError::LongQuery(self.query.len()));
        }
        if self.attached_context.len() > MAX_ATTACHMENTS {
            return Err(SendError::ManyAttachments(self.attached_context.len()));
        }
        for attached in &self.attached_context {
            if !taken.takes(attached.kind()) {
                return Err(SendError::AttachmentNotTaken(attached.kind()));
            }
            if attached.size() > MAX_ATTACHMENT_BYTES {
                return Err(SendError::LargeAttachment(attached.size()));
            }
        }
        Ok(())
    }
}

/// An attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachedContext {
    /// A file.
    File {
        /// Its URI.
        uri: Uri,
    },
    /// A folder.
    Folder {
        /// Its URI.
        uri: Uri,
    },
    /// A part of a file.
    Selection {
        /// The file's URI.
        uri: Uri,
        /// The first line, counted from 1.
        first_line: u32,
        /// The last line.
        last_line: u32,
        /// The selected text.
        text: Arc<str>,
    },
    /// An image.
    Image {
        /// Its kind, such as `image/png`.
        media_type: Arc<str>,
        /// Its bytes.
        data: Arc<[u8]>,
    },
}

impl AttachedContext {
    /// The kind of attachment.
    pub fn kind(&self) -> AttachedContextKind {
        match self {
            Self::File { .. } => AttachedContextKind::File,
            Self::Folder { .. } => AttachedContextKind::Folder,
            Self::Selection { .. } => AttachedContextKind::Selection,
            Self::Image { .. } => AttachedContextKind::Image,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::File { .. } | Self::Folder { .. } => 0,
            Self::Selection { text, .. } => text.len(),
            Self::Image { data, .. } => data.len(),
        }
    }
}

/// The kind of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachedContextKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A part of a file.
    Selection,
    /// An image.
    Image,
}

impl fmt::Display for AttachedContextKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "files",
            Self::Folder => "folders",
            Self::Selection => "selections",
            Self::Image => "images",
        })
    }
}

/// The attachments that a provider accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupportedAttachments {
    /// Files.
    pub files: bool,
    /// Folders.
    pub folders: bool,
    /// Parts of files.
    pub selections: bool,
    /// Images.
    pub images: bool,
}

impl SupportedAttachments {
    /// All of them.
    pub const ALL: Self = Self { files: true, folders: true, selections: true, images: true };

    /// Returns whether a kind is accepted.
    pub fn takes(self, kind: AttachedContextKind) -> bool {
        match kind {
            AttachedContextKind::File => self.files,
            AttachedContextKind::Folder => self.folders,
            AttachedContextKind::Selection => self.selections,
            AttachedContextKind::Image => self.images,
        }
    }
}

/// The reason why a message cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The query is too long.
    #[error("the message has {0} bytes, and the limit is {MAX_QUERY_BYTES}: attach the long part as a file")]
    LongQuery(usize),
    /// Too many attachments.
    #[error("the message has {0} attachments, and the limit is {MAX_ATTACHMENTS}: attach their folder")]
    ManyAttachments(usize),
    /// The provider does not accept this kind.
    #[error("{0} cannot be attached here: leave them out, or describe their content")]
    AttachmentNotTaken(AttachedContextKind),
    /// One attachment is too large.
    #[error("an attachment has {0} bytes, and the limit is {MAX_ATTACHMENT_BYTES}: attach the file itself")]
    LargeAttachment(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_does_not_take_is_refused_with_a_reason() {
        let image = AttachedContext::Image { media_type: "image/png".into(), data: Arc::from([1_u8]) };
        let options = SendOptions { query: "look".into(), attached_context: vec![image] };
        assert_eq!(options.check(SupportedAttachments::ALL), Ok(()));
        let only_files = SupportedAttachments { files: true, ..SupportedAttachments::default() };
        let refused = options.check(only_files).unwrap_err();
        assert_eq!(refused, SendError::AttachmentNotTaken(AttachedContextKind::Image));
        assert!(refused.to_string().starts_with("images cannot be attached"));
    }

    #[test]
    fn what_is_sent_has_bounds() {
        let long = SendOptions::new("x".repeat(MAX_QUERY_BYTES + 1));
        assert!(matches!(long.check(SupportedAttachments::ALL), Err(SendError::LongQuery(_))));
        assert_eq!(SendOptions::new("x".repeat(MAX_QUERY_BYTES)).check(SupportedAttachments::ALL), Ok(()));
        let file = AttachedContext::File { uri: "file:///a".into() };
        let many = SendOptions { query: String::new(), attached_context: vec![file; MAX_ATTACHMENTS + 1] };
        assert!(matches!(many.check(SupportedAttachments::ALL), Err(SendError::ManyAttachments(_))));
        let text = "x".repeat(MAX_ATTACHMENT_BYTES + 1).into();
        let large = AttachedContext::Selection { uri: "file:///a".into(), first_line: 1, last_line: 2, text };
        let large = SendOptions { query: String::new(), attached_context: vec![large] };
        assert!(matches!(large.check(SupportedAttachments::ALL), Err(SendError::LargeAttachment(_))));
    }
}
