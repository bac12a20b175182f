//! Custom agents: instructions that a program defines under names.

use crate::ahp::macros::records;

records! {
    #[derive(Default, Eq)]
    pub struct CustomAgentInfo {
        pub id: String,
        pub name: String,
        pub display_name: String,
        pub description: String,
        pub prompt: Option<String>,
        pub model: Option<String>,
        pub tools: Option<Vec<String>>,
    }

    /// The result of `session.agent.list` and of `session.agent.reload`.
    #[derive(Default, Eq)]
    pub struct AgentListResult {
        pub agents: Vec<CustomAgentInfo>,
    }

    #[derive(Default, Eq)]
    pub struct AgentGetCurrentResult {
        #[serde(default)]
        pub agent: super::Nullable<CustomAgentInfo>,
    }

    #[derive(Default, Eq)]
    pub struct AgentSelectParams {
        pub session_id: String,
        pub name: String,
    }

    #[derive(Default, Eq)]
    pub struct AgentSelectResult {
        pub agent: CustomAgentInfo,
    }
}
