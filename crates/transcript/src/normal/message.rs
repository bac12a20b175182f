//! A person's message.

use grove_core::{Extra, MessageOrigin};
use serde::{Deserialize, Serialize};

use super::FileLocation;

/// A message from a person, or from something on a person's behalf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptMessage {
    pub text: String,
    pub origin: MessageOrigin,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<TranscriptAttachment>,
    /// The command at the start of the message, without its slash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

impl Default for TranscriptMessage {
    fn default() -> Self {
        Self {
            text: String::new(),
            origin: MessageOrigin::User,
            attachments: Vec::new(),
            command: None,
            raw: Extra::new(),
        }
    }
}

/// An attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptAttachment {
    pub kind: TranscriptAttachmentKind,
    /// The tool's name for the kind.
    pub foreign_kind: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<FileLocation>,
    /// Its text, if it was included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// The kind of an attachment, as coarse as all tools have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TranscriptAttachmentKind {
    File,
    Folder,
    /// A range of a file.
    Selection,
    Symbol,
    /// A text that was pasted or made for the message.
    Text,
    Image,
    /// Instructions that the tool adds by itself or by name.
    Prompt,
    /// A requested tool, or a set of them.
    Tool,
    Command,
    /// Output of a terminal, a notebook, a debugger, a browser.
    Output,
    Diagnostic,
    /// A commit, or a change in one.
    Change,
    Session,
    #[default]
    Other,
}
