//! Custom agents: instructions that a program defines under names, of which it selects one.

use grove_host::SetupChange;
use grove_host::setup::CustomAgent;
use grove_wire::copilot::events::{AgentDeselected, AgentSelected};
use grove_wire::copilot::methods::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::peer::{CopilotError, CopilotPeer};

/// A custom agent as the SDK names it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentConfig {
    name: String,
    display_name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    prompt: String,
    /// An agent that the model may not delegate to; no agent of Grove delegates to any.
    #[serde(rename = "infer")]
    _infer: Option<bool>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// Reads the custom agents of a request.
pub(super) fn defined(named: &Value) -> Result<Vec<CustomAgent>, CopilotError> {
    let wrong =
        |_| CopilotError::Failed("`customAgents` cannot be used: give each agent a `name` and a `prompt`".to_owned());
    let configs: Vec<AgentConfig> = Vec::deserialize(named).map_err(wrong)?;
    Ok(configs.into_iter().map(custom_agent).collect())
}

fn custom_agent(config: AgentConfig) -> CustomAgent {
    let AgentConfig { name, display_name, description, prompt, more, .. } = config;
    // All tools, and none of something, are what the agent has anyway.
    let restricts = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty() && *items != ["*"],
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let text = |member: &str| more.get(member).and_then(Value::as_str).map(str::to_owned);
    let list = |member: &str| Vec::deserialize(more.get(member)?).ok();
    let (model, tools) = (text("model"), list("tools"));
    let unserved = more.into_iter().filter(|(_, value)| restricts(value)).map(|(member, _)| member).collect();
    CustomAgent { name, display_name, description, prompt, model, tools, unserved }
}

fn info(agent: &CustomAgent) -> CustomAgentInfo {
    CustomAgentInfo {
        id: agent.name.clone(),
        name: agent.name.clone(),
        display_name: agent.display_name.clone().unwrap_or_else(|| agent.name.clone()),
        description: agent.description.clone().unwrap_or_default(),
        prompt: Some(agent.prompt.clone()),
        model: agent.model.clone(),
        tools: agent.tools.clone(),
    }
}

impl CopilotPeer {
    pub(super) async fn custom_agents(&self, params: SessionParams) -> Result<AgentListResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let setup = self.host().setup_of(&session.uri).await?;
        Ok(AgentListResult { agents: setup.custom_agents.defined.iter().map(info).collect() })
    }

    pub(super) async fn current_agent(&self, params: SessionParams) -> Result<AgentGetCurrentResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let setup = self.host().setup_of(&session.uri).await?;
        Ok(AgentGetCurrentResult { agent: setup.custom_agents.selected().map(info).into() })
    }

    /// Selects a custom agent: its prompt goes to the session's agent from the next turn on.
    pub(super) async fn select_agent(&self, params: AgentSelectParams) -> Result<AgentSelectResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let change = SetupChange { selected_agent: Some(params.name), ..SetupChange::default() };
        self.host().change_setup(&session.uri, change).await?;
        let setup = self.host().setup_of(&session.uri).await?;
        let agent = setup.custom_agents.selected().map(info).unwrap_or_default();
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.say(AgentSelected {
                agent_name: agent.name.clone(),
                agent_display_name: agent.display_name.clone(),
                tools: None.into(),
            });
        }
        Ok(AgentSelectResult { agent })
    }

    pub(super) async fn deselect_agent(&self, params: SessionParams) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        let change = SetupChange { selected_agent: Some(String::new()), ..SetupChange::default() };
        self.host().change_setup(&session.uri, change).await?;
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.say(AgentDeselected {});
        }
        Ok(())
    }
}
