//! A client's own storage: attaching it, and its sessions while the client is disconnected.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_core::{SessionId, StoreName};
use grove_fs::rpc::{CallError, RemoteCalls, StorageClientConfig};
use grove_host::sequencer::ConnectionId;
use grove_host::subscriber::{Outgoing, Queue};
use grove_host::{DeleteError, DeleteOutcome, ResumeError};
use grove_wire::copilot::methods::*;
use grove_wire::jsonrpc::{self, CallTable};
use serde_json::Value;

use super::endpoint::CopilotEndpoint;
use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// Attempts to open a session that another program seems to have open.
const MAX_ATTEMPTS: usize = 20;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(100);

/// The client that stores the sessions of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct EndpointStorageClient {
    /// Its connection, while it is connected.
    connection: Option<ConnectionId>,
    config: StorageClientConfig,
}

/// Calls to a storage client.
struct StorageClientCalls {
    calls: Arc<CallTable>,
    queue: Arc<Queue>,
}

impl std::fmt::Debug for StorageClientCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reverse")
    }
}

#[async_trait]
impl RemoteCalls for StorageClientCalls {
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

impl CopilotEndpoint {
    /// Says whether clients of this endpoint can see sessions of a store.
    ///
    /// They see the sessions of their storage client, or without one those that the host stores itself.
    pub(super) fn may_see(&self, store: &StoreName) -> bool {
        match self.state().storage_client {
            Some(_) => store == self.store(),
            None => !self.host().stores().is_client_stored(store),
        }
    }

    /// Says whether a client stores the sessions of this endpoint.
    pub(super) fn has_storage_client(&self) -> bool {
        self.state().storage_client.is_some()
    }

    /// Closes the endpoint. Unsaved changes can only be written by its storage client.
    pub(crate) fn close(&self) {
        let endpoint = self.clone();
        self.host().env().spawn.spawn(Box::pin(async move { endpoint.shut_down().await }));
    }

    /// Closes the sessions of the storage client.
    pub(super) async fn shut_down(&self) {
        if self.state().storage_client.take().is_some() {
            // A stopping host closes all sessions anyway.
            self.host().release_storage_client(self.store()).await.ok();
        }
    }
}

impl CopilotPeer {
    pub(super) fn may_see(&self, store: &StoreName) -> bool {
        self.endpoint().may_see(store)
    }

    /// Makes this client the storage client of the endpoint: before there are sessions, and one client only.
    pub(super) async fn set_storage_client(&self, config: StorageClientConfig) -> Result<Success, CopilotError> {
        let endpoint = self.endpoint();
        let taken = |reason: &str| Err(CopilotError::Failed(reason.to_owned()));
        config.check()?;
        let returns = {
            let mut state = endpoint.state();
            let returns = match &state.storage_client {
                Some(storage_client) if storage_client.connection.is_some_and(|connection| connection != self.id()) => {
                    return taken("Another client is already the session filesystem provider.");
                }
                // A client that knows the secret of the endpoint is the one that was connected before.
                Some(storage_client) if storage_client.connection.is_none() && storage_client.config == config => true,
                Some(storage_client) if storage_client.connection.is_none() => {
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
            state.storage_client = Some(EndpointStorageClient { connection: Some(self.id()), config: config.clone() });
            returns
        };
        let calls = Arc::new(StorageClientCalls { calls: self.calls().clone(), queue: self.queue().clone() });
        match returns {
            true => self.host().storage_client_returned(endpoint.store(), calls).await?,
            false => {
                if let Err(error) = self.host().attach_storage_client(endpoint.store(), config, calls).await {
                    endpoint.state().storage_client = None;
                    return Err(error.into());
                }
            }
        }
        Ok(Success::YES)
    }

    /// Ends the connection: if it was the storage client's, its sessions wait for it.
    pub(super) async fn storage_client_ended(&self) {
        let was_mine = match self.endpoint().state().storage_client.as_mut() {
            Some(storage_client) if storage_client.connection == Some(self.id()) => {
                storage_client.connection.take().is_some()
            }
            Some(_) | None => false,
        };
        if was_mine {
            // A stopping host needs no storage client.
            self.host().storage_client_left(self.endpoint().store()).await.ok();
        }
    }

    /// The store of new sessions of this endpoint.
    pub(super) fn storage(&self) -> Result<Option<StoreName>, CopilotError> {
        let state = self.endpoint().state();
        match &state.storage_client {
            None => Ok(None),
            Some(EndpointStorageClient { connection: Some(_), .. }) => Ok(Some(self.endpoint().store().clone())),
            Some(_) => Err(CopilotError::Failed(
                "the session filesystem provider is disconnected: sessions can be created when it is back".to_owned(),
            )),
        }
    }

    /// Says whether sessions of this endpoint are client-stored.
    pub(super) fn is_client_stored(&self) -> bool {
        self.endpoint().state().storage_client.is_some()
    }

    /// Reads a session from its storage client, if it has one.
    pub(super) async fn fetch(&self, session: &SessionId, folders: Vec<String>) -> Result<(), CopilotError> {
        if !self.is_client_stored() {
            return Ok(());
        }
        for _ in 0..MAX_ATTEMPTS {
            match self.host().resume_client_stored_in(self.endpoint().store(), session, folders.clone()).await {
                // The program that has it open may be ending at this moment.
                Err(ResumeError::Elsewhere(_)) => self.host().env().clock.sleep(ATTEMPT_INTERVAL).await,
                resumed => return Ok(resumed.map(|_| ())?),
            }
        }
        Err(ResumeError::Elsewhere(session.clone()).into())
    }

    /// Deletes a client-stored session. `false` if it is not client-stored.
    pub(super) async fn delete_client_stored(&self, session: &SessionId) -> Result<bool, CopilotError> {
        if !self.is_client_stored() {
            return Ok(false);
        }
        match self.host().delete_client_stored(self.endpoint().store(), session).await {
            Ok(DeleteOutcome::Files) => Ok(true),
            Ok(DeleteOutcome::RowOnly(reason)) => {
                tracing::warn!(
                    %session, reason,
                    "a session is deleted here, but its storage client still has its files"
                );
                Ok(true)
            }
            Err(DeleteError::NotThere(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Records a fork of a client-stored session, to be written when it is first opened.
    pub(super) async fn fork_client_stored(
        &self,
        session: &SessionRef,
        before: Option<String>,
        name: Option<String>,
    ) -> Result<Option<ForkResult>, CopilotError> {
        if !self.is_client_stored() {
            return Ok(None);
        }
        let store = self.endpoint().store();
        let id = self.host().fork_client_stored(store, &session.id, before, name.clone()).await?;
        Ok(Some(ForkResult { session_id: id.to_string(), name }))
    }

    /// Adds the client-stored sessions that are not loaded to rows.
    pub(super) async fn with_client_stored(
        &self,
        mut rows: Vec<SessionMetadata>,
    ) -> Result<Vec<SessionMetadata>, CopilotError> {
        if self.is_client_stored() {
            for row in self.host().client_storage(self.endpoint().store()) {
                if !rows.iter().any(|known| known.session_id == row.id.as_str()) {
                    rows.push(SessionMetadata::unread(&row.id, row.created, row.modified));
                }
            }
            rows.sort_by(|a, b| b.modified_time.cmp(&a.modified_time));
        }
        Ok(rows)
    }
}
