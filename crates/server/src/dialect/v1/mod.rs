//! The server side of version 1: the handling of each of its messages.
//!
//! - `connect`: `initialize`, `reconnect` and `subscribe`.
//! - `sessions`: sessions, lists and older turns.
//! - `content`: contents of sessions, files and folders.
//! - `dispatch`: notifications and actions of clients.
//! - `snapshot`: states, captured in one step with their subscription and encoded later.

mod connect;
mod content;
mod dispatch;
pub(crate) mod sessions;
mod snapshot;

use std::sync::Arc;

use grove_core::{ClientId, Session, SessionUri};
use grove_host::Host;
use grove_host::history::CONTINUE_FIRST;
use grove_host::presence::ClientParty;
use grove_host::sequencer::{ConnectionId, ReplySink, SubscriptionTarget};
use grove_host::session::ChatAddress;
use grove_host::subscriber::{Encode, Queue};
use grove_wire::jsonrpc::{ErrorObject, Request};
use grove_wire::v1::{self, Method, error_code};

use super::answer::{encode, not_initialized, stopped};
use crate::principal::Principal;

/// The host's end of a version-1 connection.
pub(crate) struct Peer {
    host: Host,
    id: ConnectionId,
    queue: Arc<Queue>,
    principal: Arc<Principal>,
    /// The client's id, once it has sent it.
    client: Option<ClientId>,
    /// The party behind the client, for other clients to see.
    party: ClientParty,
}

impl Peer {
    pub(crate) fn new(host: Host, id: ConnectionId, queue: Arc<Queue>, principal: Arc<Principal>) -> Self {
        let party = principal.party(None);
        Self { host, id, queue, principal, client: None, party }
    }

    /// Says whether the client has initialized.
    pub(super) fn has_begun(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn client(&self) -> Option<&ClientId> {
        self.client.as_ref()
    }

    /// The tree of a session, which in version 1 is that of its main chat.
    pub(super) async fn place(&self, uri: &str) -> Result<ChatAddress, ErrorObject> {
        let session = SessionUri::from(uri);
        match self.host.session(&session).await.map_err(stopped)? {
            Some(_) => Ok((session, Session::MAIN_CHAT.into())),
            None => Err(self.unchangeable(uri, self.missing(uri).await).await),
        }
    }

    /// The error that a session is missing, with the reason if it is known.
    async fn missing(&self, uri: &str) -> ErrorObject {
        let why = match SessionUri::from(uri).id() {
            Some(id) => self.host.why_missing(&id).await,
            None => None,
        };
        match why {
            Some(why) => ErrorObject::new(error_code::SESSION_NOT_FOUND, why),
            None => no_session(uri),
        }
    }

    /// Answers a request, or returns the reply with the error to answer with.
    pub(super) async fn request(
        &mut self,
        request: Request<'_>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let Request { id, method, params } = request;
        let Some(method) = Method::named(&method) else {
            let error = match self.client {
                Some(_) => ErrorObject::unknown_method(&method),
                None => not_initialized(),
            };
            return Err((reply, error));
        };
        let answer = match method {
            Method::Ping => Ok(encode(&id, &())),
            Method::Initialize | Method::Reconnect if self.client.is_some() => {
                Err(ErrorObject::invalid_request("this connection is initialized already"))
            }
            Method::Initialize => return self.initialize(id, params, reply).await,
            Method::Reconnect => return self.reconnect(id, params, reply).await,
            _ if self.client.is_none() => Err(not_initialized()),
            Method::Subscribe => return self.subscribe(id, params, reply).await,
            Method::CreateSession => self.create_session(params).await.map(|()| encode(&id, &())),
            Method::DisposeSession => self.dispose_session(params).await.map(|()| encode(&id, &())),
            Method::ListSessions => self.list_sessions(params).await.map(|result| encode(&id, &result)),
            Method::FetchTurns => self.fetch_turns(&id, params).await,
            Method::FetchContent => self.fetch_content(params).await.map(|result| encode(&id, &result)),
            Method::BrowseDirectory => self.browse_directory(params).await.map(|result| encode(&id, &result)),
        };
        match answer {
            Ok(text) => {
                reply(Encode::Text(text));
                Ok(())
            }
            Err(error) => Err((reply, error)),
        }
    }

    /// The error that another tool's session cannot be changed, or the given one.
    async fn unchangeable(&self, uri: &str, otherwise: ErrorObject) -> ErrorObject {
        match self.host.is_history(&wanted(uri)).await {
            true => ErrorObject::new(otherwise.code, CONTINUE_FIRST),
            false => otherwise,
        }
    }
}

fn no_session(uri: &str) -> ErrorObject {
    let uri: String = uri.chars().take(200).collect();
    ErrorObject::new(error_code::SESSION_NOT_FOUND, format!("there is no session {uri}"))
}

fn wanted(uri: &str) -> SubscriptionTarget {
    if v1::is_root(uri) { SubscriptionTarget::Root } else { SubscriptionTarget::SessionWithMainChat(uri.into()) }
}
