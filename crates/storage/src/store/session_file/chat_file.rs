//! A chat in `session.json`, and the facts about its log there.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;
use grove_tree::turns::LoggedTurns;
use serde::{Deserialize, Serialize};

/// A chat, without its turns.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChatFile {
    #[serde(default = "main_chat")]
    pub(super) id: ChatId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uri: Option<String>,
    #[serde(default)]
    pub(super) is_read: bool,
    #[serde(default)]
    pub(super) is_archived: bool,
    /// Says whether its last turn ended in error, which lists show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) failed: bool,
    #[serde(deserialize_with = "stored_chat_title")]
    pub(super) title: String,
    /// Its origin, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<Arc<ChatOrigin>>,
    pub(super) steering: Option<PendingMessage>,
    pub(super) queued: Vec<PendingMessage>,
    pub(super) draft: Option<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent_session: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_agent_retold: bool,
    pub(super) modified_at: Timestamp,
    #[serde(default)]
    pub(super) touched_at: Timestamp,
    /// Says whether the log had turns: a missing log is then a loss.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_turns: bool,
    /// The log's extent when this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<LogExtent>,
    /// The turn that was running, in a session without a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begun: Option<StartedTurn>,
}

/// How much of a log belongs to a session's file. A log only grows, so its beginning stays what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogExtent {
    pub bytes: u64,
    /// The number of turns that end in these bytes, on any branch.
    pub turns: u64,
    /// The checksum of these bytes.
    pub crc32: u32,
    /// The id of the leaf in them; empty before the first entry. Older files do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
}

/// The extents of a session's logs.
pub type LogExtents = HashMap<ChatId, LogExtent>;

/// A session file's facts about a chat's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedLog {
    pub chat: ChatId,
    pub extent: Option<LogExtent>,
    pub has_turns: bool,
    /// The log that it began as a copy of.
    pub origin: Option<Arc<ChatOrigin>>,
}

/// A turn that started and is not in the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartedTurn {
    pub(super) turn: TurnId,
    pub(super) message: Message,
    pub(super) started_at: Timestamp,
}

pub(super) fn main_chat() -> ChatId {
    Session::MAIN_CHAT.into()
}

impl ChatFile {
    pub(super) fn of(chat: &Chat) -> Self {
        Self {
            id: chat.id.clone(),
            uri: chat.uri.clone(),
            is_read: chat.is_read,
            is_archived: chat.is_archived,
            failed: chat.status() == ChatStatus::Error,
            title: chat.title.clone(),
            origin: chat.origin.clone(),
            steering: chat.steering.clone(),
            queued: chat.queued.clone(),
            draft: chat.draft.clone(),
            agent_session: chat.agent_session.clone(),
            is_agent_retold: chat.is_agent_retold,
            modified_at: chat.modified_at,
            touched_at: chat.touched_at,
            has_turns: chat.has_older_turns || !chat.turns.is_empty(),
            log: None,
            begun: chat.active.as_deref().map(|active| StartedTurn {
                turn: active.id.clone(),
                message: active.message.clone(),
                started_at: active.started_at,
            }),
        }
    }

    pub(super) fn chat(self, turns: LoggedTurns) -> Chat {
        Chat {
            id: self.id,
            uri: self.uri,
            title: self.title,
            origin: self.origin,
            turns: turns.turns,
            has_older_turns: turns.older,
            active: None,
            steering: self.steering,
            queued: self.queued,
            draft: self.draft,
            activity: None,
            agent_session: self.agent_session,
            is_agent_retold: self.is_agent_retold,
            has_failed: self.failed,
            unlogged: Vec::new(),
            is_read: self.is_read,
            is_archived: self.is_archived,
            modified_at: self.modified_at,
            touched_at: self.touched_at,
        }
    }
}
