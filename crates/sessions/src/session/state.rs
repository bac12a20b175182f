//! The state of a session and its chats at one moment.

use std::sync::Arc;

use grove_core::Timestamp;
use grove_wire::ahp::SessionInputRequest;
use serde::{Deserialize, Serialize};

use super::github::GitHubInfo;
use super::status::SessionStatus;
use super::workspace::SessionWorkspace;
use crate::ids::{Icon, Markdown, SessionTypeId, Uri};
use crate::metadata::Metadata;

/// A session at one moment. Most of its properties come from its chats: see `derive`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// Its agent backend. Fixed by the first message.
    pub session_type: SessionTypeId,
    /// Its icon.
    pub icon: Icon,
    /// Its workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<SessionWorkspace>>,
    /// The metadata of its origin, as its source has it.
    #[serde(default)]
    pub metadata: Arc<Metadata>,
    /// Its abilities.
    #[serde(default)]
    pub capabilities: SessionCapabilities,
    /// The first chat.
    pub main_chat: Arc<ChatState>,
    /// The other chats, in the order of their creation.
    #[serde(default)]
    pub more_chats: Vec<Arc<ChatState>>,
    /// The pending requests for a person's input, as far as the provider knows them.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub waiting: Arc<[Arc<InputRequest>]>,
}

/// A pending permission request, or pending questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequest {
    /// Its id within the session.
    pub id: Arc<str>,
    /// The chat that asks, by its URI in the list.
    pub chat: Uri,
    /// Its content, in the shape of the Agent Host Protocol.
    pub content: SessionInputRequest,
}

/// The abilities of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionCapabilities {
    /// Further chats can be created in it.
    pub supports_multiple_chats: bool,
    /// It can be forked.
    pub supports_fork: bool,
    /// Its chats can be renamed.
    pub supports_rename: bool,
    /// It can be deleted.
    pub supports_delete: bool,
}

/// A chat at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatState {
    /// Its URI.
    pub resource: Uri,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// Its title.
    pub title: Arc<str>,
    /// The time of its last change.
    pub updated_at: Timestamp,
    /// Its status.
    pub status: SessionStatus,
    /// The files that it changed.
    pub changes: Arc<[ChatFileChange]>,
    /// The chosen model.
    pub model_id: Option<Arc<str>>,
    /// The chosen mode.
    pub mode: Option<Mode>,
    /// It is still being set up.
    pub loading: bool,
    /// It is archived.
    pub is_archived: bool,
    /// A person has read its newest part.
    pub is_read: bool,
    /// Its present activity, such as the running tool.
    pub description: Option<Markdown>,
    /// The time when its last turn ended.
    pub last_turn_end: Option<Timestamp>,
    /// Its GitHub information.
    pub github_info: Option<Arc<GitHubInfo>>,
    /// The actions that a person may take on it.
    pub interactivity: Interactivity,
}

impl ChatState {
    /// A chat in which nothing was sent yet.
    pub fn untitled(resource: impl Into<Uri>, at: Timestamp) -> Self {
        Self {
            resource: resource.into(),
            created_at: at,
            title: super::title::UNTITLED.into(),
            updated_at: at,
            status: SessionStatus::Untitled,
            changes: Arc::default(),
            model_id: None,
            mode: None,
            loading: false,
            is_archived: false,
            is_read: true,
            description: None,
            last_turn_end: None,
            github_info: None,
            interactivity: Interactivity::Full,
        }
    }
}

/// A mode of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// Its id.
    pub id: Arc<str>,
    /// The kind of mode.
    pub kind: Arc<str>,
}

/// A file that a chat changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatFileChange {
    /// The present file. For a deleted one, the earlier file.
    pub uri: Uri,
    /// The earlier file, if it is readable. A new file has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_uri: Option<Uri>,
    /// The change.
    pub operation: FileOperation,
    /// The number of added lines.
    pub insertions: u64,
    /// The number of removed lines.
    pub deletions: u64,
}

/// The change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileOperation {
    /// It is new.
    Created,
    /// It existed before.
    Modified,
    /// It was deleted.
    Deleted,
}

/// The actions that a person may take on a chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Interactivity {
    /// Read it and send to it.
    #[default]
    Full,
    /// Read it.
    ReadOnly,
    /// It is not shown, as with the chats of subagents.
    Hidden,
}

impl Interactivity {
    /// The interactivity in a session that may be archived: nothing is sent to an archived one, and hidden chats stay
    /// hidden.
    pub fn in_session(self, archived: bool) -> Self {
        match self {
            Self::Hidden => Self::Hidden,
            Self::Full if archived => Self::ReadOnly,
            Self::Full | Self::ReadOnly => self,
        }
    }
}
