//! Common types of many channels: texts, references to contents, places in texts, file edits, errors, usage.

use serde::{Deserialize, Serialize};

use crate::ahp::macros::records;
use crate::ahp::{Object, Uri};

/// A plain text, or Markdown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum StringOrMarkdown {
    Plain(String),
    Markdown { markdown: String },
}

impl StringOrMarkdown {
    /// The text, plain or Markdown.
    pub fn text(&self) -> &str {
        match self {
            StringOrMarkdown::Plain(text) | StringOrMarkdown::Markdown { markdown: text } => text,
        }
    }
}

impl Default for StringOrMarkdown {
    fn default() -> Self {
        Self::Plain(String::new())
    }
}

impl From<String> for StringOrMarkdown {
    fn from(text: String) -> Self {
        Self::Plain(text)
    }
}

impl From<&str> for StringOrMarkdown {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

records! {
    /// Content that is stored elsewhere and fetched with `resourceRead`.
    #[derive(Default, Eq)]
    pub struct ContentRef {
        pub uri: Uri,
        pub size_hint: Option<u64>,
        pub content_type: Option<String>,
        pub nonce: Option<String>,
    }

    /// Both counts start at zero; `character` counts UTF-16 units.
    #[derive(Copy, Default, Eq)]
    pub struct TextPosition {
        pub line: u64,
        pub character: u64,
    }

    #[derive(Copy, Default, Eq)]
    pub struct TextRange {
        pub start: TextPosition,
        pub end: TextPosition,
    }

    #[derive(Copy, Default, Eq)]
    pub struct TextSelection {
        pub range: TextRange,
    }

    #[derive(Default, Eq)]
    pub struct Icon {
        pub src: Uri,
        pub content_type: Option<String>,
        /// Like `48x48`, or `any`.
        pub sizes: Option<Vec<String>>,
        /// `light` or `dark`.
        pub theme: Option<String>,
    }

    /// A change of one file. Without `before` it is new, without `after` it is deleted, and with two URIs it is moved.
    #[derive(Default, Eq)]
    pub struct FileEdit {
        pub before: Option<FileEditSide>,
        pub after: Option<FileEditSide>,
        pub diff: Option<FileEditDiffStats>,
    }

    #[derive(Default, Eq)]
    pub struct FileEditSide {
        pub uri: Uri,
        pub content: ContentRef,
    }

    /// Counted in lines.
    #[derive(Default, Eq)]
    pub struct FileEditDiffStats {
        pub added: Option<u64>,
        pub removed: Option<u64>,
    }

    #[derive(Default, Eq)]
    pub struct FileEditCollection {
        pub items: Vec<FileEdit>,
    }

    /// A summary of a session's or a chat's changes.
    #[derive(Default, Eq)]
    pub struct ChangesSummary {
        pub additions: Option<u64>,
        pub deletions: Option<u64>,
        pub files: Option<u64>,
    }

    #[derive(Default)]
    pub struct UsageInfo {
        pub input_tokens: Option<u64>,
        pub output_tokens: Option<u64>,
        pub model: Option<String>,
        pub cache_read_tokens: Option<u64>,
        pub meta: Option<Object>,
    }

    #[derive(Default)]
    pub struct ErrorInfo {
        pub error_type: String,
        pub message: String,
        pub stack: Option<String>,
        pub meta: Option<Object>,
    }
}
