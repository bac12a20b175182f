//! Sessions that come from outside, file by file.
//!
//! A client begins an import, puts the files of the session's folder one after the other, and commits it: then, and not
//! before, there is such a session. Nobody sees anything of it until then, and nothing is left of an import that was given
//! up, or whose connection ended. No session is named by `channel` here: there is none yet.

use serde::{Deserialize, Serialize};

/// How many bytes are put at once. In base64 they still fit into a message.
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

/// What is known of the session beside its conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BeginParams {
    /// The session's id, where it is to keep one that it has; without one it gets a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The agent that goes on with it; without one, that of new sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The agent that goes on with it where none is named and the host has this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_provider: Option<String>,
    /// The store that it is to lie in; without one, that of new sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where its agent works, as an absolute path or a `file:` URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Milliseconds since 1970; without it, now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    /// When something was last said in it; without it, when it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<u64>,
    /// Where it comes from, where it is a session of another Grove: then all that `x-grove/handover/files` lists is put, and
    /// what is put must be what the stamp says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<super::handover::RemoteSession>,
    /// The seal that `x-grove/handover/files` gave: what is put, `session.json` among it, must be what it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// The session of another tool that it is a copy of: lists then leave that one out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<grove_core::ImportSource>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BeginResult {
    /// Names the import on this connection.
    pub import: u64,
    /// The URI of the session that it becomes.
    pub session: String,
}

/// Bytes of one file of the session's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PutParams {
    pub import: u64,
    /// `events.jsonl` (the log, in Grove's own form), `plan.md`, `session.db`, `workspace.yaml`, or a file below
    /// `checkpoints/`, `files/`, `research/` or `content/`. Of a session of another Grove, anything that it has.
    pub path: String,
    /// Where they begin: where the file ends so far.
    pub offset: u64,
    /// In base64, at most [`MAX_PUT_BYTES`] of them.
    pub data: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PutResult {
    /// How long the file is now, in bytes.
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
    /// How many entries its log has.
    pub entries: u64,
    /// What is wrong in the log, in words: it was taken all the same.
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
    /// Whether there was such an import.
    pub aborted: bool,
}
