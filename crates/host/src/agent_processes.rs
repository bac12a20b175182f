//! The processes of agents, a service that the program passes to the host.

use grove_core::SessionId;
use grove_work::ProcessKey;

/// The process below which everything belongs to an agent of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRoot {
    pub process: ProcessKey,
    pub session: SessionId,
}

/// Knows the processes of the running agents.
pub trait AgentProcesses: Send + Sync {
    /// One process for each running agent: everything below it belongs to the agent.
    fn roots(&self) -> Vec<AgentRoot>;
}
