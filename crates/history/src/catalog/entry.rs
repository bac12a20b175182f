//! A session in the catalog.

use std::path::{Path, PathBuf};

use grove_core::Timestamp;
use grove_transcript::{TranscriptSession, TranscriptSource};
use serde::{Deserialize, Serialize};

use crate::opencode::is_database;
use crate::reader::{FileMark, SessionLocation, SessionPreview};

/// A session that was found and read once, without its turns: [`CatalogEntry::location`] says where to read them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogEntry {
    /// Its unique id here: its source, and its own id as far as that fits into a name.
    pub id: String,
    /// The product or edition of the tool, for display.
    pub product: String,
    /// The session's file.
    pub path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older: Option<PathBuf>,
    /// The original path before the tool deleted it, if this is a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<PathBuf>,
    /// The file's mark at the last read: the entry is valid as long as it is the same.
    pub mark: FileMark,
    /// True if the tool itself lists it; `None` if the tool has no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<bool>,
    /// The title in the tool's own list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_title: Option<String>,
    /// The working directory in its present spelling: if it was moved, its new path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The repository, for comparison: `owner/name` in lower case if it is known, else its URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// All data that a list may show. Data that were not understood are left out.
    pub session: TranscriptSession,
}

impl CatalogEntry {
    pub fn source(&self) -> TranscriptSource {
        self.session.source
    }

    /// The time of the last activity: lists are ordered by it.
    pub fn modified_at(&self) -> Timestamp {
        self.session.modified_at.or(self.session.created_at).unwrap_or_default()
    }

    /// The title, or the first message.
    pub fn title(&self) -> &str {
        self.session.title.as_deref().unwrap_or(&self.session.first_message)
    }

    /// The key in the catalog.
    pub(super) fn key(&self) -> PathBuf {
        key(self.source(), &self.path, &self.session.source_id)
    }

    /// The session for its reader.
    pub fn location(&self) -> SessionLocation {
        let path = self.path.clone();
        let mark = std::fs::metadata(&path).map(|metadata| FileMark::of(&metadata)).unwrap_or_default();
        SessionLocation {
            product: self.product.clone(),
            path,
            older: self.older.clone(),
            mark,
            workspace: self.session.workspace.clone(),
            preview: SessionPreview {
                title: self.listed_title.clone(),
                created_at: self.session.created_at,
                modified_at: self.session.modified_at,
                listed: self.listed,
            },
            ..SessionLocation::without_file(self.source(), self.session.source_id.clone())
        }
    }
}

/// The key of a found session: its file or, in a database of many sessions, its place in that.
pub(super) fn key_of(location: &SessionLocation) -> PathBuf {
    key(location.source, &location.path, &location.id)
}

fn key(source: TranscriptSource, path: &Path, id: &str) -> PathBuf {
    let mut key = path.as_os_str().to_owned();
    if is_database(source, path) {
        key.push("#");
        key.push(id);
    }
    key.into()
}

/// The maximum length of a name made from a tool's own id.
const LONGEST_ID: usize = 100;

/// The name of a session: letters, digits, `.`, `_` and `-`, so that it fits into a URI and a file's name.
pub(super) fn name_of(source: TranscriptSource, source_id: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-') { char } else { '_' };
    format!("{source}.{}", source_id.chars().take(LONGEST_ID).map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_nothing_in_it_that_a_uri_would_not_take() {
        assert_eq!(name_of(TranscriptSource::CopilotCli, "a/b c:é-1"), "copilot-cli.a_b_c__-1");
        assert!(name_of(TranscriptSource::VsCode, &"x".repeat(1_000)).len() < 128);
    }
}
