//! The results of a message, piece by piece.

use grove_core::Extra;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileLocation, TextRange, TranscriptToolCall};

/// A piece of a turn, in the tool's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TranscriptPart {
    Text(String),
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    ToolCall(Box<TranscriptToolCall>),
    Edit(Box<TranscriptEdit>),
    Question(Question),
    Notice(Notice),
    /// Raw data.
    Raw(Value),
}

/// An edit of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptEdit {
    pub kind: EditKind,
    pub place: FileLocation,
    /// Its earlier path, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<FileLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<TextChange>,
    /// Numbers of added and removed lines, if the tool has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EditKind {
    Create,
    Delete,
    Rename,
    #[default]
    Edit,
}

/// A range of a file and its replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TextChange {
    pub range: TextRange,
    pub text: String,
}

/// A question to the person, other than a permission request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Question {
    pub title: String,
    pub message: String,
    /// The answer, in the tool's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// A notice of the tool about the turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Notice {
    /// The tool's own word for the kind.
    pub kind: String,
    /// Empty if there is nothing to show.
    pub text: String,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// Code in the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CodeBlock {
    pub code: String,
    pub language: String,
    /// The text before it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub before: String,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// Public code that the answer resembles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CodeCitation {
    pub source: String,
    pub licence: String,
    pub snippet: String,
}

/// A block of the model's prompt beside the person's words. Never the person's words themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextBlock {
    /// The tag; empty for text outside of any.
    pub name: String,
    /// The tag's attributes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub attributes: String,
    pub text: String,
}
