//! Storage that a client brings: who it is, and what becomes of sessions while that one is away.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_core::{SessionId, StoreName};
use grove_fs::rpc::{CallError, ProviderConfig, RemoteCalls};
use grove_wire::copilot::methods::*;
use grove_wire::jsonrpc::{self, Calls};
use serde_json::Value;

use super::endpoint::Endpoint;
use super::peer::{Named, Peer, Refused};
use crate::connection::{Outgoing, Queue};
use crate::entrusted::{DeleteError, Deleted, ResumeError};
use crate::sequencer::ConnectionId;

/// How often, and with which pauses, a session is asked for that another program seems to have.
const PATIENCE: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Who stores the sessions of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// Its connection, while it is there.
    connection: Option<ConnectionId>,
    config: ProviderConfig,
}

/// Calls to a client that stores sessions.
struct Reverse {
    calls: Arc<Calls>,
    queue: Arc<Queue>,
}

impl std::fmt::Debug for Reverse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reverse")
    }
}

#[async_trait]
impl RemoteCalls for Reverse {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let call = self.calls.begin(method, &params).map_err(failed)?;
        self.queue.push(Outgoing::Frame(call.frame.as_str().into()));
        let answer = call.answer().await.map_err(failed)?;
        serde_json::from_str(answer.get())
            .map_err(|error| CallError::Refused { code: jsonrpc::code::INTERNAL, message: error.to_string() })
    }
}

fn failed(error: jsonrpc::CallError) -> CallError {
    match error {
        jsonrpc::CallError::Refused(error) => CallError::Refused { code: error.code, message: error.message },
        jsonrpc::CallError::Closed => CallError::Disconnected,
        error @ (jsonrpc::CallError::TooMany(_) | jsonrpc::CallError::Encode(_)) => {
            CallError::Refused { code: jsonrpc::code::INTERNAL, message: error.to_string() }
        }
    }
}

impl Endpoint {
    /// Whether clients of this endpoint can see sessions of a store: those that a client of theirs keeps, or where none
    /// does, those that are kept by the host itself.
    pub(super) fn may_see(&self, store: &StoreName) -> bool {
        match self.state().seat {
            Some(_) => store == self.store(),
            None => !self.host().stores().is_entrusted(store),
        }
    }

    /// Nobody can come here any more. What its provider keeps can only be written by that one.
    pub(crate) fn close(&self) {
        let endpoint = self.clone();
        self.host().0.env.spawn.spawn(Box::pin(async move { endpoint.shut_down().await }));
    }

    /// Lets go of the sessions that a client keeps.
    pub(super) async fn shut_down(&self) {
        if self.state().seat.take().is_some() {
            // A host that stops lets go of everything anyway.
            self.host().release_provider(self.store()).await.ok();
        }
    }
}

impl Peer {
    pub(super) fn may_see(&self, store: &StoreName) -> bool {
        self.endpoint().may_see(store)
    }

    /// Has this client store the sessions of the endpoint: before there are any, and one client alone.
    pub(super) async fn set_provider(&self, config: ProviderConfig) -> Result<Success, Refused> {
        let endpoint = self.endpoint();
        let taken = |reason: &str| Err(Refused::Failed(reason.to_owned()));
        config.check()?;
        let returns = {
            let mut state = endpoint.state();
            let returns = match &state.seat {
                Some(seat) if seat.connection.is_some_and(|connection| connection != self.id()) => {
                    return taken("Another client is already the session filesystem provider.");
                }
                // Whoever knows the secret of the endpoint is the one who was here before.
                Some(seat) if seat.connection.is_none() && seat.config == config => true,
                Some(seat) if seat.connection.is_none() => {
                    return taken(
                        "The session filesystem provider of these sessions was another one: connect with the same initialCwd, \
                         sessionStatePath, conventions and capabilities.",
                    );
                }
                Some(_) | None => false,
            };
            if !returns && !state.open.is_empty() {
                return taken(
                    "Cannot set session filesystem provider while sessions are active. Call sessionFs.setProvider before \
                     creating any sessions.",
                );
            }
            state.seat = Some(Seat { connection: Some(self.id()), config: config.clone() });
            returns
        };
        let calls = Arc::new(Reverse { calls: self.calls().clone(), queue: self.queue().clone() });
        match returns {
            true => self.host().provider_returned(endpoint.store(), calls).await?,
            false => {
                if let Err(error) = self.host().entrust(endpoint.store(), config, calls).await {
                    endpoint.state().seat = None;
                    return Err(error.into());
                }
            }
        }
        Ok(Success::YES)
    }

    /// The connection is over: if it was the provider's, its sessions wait for it.
    pub(super) async fn provider_ended(&self) {
        let was_mine = match self.endpoint().state().seat.as_mut() {
            Some(seat) if seat.connection == Some(self.id()) => seat.connection.take().is_some(),
            Some(_) | None => false,
        };
        if was_mine {
            // A host that stops needs nobody.
            self.host().provider_left(self.endpoint().store()).await.ok();
        }
    }

    /// Where new sessions of this endpoint lie.
    pub(super) fn storage(&self) -> Result<Option<StoreName>, Refused> {
        let state = self.endpoint().state();
        match &state.seat {
            None => Ok(None),
            Some(Seat { connection: Some(_), .. }) => Ok(Some(self.endpoint().store().clone())),
            Some(_) => Err(Refused::Failed(
                "the session filesystem provider is disconnected: sessions can be created when it is back".to_owned(),
            )),
        }
    }

    /// Whether sessions of this endpoint are kept by a client.
    fn is_entrusted(&self) -> bool {
        self.endpoint().state().seat.is_some()
    }

    /// Reads a session from the client that keeps it, where one does.
    pub(super) async fn fetch(&self, session: &SessionId, folders: Vec<String>) -> Result<(), Refused> {
        if !self.is_entrusted() {
            return Ok(());
        }
        for _ in 0..PATIENCE {
            match self.host().resume_entrusted_in(self.endpoint().store(), session, folders.clone()).await {
                // The program that had it may be going in this very moment.
                Err(ResumeError::Elsewhere(_)) => self.host().0.env.clock.sleep(PAUSE).await,
                resumed => return Ok(resumed.map(|_| ())?),
            }
        }
        Err(ResumeError::Elsewhere(session.clone()).into())
    }

    /// Removes a session that a client keeps. `false` where none does.
    pub(super) async fn delete_entrusted(&self, session: &SessionId) -> Result<bool, Refused> {
        if !self.is_entrusted() {
            return Ok(false);
        }
        match self.host().delete_entrusted(self.endpoint().store(), session).await {
            Ok(Deleted::Files) => Ok(true),
            Ok(Deleted::RowOnly(reason)) => {
                tracing::warn!(%session, reason, "a session is forgotten, and its provider still has its files");
                Ok(true)
            }
            Err(DeleteError::NotThere(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Has a fork of a session that a client keeps be made when it is first opened.
    pub(super) async fn fork_entrusted(
        &self,
        session: &Named,
        before: Option<String>,
        name: Option<String>,
    ) -> Result<Option<ForkResult>, Refused> {
        if !self.is_entrusted() {
            return Ok(None);
        }
        let store = self.endpoint().store();
        let id = self.host().fork_entrusted(store, &session.id, before, name.clone()).await?;
        Ok(Some(ForkResult { session_id: id.to_string(), name }))
    }

    /// The same rows, with the sessions that a client keeps and that are not loaded.
    pub(super) async fn with_entrusted(&self, mut rows: Vec<SessionMetadata>) -> Result<Vec<SessionMetadata>, Refused> {
        if self.is_entrusted() {
            for row in self.host().entrusted(self.endpoint().store()) {
                if !rows.iter().any(|known| known.session_id == row.id.as_str()) {
                    rows.push(SessionMetadata::unread(&row.id, row.created, row.modified));
                }
            }
            rows.sort_by(|a, b| b.modified_time.cmp(&a.modified_time));
        }
        Ok(rows)
    }
}
