//! A process that serves one request and ends.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chat::AcpChat;
use super::exit_message::with_stderr_tail;
use super::open::{ConversationError, fork_request, initialize_agent};
use super::process::AgentProcess;
use super::start::{LiveProcess, launch};
use super::worker::CLOSING;
use crate::acp::connection::AgentCallError;
use crate::acp::login::AgentProbe;
use crate::agent::AgentError;

/// An agent's process without a conversation.
#[derive(Debug)]
pub(crate) struct OneShotProcess {
    chat: Arc<AcpChat>,
    process: Arc<AgentProcess>,
    /// Set until it is ended.
    alive: Option<LiveProcess>,
    probe: AgentProbe,
}

impl OneShotProcess {
    pub(crate) async fn start(chat: Arc<AcpChat>) -> Result<Self, AgentError> {
        let slot = chat.pool.slots().take().await;
        // A start that is given up would leave its folder behind: it is finished in any case, and dropped then.
        let started = tokio::spawn(async move {
            match launch(&chat, slot).await {
                Ok(alive) => {
                    let process = Arc::clone(&alive.process);
                    Ok(Self { chat, process, alive: Some(alive), probe: AgentProbe::default() })
                }
                Err(error) => {
                    super::remove(chat.folder()).await;
                    Err(error)
                }
            }
        });
        let mut one_shot = started.await.map_err(|error| AgentError::Start(error.to_string()))??;
        let greeted = initialize_agent(&one_shot.chat, &one_shot.process).await.map(|agent| agent.probe().clone());
        match greeted {
            Ok(probe) => {
                one_shot.probe = probe;
                Ok(one_shot)
            }
            Err(error) => {
                let has_ended =
                    matches!(error, ConversationError::Call(AgentCallError::Ended | AgentCallError::Shim(_)));
                let how = if has_ended { one_shot.process.wait_for_end(CLOSING).await } else { None };
                let error = match how {
                    Some(how) => how,
                    None => with_stderr_tail(error.to_string(), one_shot.chat.folder()).await,
                };
                one_shot.end().await;
                Err(AgentError::Start(error))
            }
        }
    }

    pub(crate) fn capabilities(&self) -> acp::AgentCapabilities {
        self.process.capabilities()
    }

    pub(crate) fn probe(&self) -> &AgentProbe {
        &self.probe
    }

    pub(crate) async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
    ) -> Result<R, AgentCallError> {
        self.call_within(method, params, self.chat.pool.options().patience).await
    }

    pub(crate) async fn call_within<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
        patience: Duration,
    ) -> Result<R, AgentCallError> {
        self.process.agent_connection.call(method, params, patience).await
    }

    /// Copies a conversation that the agent stores, and ends; `None` if the agent cannot.
    pub(crate) async fn fork(self, agent_session_id: &str) -> Result<Option<String>, AgentCallError> {
        let forked = match fork_request(&self.chat, &self.process, agent_session_id.to_owned().into()) {
            Some(request) => {
                let answer: Result<acp::ForkSessionResponse, _> =
                    self.call(acp::AGENT_METHOD_NAMES.session_fork, &request).await;
                answer.map(|answer| Some(answer.session_id.0.to_string()))
            }
            None => Ok(None),
        };
        self.end().await;
        forked
    }

    /// Ends the process and removes its folder.
    pub(crate) async fn end(mut self) {
        if let Some(alive) = self.alive.take() {
            alive.end().await;
        }
        super::remove(self.chat.folder()).await;
    }
}

impl Drop for OneShotProcess {
    /// The caller has stopped waiting.
    fn drop(&mut self) {
        if let (Some(alive), Ok(runtime)) = (self.alive.take(), tokio::runtime::Handle::try_current()) {
            let chat = Arc::clone(&self.chat);
            runtime.spawn(async move {
                alive.end().await;
                super::remove(chat.folder()).await;
            });
        }
    }
}
