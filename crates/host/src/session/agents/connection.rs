//! The agent connection of one chat.

use std::sync::Arc;

use futures_util::future::AbortHandle;
use grove_agents::{AgentSession, CloseReason};
use grove_core::*;
use tokio::sync::oneshot;

use crate::env::Spawn;

/// The agent connection of one chat.
#[derive(Default)]
pub(super) struct ChatAgent {
    /// It was opened before, under this host.
    pub(super) was_opened: bool,
    pub(super) backend: AgentConnection,
    pub(super) running: Option<RunningTurn>,
    /// Resolves when the former agent is gone.
    pub(super) leaving: Option<oneshot::Receiver<()>>,
    /// Settings that were changed while the agent was opening. It gets them when it is ready.
    pub(super) set_meanwhile: Extra,
    /// The session's setup has changed since it was opened.
    pub(super) has_old_setup: bool,
    /// The agent's id of the conversation copied for this chat: its first opening waits for it.
    pub(super) inherits: Option<oneshot::Receiver<Option<String>>>,
}

#[derive(Default)]
pub(super) enum AgentConnection {
    /// Not needed yet.
    #[default]
    Closed,
    Opening(AbortHandle),
    Ready(Arc<dyn AgentSession>),
}

/// A turn that an agent works on.
pub(super) struct RunningTurn {
    pub(super) turn: TurnId,
    pub(super) abort: AbortHandle,
    /// The time of the agent's last report, or of its last input.
    pub(super) last_report: Timestamp,
}

impl ChatAgent {
    pub(super) fn agent(&self) -> Option<Arc<dyn AgentSession>> {
        match &self.backend {
            AgentConnection::Ready(agent) => Some(agent.clone()),
            AgentConnection::Closed | AgentConnection::Opening(_) => None,
        }
    }

    /// Says whether it works, starts, or is not gone yet.
    pub(super) fn is_busy(&mut self) -> bool {
        let is_leaving = self
            .leaving
            .as_mut()
            .is_some_and(|leaving| matches!(leaving.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        let is_opening = matches!(self.backend, AgentConnection::Opening(_));
        is_leaving || is_opening || self.running.is_some() || self.inherits.is_some()
    }

    /// Closes a connected agent that has an old setup, unless a turn runs.
    pub(super) fn release_old_setup(&mut self, spawn: &dyn Spawn) {
        if self.has_old_setup && self.running.is_none() && self.release(CloseReason::Replaced, spawn) {
            self.has_old_setup = false;
        }
    }

    /// Closes a connected agent. The next one starts when it is gone. Returns whether there was one.
    pub(super) fn release(&mut self, reason: CloseReason, spawn: &dyn Spawn) -> bool {
        let AgentConnection::Ready(agent) = std::mem::take(&mut self.backend) else { return false };
        self.leaving = Some(close(agent, reason, spawn));
        true
    }
}

/// Closes an agent. The receiver resolves when it is gone.
pub(super) fn close(agent: Arc<dyn AgentSession>, reason: CloseReason, spawn: &dyn Spawn) -> oneshot::Receiver<()> {
    let (gone, leaving) = oneshot::channel();
    spawn.spawn(Box::pin(async move {
        agent.close(reason).await;
        // The receiver is gone unless somebody waits.
        gone.send(()).ok();
    }));
    leaving
}
