//! A session's details beside its conversation.

use serde::{Deserialize, Serialize};

use crate::ids::*;
use crate::permissions::Permissions;
use crate::turn::*;

/// A session's details beside its conversation. They change as a whole, since no dialect can send less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionDetails {
    /// The settings that exist, if the agent has announced them since the session's creation: a JSON schema of an
    /// object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Extra>,
    /// Commands that the agent understands in a message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<AgentCommand>,
    /// Remembered answers to permission requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<RememberedPermission>,
    /// The permission policy, if a client has set one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// Warnings that a person should read before going on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The contents of the session's workspace, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceDetails>,
    /// The reason why the newest events are not stored: the session's storage does not accept them at the moment. Until
    /// it does, the session accepts nothing new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<String>,
    /// The session's new host, if it was moved. The state here is that of the time of the move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<RemoteSession>,
    /// The session's previous host, if it was moved here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<RemoteSession>,
    /// The session of another tool that it was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<ImportSource>,
}

impl SessionDetails {
    /// Says whether everything is allowed without a question, except for what a rule denies.
    pub fn allows_all(&self) -> bool {
        self.permissions.as_ref().is_some_and(|permissions| permissions.allow_all)
    }

    /// The same without what a person allowed on one host alone: no policy and no remembered answer goes to another host,
    /// or comes back from a storage that others may write.
    pub fn without_permissions(self) -> Self {
        Self { permissions: None, remembered: Vec::new(), ..self }
    }
}

/// The session of another tool from which a session was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImportSource {
    /// The tool's name as lists have it; `log` for a file in the form that Grove and pi share.
    pub source: String,
    /// The id that the tool uses.
    pub source_id: String,
}

/// A session at another host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteSession {
    /// The host's name, as given by the client that moved the session.
    pub host: String,
    /// The host's address without credentials: its name may mean nothing, or another host, to others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The session's name there.
    pub session: String,
    /// The fingerprint of its files at the time of the move: a different one means that the session has gone on since.
    pub stamp: String,
}

/// A summary of a session's workspace, which tells a client with a cached copy when to fetch again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceDetails {
    /// The time of the plan's last change, if there is a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Timestamp>,
    /// The time when a file was last added or deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Timestamp>,
    /// The number of checkpoints.
    pub checkpoints: u32,
}

/// A command that an agent understands at the beginning of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCommand {
    /// The name without the slash.
    pub name: String,
    pub description: String,
    /// A hint for the command's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A remembered answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RememberedPermission {
    pub kind: PermissionKind,
    /// The subject: the command, the path, or else the question.
    pub about: String,
    pub option: PermissionOption,
}

impl RememberedPermission {
    /// The subject of a request, to be compared exactly, since only the agent knows similar ones. A request without a
    /// subject is not remembered: its permission would allow anything.
    pub fn subject(request: &PermissionRequest) -> Option<&str> {
        let subject = match request.kind {
            PermissionKind::Shell => request.full_command_text.as_ref(),
            PermissionKind::Write | PermissionKind::Mcp | PermissionKind::Read | PermissionKind::Url => {
                request.full_command_text.as_ref().or(request.path.as_ref()).or(request.title.as_ref())
            }
        };
        subject.map(String::as_str).filter(|about| !about.is_empty())
    }

    /// True if this answers a request.
    pub fn answers(&self, request: &PermissionRequest) -> bool {
        self.kind == request.kind && Self::subject(request) == Some(self.about.as_str())
    }
}
