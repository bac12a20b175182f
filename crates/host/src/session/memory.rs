//! An agent's sources for an earlier conversation: the chat's log, and its own copies.

use std::time::Duration;

use async_trait::async_trait;
use grove_agents::{AgentError, ConversationHistory};
use grove_core::ChatId;
use grove_tree::conversation;
use tokio::sync::{mpsc, oneshot};

use super::{SessionTask, ToSession};

/// The time in which an agent must copy a conversation. Otherwise the copy's agent is told it.
pub const AGENT_COPY_TIMEOUT: Duration = Duration::from_secs(10);

/// A chat's conversation from its log: the model's context, not the shown turns.
///
/// A running turn is not included.
#[derive(Debug)]
pub(super) struct LogMemory {
    /// Weak, so that the session ends with its last handle.
    session: mpsc::WeakSender<ToSession>,
    chat: ChatId,
}

#[async_trait]
impl ConversationHistory for LogMemory {
    async fn retell(&self, most: usize) -> Result<Option<String>, AgentError> {
        let (found, seen) = oneshot::channel();
        let session = self.session.upgrade().ok_or(AgentError::TurnOver)?;
        let recall = ToSession::Recall(self.chat.clone(), found);
        session.send(recall).await.map_err(|_| AgentError::TurnOver)?;
        drop(session);
        let seen = seen.await.map_err(|_| AgentError::TurnOver)?;
        let Some(seen) = seen.map_err(|error| AgentError::ConversationHistory(error.to_string()))? else {
            return Ok(None);
        };
        let transcript =
            seen.with(move |index, source| conversation::transcript_at(index, source, index.leaf(), most)).await;
        let transcript = transcript.map_err(|crash| AgentError::ConversationHistory(crash.to_string()))?;
        transcript.map_err(|error| AgentError::ConversationHistory(error.to_string()))
    }
}

impl LogMemory {
    pub(super) fn new(session: mpsc::WeakSender<ToSession>, chat: ChatId) -> Self {
        Self { session, chat }
    }
}

impl SessionTask {
    /// Has a chat's agent copy its current conversation, and returns the agent's id of the copy.
    ///
    /// `None` if it cannot, or is busy. The id is for the agent connection of the copy's chat
    /// ([`super::agents::ChatAgents::inherit`]).
    pub(super) fn fork_agent(&mut self, chat: &ChatId) -> oneshot::Receiver<Option<String>> {
        let (copied, copy) = oneshot::channel();
        let at_rest = self.tip.chat(chat).is_some_and(|chat| chat.active.is_none());
        let Some(agent) = self.agents.connected_to(chat).filter(|_| at_rest) else {
            // The receiver is here.
            copied.send(None).ok();
            return copy;
        };
        let (session, late) = (self.tip.id.clone(), self.session_context.env.clock.sleep(AGENT_COPY_TIMEOUT));
        self.session_context.env.spawn.spawn(Box::pin(async move {
            let forked = tokio::select! {
                forked = agent.fork() => forked,
                () = late => Err(AgentError::TurnFailed(format!("the agent took longer than {} s", AGENT_COPY_TIMEOUT.as_secs()))),
            };
            let forked = forked.unwrap_or_else(|error| {
                tracing::warn!(
                    %session, %error,
                    "an agent did not copy its conversation; the fork's agent will be told it"
                );
                None
            });
            // The caller may be gone.
            copied.send(forked).ok();
        }));
        copy
    }
}
