//! Everything that a session and its chats say of themselves at one moment.

use std::sync::Arc;

use grove_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::github::GitHubInfo;
use super::status::SessionStatus;
use super::workspace::SessionWorkspace;
use crate::ids::{Icon, Markdown, SessionTypeId, Uri};
use crate::metadata::Metadata;

/// A session at one moment. Most of what a session says comes from its chats: `derive` says how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// Which agent backend it has. Fixed once something was sent.
    pub session_type: SessionTypeId,
    /// How it is drawn.
    pub icon: Icon,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<SessionWorkspace>>,
    /// What is known of where it came from, as its source has it.
    #[serde(default)]
    pub metadata: Arc<Metadata>,
    /// What can be done with it.
    #[serde(default)]
    pub capabilities: SessionCapabilities,
    /// The first chat.
    pub main_chat: Arc<ChatState>,
    /// The chats after it, in the order of their creation.
    #[serde(default)]
    pub more_chats: Vec<Arc<ChatState>>,
}

/// What can be done with a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionCapabilities {
    /// Whether further chats can be begun in it.
    pub supports_multiple_chats: bool,
    /// Whether it can be forked.
    pub supports_fork: bool,
    /// Whether its chats can be renamed.
    pub supports_rename: bool,
    /// Whether it can be deleted.
    pub supports_delete: bool,
}

/// A chat at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatState {
    /// Which chat it is.
    pub resource: Uri,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it is called.
    pub title: Arc<str>,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// What it is doing.
    pub status: SessionStatus,
    /// The files that it changed.
    pub changes: Arc<[ChatFileChange]>,
    /// The chosen model.
    pub model_id: Option<Arc<str>>,
    /// The chosen mode.
    pub mode: Option<Mode>,
    /// Whether it is still being set up.
    pub loading: bool,
    /// Whether it was put away.
    pub is_archived: bool,
    /// Whether a person has seen the newest of it.
    pub is_read: bool,
    /// What happens in it now, such as the running tool.
    pub description: Option<Markdown>,
    /// When its last turn ended.
    pub last_turn_end: Option<Timestamp>,
    /// What GitHub knows of it.
    pub github_info: Option<Arc<GitHubInfo>>,
    /// What a person may do with it.
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
    /// Which one.
    pub id: Arc<str>,
    /// What kind of mode it is.
    pub kind: Arc<str>,
}

/// A file that a chat changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatFileChange {
    /// The file as it is now. Of one that was deleted, as it was.
    pub uri: Uri,
    /// What it was before, where that can be looked at. A new file has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_uri: Option<Uri>,
    /// What happened to it.
    pub operation: FileOperation,
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileOperation {
    /// It is new.
    Created,
    /// It was there before.
    Modified,
    /// It is gone.
    Deleted,
}

/// What a person may do with a chat.
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
    /// What is left of it in a session that was put away: nothing is sent there, and what was hidden stays so.
    pub fn in_session(self, archived: bool) -> Self {
        match self {
            Self::Hidden => Self::Hidden,
            Self::Full if archived => Self::ReadOnly,
            Self::Full | Self::ReadOnly => self,
        }
    }
}
