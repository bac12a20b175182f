//! The end of an idle task, while its session stays in its folder.

use grove_agents::CloseReason;
use grove_core::*;
use tokio::sync::oneshot;

use super::{AgentConnection, Flow, SessionTask};
use crate::host::Host;

impl SessionTask {
    /// Ends the task, if it is idle.
    ///
    /// Agents are stopped first, so that none is left behind; the task ends when it is asked again.
    pub(super) async fn rest(&mut self) -> Flow {
        if !self.is_idle() {
            return Flow::On;
        }
        self.finish_workspace().await;
        if self.release_agents() {
            return Flow::On;
        }
        let Some(host) = self.session_context.host.upgrade().map(Host) else { return Flow::On };
        let inbox = &self.inbox;
        // The host's sender is then the only one to the task, and nothing is queued.
        let is_unwanted = || inbox.is_empty() && inbox.sender_strong_count() == 1;
        match host.rest(&self.tip.id, &self.spills, is_unwanted) {
            true => Flow::End,
            false => Flow::On,
        }
    }

    fn is_idle(&mut self) -> bool {
        let is_creating = self.tip.lifecycle == Lifecycle::Creating;
        let may_wait = self.unsaved_changes.is_some() || self.stopping.is_some() || self.outstanding.is_some();
        let in_hand = self.folder_due || self.left.is_some() || !self.log_copy.is_empty() || !self.kept.is_settled();
        let owed = !self.answer_slots.is_empty() || !self.resumed.is_empty() || !self.reports.is_empty();
        let busy = self.chat_agents.values_mut().any(|chat_agent| {
            let is_leaving = chat_agent
                .leaving
                .as_mut()
                .is_some_and(|leaving| matches!(leaving.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
            let is_opening = matches!(chat_agent.backend, AgentConnection::Opening(_));
            is_leaving || is_opening || chat_agent.running.is_some() || chat_agent.inherits.is_some()
        });
        let busy = busy || !self.operations.is_idle() || !self.active_turns().is_empty();
        !(is_creating || may_wait || in_hand || owed || busy)
    }

    /// Stops the agents. Returns whether there were any.
    fn release_agents(&mut self) -> bool {
        let mut any = false;
        for chat_agent in self.chat_agents.values_mut() {
            let AgentConnection::Ready(agent) = std::mem::take(&mut chat_agent.backend) else { continue };
            any = true;
            let (left, leaving) = oneshot::channel();
            chat_agent.leaving = Some(leaving);
            self.session_context.env.spawn.spawn(Box::pin(async move {
                agent.close(CloseReason::Detached).await;
                // The receiver is gone unless another agent is needed.
                left.send(()).ok();
            }));
        }
        any
    }
}
