//! A session as the catalog has it.

use std::path::{Path, PathBuf};

use grove_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::normal::{TranscriptSession, TranscriptSource};
use crate::opencode::is_database;
use crate::reader::{FileMark, SessionLocation, SessionPreview};

/// A session that was found and read once. Its turns are not here: [`CatalogEntry::location`] says where to read them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogEntry {
    /// By which it is known here: its source, and its own id as far as that fits into a name. No two have the same.
    pub id: String,
    /// Which product or edition of the tool it belongs to, as it is shown.
    pub product: String,
    /// The file that holds it.
    pub path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older: Option<PathBuf>,
    /// Where it lay before its tool deleted it, where this is the copy that was kept of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<PathBuf>,
    /// The file, as it was read: what the catalog says of the session is the same while this is.
    pub mark: FileMark,
    /// Whether the tool itself lists it, where it has a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<bool>,
    /// The title that the tool's own list has for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_title: Option<String>,
    /// The folder that it worked in, as it is spelled now: where that was moved, its new place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The repository, as it is compared: `owner/name` in small letters where that is known, else its URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// All that a list may show of it. What was not understood in it is left out.
    pub session: TranscriptSession,
}

impl CatalogEntry {
    pub fn source(&self) -> TranscriptSource {
        self.session.source
    }

    /// When something last happened in it: what lists are ordered by.
    pub fn modified_at(&self) -> Timestamp {
        self.session.modified_at.or(self.session.created_at).unwrap_or_default()
    }

    /// The title, or what was said first.
    pub fn title(&self) -> &str {
        self.session.title.as_deref().unwrap_or(&self.session.first_message)
    }

    /// By which the catalog knows it again.
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

/// By which a session that was found is known again: its file, or, where a database holds many, its place in that.
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

/// How long a name may be that is made of a tool's own id.
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
