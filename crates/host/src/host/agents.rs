//! The agents of the host.

use std::sync::{Arc, MutexGuard, PoisonError};

use async_trait::async_trait;
use grove_agents::{Agent, AgentError, AgentSession, OpenSession};
use grove_core::*;

use super::Host;
use crate::sequencer::HostStopped;

/// Finds agents that a host does not know yet.
#[async_trait]
pub trait AgentFinder: Send + Sync {
    /// Looks for agents again, and adds new ones ([`Host::add_agent`]).
    async fn look_again(&self, host: &Host);

    /// The next step to install an agent that is known by name, as a sentence.
    fn install_hint(&self, id: &AgentId) -> Option<String>;
}

impl Host {
    /// Adds an agent, or replaces the one of the same id; clients are notified.
    pub async fn add_agent(&self, agent: Arc<dyn Agent>) -> Result<(), HostStopped> {
        {
            let mut agents = self.agents();
            let id = agent.info().id;
            match agents.iter_mut().find(|mine| mine.info().id == id) {
                Some(mine) => *mine = agent,
                None => agents.push(agent),
            }
        }
        self.agents_changed().await
    }

    /// Removes an agent. Sessions that it works for keep it.
    pub async fn remove_agent(&self, id: &AgentId) -> Result<(), HostStopped> {
        self.agents().retain(|agent| agent.info().id != *id);
        self.agents_changed().await
    }

    /// Asks the agents for their descriptions again, and notifies clients of changes.
    pub async fn agents_changed(&self) -> Result<(), HostStopped> {
        let infos: Vec<AgentInfo> = self.agents().iter().map(|agent| agent.info()).collect();
        let changed = self.0.agent_infos.send_if_modified(|known| {
            let changed = **known != *infos;
            *known = infos.as_slice().into();
            changed
        });
        if changed { self.publish_root(RootEvent::AgentsChanged(infos)).await } else { Ok(()) }
    }

    /// Sets the finder of agents that are requested and unknown. Only the first call has an effect.
    pub fn set_agent_finder(&self, finder: Arc<dyn AgentFinder>) {
        if self.0.agent_finder.set(finder).is_err() {
            tracing::warn!("a host has one finder of agents: the second one is not used");
        }
    }

    /// The agent of this name. An unknown one is looked for again: it may have been installed since.
    pub async fn agent_named(&self, id: &AgentId) -> Option<Arc<dyn Agent>> {
        let find = || self.agents().iter().find(|agent| agent.info().id == *id).cloned();
        if let Some(agent) = find() {
            return Some(agent);
        }
        self.0.agent_finder.get()?.look_again(self).await;
        find()
    }

    /// The end of a message about an unknown agent: how to install it, if it is known by name.
    pub fn install_hint(&self, id: &AgentId) -> String {
        let hint = self.0.agent_finder.get().and_then(|finder| finder.install_hint(id));
        hint.map(|hint| format!(": {hint}")).unwrap_or_default()
    }

    /// The agents' descriptions of themselves.
    pub fn agent_infos(&self) -> Arc<[AgentInfo]> {
        self.0.agent_infos.borrow().clone()
    }

    /// Says whether there is an agent of this id.
    pub(crate) fn has_agent(&self, id: &AgentId) -> bool {
        self.agents().iter().any(|agent| agent.info().id == *id)
    }

    /// The settings of sessions of this agent, as far as they are known.
    pub fn settings_of(&self, id: &AgentId) -> Option<SessionConfig> {
        self.agents().iter().find(|agent| agent.info().id == *id)?.settings()
    }

    /// The agent for sessions that name none: the configured one, else the first.
    pub fn default_agent(&self) -> Option<AgentId> {
        let agents = self.agents();
        let known = |id: &AgentId| agents.iter().any(|agent| agent.info().id == *id);
        let configured = self.0.config.default_agent.clone().filter(known);
        configured.or_else(|| agents.first().map(|agent| agent.info().id))
    }

    // Nothing that can panic leaves either list half-changed, so a poisoned lock still guards valid data.
    pub(super) fn agents(&self) -> MutexGuard<'_, Vec<Arc<dyn Agent>>> {
        self.0.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces an agent of an earlier session that is not installed any more.
pub(super) struct MissingAgent {
    pub(super) id: AgentId,
}

#[async_trait]
impl Agent for MissingAgent {
    fn info(&self) -> AgentInfo {
        AgentInfo { id: self.id.clone(), display_name: String::new(), description: String::new(), models: Vec::new() }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Err(AgentError::Start(format!("there is no agent {} on this host any more", self.id)))
    }
}
