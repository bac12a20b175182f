//! What a person said.

use grove_core::{Extra, MessageOrigin};
use serde::{Deserialize, Serialize};

use super::FileLocation;

/// What a person, or something on a person's behalf, sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptMessage {
    pub text: String,
    pub origin: MessageOrigin,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<TranscriptAttachment>,
    /// The command that the message begins with, without its slash.
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

/// Something that was sent along.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptAttachment {
    pub kind: TranscriptAttachmentKind,
    /// What the tool calls the kind.
    pub foreign_kind: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<FileLocation>,
    /// Its text, where it was sent with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// What an attachment is, told as coarsely as all tools agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TranscriptAttachmentKind {
    File,
    Folder,
    /// A stretch of a file.
    Selection,
    Symbol,
    /// Words that were pasted or made for the message.
    Text,
    Image,
    /// Instructions that the tool adds by itself or by name.
    Prompt,
    /// A tool, or a set of them, that the message asks for.
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
