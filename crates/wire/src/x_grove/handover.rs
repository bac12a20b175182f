//! A session that goes to another host, as the host that it leaves sees it.
//!
//! A client lists what the session has, reads it, gives it to the other host (`x-grove/import/…`, with `from`), and then says
//! that the session has left. It is the client that knows both hosts: they never talk to each other.

use serde::{Deserialize, Serialize};

/// How many bytes of a file are read at once. In base64 they still fit into a message.
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

/// What a session has. It is refused while a turn runs, and for sessions that a client keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesResult {
    /// The agent that works in it.
    pub provider: String,
    pub files: Vec<File>,
    /// One word for all of them, but what a host writes for itself: where it is the same, nothing has changed.
    pub stamp: String,
    /// One word for all that is handed over, `session.json` among it. Hosts of earlier versions give none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// The folder that its agent works in here. It does not go along: whoever moves the session is asked for one there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Where the session went, where it has left already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<RemoteSession>,
    /// Where it came from, where it was another host's before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<RemoteSession>,
}

/// A file of a session's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Below the session's folder.
    pub path: String,
    /// In bytes.
    pub size: u64,
    pub sha256: String,
}

/// A session at another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteSession {
    /// What that host is called by whoever moved the session.
    pub host: String,
    /// Where it is, as `grove hosts add` takes it, without what lets anybody in: its name may mean nothing to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The session's URI there.
    pub session: String,
    /// What its files were when it went.
    pub stamp: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    pub path: String,
    /// Where to begin, in bytes.
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResult {
    /// In base64, at most [`MAX_READ_BYTES`] of them; none where the file ends.
    pub data: String,
}

/// The session is at another host from now on. It is refused where its files are others than those of `stamp`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveParams {
    pub to: RemoteSession,
    /// The seal of what was handed over: the session stays where something of it has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveResult {
    /// The session's URI here, where it is archived.
    pub session: String,
}
