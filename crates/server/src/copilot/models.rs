//! The mapping from a model's name to an agent.

use grove_core::{AgentId, AgentInfo, ModelId};
use grove_wire::copilot::methods::Model;

use super::peer::{CopilotError, CopilotPeer};

impl CopilotPeer {
    /// Every model of every agent, under the name by which a session requests it.
    ///
    /// An agent without known models is requested by its own name.
    pub(super) fn models(&self) -> Vec<Model> {
        let named = |agent: &AgentInfo| {
            let own = Model { id: agent.id.to_string(), name: agent.display_name.clone(), capabilities: None };
            let models = agent.models.iter().map(|model| Model::of(format!("{}/{}", agent.id, model.id), model));
            std::iter::once(own).chain(models).collect::<Vec<_>>()
        };
        self.host().agent_infos().iter().flat_map(named).collect()
    }

    /// The agent and the model for a requested name: `<agent>`, `<agent>/<model>`, or a model of some agent.
    ///
    /// The default agent comes first.
    pub(super) fn agent_for(&self, model: Option<&str>) -> Result<(AgentId, Option<ModelId>), CopilotError> {
        let default = self.host().default_agent();
        let default = default.ok_or_else(|| CopilotError::Failed("this host has no agent".to_owned()))?;
        let Some(wanted) = model.filter(|model| !model.is_empty()) else { return Ok((default, None)) };
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
                Err(CopilotError::Failed(format!(
                    "Unknown model {wanted:?}: a model is named <agent> or <agent>/<model>, the agents being {agents}"
                )))
            }
        }
    }
}
