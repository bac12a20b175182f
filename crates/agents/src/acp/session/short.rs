//! A process that is asked one thing and ends.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chat::Chat;
use super::last_words::with_last_words;
use super::open::greet;
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
        let alive = launch(&chat, place).await?;
        let short = Self { chat, process: Arc::clone(&alive.process), alive: Some(alive) };
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
