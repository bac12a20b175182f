//! The tree of a chat: moves of its leaf, and entries of its log.

use std::sync::Arc;

use super::Rejection;
use super::batch::BatchBuilder;
use crate::command::{RestoredModel, RestoredSettings};
use crate::event::*;
use crate::ids::*;
use crate::state::*;
use crate::turn::Turn;

impl BatchBuilder<'_> {
    /// Moves the leaf and shows the newest turns on the path to it.
    pub(super) fn move_leaf(
        &mut self,
        chat: &ChatId,
        turns: Vec<Arc<Turn>>,
        older: bool,
        entries: Vec<LogEntry>,
        settings: RestoredSettings,
    ) -> Result<(), Rejection> {
        self.require_idle(chat)?;
        let state = self.chat(chat)?;
        let is_there = state.turns == turns && state.has_older_turns == (older && !turns.is_empty());
        let RestoredSettings { model, values } = settings;
        // A model that the agent does not have any more is not restored.
        let has_model = |model: &ModelId| self.agent.is_none_or(|agent| agent.has_model(model));
        let model = model.map(RestoredModel::for_session);
        let model = model.filter(|model| self.session.model != *model && model.as_ref().is_none_or(has_model));
        let config = self.session.config.as_ref().filter(|config| config.changed(&values, false) != config.values);
        let are_kept = model.is_none() && config.is_none();
        if is_there && entries.is_empty() && state.agent_session.is_none() && are_kept {
            return Ok(());
        }
        self.chat_event(chat, ChatEvent::TurnsCleared);
        self.chat_event(chat, ChatEvent::BranchTurnsLoaded { turns, older });
        // The agent remembers a different conversation.
        if self.chat(chat)?.agent_session.is_some() {
            self.chat_event(chat, ChatEvent::AgentSessionChanged(None));
        }
        entries.into_iter().for_each(|entry| self.chat_event(chat, ChatEvent::EntryAdded(entry)));
        if let Some(model) = model {
            self.session_event(model.map_or(SessionEvent::ModelReset, SessionEvent::ModelChanged));
        }
        if config.is_some() {
            self.session_event(SessionEvent::ConfigChanged { values, replace: false });
        }
        Ok(())
    }

    /// Adds entries to a chat's log, after the last finished turn.
    pub(super) fn add_entries(
        &mut self,
        chat: &ChatId,
        entries: Vec<LogEntry>,
        resets_agent: bool,
    ) -> Result<(), Rejection> {
        if resets_agent && self.chat(chat)?.agent_session.is_some() {
            self.chat_event(chat, ChatEvent::AgentSessionChanged(None));
        }
        self.chat(chat)?;
        entries.into_iter().for_each(|entry| self.chat_event(chat, ChatEvent::EntryAdded(entry)));
        Ok(())
    }
}
