//! Sessions that other tools left on the host's machine: listed here with all that is known of them.
//!
//! `listSessions` shows them too: version 1 where its filter asks (`history`), the released protocol where a client asks
//! page by page, with [`HistoryMetadata`] as the member `history` of the row's `_meta`. They can be looked at like any other session,
//! and not gone on with. No session is named by `channel` here.

use serde::{Deserialize, Serialize};

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryMethod {
    List,
    Scan,
}

impl HistoryMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            HistoryMethod::List => "x-grove/history/list",
            HistoryMethod::Scan => "x-grove/history/scan",
        }
    }
}

/// The member of a row's `_meta` that marks it.
pub const META: &str = "history";

/// What is known of a session that another tool left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryMetadata {
    /// Whose store it was found in.
    pub source: String,
    /// The id that the tool itself uses.
    pub source_id: String,
    /// Which product or edition of the tool.
    pub product: String,
    /// The file that holds it.
    pub path: String,
    /// Where it lay before its tool deleted it, where this is the copy that was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub turns: u32,
    /// How many of them were not cancelled.
    pub turns_completed: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// How its newest turn ended: `empty`, `complete`, `cancelled`, `failed` or `interrupted`.
    pub state: String,
    /// Whether it is less than what its tool once wrote, and how many places could not be read.
    pub recovered: bool,
    pub bad_places: u64,
    /// Whether the tool lists it itself, where it has a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<bool>,
}

/// Which sessions are wanted; without anything, the newest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `owner/name`, a name, a URL, or the folder that was worked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// A part of the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Goes on behind the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The newest one first.
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
    /// The URI under which it can be looked at.
    pub resource: String,
    pub title: String,
    pub created_at: u64,
    pub modified_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    #[serde(flatten)]
    pub about: HistoryMetadata,
}

/// Asks how far the catalog is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanParams {
    /// Look at the stores again, where nobody is at it already.
    pub start: bool,
}

/// How far a scan is, which goes on beside it: ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanResult {
    pub running: bool,
    /// How many sessions were read, of how many that must be.
    pub read: usize,
    pub of: usize,
    /// What the last scan came to, where one has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<ScanReport>,
    /// Why the last one came to nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanReport {
    pub sessions: usize,
    /// How many files were opened; of those, how many were read on from where they ended before.
    pub read: usize,
    pub continued: usize,
    pub removed: usize,
    /// How many are left as a copy alone, and how many copies were made.
    pub gone: usize,
    pub copied: usize,
    pub moved: usize,
    pub recovered: usize,
    pub milliseconds: u64,
    pub problems: Vec<String>,
}
