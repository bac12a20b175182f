//! The handover of a session to another host, at the source host.
//!
//! A client lists the session's files, reads them, puts them to the other host (`x-grove/import/…`, with `from`), and
//! then reports that the session has left. Only the client knows both hosts: they never talk to each other.

use serde::{Deserialize, Serialize};

/// The maximum number of bytes of one read. In base64 they still fit into a message.
pub const MAX_READ_BYTES: usize = 2 << 20;

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoverMethod {
    Files,
    Read,
    Leave,
}

impl HandoverMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            HandoverMethod::Files => "x-grove/handover/files",
            HandoverMethod::Read => "x-grove/handover/read",
            HandoverMethod::Leave => "x-grove/handover/leave",
        }
    }
}

/// The files of a session. The request is refused while a turn runs, and for client-stored sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesResult {
    /// The session's agent.
    pub provider: String,
    pub files: Vec<File>,
    /// A fingerprint of the files, without those that a host writes for itself: an equal one means that nothing has
    /// changed.
    pub stamp: String,
    /// A fingerprint of everything that is handed over, `session.json` included. Hosts of earlier versions give none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// The working directory here. It is not transferred: the person is asked for one at the other host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The session's new host, if it has left already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<RemoteSession>,
    /// The session's previous host, if it was moved here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<RemoteSession>,
}

/// A file of a session's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// The path below the session's folder.
    pub path: String,
    /// In bytes.
    pub size: u64,
    pub sha256: String,
}

/// A session at another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteSession {
    /// The host's name, as given by the client that moved the session.
    pub host: String,
    /// The host's address, as `grove hosts add` accepts it, without credentials: its name may mean nothing to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The session's URI there.
    pub session: String,
    /// The fingerprint of its files at the time of the move.
    pub stamp: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    pub path: String,
    /// The offset in bytes.
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResult {
    /// In base64, at most [`MAX_READ_BYTES`] of them; empty at the end of the file.
    pub data: String,
}

/// Reports that the session is at another host from now on. It is refused if its files do not match `stamp`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveParams {
    pub to: RemoteSession,
    /// The seal of the handed over files: the session stays here if something has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveResult {
    /// The session's URI here, under which it is archived.
    pub session: String,
}
