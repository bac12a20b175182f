//! The session's own properties: title, model, settings, permissions, working directory, and its clients.

use super::batch::BatchBuilder;
use super::{MAX_ACTIVE_CLIENTS, Rejection};
use crate::command::Actor;
use crate::event::*;
use crate::ids::*;
use crate::permissions::PermissionsChange;
use crate::state::*;
use crate::title::*;
use crate::turn::Extra;

impl BatchBuilder<'_> {
    pub(super) fn change_model(&mut self, model: ModelId) -> Result<(), Rejection> {
        self.require_created()?;
        self.require_model(Some(&model))?;
        self.session_event(SessionEvent::ModelChanged(model));
        Ok(())
    }

    pub(super) fn change_title(&mut self, title: &str) -> Result<(), Rejection> {
        let given = SessionTitle::given(title);
        // A client shows the text that it sent until it hears otherwise: it is told where that is not the title.
        if given != self.session.session_title() || title != given.text() {
            self.session_event(SessionEvent::TitleChanged(given));
        }
        Ok(())
    }

    pub(super) fn set_read(&mut self, read: bool) -> Result<(), Rejection> {
        if read != self.session.is_read {
            self.session_event(SessionEvent::ReadChanged(read));
        }
        Ok(())
    }

    pub(super) fn set_archived(&mut self, archived: bool) -> Result<(), Rejection> {
        if archived != self.session.is_archived {
            self.session_event(SessionEvent::ArchivedChanged(archived));
        }
        Ok(())
    }

    pub(super) fn set_active_client(&mut self, client: ActiveClient) -> Result<(), Rejection> {
        self.require_own_client(&client.client)?;
        match self.session.active_clients.iter().find(|mine| mine.client == client.client) {
            Some(mine) if *mine == client => {}
            None if self.session.active_clients.len() >= MAX_ACTIVE_CLIENTS => return Err(Rejection::TooManyClients),
            Some(_) | None => self.session_event(SessionEvent::ActiveClientSet(client)),
        }
        Ok(())
    }

    pub(super) fn remove_active_client(&mut self, client: ClientId) -> Result<(), Rejection> {
        self.require_own_client(&client)?;
        if self.session.active_clients.iter().any(|mine| mine.client == client) {
            self.session_event(SessionEvent::ActiveClientRemoved(client));
        }
        Ok(())
    }

    pub(super) fn change_config(&mut self, values: Extra, replace: bool) -> Result<(), Rejection> {
        let config = self.session.config.as_ref().ok_or(Rejection::NoConfig)?;
        if config.changed(&values, replace) != config.values {
            self.session_event(SessionEvent::ConfigChanged { values, replace });
        }
        Ok(())
    }

    pub(super) fn change_permissions(&mut self, change: PermissionsChange) -> Result<(), Rejection> {
        let details = change.apply(&self.session.details).ok_or(Rejection::TooManyRules)?;
        if details != self.session.details {
            self.session_event(SessionEvent::DetailsChanged(Box::new(details)));
        }
        Ok(())
    }

    /// Has the agents work in another folder, if no turn runs.
    pub(super) fn set_working_directory(&mut self, directory: String) -> Result<(), Rejection> {
        self.require_created()?;
        for chat in &self.session.chats {
            self.require_idle(&chat.id)?;
        }
        if self.session.lifecycle == Lifecycle::Creating {
            return Err(Rejection::BeingCreated);
        }
        let previous = self.session.working_directories.first().cloned();
        if previous.as_ref() == Some(&directory) {
            return Ok(());
        }
        self.session_event(SessionEvent::WorkingDirectoryChanged { previous, directory });
        // Agents keep their conversations by folder: the next turn begins a new one.
        for chat in self.session.chats.iter().filter(|chat| chat.agent_session.is_some()) {
            self.chat_event(&chat.id, ChatEvent::AgentSessionChanged(None));
        }
        Ok(())
    }

    /// Requires that a client changes only its own entry.
    fn require_own_client(&self, client: &ClientId) -> Result<(), Rejection> {
        match self.who {
            Actor::Client(who) if who != client => Err(Rejection::NotPermitted),
            Actor::Client(_) | Actor::Agent | Actor::Host => Ok(()),
        }
    }
}
