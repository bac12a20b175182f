//! The tools that clients offer to an agent.

use std::collections::HashSet;
use std::sync::Arc;

use grove_core::{ClientId, ClientTool};
use tokio::sync::watch;

use crate::setup::ToolFilter;

/// A tool, and the client that runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    pub client: ClientId,
    pub tool: ClientTool,
}

/// The tools that the clients of a session offer, as they come and go.
#[derive(Clone, Debug)]
pub struct ClientTools(watch::Receiver<Arc<[OfferedTool]>>);

impl ClientTools {
    /// The tools that the sender gives.
    pub fn new(offered: watch::Receiver<Arc<[OfferedTool]>>) -> Self {
        Self(offered)
    }

    /// The tools that a filter allows. Of several tools of one name, the first counts.
    pub fn allowed(&self, filter: &ToolFilter) -> Vec<OfferedTool> {
        let mut names = HashSet::new();
        let offered = self.0.borrow();
        let allowed = offered.iter().filter(|offered| filter.allows(&offered.tool.name));
        allowed.filter(|offered| names.insert(offered.tool.name.as_str())).cloned().collect()
    }

    /// A receiver of later changes.
    pub fn changes(&self) -> watch::Receiver<Arc<[OfferedTool]>> {
        let mut changes = self.0.clone();
        changes.mark_unchanged();
        changes
    }
}

/// No client offers a tool.
impl Default for ClientTools {
    fn default() -> Self {
        Self(watch::channel(Arc::default()).1)
    }
}
