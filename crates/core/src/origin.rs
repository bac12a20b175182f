//! Where a chat comes from that began with what another one had.

use serde::{Deserialize, Serialize};

use crate::ids::*;

/// What a chat began with: it is copied from the log of another chat, perhaps of another session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatOrigin {
    pub session: SessionId,
    /// Where that session's folder lay then.
    #[serde(default, skip_serializing_if = "StoreName::is_local")]
    pub store: StoreName,
    pub chat: ChatId,
    /// The URI that a client gave the other chat, which may be gone by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The newest turn that both have; without one there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    pub kind: OriginKind,
    pub log: LogPart,
}

impl ChatOrigin {
    /// Whether what it began with is shown as its own.
    pub fn is_shown(&self) -> bool {
        self.kind == OriginKind::Fork
    }
}

/// What a chat does with what it began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OriginKind {
    /// It goes on from there: its turns are the other's, and then its own.
    Fork,
    /// It is about it: its agent knows what was said, and its turns are its own alone. Perhaps it is about some words.
    Side { selection: Option<Selection> },
}

/// Words that a person has picked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    pub text: String,
    /// The part that they were in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

/// A part of a log. Logs only grow, so what is said here stays true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogPart {
    /// Only the bytes below this one count.
    pub boundary: u64,
    pub extent: LogScope,
    /// The leaf in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
    /// When what comes behind it was said, where it ends before the present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// How much of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LogScope {
    /// Every branch.
    All,
    /// The way to the leaf.
    Branch,
}
