//! Copies of the conversation, made by the agent itself.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use tokio::sync::oneshot;

use super::super::open::{ContextRetention, fork_request};
use super::super::process::AgentProcess;
use super::super::{ForkReply, OneShotProcess};
use super::{CLOSING, SessionWorker};
use crate::acp::connection::{AgentCallError, CallPurpose};
use crate::agent::*;

impl SessionWorker {
    /// Requests a copy: from the process if there is one, else from another that is started for it.
    pub(super) async fn fork(&mut self, copied: ForkReply) {
        self.look();
        let Some(agent_session_id) = self.agent_session_id.clone() else { return none(copied) };
        let Some(alive) = &self.alive else { return self.fork_in_new_process(agent_session_id, copied) };
        let process = Arc::clone(&alive.process);
        // An agent that does not know the earlier conversation yet has nothing to copy.
        if process.has_turn() || self.context_retention == ContextRetention::Empty {
            return none(copied);
        }
        let request = process.session().and_then(|session| fork_request(&self.chat, &process, session));
        let Some(request) = request else { return none(copied) };
        let (name, patience) = (self.chat.program.display_name.clone(), self.chat.pool.options().patience);
        let (sent, is_sent) = oneshot::channel();
        tokio::spawn(async move {
            let forked = tokio::time::timeout(patience, fork(&process, &request, sent)).await;
            let method = acp::AGENT_METHOD_NAMES.session_fork;
            let forked = forked.unwrap_or(Err(AgentCallError::Slow { method, patience }));
            // The caller may have stopped waiting.
            copied.send(forked.map(Some).map_err(|error| failed(&name, &error))).ok();
        });
        // A prompt that follows is not in the copy.
        is_sent.await.ok();
    }

    fn fork_in_new_process(&mut self, agent_session_id: String, copied: ForkReply) {
        while self.copies.try_join_next().is_some() {}
        let chat = Arc::new(self.chat.one_shot_chat());
        self.copies.spawn(async move {
            let name = chat.program.display_name.clone();
            let forked = match OneShotProcess::start(chat).await {
                Ok(one_shot) => one_shot.fork(&agent_session_id).await.map_err(|error| failed(&name, &error)),
                Err(error) => Err(error),
            };
            copied.send(forked).ok();
        });
    }

    /// A turn begins: a copy made by another process could include it.
    pub(super) fn abort_forks(&mut self) {
        self.copies.abort_all();
    }
}

fn none(copied: ForkReply) {
    copied.send(Ok(None)).ok();
}

fn failed(name: &str, error: &AgentCallError) -> AgentError {
    AgentError::TurnFailed(format!("{name} did not copy the conversation: {error}"))
}

/// Makes a process copy its conversation, and signals when later messages can no longer get into the copy.
async fn fork(
    process: &AgentProcess,
    request: &acp::ForkSessionRequest,
    sent: oneshot::Sender<()>,
) -> Result<String, AgentCallError> {
    let names = acp::AGENT_METHOD_NAMES;
    let method = names.session_fork;
    let call = process.agent_connection.ask(CallPurpose::Any, method, request).await?;
    sent.send(()).ok();
    let answer = call.answered().await?;
    let answer: acp::ForkSessionResponse =
        serde_json::from_str(answer.get()).map_err(|error| AgentCallError::Nonsense { method, error })?;
    // The copy is opened by its own process.
    if process.capabilities().session_capabilities.close.is_some() {
        let request = acp::CloseSessionRequest::new(answer.session_id.clone());
        let closed = process.agent_connection.call_for(CallPurpose::Any, names.session_close, &request, CLOSING).await;
        closed.inspect_err(|error| tracing::debug!(%error, "an agent did not close a copy")).ok();
    }
    Ok(answer.session_id.0.to_string())
}
