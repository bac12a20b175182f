//! The import of a session from outside, file by file.
//!
//! A client begins an import, puts the files of the session's folder one after the other, and commits it: only then the
//! session exists. Until then nothing of it is visible, and nothing is left of an import that was aborted, or whose
//! connection ended. No session is named by `channel` here: there is none yet.

use serde::{Deserialize, Serialize};

/// The maximum number of bytes of one put. In base64 they still fit into a message.
pub const MAX_PUT_BYTES: usize = 2 << 20;

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportMethod {
    Begin,
    Put,
    Commit,
    Abort,
}

impl ImportMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            ImportMethod::Begin => "x-grove/import/begin",
            ImportMethod::Put => "x-grove/import/put",
            ImportMethod::Commit => "x-grove/import/commit",
            ImportMethod::Abort => "x-grove/import/abort",
        }
    }
}

/// The session's data beside its conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BeginParams {
    /// The session's id, if it is to keep one; by default it gets a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The agent that continues it; by default that of new sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The agent that continues it if none is named and the host has this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_provider: Option<String>,
    /// The session's store; by default that of new sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The working directory, as an absolute path or a `file:` URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Milliseconds since 1970; by default now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    /// The time of the last activity; by default the creation time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<u64>,
    /// The source host, if it is a session of another Grove: then all files that `x-grove/handover/files` lists are
    /// put, and they must match the stamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<super::handover::RemoteSession>,
    /// The seal from `x-grove/handover/files`: the put files, `session.json` included, must match it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// The session of another tool that it is a copy of: lists then leave that one out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<grove_core::ImportSource>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BeginResult {
    /// The id of the import on this connection.
    pub import: u64,
    /// The URI of the session to be.
    pub session: String,
}

/// Bytes of one file of the session's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PutParams {
    pub import: u64,
    /// The path in the session's folder: `events.jsonl` (the log, in Grove's own format), `plan.md`, `session.db`,
    /// `workspace.yaml`, or a file below `checkpoints/`, `files/`, `research/` or `content/`. For a session of another
    /// Grove, any of its files.
    pub path: String,
    /// The offset: the present length of the file.
    pub offset: u64,
    /// In base64, at most [`MAX_PUT_BYTES`] of them.
    pub data: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PutResult {
    /// The new length of the file, in bytes.
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitParams {
    pub import: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitResult {
    /// The session's URI.
    pub session: String,
    /// The number of entries of its log.
    pub entries: u64,
    /// The damage of the log, in words: it was imported all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortParams {
    pub import: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortResult {
    /// True if there was such an import.
    pub aborted: bool,
}
