//! The batch in the making, and the requirements that several commands share.

use super::{QueuePolicy, Rejection, ValidationContext};
use crate::command::Actor;
use crate::event::*;
use crate::ids::*;
use crate::state::*;
use crate::turn::*;

/// A batch in the making, with the state and the sender that its command is checked against.
pub(super) struct BatchBuilder<'a> {
    pub(super) session: &'a Session,
    pub(super) agent: Option<&'a AgentInfo>,
    pub(super) who: &'a Actor,
    pub(super) now: Timestamp,
    pub(super) events: Vec<Event>,
    queue: QueuePolicy,
}

impl<'a> BatchBuilder<'a> {
    pub(super) fn new(tip: ValidationContext<'a>, who: &'a Actor, now: Timestamp) -> Self {
        let ValidationContext { session, agent, queue } = tip;
        Self { session, agent, who, now, events: Vec::new(), queue }
    }

    pub(super) fn chat(&self, id: &ChatId) -> Result<&'a Chat, Rejection> {
        self.session.chat(id).ok_or_else(|| Rejection::UnknownChat(id.clone()))
    }

    /// The chat in which this turn runs, and the turn.
    pub(super) fn running(&self, chat: &ChatId, turn: &TurnId) -> Result<(&'a Chat, &'a ActiveTurn), Rejection> {
        let chat = self.chat(chat)?;
        let active = chat.active_turn(turn).ok_or_else(|| Rejection::TurnNotActive(turn.clone()))?;
        Ok((chat, active))
    }

    /// Requires that no turn runs: entries need a position in the log, which a running turn does not have yet.
    pub(super) fn require_idle(&self, chat: &ChatId) -> Result<(), Rejection> {
        match &self.chat(chat)?.active {
            Some(active) => Err(Rejection::TurnInProgress(active.id.clone())),
            None => Ok(()),
        }
    }

    pub(super) fn require_created(&self) -> Result<(), Rejection> {
        match &self.session.lifecycle {
            Lifecycle::Creating | Lifecycle::Ready => Ok(()),
            Lifecycle::CreationFailed(error) => Err(Rejection::CreationFailed(error.message.clone())),
        }
    }

    /// Requires that the agent has this model, if a model is asked for.
    pub(super) fn require_model(&self, model: Option<&ModelId>) -> Result<(), Rejection> {
        match model {
            Some(model) if !self.agent.is_some_and(|agent| agent.has_model(model)) => {
                Err(Rejection::UnknownModel { model: model.clone(), agent: self.session.agent.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Requires that a client's message comes from a person, whichever way it is sent.
    pub(super) fn require_user_origin(&self, message: &Message) -> Result<(), Rejection> {
        match self.who {
            Actor::Client(_) if message.origin != MessageOrigin::User => Err(Rejection::OnlyUserMessages),
            Actor::Client(_) | Actor::Agent | Actor::Host => Ok(()),
        }
    }

    /// Requires a text or an attachment in a client's message: an agent cannot handle an empty prompt.
    pub(super) fn require_content(&self, message: &Message) -> Result<(), Rejection> {
        match self.who {
            Actor::Client(_) if message.is_empty() => Err(Rejection::EmptyMessage),
            Actor::Client(_) | Actor::Agent | Actor::Host => Ok(()),
        }
    }

    /// Says whether queued messages start turns now.
    pub(super) fn starts_queued(&self) -> bool {
        self.require_created().is_ok() && self.queue == QueuePolicy::Start
    }

    pub(super) fn session_event(&mut self, event: SessionEvent) {
        self.events.push(Event { at: self.now, change: Change::Session(self.session.id.clone(), event) });
    }

    pub(super) fn chat_event(&mut self, chat: &ChatId, event: ChatEvent) {
        self.events.push(Event { at: self.now, change: Change::Chat(self.session.id.clone(), chat.clone(), event) });
    }
}
