//! What can be chosen in a conversation and what is, in a form that can be stored.

use agent_client_protocol_schema::v1 as acp;
use grove_core::{Extra, ModelId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::acp::settings::{Change, Settings};
use crate::agent::AgentEvent;

/// The settings, with what the agent said that they came of.
#[derive(Clone, Debug, Default)]
pub(super) struct Choices {
    settings: Settings,
    said: Said,
}

/// What an agent said of its settings: together it gives them anew.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Said {
    /// The answer that opened the conversation.
    opened: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Vec<acp::SessionConfigOption>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<acp::SessionModeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Value>,
}

impl Choices {
    /// What the answer says that opened the conversation.
    pub(super) fn of(opened: Value) -> Self {
        Self { settings: Settings::of(&opened), said: Said { opened, ..Said::default() } }
    }

    /// The settings as they were when this was stored.
    pub(super) fn again(said: Said) -> Self {
        let mut choices = Self::of(said.opened);
        if let Some(options) = said.options {
            choices.take_options(options);
        }
        if let Some(mode) = said.mode {
            choices.take_mode(mode);
        }
        if let Some(model) = said.model {
            choices.made(&Change::Model(model));
        }
        choices
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn said(&self) -> &Said {
        &self.said
    }

    pub(super) fn take_options(&mut self, options: Vec<acp::SessionConfigOption>) -> bool {
        let differs = self.settings.take_options(&options);
        self.said.options = Some(options);
        differs
    }

    pub(super) fn take_mode(&mut self, mode: acp::SessionModeId) -> bool {
        let differs = self.settings.take_mode(&mode);
        self.said.mode = Some(mode);
        differs
    }

    /// A change was made, and the agent's answer does not say how things stand now.
    pub(super) fn made(&mut self, change: &Change) {
        self.settings.made(change);
        match change {
            Change::Mode(request) => self.said.mode = Some(request.mode_id.clone()),
            Change::Model(model) => self.said.model = Some(model.clone()),
            // An agent that has options says them all in its answer.
            Change::Option(_) => {}
        }
    }

    pub(super) fn change(&self, session: &acp::SessionId, wish: &Wish) -> Option<Change> {
        match wish {
            Wish::Setting(name, value) => self.settings.change(session, name, value),
            Wish::Model(model) => self.settings.change_model(session, model),
        }
    }

    /// What is chosen.
    pub(super) fn values(&self) -> Extra {
        match self.settings.event() {
            Some(AgentEvent::Settings { values, .. }) => values,
            _ => Extra::new(),
        }
    }
}

/// Something that a person has chosen.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wish {
    Setting(String, Value),
    Model(ModelId),
}

impl Wish {
    /// How a person calls it.
    pub(super) fn told(&self) -> String {
        match self {
            Wish::Setting(name, Value::String(value)) => format!("setting {name} = {value}"),
            Wish::Setting(name, value) => format!("setting {name} = {value}"),
            Wish::Model(model) => format!("model {model}"),
        }
    }
}
