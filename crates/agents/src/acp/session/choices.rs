//! The settings of a conversation and their values, in a form that can be stored.

use agent_client_protocol_schema::v1 as acp;
use grove_core::{Extra, ModelId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::acp::settings::{AgentSettings, SettingRequest};
use crate::agent::AgentEvent;

/// The settings, with the agent's messages that they came from.
#[derive(Clone, Debug, Default)]
pub(super) struct Choices {
    settings: AgentSettings,
    reported_settings: ReportedSettings,
}

/// The agent's messages about its settings, from which they can be rebuilt.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReportedSettings {
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
    /// Reads the settings from the answer that opened the conversation.
    pub(super) fn of(opened: Value) -> Self {
        Self {
            settings: AgentSettings::of(&opened),
            reported_settings: ReportedSettings { opened, ..ReportedSettings::default() },
        }
    }

    /// Rebuilds the settings as they were when this was stored.
    pub(super) fn again(reported_settings: ReportedSettings) -> Self {
        let mut choices = Self::of(reported_settings.opened);
        if let Some(options) = reported_settings.options {
            choices.take_options(options);
        }
        if let Some(mode) = reported_settings.mode {
            choices.take_mode(mode);
        }
        if let Some(model) = reported_settings.model {
            choices.made(&SettingRequest::Model(model));
        }
        choices
    }

    pub(super) fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    pub(super) fn reported_settings(&self) -> &ReportedSettings {
        &self.reported_settings
    }

    pub(super) fn take_options(&mut self, options: Vec<acp::SessionConfigOption>) -> bool {
        let differs = self.settings.take_options(&options);
        self.reported_settings.options = Some(options);
        differs
    }

    pub(super) fn take_mode(&mut self, mode: acp::SessionModeId) -> bool {
        let differs = self.settings.take_mode(&mode);
        self.reported_settings.mode = Some(mode);
        differs
    }

    /// Notes a change if the agent's answer does not contain the new state.
    pub(super) fn made(&mut self, change: &SettingRequest) {
        self.settings.made(change);
        match change {
            SettingRequest::Mode(request) => self.reported_settings.mode = Some(request.mode_id.clone()),
            SettingRequest::Model(model) => self.reported_settings.model = Some(model.clone()),
            // An agent that has options reports them all in its answer.
            SettingRequest::Option(_) => {}
        }
    }

    pub(super) fn change(&self, session: &acp::SessionId, chosen_setting: &ChosenSetting) -> Option<SettingRequest> {
        match chosen_setting {
            ChosenSetting::Setting(name, value) => self.settings.change(session, name, value),
            ChosenSetting::Model(model) => self.settings.change_model(session, model),
        }
    }

    /// The chosen values.
    pub(super) fn values(&self) -> Extra {
        match self.settings.event() {
            Some(AgentEvent::AgentSettings { values, .. }) => values,
            _ => Extra::new(),
        }
    }
}

/// A setting that a person has chosen.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ChosenSetting {
    Setting(String, Value),
    Model(ModelId),
}

impl ChosenSetting {
    /// Its name for a person.
    pub(super) fn description(&self) -> String {
        match self {
            ChosenSetting::Setting(name, Value::String(value)) => format!("setting {name} = {value}"),
            ChosenSetting::Setting(name, value) => format!("setting {name} = {value}"),
            ChosenSetting::Model(model) => format!("model {model}"),
        }
    }
}
