//! Chats: added, forked, removed, named, read, archived.

use std::sync::Arc;

use super::batch::BatchBuilder;
use super::{MAX_CHATS, Rejection};
use crate::event::*;
use crate::ids::*;
use crate::origin::ChatOrigin;
use crate::state::*;
use crate::title::normalized_title;
use crate::turn::Turn;

impl BatchBuilder<'_> {
    pub(super) fn set_chat_read(&mut self, chat: &ChatId, read: bool) -> Result<(), Rejection> {
        if self.chat(chat)?.is_read != read {
            self.chat_event(chat, ChatEvent::ChatReadChanged(read));
        }
        Ok(())
    }

    pub(super) fn set_chat_archived(&mut self, chat: &ChatId, archived: bool) -> Result<(), Rejection> {
        if self.chat(chat)?.is_archived != archived {
            self.chat_event(chat, ChatEvent::ChatArchivedChanged(archived));
        }
        Ok(())
    }

    /// Names a chat. The main one goes by its session's title.
    pub(super) fn rename_chat(&mut self, chat: &ChatId, title: &str) -> Result<(), Rejection> {
        let state = self.chat(chat)?;
        if self.session.main_chat().is_some_and(|main| main.id == *chat) {
            return self.change_title(title);
        }
        let given = normalized_title(title).unwrap_or_default();
        if state.title != given || title != given {
            self.chat_event(chat, ChatEvent::ChatTitleChanged(given));
        }
        Ok(())
    }

    pub(super) fn add_chat(&mut self, chat: ChatId, uri: String) -> Result<(), Rejection> {
        self.require_chat_slot(&chat)?;
        let row = Chat { uri: Some(uri), ..Chat::new(chat, self.now) }.row();
        self.session_event(SessionEvent::ChatAdded(row));
        Ok(())
    }

    /// Adds a chat that begins with the newest turns of another one.
    pub(super) fn fork_chat(
        &mut self,
        chat: ChatId,
        uri: String,
        origin: Arc<ChatOrigin>,
        turns: Vec<Arc<Turn>>,
        older: bool,
    ) -> Result<(), Rejection> {
        self.require_chat_slot(&chat)?;
        let new = Chat { uri: Some(uri), origin: Some(origin.clone()), ..Chat::new(chat.clone(), self.now) };
        self.session_event(SessionEvent::ChatAdded(new.row()));
        self.chat_event(&chat, ChatEvent::TurnsInherited { origin, turns, older });
        Ok(())
    }

    pub(super) fn remove_chat(&mut self, chat: ChatId) -> Result<(), Rejection> {
        let state = self.chat(&chat)?;
        if self.session.chats.first().is_some_and(|main| main.id == chat) {
            return Err(Rejection::MainChat);
        }
        if let Some(active) = &state.active {
            return Err(Rejection::TurnInProgress(active.id.clone()));
        }
        self.session_event(SessionEvent::ChatRemoved(chat));
        Ok(())
    }

    fn require_chat_slot(&self, chat: &ChatId) -> Result<(), Rejection> {
        self.require_created()?;
        if chat.as_str().is_empty() {
            return Err(Rejection::EmptyId);
        }
        if self.session.chat(chat).is_some() {
            return Err(Rejection::DuplicateChat(chat.clone()));
        }
        if self.session.chats.len() >= MAX_CHATS {
            return Err(Rejection::TooManyChats);
        }
        Ok(())
    }
}
