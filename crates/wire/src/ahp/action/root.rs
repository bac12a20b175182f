//! Actions on the root.

use crate::ahp::Object;
use crate::ahp::macros::records;
use crate::ahp::state::{AgentInfo, TerminalInfo};

actions! {
    pub enum RootAction {
        "root/agentsChanged" Host => AgentsChanged(RootAgentsChanged),
        "root/activeSessionsChanged" Host => ActiveSessionsChanged(RootActiveSessionsChanged),
        "root/terminalsChanged" Host => TerminalsChanged(RootTerminalsChanged),
        "root/configChanged" Client => ConfigChanged(RootConfigChanged),
    }
}

records! {
    pub struct RootAgentsChanged {
        pub agents: Vec<AgentInfo>,
    }

    pub struct RootActiveSessionsChanged {
        pub active_sessions: u64,
    }

    pub struct RootTerminalsChanged {
        pub terminals: Vec<TerminalInfo>,
    }

    /// Merges or replaces values.
    pub struct RootConfigChanged {
        pub config: Object,
        pub replace: Option<bool>,
    }
}
