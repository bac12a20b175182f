//! The server side of the Agent Host Protocol: the handling of each of its messages.
//!
//! - `connect`: `initialize`, `reconnect` and `subscribe`.
//! - `sessions`: sessions, lists, settings, and the names of channels. `chats`: chats. `turns`: older turns.
//! - `completions`: completions of file references and settings.
//! - `resources`: reading and watching files and contents. `changes`: changing files.
//! - `terminals`: terminals, and the actions on them.
//! - `dispatch`: actions of clients on other channels.
//! - `snapshot`: states, captured in one step with their subscription and encoded later.

mod changes;
mod chats;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod dispatch;
mod resources;
pub(crate) mod sessions;
pub(crate) mod snapshot;
mod terminals;
pub(crate) mod turns;

use std::sync::Arc;

use grove_core::ClientId;
use grove_host::Host;
use grove_host::presence::ClientParty;
use grove_host::sequencer::{ConnectionId, ReplySink, Spellings, SubscriptionTarget};
use grove_host::subscriber::{Encode, Queue};
use grove_wire::ahp::uri::ChannelName;
use grove_wire::ahp::{self, Method, error_code};
use grove_wire::invalid_seq::InvalidSeqAction;
use grove_wire::jsonrpc::{CallTable, ErrorObject, Id, Request};
use grove_work::WriteGrants;
use serde_json::value::RawValue;

use self::resources::Watches;
use self::terminals::TerminalSubscriptions;
use super::answer::{encode, not_initialized, read_params};
use super::unnumbered;
use crate::principal::Principal;

/// The host's end of a connection.
pub(crate) struct Peer {
    host: Host,
    id: ConnectionId,
    queue: Arc<Queue>,
    principal: Arc<Principal>,
    /// The client's id, once it has sent it.
    client: Option<ClientId>,
    /// The party behind the client, for other clients to see.
    party: ClientParty,
    spellings: Arc<Spellings>,
    watches: Watches,
    terminals: TerminalSubscriptions,
    /// The paths that the client asked to change.
    grants: WriteGrants,
    /// The calls to the client, if it answers any.
    asked: Option<Arc<CallTable>>,
}

impl Peer {
    pub(super) fn new(host: Host, id: ConnectionId, queue: Arc<Queue>, principal: Arc<Principal>) -> Self {
        let watches = Watches::new(host.clone(), id, principal.folder_reach());
        let (party, spellings) = (principal.party(None), Arc::default());
        let (terminals, grants) = (TerminalSubscriptions::default(), WriteGrants::default());
        Self { host, id, queue, principal, client: None, party, spellings, watches, terminals, grants, asked: None }
    }

    /// Ends the connection: its client may reconnect, and sessions wait for that for a while.
    pub(super) fn ended(self) {
        self.host.editors().ended(self.id);
        if let Some(client) = self.client {
            self.host.client_left(client);
        }
    }

    /// Says whether the client has initialized.
    pub(super) fn has_begun(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn client(&self) -> Option<&ClientId> {
        self.client.as_ref()
    }

    /// Settles a call that the client answers.
    pub(super) fn answered(&self, id: &Id, outcome: Result<&RawValue, ErrorObject>) {
        if let Some(asked) = &self.asked {
            // The caller may have stopped waiting.
            asked.settle(id, outcome);
        }
    }

    /// Answers a request, or returns the reply with the error to answer with.
    pub(super) async fn request(
        &mut self,
        request: Request<'_>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let Request { id, method, params } = request;
        let Some(known) = Method::named(&method) else {
            let error = match self.client {
                Some(_) => ErrorObject::unknown_method(&method),
                None => not_initialized(),
            };
            return Err((reply, error));
        };
        let answer = match known {
            Method::Ping => Ok(encode(&id, &())),
            Method::Initialize | Method::Reconnect if self.client.is_some() => {
                Err(ErrorObject::invalid_request("this connection is initialized already"))
            }
            Method::Initialize => return self.initialize(id, params, reply).await,
            Method::Reconnect => return self.reconnect(id, params, reply).await,
            _ if self.client.is_none() => Err(not_initialized()),
            Method::Subscribe => return self.subscribe(id, params, reply).await,
            Method::FetchTurns => return self.fetch_turns(id, params, reply).await,
            Method::ListSessions => self.list_sessions(params).await.map(|result| encode(&id, &result)),
            Method::CreateSession => self.create_session(params).await.map(|()| encode(&id, &())),
            Method::DisposeSession => self.dispose_session(params).await.map(|()| encode(&id, &())),
            Method::CreateChat => self.create_chat(params).await.map(|()| encode(&id, &())),
            Method::DisposeChat => self.dispose_chat(params).await.map(|()| encode(&id, &())),
            Method::Completions => self.completions(params).await.map(|result| encode(&id, &result)),
            Method::ResolveSessionConfig => self.resolve_config(params).await.map(|result| encode(&id, &result)),
            Method::SessionConfigCompletions => {
                self.config_completions(params).await.map(|result| encode(&id, &result))
            }
            Method::Authenticate => self.authenticate(params).map(|result| encode(&id, &result)),
            Method::ResourceRead => self.read(params).await.map(|result| encode(&id, &result)),
            Method::ResourceList => self.list(params).await.map(|result| encode(&id, &result)),
            Method::ResourceResolve => self.resolve(params).await.map(|result| encode(&id, &result)),
            Method::ResourceRequest => self.ask_for(params).await.map(|result| encode(&id, &result)),
            Method::CreateResourceWatch => self.watch(params).await.map(|result| encode(&id, &result)),
            Method::ResourceWrite
            | Method::ResourceMkdir
            | Method::ResourceDelete
            | Method::ResourceCopy
            | Method::ResourceMove => self.change_files(known, params).await.map(|result| encode(&id, &result)),
            Method::CreateTerminal => self.create_terminal(params).await.map(|()| encode(&id, &())),
            Method::DisposeTerminal => self.dispose_terminal(params).await.map(|()| encode(&id, &())),
            Method::MoveChat
            | Method::InvokeChangesetOperation
            | Method::ListAutomationTriggerDefinitions
            | Method::RunAutomation
            | Method::FetchAutomationRuns => Err(ErrorObject::unknown_method(&method)),
        };
        match answer {
            Ok(text) => {
                reply(Encode::Text(text));
                Ok(())
            }
            Err(error) => Err((reply, error)),
        }
    }

    pub(super) async fn notified(&mut self, method: &str, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let Some(client) = self.client.clone() else { return Err(not_initialized()) };
        match method {
            ahp::notify::UNSUBSCRIBE => {
                let params: ahp::UnsubscribeParams = read_params(params)?;
                self.unsubscribe(&params.channel).await
            }
            ahp::notify::DISPATCH_ACTION => match read_params::<ahp::DispatchActionParams>(params) {
                Ok(params) => self.dispatch(client, params).await,
                Err(error) => {
                    let refusal = InvalidSeqAction::refusal;
                    unnumbered::refuse(&self.host, self.id, client, params, error, refusal).await
                }
            },
            other => Err(ErrorObject::unknown_method(other)),
        }
    }
}

/// The target of a channel's name, if the channel has events.
fn wanted(channel: ChannelName) -> Option<SubscriptionTarget> {
    match channel {
        ChannelName::Root => Some(SubscriptionTarget::Root),
        ChannelName::Session(name) => Some(SubscriptionTarget::Session(name)),
        ChannelName::Chat(name) => Some(SubscriptionTarget::Chat(name)),
        ChannelName::ResourceWatch(_) | ChannelName::Terminal(_) => None,
    }
}

fn shown(uri: &str) -> String {
    uri.chars().take(200).collect()
}

fn not_found(uri: &str) -> ErrorObject {
    ErrorObject::new(error_code::NOT_FOUND, format!("there is nothing at {}", shown(uri)))
}

fn no_session(uri: &str) -> ErrorObject {
    ErrorObject::new(error_code::SESSION_NOT_FOUND, format!("there is no session {}", shown(uri)))
}
