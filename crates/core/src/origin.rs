//! The origin of a forked or side chat.

use serde::{Deserialize, Serialize};

use crate::ids::*;

/// The origin of a chat that began with a copy of another chat's log, perhaps of another session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatOrigin {
    pub session: SessionId,
    /// The store of that session at the time.
    #[serde(default, skip_serializing_if = "StoreName::is_local")]
    pub store: StoreName,
    pub chat: ChatId,
    /// The URI that a client gave the other chat, which may be removed by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The newest common turn; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    pub kind: OriginKind,
    pub log: LogPart,
}

impl ChatOrigin {
    /// True if the inherited turns are shown as the chat's own.
    pub fn is_shown(&self) -> bool {
        self.kind == OriginKind::Fork
    }
}

/// The use of the inherited turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OriginKind {
    /// The chat continues them: its turns are the inherited ones, then its own.
    Fork,
    /// The chat is about them: its agent knows them, but only its own turns are shown. A selection narrows the subject.
    Side { selection: Option<Selection> },
}

/// A text selected by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    pub text: String,
    /// The part that contains the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

/// A prefix of a log. Logs only grow, so it stays valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogPart {
    /// Only bytes before this offset count.
    pub boundary: u64,
    pub extent: LogScope,
    /// The leaf in this prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
    /// The time of the first later entry, if the prefix ends before the present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The branches of a log to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LogScope {
    /// Every branch.
    All,
    /// The path to the leaf.
    Branch,
}
