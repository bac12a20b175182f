//! A chat: a conversation of a session, and its row in the session's catalogue.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::*;
use crate::origin::ChatOrigin;
use crate::title::stored_chat_title;
use crate::turn::*;

/// A chat's row in its session's catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatRow {
    pub chat: ChatId,
    /// The URI that a client gave it; the main chat has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    #[serde(deserialize_with = "stored_chat_title")]
    pub title: String,
    /// The origin, if the chat began with another chat's turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<ChatOrigin>>,
    pub status: ChatStatus,
    #[serde(default)]
    pub is_read: bool,
    #[serde(default)]
    pub is_archived: bool,
    pub modified_at: Timestamp,
    /// The time of its last progress by the host's clock: lists are ordered by it.
    #[serde(default)]
    pub touched_at: Timestamp,
}

/// The status of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChatStatus {
    Idle,
    InProgress,
    InputNeeded,
    Error,
}

/// A conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Chat {
    pub id: ChatId,
    /// The URI that a client gave it; the main chat has none of its own.
    pub uri: Option<String>,
    pub title: String,
    /// The origin, if the chat began with another chat's turns.
    pub origin: Option<Arc<ChatOrigin>>,
    pub turns: Vec<Arc<Turn>>,
    /// True if there are older turns, which are stored and not loaded.
    pub has_older_turns: bool,
    pub active: Option<Box<ActiveTurn>>,
    /// True if the newest turn ended in an error. Moving the leaf clears it.
    pub has_failed: bool,
    /// A message for the running turn.
    pub steering: Option<PendingMessage>,
    /// Messages that will become turns, in order.
    pub queued: Vec<PendingMessage>,
    /// The message that a person is writing.
    pub draft: Option<Message>,
    /// The current activity, if nothing else shows it.
    pub activity: Option<String>,
    /// The agent's own name for this conversation.
    pub agent_session: Option<String>,
    /// True if the agent's conversation began with a summary or a retelling of earlier turns. The agent would name the
    /// session after those words.
    pub is_agent_retold: bool,
    /// Entries that may not be in its log yet.
    pub unlogged: Vec<LogEntry>,
    pub is_read: bool,
    pub is_archived: bool,
    /// The time when its newest turn started or ended, by that turn's own time.
    pub modified_at: Timestamp,
    /// The same by the host's clock: lists are ordered by it.
    pub touched_at: Timestamp,
}

/// An entry of a chat's log as its line, and the turn before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub line: Arc<str>,
    /// The newest turn at that time, if there was one.
    pub after: Option<TurnId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingMessage {
    pub id: PendingId,
    pub message: Message,
}

impl Chat {
    pub fn new(id: ChatId, at: Timestamp) -> Self {
        Self {
            id,
            uri: None,
            title: String::new(),
            origin: None,
            turns: Vec::new(),
            has_older_turns: false,
            active: None,
            steering: None,
            queued: Vec::new(),
            draft: None,
            activity: None,
            agent_session: None,
            is_agent_retold: false,
            has_failed: false,
            unlogged: Vec::new(),
            is_read: true,
            is_archived: false,
            modified_at: at,
            touched_at: at,
        }
    }

    /// Creates an empty chat from its row.
    pub fn of(row: &ChatRow) -> Self {
        Self {
            uri: row.uri.clone(),
            title: row.title.clone(),
            origin: row.origin.clone(),
            is_read: row.is_read,
            is_archived: row.is_archived,
            touched_at: row.touched_at,
            ..Self::new(row.chat.clone(), row.modified_at)
        }
    }

    /// The row of this chat.
    pub fn row(&self) -> ChatRow {
        ChatRow {
            chat: self.id.clone(),
            uri: self.uri.clone(),
            title: self.title.clone(),
            origin: self.origin.clone(),
            status: self.status(),
            is_read: self.is_read,
            is_archived: self.is_archived,
            modified_at: self.modified_at,
            touched_at: self.touched_at,
        }
    }

    /// The status of the chat.
    pub fn status(&self) -> ChatStatus {
        match &self.active {
            Some(active) if active.waits_for_person() => ChatStatus::InputNeeded,
            Some(_) => ChatStatus::InProgress,
            None if self.has_failed => ChatStatus::Error,
            None => ChatStatus::Idle,
        }
    }

    /// A copy with at most the newest `turns` finished turns, which are shared.
    pub fn with_newest_turns(&self, turns: usize) -> Self {
        Self {
            id: self.id.clone(),
            uri: self.uri.clone(),
            title: self.title.clone(),
            origin: self.origin.clone(),
            turns: self.turns[self.turns.len().saturating_sub(turns)..].to_vec(),
            has_older_turns: self.has_older_turns || self.turns.len() > turns,
            active: self.active.clone(),
            steering: self.steering.clone(),
            queued: self.queued.clone(),
            draft: self.draft.clone(),
            activity: self.activity.clone(),
            agent_session: self.agent_session.clone(),
            is_agent_retold: self.is_agent_retold,
            has_failed: self.has_failed,
            unlogged: self.unlogged.clone(),
            is_read: self.is_read,
            is_archived: self.is_archived,
            modified_at: self.modified_at,
            touched_at: self.touched_at,
        }
    }

    /// The running turn, if it has this id.
    pub fn active_turn(&self, id: &TurnId) -> Option<&ActiveTurn> {
        self.active.as_deref().filter(|turn| turn.id == *id)
    }

    /// True if the chat has or had a turn of this id.
    pub fn has_turn(&self, id: &TurnId) -> bool {
        self.active_turn(id).is_some() || self.position(id).is_some()
    }

    /// The position of a finished turn. It searches backwards, since new turns are asked for most.
    pub fn position(&self, id: &TurnId) -> Option<usize> {
        self.turns.iter().rposition(|turn| turn.id == *id)
    }

    /// Replaces this chat's copy of a finished turn by an equal one, so that two states share it.
    pub fn share(&mut self, turn: Arc<Turn>) {
        if let Some(at) = self.position(&turn.id) {
            self.turns[at] = turn;
        }
    }
}
