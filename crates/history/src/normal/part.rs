//! What came of a message, piece by piece.

use grove_core::Extra;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileLocation, TextRange, TranscriptToolCall};

/// One piece of a turn, in the order of the tool.
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
    /// What is not understood, as it came.
    Raw(Value),
}

/// What was done to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptEdit {
    pub kind: EditKind,
    pub place: FileLocation,
    /// Where it lay before, where it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<FileLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<TextChange>,
    /// Lines that came and lines that went, where the tool says it.
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

/// A stretch of a file and what takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TextChange {
    pub range: TextRange,
    pub text: String,
}

/// Something that the person was asked, beside whether a call may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Question {
    pub title: String,
    pub message: String,
    /// What was answered, in the words of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// Something that the tool says about the turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Notice {
    /// The tool's own word for it.
    pub kind: String,
    /// Empty where there is nothing to show.
    pub text: String,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// Code that stood in the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CodeBlock {
    pub code: String,
    pub language: String,
    /// What was said before it.
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

/// A block of what the tool put before the model beside the person's words. Never the person's words themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextBlock {
    /// The tag; empty for what stands in none.
    pub name: String,
    /// What stands in the tag beside its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub attributes: String,
    pub text: String,
}
