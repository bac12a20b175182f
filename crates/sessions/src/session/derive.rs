//! The properties of a session that derive from its chats.
//!
//! Most come from the main chat. Times are the latest of all chats, a session is read when all its chats are, and its
//! status is the most urgent one of all chats.

use std::sync::Arc;

use grove_core::Timestamp;

use super::github::GitHubInfo;
use super::state::{ChatFileChange, ChatState, Interactivity, Mode, SessionState};
use super::status::SessionStatus;
use crate::ids::{Markdown, Uri};

impl SessionState {
    /// All chats, the main one first.
    pub fn chats(&self) -> impl DoubleEndedIterator<Item = &Arc<ChatState>> {
        std::iter::once(&self.main_chat).chain(&self.more_chats)
    }

    /// The visible chats.
    pub fn visible_chats(&self) -> impl DoubleEndedIterator<Item = &Arc<ChatState>> {
        self.chats().filter(|chat| chat.interactivity != Interactivity::Hidden)
    }

    /// The chat with a URI.
    pub fn chat(&self, resource: &Uri) -> Option<&Arc<ChatState>> {
        self.chats().find(|chat| &chat.resource == resource)
    }

    /// Returns whether something was sent. Until then the session is a draft.
    pub fn was_sent(&self) -> bool {
        !self.more_chats.is_empty() || self.main_chat.status != SessionStatus::Untitled
    }

    /// The main chat's title.
    pub fn title(&self) -> Arc<str> {
        self.main_chat.title.clone()
    }

    /// The time of the last change in any chat.
    pub fn updated_at(&self) -> Timestamp {
        self.chats().map(|chat| chat.updated_at).max().unwrap_or_default()
    }

    /// Needing input comes before running, and running before everything else; otherwise the main chat's status.
    pub fn status(&self) -> SessionStatus {
        let any = |status| self.chats().any(|chat| chat.status == status);
        if any(SessionStatus::NeedsInput) {
            SessionStatus::NeedsInput
        } else if any(SessionStatus::InProgress) {
            SessionStatus::InProgress
        } else {
            self.main_chat.status
        }
    }

    /// The first failed chat after the main one. The status does not show it.
    pub fn chat_error(&self) -> Option<Uri> {
        let failed = self.more_chats.iter().find(|chat| chat.status == SessionStatus::Error)?;
        Some(failed.resource.clone())
    }

    /// The main chat's changes.
    pub fn changes(&self) -> Arc<[ChatFileChange]> {
        self.main_chat.changes.clone()
    }

    /// The main chat's model.
    pub fn model_id(&self) -> Option<Arc<str>> {
        self.main_chat.model_id.clone()
    }

    /// The main chat's mode.
    pub fn mode(&self) -> Option<Mode> {
        self.main_chat.mode.clone()
    }

    /// Returns whether the main chat is still being set up.
    pub fn loading(&self) -> bool {
        self.main_chat.loading
    }

    /// Returns whether the main chat is archived.
    pub fn is_archived(&self) -> bool {
        self.main_chat.is_archived
    }

    /// Returns whether all chats were read.
    pub fn is_read(&self) -> bool {
        self.chats().all(|chat| chat.is_read)
    }

    /// The activity of the main chat.
    pub fn description(&self) -> Option<Markdown> {
        self.main_chat.description.clone()
    }

    /// The time when the last turn of any chat ended.
    pub fn last_turn_end(&self) -> Option<Timestamp> {
        self.chats().filter_map(|chat| chat.last_turn_end).max()
    }

    /// The main chat's GitHub information.
    pub fn github_info(&self) -> Option<Arc<GitHubInfo>> {
        self.main_chat.github_info.clone()
    }

    /// The actions that a person may take on a chat of this session.
    pub fn interactivity(&self, chat: &ChatState) -> Interactivity {
        chat.interactivity.in_session(self.is_archived())
    }

    /// The effect of deleting a chat.
    pub fn deleting(&self, chat: &Uri) -> ChatDeletion {
        if self.chat(chat).is_none() {
            ChatDeletion::Unknown
        } else if self.more_chats.is_empty() {
            ChatDeletion::Session
        } else if &self.main_chat.resource == chat {
            ChatDeletion::MainChat
        } else {
            ChatDeletion::Chat
        }
    }
}

/// The effect of deleting a chat. Providers and management both use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatDeletion {
    /// There is no such chat: nothing happens.
    Unknown,
    /// It is the last one: the session is deleted with it.
    Session,
    /// It is the main one, and others depend on it: deleting is refused.
    MainChat,
    /// The chat is deleted.
    Chat,
}
