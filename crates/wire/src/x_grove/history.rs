//! Other tools' sessions on the host's machine, with all known data.
//!
//! `listSessions` shows them too: in version 1 if its filter asks (`history`), in the released protocol if a client
//! asks page by page, with [`HistoryMetadata`] as the member `history` of the row's `_meta`. They can be read like any
//! other session, but not continued. No session is named by `channel` here.

use serde::{Deserialize, Serialize};

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryMethod {
    List,
    Scan,
    Import,
}

impl HistoryMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            HistoryMethod::List => "x-grove/history/list",
            HistoryMethod::Scan => "x-grove/history/scan",
            HistoryMethod::Import => "x-grove/history/import",
        }
    }
}

/// Makes a session of this host from such a session, so that it can be continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryImportParams {
    /// The session's URI.
    pub resource: String,
    /// The agent that continues it. By default the tool's own, if the host has that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// True to import it once more, under another id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_id: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryImportResult {
    /// The URI of the new session.
    pub session: String,
    /// The missing parts, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The member of a row's `_meta` that marks such a session.
pub const META: &str = "history";

/// The known data of another tool's session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryMetadata {
    /// The tool whose store has it.
    pub source: String,
    /// The id that the tool itself uses.
    pub source_id: String,
    /// The product or edition of the tool.
    pub product: String,
    /// The file that holds it.
    pub path: String,
    /// The original path before the tool deleted it, if this is a kept copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub turns: u32,
    /// The number of turns that were not cancelled.
    pub turns_completed: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The outcome of its newest turn: `empty`, `complete`, `cancelled`, `failed` or `interrupted`.
    pub state: String,
    /// True if it is less than the tool once wrote; and the number of places that could not be read.
    pub recovered: bool,
    pub bad_places: u64,
    /// True if the tool itself lists it; absent if the tool has no list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<bool>,
}

/// The filter of a list; without any, the newest sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `owner/name`, a name, a URL, or the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// A part of the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Continues after the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The newest session comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryListResult {
    pub sessions: Vec<HistoryListRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryListRow {
    /// The URI under which it can be read.
    pub resource: String,
    pub title: String,
    pub created_at: u64,
    pub modified_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    #[serde(flatten)]
    pub about: HistoryMetadata,
}

/// Asks for the progress of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanParams {
    /// True to scan the stores again, unless a scan is running.
    pub start: bool,
}

/// The progress of a scan, which runs in the background: ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanResult {
    pub running: bool,
    /// The number of sessions that were read, and that have to be.
    pub read: usize,
    pub of: usize,
    /// The report of the last finished scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<ScanReport>,
    /// The error of the last scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanReport {
    pub sessions: usize,
    /// The number of opened files; and of those that were read on from their earlier end.
    pub read: usize,
    pub continued: usize,
    pub removed: usize,
    /// The number of sessions that exist only as a copy, and of copies made.
    pub gone: usize,
    pub copied: usize,
    pub moved: usize,
    pub recovered: usize,
    pub milliseconds: u64,
    pub problems: Vec<String>,
}
