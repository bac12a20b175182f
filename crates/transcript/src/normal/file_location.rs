//! The location of a file, a folder or a page.

use serde::{Deserialize, Serialize};

/// A file, a folder or another resource with a URI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileLocation {
    /// The tool's own URI, if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// The path in its machine's spelling, percent-decoded, if it is a path at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The machine or container, if it is not this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<TextRange>,
}

/// A range of a text; lines and columns count from 1, columns in UTF-16 units, and the end is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TextRange {
    pub start: TextPosition,
    pub end: TextPosition,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TextPosition {
    pub line: u64,
    pub column: u64,
}

impl FileLocation {
    /// A path on this machine.
    pub fn local(path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..Self::default() }
    }

    /// The display text: its path, else its URI.
    pub fn shown(&self) -> &str {
        self.path.as_deref().unwrap_or(&self.uri)
    }

    /// The last part of its path.
    pub fn name(&self) -> &str {
        let shown = self.shown().trim_end_matches(['/', '\\']);
        shown.rsplit(['/', '\\']).next().unwrap_or(shown)
    }
}
