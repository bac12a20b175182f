//! Copies of the conversation, made by the agent itself.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use tokio::sync::oneshot;

use super::super::open::{Recollection, fork_request};
use super::super::process::Process;
use super::super::{Copied, Short};
use super::{CLOSING, Worker};
use crate::acp::connection::{CallError, Purpose};
use crate::agent::*;

impl Worker {
    /// Asks for a copy: the process where there is one, else another that is started for it.
    pub(super) async fn fork(&mut self, copied: Copied) {
        self.look();
        let Some(known_as) = self.known_as.clone() else { return none(copied) };
        let Some(alive) = &self.alive else { return self.fork_aside(known_as, copied) };
        let process = Arc::clone(&alive.process);
        // An agent that was not told yet what was said before has nothing to copy.
        if process.has_turn() || self.recollection == Recollection::Empty {
            return none(copied);
        }
        let request = process.session().and_then(|session| fork_request(&self.chat, &process, session));
        let Some(request) = request else { return none(copied) };
        let (name, patience) = (self.chat.program.display_name.clone(), self.chat.fleet.options().patience);
        let (sent, is_sent) = oneshot::channel();
        tokio::spawn(async move {
            let forked = tokio::time::timeout(patience, fork(&process, &request, sent)).await;
            let method = acp::AGENT_METHOD_NAMES.session_fork;
            let forked = forked.unwrap_or(Err(CallError::Slow { method, patience }));
            // Whoever asked may not wait any more.
            copied.send(forked.map(Some).map_err(|error| failed(&name, &error))).ok();
        });
        // A prompt comes behind it, and is not in the copy.
        is_sent.await.ok();
    }

    fn fork_aside(&mut self, known_as: String, copied: Copied) {
        while self.copies.try_join_next().is_some() {}
        let chat = Arc::new(self.chat.aside());
        self.copies.spawn(async move {
            let name = chat.program.display_name.clone();
            let forked = match Short::start(chat).await {
                Ok(short) => short.fork(&known_as).await.map_err(|error| failed(&name, &error)),
                Err(error) => Err(error),
            };
            copied.send(forked).ok();
        });
    }

    /// A turn begins: what copies the conversation in another process could take it for a part of it.
    pub(super) fn give_up_copies(&mut self) {
        self.copies.abort_all();
    }
}

fn none(copied: Copied) {
    copied.send(Ok(None)).ok();
}

fn failed(name: &str, error: &CallError) -> AgentError {
    AgentError::Turn(format!("{name} did not copy the conversation: {error}"))
}

/// Has a process copy its conversation, and says when that cannot take in more of it.
async fn fork(
    process: &Process,
    request: &acp::ForkSessionRequest,
    sent: oneshot::Sender<()>,
) -> Result<String, CallError> {
    let names = acp::AGENT_METHOD_NAMES;
    let method = names.session_fork;
    let call = process.link.ask(Purpose::Any, method, request).await?;
    sent.send(()).ok();
    let answer = call.answered().await?;
    let answer: acp::ForkSessionResponse =
        serde_json::from_str(answer.get()).map_err(|error| CallError::Nonsense { method, error })?;
    // The copy is opened by a process of its own.
    if process.capabilities().session_capabilities.close.is_some() {
        let request = acp::CloseSessionRequest::new(answer.session_id.clone());
        let closed = process.link.call_for(Purpose::Any, names.session_close, &request, CLOSING).await;
        closed.inspect_err(|error| tracing::debug!(%error, "an agent does not close a copy")).ok();
    }
    Ok(answer.session_id.0.to_string())
}
