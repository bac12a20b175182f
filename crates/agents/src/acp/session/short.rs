//! A process that is asked one thing and ends.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chat::Chat;
use super::last_words::with_last_words;
use super::open::{fork_request, greet};
use super::process::Process;
use super::start::{Alive, launch};
use crate::acp::connection::CallError;
use crate::agent::AgentError;

/// An agent's process without a conversation.
#[derive(Debug)]
pub(crate) struct Short {
    chat: Arc<Chat>,
    process: Arc<Process>,
    /// Until it is ended.
    alive: Option<Alive>,
}

impl Short {
    pub(crate) async fn start(chat: Arc<Chat>) -> Result<Self, AgentError> {
        let place = chat.fleet.places().take().await;
        // A start that is given up would leave its folder behind: it is finished in any case, and dropped then.
        let started = tokio::spawn(async move {
            match launch(&chat, place).await {
                Ok(alive) => Ok(Self { chat, process: Arc::clone(&alive.process), alive: Some(alive) }),
                Err(error) => {
                    super::remove(chat.folder()).await;
                    Err(error)
                }
            }
        });
        let short = started.await.map_err(|error| AgentError::Start(error.to_string()))??;
        let greeted = greet(&short.chat, &short.process).await.map(drop);
        match greeted {
            Ok(()) => Ok(short),
            Err(error) => {
                let error = with_last_words(error.to_string(), short.chat.folder()).await;
                short.end().await;
                Err(AgentError::Start(error))
            }
        }
    }

    pub(crate) fn capabilities(&self) -> acp::AgentCapabilities {
        self.process.capabilities()
    }

    pub(crate) async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
    ) -> Result<R, CallError> {
        self.process.link.call(method, params, self.chat.fleet.options().patience).await
    }

    /// Makes a copy of a conversation that the agent has stored, and ends; `None` where the agent cannot.
    pub(crate) async fn fork(self, known_as: &str) -> Result<Option<String>, CallError> {
        let forked = match fork_request(&self.chat, &self.process, known_as.to_owned().into()) {
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

    /// Ends the process. Nothing of it stays.
    pub(crate) async fn end(mut self) {
        if let Some(alive) = self.alive.take() {
            alive.end().await;
        }
        super::remove(self.chat.folder()).await;
    }
}

impl Drop for Short {
    /// Whoever asked has stopped waiting.
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
