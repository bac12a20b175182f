//! The state of a grove: one root, and its sessions with their chats.

mod chat;
mod config;
mod details;
mod input_needed;
mod session;

use std::collections::HashMap;

pub use chat::*;
pub use config::*;
pub use details::*;
pub use input_needed::*;
use serde::{Deserialize, Serialize};
pub use session::*;

use crate::ids::*;

/// The complete state that clients can see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub root: Root,
    pub sessions: HashMap<SessionId, Session>,
}

/// The state that belongs to no single session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Root {
    pub agents: Vec<AgentInfo>,
    /// The number of sessions.
    pub active_sessions: u32,
}

/// An agent, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    #[serde(rename = "provider")]
    pub id: AgentId,
    pub display_name: String,
    pub description: String,
    pub models: Vec<ModelInfo>,
}

impl AgentInfo {
    /// True if the agent may have this model: an agent whose models are not known yet may have any.
    pub fn has_model(&self, id: &ModelId) -> bool {
        self.models.is_empty() || self.models.iter().any(|model| model.id == *id)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    pub id: ModelId,
    pub name: String,
    pub max_context_window: Option<u64>,
    pub supports_vision: Option<bool>,
}
