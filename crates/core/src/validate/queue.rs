//! Messages that wait: the queue, the steering message and the draft.

use super::batch::BatchBuilder;
use super::{MAX_QUEUED, Rejection};
use crate::event::*;
use crate::ids::*;
use crate::state::*;
use crate::turn::*;

impl BatchBuilder<'_> {
    pub(super) fn start_oldest_queued(&mut self, chat: &ChatId) -> Result<(), Rejection> {
        let state = self.chat(chat)?;
        if state.active.is_none() {
            self.start_queued(chat, state);
        }
        Ok(())
    }

    pub(super) fn take_steering(&mut self, chat: &ChatId) -> Result<(), Rejection> {
        if let Some(steering) = &self.chat(chat)?.steering {
            self.chat_event(chat, ChatEvent::SteeringRemoved(steering.id.clone()));
        }
        Ok(())
    }

    pub(super) fn set_steering(&mut self, chat: &ChatId, message: PendingMessage) -> Result<(), Rejection> {
        self.require_created()?;
        let state = self.chat(chat)?;
        if message.id.as_str().is_empty() {
            return Err(Rejection::EmptyId);
        }
        self.require_user_origin(&message.message)?;
        self.require_content(&message.message)?;
        self.require_model(message.message.model.as_ref())?;
        if state.steering.as_ref() == Some(&message) {
            return Ok(());
        }
        self.chat_event(chat, ChatEvent::SteeringSet(message.clone()));
        // Without a running turn to steer, the message becomes a turn.
        if state.active.is_none() {
            self.chat_event(chat, ChatEvent::SteeringRemoved(message.id.clone()));
            self.start_message(chat, &message);
        }
        Ok(())
    }

    pub(super) fn remove_steering(&mut self, chat: &ChatId, id: PendingId) -> Result<(), Rejection> {
        if self.chat(chat)?.steering.as_ref().is_none_or(|steering| steering.id != id) {
            return Err(Rejection::UnknownPending(id));
        }
        self.chat_event(chat, ChatEvent::SteeringRemoved(id));
        Ok(())
    }

    pub(super) fn enqueue(&mut self, chat: &ChatId, message: PendingMessage) -> Result<(), Rejection> {
        self.require_created()?;
        let state = self.chat(chat)?;
        if message.id.as_str().is_empty() {
            return Err(Rejection::EmptyId);
        }
        self.require_user_origin(&message.message)?;
        self.require_content(&message.message)?;
        if state.queued.len() >= MAX_QUEUED && !state.queued.iter().any(|queued| queued.id == message.id) {
            return Err(Rejection::QueueFull);
        }
        self.require_model(message.message.model.as_ref())?;
        if state.queued.contains(&message) {
            return Ok(());
        }
        self.chat_event(chat, ChatEvent::QueuedSet(message.clone()));
        // It becomes a turn at once if nothing runs and nothing is queued before it.
        if state.active.is_none() && state.steering.is_none() && state.queued.is_empty() {
            self.chat_event(chat, ChatEvent::QueuedRemoved(message.id.clone()));
            self.start_message(chat, &message);
        }
        Ok(())
    }

    pub(super) fn dequeue(&mut self, chat: &ChatId, id: PendingId) -> Result<(), Rejection> {
        if !self.chat(chat)?.queued.iter().any(|queued| queued.id == id) {
            return Err(Rejection::UnknownPending(id));
        }
        self.chat_event(chat, ChatEvent::QueuedRemoved(id));
        Ok(())
    }

    pub(super) fn reorder_queue(&mut self, chat: &ChatId, order: Vec<PendingId>) -> Result<(), Rejection> {
        let state = self.chat(chat)?;
        if let Some(unknown) = order.iter().find(|id| !state.queued.iter().any(|queued| queued.id == **id)) {
            return Err(Rejection::UnknownPending(unknown.clone()));
        }
        // Messages that the order does not name come last, so only a prefix can be in order already.
        if !state.queued.iter().map(|queued| &queued.id).take(order.len()).eq(order.iter()) {
            self.chat_event(chat, ChatEvent::QueueReordered(order));
        }
        Ok(())
    }

    pub(super) fn set_draft(&mut self, chat: &ChatId, draft: Option<Message>) -> Result<(), Rejection> {
        if let Some(draft) = &draft {
            self.require_user_origin(draft)?;
        }
        if self.chat(chat)?.draft != draft {
            self.chat_event(chat, ChatEvent::DraftChanged(draft));
        }
        Ok(())
    }

    /// Starts a turn with the oldest waiting message, if there is an agent. A steering message that came too late for
    /// its turn goes first.
    pub(super) fn start_queued(&mut self, id: &ChatId, chat: &Chat) {
        if !self.starts_queued() {
            return;
        }
        if let Some(steering) = &chat.steering {
            self.chat_event(id, ChatEvent::SteeringRemoved(steering.id.clone()));
            self.start_message(id, steering);
        } else if let Some(next) = chat.queued.first() {
            self.chat_event(id, ChatEvent::QueuedRemoved(next.id.clone()));
            self.start_message(id, next);
        }
    }

    fn start_message(&mut self, id: &ChatId, next: &PendingMessage) {
        // A turn needs an id of its own, and nothing here draws one: it takes the message's, with a suffix if a turn of
        // that id exists.
        let mut turn = TurnId::from(next.id.as_str());
        let mut attempt = 1;
        while self.session.has_turn(&turn) {
            attempt += 1;
            turn = TurnId::from(format!("{}-{attempt}", next.id));
        }
        let (message, queued) = (next.message.clone(), Some(next.id.clone()));
        self.chat_event(id, ChatEvent::TurnStarted { turn, message, started_at: None, queued });
    }
}
