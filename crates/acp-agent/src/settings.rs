//! Modes and configuration options: the session's settings, its model, and its agent.

use agent_client_protocol_schema::v1 as acp;
use grove_wire::ahp::{AgentInfo, SessionConfigPropertySchema, SessionConfigSchema, SessionState};
use grove_wire::jsonrpc::ErrorObject;
use serde::Deserialize;
use serde_json::Value;

/// The option that chooses the agent behind a session.
pub(crate) const AGENT: &str = "grove.agent";
/// The option that chooses the model, if the agent has models and no setting for them.
const MODEL: &str = "model";
/// The beginning of a mode that stands for an agent.
const AGENT_MODE: &str = "agent:";

/// A session's settings as the editor shows them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ShownSettings {
    pub(crate) options: Vec<acp::SessionConfigOption>,
    pub(crate) modes: Option<acp::SessionModeState>,
}

/// A change of a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SettingChange {
    /// A setting of the session.
    Config { name: String, value: Value },
    /// The model of the next messages.
    Model(String),
    /// The agent, while nothing was said.
    Agent(String),
}

/// The sources of a session's settings.
#[derive(Debug)]
pub(crate) struct SettingSource<'a> {
    pub(crate) session: &'a SessionState,
    pub(crate) agents: &'a [AgentInfo],
    /// The model of the last message, or the one chosen for the next.
    pub(crate) model: Option<&'a str>,
    pub(crate) has_switches: bool,
}

/// The meaning of a setting for an editor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SettingRole {
    Mode,
    Model,
    Thinking,
    Other,
}

impl SettingSource<'_> {
    pub(crate) fn shown(&self) -> ShownSettings {
        let schema = self.schema();
        let mut options: Vec<acp::SessionConfigOption> =
            schema.properties.iter().filter_map(|(name, property)| self.option(name, property)).collect();
        if !self.has_model_setting(&schema)
            && let Some(model) = self.model_option()
        {
            options.push(model);
        }
        options.extend(self.agent_option());
        ShownSettings { options, modes: self.modes(&schema) }
    }

    /// The change that an editor asks for with an option.
    pub(crate) fn change(&self, id: &str, value: &acp::SessionConfigOptionValue) -> Result<SettingChange, ErrorObject> {
        let schema = self.schema();
        let text = value.as_value_id().map(|value| value.0.as_ref());
        let unknown = || ErrorObject::invalid_params(format!("the option {id:?} has no such value"));
        match (id, schema.properties.get(id)) {
            (AGENT, _) => self.known_agent(text.ok_or_else(unknown)?),
            (_, Some(property)) => match (property.kind.as_str(), value.as_bool(), text) {
                ("boolean", Some(on), _) => Ok(SettingChange::Config { name: id.to_owned(), value: on.into() }),
                ("boolean", None, Some(on @ ("true" | "false"))) => {
                    Ok(SettingChange::Config { name: id.to_owned(), value: (on == "true").into() })
                }
                (_, _, Some(text)) if choices(property).any(|choice| choice == text) => {
                    Ok(SettingChange::Config { name: id.to_owned(), value: text.into() })
                }
                _ => Err(unknown()),
            },
            (MODEL, None) => {
                let model = text.ok_or_else(unknown)?;
                let is_known = self.agent().is_some_and(|agent| agent.models.iter().any(|known| known.id == model));
                if is_known { Ok(SettingChange::Model(model.to_owned())) } else { Err(unknown()) }
            }
            (_, None) => Err(ErrorObject::invalid_params(format!("there is no option {id:?}"))),
        }
    }

    /// The change that an editor asks for with a mode.
    pub(crate) fn mode_change(&self, mode: &str) -> Result<SettingChange, ErrorObject> {
        if let Some(agent) = mode.strip_prefix(AGENT_MODE) {
            return self.known_agent(agent);
        }
        let schema = self.schema();
        let setting = mode_setting(&schema).filter(|(_, property)| choices(property).any(|choice| choice == mode));
        match setting {
            Some((name, _)) => Ok(SettingChange::Config { name: name.clone(), value: mode.into() }),
            None => Err(ErrorObject::invalid_params(format!("there is no mode {mode:?}"))),
        }
    }

    fn known_agent(&self, agent: &str) -> Result<SettingChange, ErrorObject> {
        match self.agents.iter().any(|known| known.provider == agent) {
            true => Ok(SettingChange::Agent(agent.to_owned())),
            false => Err(ErrorObject::invalid_params(format!("the host has no agent {agent:?}: see `grove agents`"))),
        }
    }

    fn agent(&self) -> Option<&AgentInfo> {
        self.agents.iter().find(|agent| agent.provider == self.session.provider)
    }

    /// The newest schema: an agent names its settings when it starts.
    fn schema(&self) -> SessionConfigSchema {
        let named = self.session.meta.as_ref().and_then(|meta| meta.get("settings"));
        let named = named.and_then(|named| SessionConfigSchema::deserialize(named).ok());
        named.or_else(|| self.session.config.as_ref().map(|config| config.schema.clone())).unwrap_or_default()
    }

    fn value(&self, name: &str, property: &SessionConfigPropertySchema) -> Option<Value> {
        let set = self.session.config.as_ref().and_then(|config| config.values.get(name));
        set.or(property.default.as_ref()).cloned()
    }

    fn has_model_setting(&self, schema: &SessionConfigSchema) -> bool {
        schema.properties.iter().any(|(name, property)| role(name, property) == SettingRole::Model)
    }

    fn option(&self, name: &str, property: &SessionConfigPropertySchema) -> Option<acp::SessionConfigOption> {
        if property.read_only == Some(true) {
            return None;
        }
        let value = self.value(name, property);
        let option = match property.kind.as_str() {
            "boolean" => {
                let on = value.and_then(|value| value.as_bool()).unwrap_or_default();
                switch(name, &property.title, on, self.has_switches)
            }
            "string" => {
                let label = |at: usize| property.enum_labels.as_ref().and_then(|labels| labels.get(at));
                let about = |at: usize| property.enum_descriptions.as_ref().and_then(|texts| texts.get(at));
                let choice = |(at, id): (usize, &str)| {
                    let label = label(at).cloned().unwrap_or_else(|| id.to_owned());
                    let about = about(at).filter(|about| !about.is_empty()).cloned();
                    acp::SessionConfigSelectOption::new(acp::SessionConfigValueId::new(id), label).description(about)
                };
                let listed: Vec<_> = choices(property).enumerate().map(choice).collect();
                let first = listed.first()?.value.to_string();
                let chosen = value.and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or(first);
                select(name, &property.title, &chosen, listed)
            }
            _ => return None,
        };
        let category = match role(name, property) {
            SettingRole::Mode => Some(acp::SessionConfigOptionCategory::Mode),
            SettingRole::Model => Some(acp::SessionConfigOptionCategory::Model),
            SettingRole::Thinking => Some(acp::SessionConfigOptionCategory::ThoughtLevel),
            SettingRole::Other => None,
        };
        Some(option.category(category).description(property.description.clone()))
    }

    fn model_option(&self) -> Option<acp::SessionConfigOption> {
        let agent = self.agent()?;
        let choice = |model: &grove_wire::ahp::SessionModelInfo| {
            acp::SessionConfigSelectOption::new(acp::SessionConfigValueId::new(model.id.as_str()), model.name.clone())
        };
        let listed: Vec<_> = agent.models.iter().map(choice).collect();
        let chosen = self.model.filter(|model| agent.models.iter().any(|known| known.id == *model));
        let chosen = chosen.or_else(|| agent.models.first().map(|model| model.id.as_str()))?;
        let option = select(MODEL, "Model", chosen, listed);
        Some(option.category(Some(acp::SessionConfigOptionCategory::Model)))
    }

    fn agent_option(&self) -> Option<acp::SessionConfigOption> {
        if self.agents.len() < 2 {
            return None;
        }
        let choice = |agent: &AgentInfo| {
            let id = acp::SessionConfigValueId::new(agent.provider.as_str());
            let about = Some(agent.description.clone()).filter(|about| !about.is_empty());
            acp::SessionConfigSelectOption::new(id, agent.display_name.clone()).description(about)
        };
        let option = select(AGENT, "Agent", &self.session.provider, self.agents.iter().map(choice).collect());
        Some(option.description("The agent behind this session. It can change until the first prompt.".to_owned()))
    }

    /// The agent's modes; an agent without modes has the agents as modes, for editors that know no options.
    fn modes(&self, schema: &SessionConfigSchema) -> Option<acp::SessionModeState> {
        if let Some((name, property)) = mode_setting(schema) {
            let labels = property.enum_labels.clone().unwrap_or_default();
            let mode = |(at, id): (usize, &str)| {
                let label = labels.get(at).cloned().unwrap_or_else(|| id.to_owned());
                acp::SessionMode::new(acp::SessionModeId::new(id), label)
            };
            let modes: Vec<_> = choices(property).enumerate().map(mode).collect();
            let value = self.value(name, property);
            let current = value.as_ref().and_then(Value::as_str).or_else(|| choices(property).next())?;
            return Some(acp::SessionModeState::new(acp::SessionModeId::new(current), modes));
        }
        if self.agents.len() < 2 {
            return None;
        }
        let id = |agent: &str| acp::SessionModeId::new(format!("{AGENT_MODE}{agent}"));
        let mode = |agent: &AgentInfo| acp::SessionMode::new(id(&agent.provider), agent.display_name.clone());
        Some(acp::SessionModeState::new(id(&self.session.provider), self.agents.iter().map(mode).collect()))
    }
}

fn role(name: &str, property: &SessionConfigPropertySchema) -> SettingRole {
    let is = |word: &str| name.eq_ignore_ascii_case(word) || property.title.eq_ignore_ascii_case(word);
    if is("mode") {
        SettingRole::Mode
    } else if is("model") {
        SettingRole::Model
    } else if ["thought_level", "reasoning_effort", "effort", "thinking"].into_iter().any(is) {
        SettingRole::Thinking
    } else {
        SettingRole::Other
    }
}

fn mode_setting(schema: &SessionConfigSchema) -> Option<(&String, &SessionConfigPropertySchema)> {
    schema.properties.iter().find(|(name, property)| role(name, property) == SettingRole::Mode)
}

/// The values to choose from.
fn choices(property: &SessionConfigPropertySchema) -> impl Iterator<Item = &str> {
    property.values.iter().flatten().filter_map(Value::as_str)
}

fn select(
    name: &str,
    title: &str,
    chosen: &str,
    choices: Vec<acp::SessionConfigSelectOption>,
) -> acp::SessionConfigOption {
    let (id, chosen) = (acp::SessionConfigId::new(name), acp::SessionConfigValueId::new(chosen));
    acp::SessionConfigOption::select(id, title, chosen, choices)
}

/// A switch; for an editor that has none, a choice of two.
fn switch(name: &str, title: &str, on: bool, has_switches: bool) -> acp::SessionConfigOption {
    if has_switches {
        return acp::SessionConfigOption::boolean(acp::SessionConfigId::new(name), title, on);
    }
    let choice =
        |id: &'static str, label: &str| acp::SessionConfigSelectOption::new(acp::SessionConfigValueId::new(id), label);
    select(name, title, if on { "true" } else { "false" }, vec![choice("true", "On"), choice("false", "Off")])
}

#[cfg(test)]
mod tests;
