//! Messages: what a turn begins with.

use serde::{Deserialize, Serialize};

use crate::ids::*;

/// A message from a person, or from something on a person's behalf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub origin: MessageOrigin,
    /// The model that this message asks for; `None` means the session's.
    pub model: Option<ModelId>,
    /// Further data from its dialect, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

/// Members of a JSON object that are kept unread for those who understand them.
pub type Extra = serde_json::Map<String, serde_json::Value>;

impl Message {
    /// Creates a plain message of a person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { text: text.into(), attachments: Vec::new(), origin: MessageOrigin::User, model: None, extra: None }
    }

    /// True for a message without text and without attachments, those that only its dialect knows included.
    pub fn is_empty(&self) -> bool {
        let has_more = self
            .extra
            .as_ref()
            .and_then(|extra| extra.get("attachments")?.as_array())
            .is_some_and(|all| !all.is_empty());
        self.text.trim().is_empty() && self.attachments.is_empty() && !has_more
    }
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MessageOrigin {
    User,
    Agent,
    Tool,
    Automation,
    SystemNotification,
}

/// A resource that a message refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    pub kind: AttachmentKind,
    pub path: String,
    pub display_name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AttachmentKind {
    File,
    Directory,
    Selection,
}
