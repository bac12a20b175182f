//! A session's workspace beside its conversation: a manifest, a plan, files, checkpoints, a todo list.
//!
//! A chat may be named as `channel` instead of its session: all chats of a session share one workspace.

use serde::{Deserialize, Serialize};

/// The maximum number of bytes of one write or read. In base64 they still fit into a message.
pub const MAX_FILE_BYTES: usize = 2 << 20;

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceMethod {
    Manifest,
    Plan,
    SetPlan,
    Files,
    ReadFile,
    WriteFile,
    RemoveFile,
    Checkpoints,
    Checkpoint,
    Todos,
}

impl WorkspaceMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            WorkspaceMethod::Manifest => "x-grove/workspace/manifest",
            WorkspaceMethod::Plan => "x-grove/workspace/plan",
            WorkspaceMethod::SetPlan => "x-grove/workspace/setPlan",
            WorkspaceMethod::Files => "x-grove/workspace/files",
            WorkspaceMethod::ReadFile => "x-grove/workspace/readFile",
            WorkspaceMethod::WriteFile => "x-grove/workspace/writeFile",
            WorkspaceMethod::RemoveFile => "x-grove/workspace/removeFile",
            WorkspaceMethod::Checkpoints => "x-grove/workspace/checkpoints",
            WorkspaceMethod::Checkpoint => "x-grove/workspace/checkpoint",
            WorkspaceMethod::Todos => "x-grove/workspace/todos",
        }
    }
}

/// A session's identity and working directory, from its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestResult {
    pub id: String,
    /// The session's folder, as its store spells it.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_root: Option<String>,
    /// `owner/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if a person gave the name.
    pub user_named: bool,
    /// The number of checkpoints.
    pub summary_count: u64,
    pub fork_count: u64,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanResult {
    /// `null` if there is none.
    pub text: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetPlanParams {
    /// `null` deletes the plan. The member is required, so that it cannot be forgotten.
    #[serde(deserialize_with = "super::said")]
    pub text: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetPlanResult {
    /// False if there was nothing to do: deleting a missing plan changes nothing.
    pub changed: bool,
}

/// A folder of the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FilesFolder {
    #[default]
    Files,
    Research,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilesParams {
    #[serde(rename = "shelf")]
    pub folder: FilesFolder,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesResult {
    /// Sorted by name.
    pub files: Vec<FileInfo>,
    /// True if there are more than can be listed.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileInfo {
    /// Its parts are separated by `/`.
    pub name: String,
    /// In bytes.
    pub size: u64,
    /// Milliseconds since 1970.
    pub modified: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileParams {
    pub name: String,
    #[serde(default, rename = "shelf")]
    pub folder: FilesFolder,
    /// The offset in bytes.
    #[serde(default)]
    pub offset: u64,
    /// The number of bytes; by default as many as one read returns ([`MAX_FILE_BYTES`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
}

/// The encoding of bytes in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileResult {
    pub data: String,
    /// `utf-8` if the bytes are valid UTF-8.
    pub encoding: Encoding,
    /// True if the file continues after them.
    pub more: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteFileParams {
    pub name: String,
    #[serde(default, rename = "shelf")]
    pub folder: FilesFolder,
    /// The complete new contents, at most [`MAX_FILE_BYTES`].
    pub data: String,
    #[serde(default)]
    pub encoding: Encoding,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteFileResult {
    /// In bytes.
    pub size: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoveFileParams {
    pub name: String,
    #[serde(default, rename = "shelf")]
    pub folder: FilesFolder,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoveFileResult {
    /// True if it existed.
    pub removed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointsResult {
    /// The oldest first.
    pub checkpoints: Vec<CheckpointInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointInfo {
    pub number: u32,
    pub title: String,
    /// Its name in `checkpoints/`.
    pub file: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointParams {
    pub number: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointResult {
    pub number: u32,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TodosResult {
    pub todos: Vec<Todo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    pub id: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `pending`, `in_progress`, `done` or `blocked`.
    pub status: String,
    /// The ids of those that come first.
    pub depends_on: Vec<String>,
}
