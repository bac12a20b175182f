//! The mapping from a model's name to an agent.

use std::collections::HashSet;

use grove_core::{AgentId, AgentInfo, ModelId};
use grove_host::sequencer::PublishedState;
use grove_wire::copilot::methods::Model;

use super::endpoint::{EndpointState, SelectedModel};
use super::peer::{CopilotError, CopilotPeer, SessionRef};
use super::sessions::effort;

/// The agent and the model for a new session.
pub(super) struct ModelChoice {
    pub(super) agent: AgentId,
    pub(super) model: Option<ModelId>,
    /// Says what was asked for, if no agent has it and the default agent takes its place.
    pub(super) fallback: Option<String>,
}

impl CopilotPeer {
    /// Every model of every agent, under the name by which a session requests it.
    ///
    /// An agent without known models is requested by its own name. The names of the configuration come last.
    pub(super) fn models(&self) -> Vec<Model> {
        let thinking = self.agents_with_effort();
        let of_agent = |agent: &AgentInfo| {
            let own = Model::named(agent.id.to_string(), agent.display_name.clone());
            let models = agent.models.iter().map(|model| Model::of(format!("{}/{}", agent.id, model.id), model));
            let has_effort = thinking.contains(&agent.id);
            std::iter::once(own).chain(models).map(|model| model.with_effort(has_effort)).collect::<Vec<_>>()
        };
        let agents = self.host().agent_infos();
        let mut models: Vec<Model> = agents.iter().flat_map(of_agent).collect();
        for (name, target) in &self.host().config().model_names {
            let row = models.iter().find(|model| model.id == *target).cloned();
            let row = row.unwrap_or_else(|| Model::named(target, target));
            models.push(Model { id: name.clone(), name: format!("{name} ({})", row.name), ..row });
        }
        models
    }

    /// The agents that have a setting for the reasoning effort, as far as their loaded sessions tell: agents announce
    /// their settings to sessions only.
    fn agents_with_effort(&self) -> HashSet<AgentId> {
        let look = |published: &PublishedState| {
            let sessions = published.state.sessions.values();
            sessions.filter(|session| effort(session).is_some()).map(|session| session.agent.clone()).collect()
        };
        self.host().sequencer().read(look)
    }

    /// Notes the name by which a client selects a session's model. Clients are told that name as long as the session
    /// keeps the model.
    pub(super) async fn select_model(
        &self,
        session: &SessionRef,
        name: &str,
        effort: Option<String>,
    ) -> Result<(), CopilotError> {
        let is_known = self.host().config().model_names.contains_key(name) || self.agent_for(Some(name)).is_err();
        let model = self.look(session, |session| session.model.clone()).await?;
        let mut state = self.endpoint().state();
        let EndpointState { open, selected_models, .. } = &mut *state;
        selected_models.retain(|selected, _| open.contains_key(selected) || *selected == session.id);
        match is_known {
            true => selected_models.insert(session.id.clone(), SelectedModel { name: name.to_owned(), model, effort }),
            false => selected_models.remove(&session.id),
        };
        Ok(())
    }

    /// A session's model as clients name it.
    pub(super) async fn selected_model(&self, session: &SessionRef) -> Result<String, CopilotError> {
        let selected = self.endpoint().state().selected_models.get(&session.id).cloned();
        self.look(session, move |session| match (selected, &session.model) {
            (Some(selected), model) if selected.model == *model => selected.name,
            (_, Some(model)) => format!("{}/{model}", session.agent),
            (_, None) => session.agent.to_string(),
        })
        .await
    }

    /// The reasoning effort that a client selected with a model that no agent has.
    pub(super) fn selected_effort(&self, session: &SessionRef) -> Option<String> {
        self.endpoint().state().selected_models.get(&session.id)?.effort.clone()
    }

    /// The agent and the model for a new session. The default agent takes the place of an unknown model, so that a
    /// program runs that names Copilot's own models and cannot be changed.
    pub(super) fn choose_model(&self, model: Option<&str>) -> Result<ModelChoice, CopilotError> {
        match self.agent_for(model) {
            Ok((agent, model)) => Ok(ModelChoice { agent, model, fallback: None }),
            Err(CopilotError::UnknownModel(reason)) => {
                let (agent, model) = self.agent_for(None)?;
                let fallback = format!("{reason}. The agent {agent} is used with its own model.");
                Ok(ModelChoice { agent, model, fallback: Some(fallback) })
            }
            Err(error) => Err(error),
        }
    }

    /// The agent and the model for a requested name: one of the configuration, `<agent>`, `<agent>/<model>`, or a
    /// model of some agent.
    ///
    /// The default agent comes first.
    pub(super) fn agent_for(&self, model: Option<&str>) -> Result<(AgentId, Option<ModelId>), CopilotError> {
        let default = self.host().default_agent();
        let default = default.ok_or_else(|| CopilotError::Failed("this host has no agent".to_owned()))?;
        let Some(named) = model.filter(|model| !model.is_empty()) else { return Ok((default, None)) };
        let wanted = self.host().config().model_names.get(named).map_or(named, String::as_str);
        let agents = self.host().agent_infos();
        let known = |name: &str| agents.iter().find(|agent| agent.id.as_str() == name);
        if let Some(agent) = known(wanted) {
            return Ok((agent.id.clone(), None));
        }
        if let Some((agent, model)) = wanted.split_once('/')
            && let Some(agent) = known(agent)
        {
            return Ok((agent.id.clone(), Some(ModelId::from(model))));
        }
        let has = |agent: &&AgentInfo| agent.models.iter().any(|model| model.id.as_str() == wanted);
        let mut having: Vec<&AgentInfo> = agents.iter().filter(has).collect();
        having.sort_by_key(|agent| agent.id != default);
        match having.first() {
            Some(agent) => Ok((agent.id.clone(), Some(ModelId::from(wanted)))),
            None => {
                let agents: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
                let agents = agents.join(", ");
                Err(CopilotError::UnknownModel(format!(
                    "Unknown model {wanted:?}: a model is named <agent> or <agent>/<model>, the agents being {agents}; \
                     [copilot.models] in grove.toml maps other names"
                )))
            }
        }
    }
}
