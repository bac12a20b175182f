//! Turns: started by a message, ended by a client or the host.

use super::Rejection;
use super::batch::BatchBuilder;
use crate::event::*;
use crate::ids::*;
use crate::turn::*;

impl BatchBuilder<'_> {
    pub(super) fn start_turn(
        &mut self,
        chat: &ChatId,
        turn: TurnId,
        message: Message,
        started_at: Option<Timestamp>,
    ) -> Result<(), Rejection> {
        self.require_created()?;
        let state = self.chat(chat)?;
        if turn.as_str().is_empty() {
            return Err(Rejection::EmptyId);
        }
        self.require_user_origin(&message)?;
        self.require_content(&message)?;
        if let Some(active) = &state.active {
            return Err(Rejection::TurnInProgress(active.id.clone()));
        }
        if self.session.has_turn(&turn) {
            return Err(Rejection::DuplicateTurn(turn));
        }
        self.require_model(message.model.as_ref())?;
        self.chat_event(chat, ChatEvent::TurnStarted { turn, message, started_at, queued: None });
        Ok(())
    }

    pub(super) fn cancel_turn(&mut self, chat: &ChatId, turn: TurnId) -> Result<(), Rejection> {
        let (state, active) = self.running(chat, &turn)?;
        self.end_turn(chat, active, ChatEvent::TurnCancelled { turn, duration: None });
        self.start_queued(chat, state);
        Ok(())
    }

    /// Ends a turn and leaves queued messages queued.
    pub(super) fn stop_turn(&mut self, chat: &ChatId, turn: TurnId, error: ErrorInfo) -> Result<(), Rejection> {
        let (_, active) = self.running(chat, &turn)?;
        self.end_turn(chat, active, ChatEvent::TurnFailed { turn, duration: None, error });
        Ok(())
    }

    /// Ends the turn and records its duration.
    pub(super) fn end_turn(&mut self, chat: &ChatId, active: &ActiveTurn, mut end: ChatEvent) {
        if let ChatEvent::TurnCompleted { duration, .. }
        | ChatEvent::TurnCancelled { duration, .. }
        | ChatEvent::TurnFailed { duration, .. } = &mut end
        {
            *duration = Some(active.duration_at(self.now));
        }
        self.chat_event(chat, end);
        if self.session.chat(chat).is_some_and(|chat| chat.activity.is_some()) {
            self.chat_event(chat, ChatEvent::ActivityChanged(None));
        }
    }
}
