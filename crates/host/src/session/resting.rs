//! The end of a task that has nothing to do, while its session goes on in its folder.

use grove_agents::Closing;
use grove_core::*;
use tokio::sync::oneshot;

use super::{Backend, Flow, SessionTask};
use crate::host::Host;

impl SessionTask {
    /// Ends the task, where it has nothing to do. Agents go first, so that none is left behind; the task follows when it is
    /// asked again.
    pub(super) async fn rest(&mut self) -> Flow {
        if !self.has_nothing_to_do() {
            return Flow::On;
        }
        self.finish_workspace().await;
        if self.part_from_agents() {
            return Flow::On;
        }
        let Some(host) = self.around.host.upgrade().map(Host) else { return Flow::On };
        let inbox = &self.inbox;
        // The host's own is the only way to the task then, and nothing is on it.
        let is_unwanted = || inbox.is_empty() && inbox.sender_strong_count() == 1;
        match host.rest(&self.tip.id, &self.spills, is_unwanted) {
            true => Flow::End,
            false => Flow::On,
        }
    }

    fn has_nothing_to_do(&mut self) -> bool {
        let is_creating = self.tip.lifecycle == Lifecycle::Creating;
        let may_wait = self.holding.is_some() || self.stopping.is_some() || self.outstanding.is_some();
        let in_hand = self.folder_due || self.left.is_some() || !self.copying.is_empty() || !self.kept.is_settled();
        let owed = !self.awaited.is_empty() || !self.resumed.is_empty() || !self.reports.is_empty();
        let busy = self.desks.values_mut().any(|desk| {
            let is_leaving = desk
                .leaving
                .as_mut()
                .is_some_and(|leaving| matches!(leaving.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
            let is_opening = matches!(desk.backend, Backend::Opening(_));
            let has_more = desk.running.is_some() || desk.undertaking.is_some() || desk.inherits.is_some();
            is_leaving || is_opening || has_more || desk.is_full
        });
        !(is_creating || may_wait || in_hand || owed || busy || !self.active_turns().is_empty())
    }

    /// Lets the agents go that are there. Gives whether there were any.
    fn part_from_agents(&mut self) -> bool {
        let mut any = false;
        for desk in self.desks.values_mut() {
            let Backend::Ready(agent) = std::mem::take(&mut desk.backend) else { continue };
            any = true;
            let (left, leaving) = oneshot::channel();
            desk.leaving = Some(leaving);
            self.around.env.spawn.spawn(Box::pin(async move {
                agent.close(Closing::LetGo).await;
                // Nobody may need another one.
                left.send(()).ok();
            }));
        }
        any
    }
}
