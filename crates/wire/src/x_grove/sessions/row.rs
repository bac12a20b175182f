//! A session's row in the list.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum numbers of chats in a row and of changed files in a chat: the first ones are sent.
pub const MAX_ROW_CHATS: usize = 200;
pub const MAX_ROW_CHANGES: usize = 200;
/// The maximum length of the activity of a row, in characters.
pub const MAX_ACTIVITY_CHARS: usize = 160;

/// A session. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionListRow {
    /// `providerId:localId`.
    pub id: String,
    pub resource: String,
    pub provider_id: String,
    pub session_type: String,
    pub icon: String,
    pub created_at: u64,
    pub updated_at: u64,
    pub title: String,
    pub status: RowStatus,
    /// The error of the first chat after the main one that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<RowWorkspace>,
    /// The known origin, in the form of its source.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    pub capabilities: RowCapabilities,
    #[serde(flatten)]
    pub state: RowState,
    /// The main one first, and at most [`MAX_ROW_CHATS`].
    pub chats: Vec<RowChat>,
    /// The key of its group. Absent if its working directory is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The context keys of the row.
    pub context: RowContext,
    /// Pinned rows come first in every list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pinned: bool,
    /// The activity of a running session as one line of text, at most [`MAX_ACTIVITY_CHARS`]. A change of it alone is
    /// told at most once a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The number of requests that wait for a person, if the provider knows it.
    #[serde(skip_serializing_if = "is_zero")]
    pub waiting: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowContext {
    pub chat_session_provider_id: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RowStatus {
    #[default]
    Untitled,
    InProgress,
    NeedsInput,
    Completed,
    Error,
}

/// The possible operations on a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowCapabilities {
    pub supports_multiple_chats: bool,
    pub supports_fork: bool,
    pub supports_rename: bool,
    pub supports_delete: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowChat {
    pub resource: String,
    pub created_at: u64,
    pub updated_at: u64,
    pub title: String,
    pub status: RowStatus,
    #[serde(flatten)]
    pub state: RowState,
    pub interactivity: Interactivity,
}

/// The state that a session and each of its chats have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowState {
    pub changes: RowChanges,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    pub loading: bool,
    pub is_archived: bool,
    pub is_read: bool,
    /// The current activity, in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn_end: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_hub_info: Option<GitHubInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mode {
    pub id: String,
    pub kind: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Interactivity {
    #[default]
    Full,
    ReadOnly,
    Hidden,
}

/// Changed files: their totals, and the first [`MAX_ROW_CHANGES`] of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowChanges {
    pub total: usize,
    pub insertions: u64,
    pub deletions: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RowFileChange>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RowFileChange {
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_uri: Option<String>,
    pub operation: FileOperation,
    pub insertions: u64,
    pub deletions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileOperation {
    Created,
    Modified,
    Deleted,
}

/// The workspace of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowWorkspace {
    pub uri: String,
    pub label: String,
    pub icon: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<RowRepository>,
    pub requires_workspace_trust: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowRepository {
    pub uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch_protected: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitHubInfo {
    pub owner: String,
    pub repo: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullRequest {
    pub number: u64,
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
}

/// Sessions in the same workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionListGroup {
    /// The key in rows. The last group may have none: sessions with an unknown working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The heading above its rows.
    pub heading: String,
}
