//! The end of an idle task, while its session stays in its folder.

use grove_core::*;

use super::{Flow, SessionTask};
use crate::host::Host;

impl SessionTask {
    /// Ends the task, if it is idle.
    ///
    /// Agents are stopped first, so that none is left behind; the task ends when it is asked again.
    pub(super) async fn rest(&mut self) -> Flow {
        if !self.is_idle() {
            return Flow::On;
        }
        self.workspace.finish_requests().await;
        if self.agents.release_all(self.session_context.env.spawn.as_ref()) {
            return Flow::On;
        }
        let Some(host) = self.session_context.host.upgrade().map(Host) else { return Flow::On };
        let inbox = &self.inbox;
        // The host's sender is then the only one to the task, and nothing is queued.
        let is_unwanted = || inbox.is_empty() && inbox.sender_strong_count() == 1;
        match host.rest(&self.tip.id, &self.workspace.spills, is_unwanted) {
            true => Flow::End,
            false => Flow::On,
        }
    }

    fn is_idle(&mut self) -> bool {
        let is_creating = self.tip.lifecycle == Lifecycle::Creating;
        let may_wait = !self.persistence.features().may_be_evicted || self.stopping.is_some();
        let unsaved = self.persistence.is_folder_due() || self.persistence.has_former_store();
        let in_hand = unsaved || !self.publisher.is_idle() || !self.copies.is_empty() || !self.workspace.is_settled();
        let busy = !self.hook_waits.is_empty()
            || self.agents.is_busy()
            || !self.operations.is_idle()
            || !self.active_turns().is_empty();
        !(is_creating || may_wait || in_hand || busy)
    }
}
