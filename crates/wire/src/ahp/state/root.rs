//! The root channel: the agents, and the state of the host as a whole.

use serde::{Deserialize, Serialize};

use super::{ConfigSchema, Customization, ProtectedResourceMetadata, RootConfigState, TerminalInfo};
use crate::ahp::Object;
use crate::ahp::macros::records;

records! {
    /// The state of `ahp-root://`. The list of sessions is not part of it: see `listSessions`.
    #[derive(Default)]
    pub struct RootState {
        pub agents: Vec<AgentInfo>,
        pub active_sessions: Option<u64>,
        pub terminals: Option<Vec<TerminalInfo>>,
        pub config: Option<RootConfigState>,
        pub meta: Option<Object>,
    }

    #[derive(Default)]
    pub struct AgentInfo {
        pub provider: String,
        pub display_name: String,
        pub description: String,
        pub models: Vec<SessionModelInfo>,
        pub protected_resources: Option<Vec<ProtectedResourceMetadata>>,
        pub customizations: Option<Vec<Customization>>,
        pub capabilities: Option<AgentCapabilities>,
    }

    /// The capabilities of an agent: each is present or absent.
    #[derive(Default, Eq)]
    pub struct AgentCapabilities {
        pub multiple_chats: Option<MultipleChatsCapability>,
        pub multiple_working_directories: Option<MultipleWorkingDirectoriesCapability>,
    }

    #[derive(Default, Eq)]
    pub struct MultipleChatsCapability {
        pub fork: Option<bool>,
        pub side_chat: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct MultipleWorkingDirectoriesCapability {
        /// The first directory cannot be changed.
        pub immutable_primary: Option<bool>,
        /// The first directory may be replaced.
        pub primary_replacement: Option<bool>,
    }

    #[derive(Default)]
    pub struct SessionModelInfo {
        pub id: String,
        pub provider: String,
        pub name: String,
        pub max_context_window: Option<u64>,
        pub max_output_tokens: Option<u64>,
        pub max_prompt_tokens: Option<u64>,
        pub supports_vision: Option<bool>,
        pub policy_state: Option<PolicyState>,
        pub config_schema: Option<ConfigSchema>,
        pub meta: Option<Object>,
    }

    /// A chosen model with its settings.
    #[derive(Default)]
    pub struct ModelSelection {
        pub id: String,
        pub config: Option<Object>,
    }

    /// A chosen agent of a customization.
    #[derive(Default, Eq)]
    pub struct AgentSelection {
        pub uri: String,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PolicyState {
    Enabled,
    Disabled,
    Unconfigured,
}
