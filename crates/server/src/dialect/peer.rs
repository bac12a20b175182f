//! The host's end of a connection, before and after the client's dialect is known.

use std::sync::Arc;

use grove_core::{ClientId, ScopeSet, SessionId, SessionUri};
use grove_host::Host;
use grove_host::sequencer::{ConnectionId, ReplySink};
use grove_host::subscriber::{Dialect, DueAnswer, Encode, Outgoing, Queue};
use grove_wire::ahp::{self as ahp_wire, ROOT};
use grove_wire::invalid_seq::InvalidSeqAction;
use grove_wire::jsonrpc::{self, ErrorObject, Id, InvalidMessage, Request, RpcMessage};
use grove_wire::scopes::{self, further};
use grove_wire::x_grove::presence::PresenceParams;
use grove_wire::{v1 as v1_wire, x_grove};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::{count_refusal, encode, limit_reached, not_initialized, not_permitted, read_params};
use super::call_cost::call_cost;
use super::import::ImportJobs;
use super::presence::PresenceAsker;
use super::sessions::SessionHubClient;
use super::x_grove::MessageShape;
use super::{ahp, v1};
use crate::principal::{Forbidden, Principal};
use crate::recording;

pub(crate) struct ConnectionPeer {
    host: Host,
    id: ConnectionId,
    queue: Arc<Queue>,
    principal: Arc<Principal>,
    dialect_peer: PeerDialect,
    imports: ImportJobs,
    hub: SessionHubClient,
}

enum PeerDialect {
    /// The first dialect, or none yet: until a client initializes, both answer the same.
    V1(v1::Peer),
    Ahp(Box<ahp::Peer>),
}

impl ConnectionPeer {
    pub(crate) fn new(host: Host, id: ConnectionId, queue: Arc<Queue>, principal: Arc<Principal>) -> Self {
        let first = v1::Peer::new(host.clone(), id, queue.clone(), principal.clone());
        let imports = ImportJobs::new(host.clone(), queue.usage().limits().imports);
        let hub = SessionHubClient::new(host.clone(), queue.clone(), principal.clone());
        Self { host, id, queue, principal, dialect_peer: PeerDialect::V1(first), imports, hub }
    }

    /// Handles one message. Its effect has happened, or its position is fixed, when this returns.
    pub(crate) async fn handle(&mut self, message: Result<RpcMessage<'_>, InvalidMessage>, reply: ReplySink) {
        let reply = match self.count(&message, reply) {
            Ok(reply) => reply,
            Err(()) => return,
        };
        let had_begun = self.has_begun();
        self.handle_admitted(message, reply).await;
        if !had_begun && self.has_begun() {
            tracing::Span::current().record("dialect", self.dialect_name());
        }
    }

    async fn handle_admitted(&mut self, message: Result<RpcMessage<'_>, InvalidMessage>, reply: ReplySink) {
        if let (PeerDialect::V1(first), Ok(RpcMessage::Request(request))) = (&self.dialect_peer, &message)
            && !first.has_begun()
            && self.begins_ahp(&request.method, request.params).await
        {
            let peer = ahp::Peer::new(self.host.clone(), self.id, self.queue.clone(), self.principal.clone());
            self.dialect_peer = PeerDialect::Ahp(Box::new(peer));
        }
        match message {
            Ok(RpcMessage::Request(request)) => self.handle_request(request, reply).await,
            Ok(RpcMessage::Notification { method, params }) => self.handle_notification(&method, params).await,
            Ok(RpcMessage::Response { id, outcome }) => match &self.dialect_peer {
                // The host makes no calls in this dialect, so no answer is expected.
                PeerDialect::V1(_) => {}
                PeerDialect::Ahp(peer) => peer.answered(&id, outcome),
            },
            Err(InvalidMessage { id, error }) => self.refuse(id, error, reply),
        }
    }

    /// Checks a request, begins its record, and has it answered.
    async fn handle_request(&mut self, request: Request<'_>, reply: ReplySink) {
        let id = request.id.clone();
        let needed = self.needed_scopes(&request.method, request.params);
        let client = self.client().or_else(|| named_client(request.params));
        let only_reads = recording::only_reads(needed, &request.method);
        let session = if only_reads { None } else { recording::named_session(request.params) };
        let record =
            recording::begin(&self.host, &self.principal, client.as_ref(), needed, &request.method, session.as_deref());
        let method = x_grove::Method::named(&request.method);
        let record = match method {
            Some(x_grove::Method::Tokens(_)) => record.with_detail(recording::named_token(request.params).as_deref()),
            Some(_) => record,
            None => record.with_detail(recording::named_files(&request.method, request.params).as_deref()),
        };
        let reply = recording::recorded(reply, record);
        let about = session.and_then(|session| SessionUri::from(session).id());
        let allowed = self.authorize(needed, &request.method, request.params, client.as_ref(), about.as_ref());
        if let Err(forbidden) = allowed.await {
            return self.refuse(Some(id), not_permitted(&forbidden), reply);
        }
        if let (Some(x_grove::Method::Sessions(method)), Some(client)) = (method, self.client()) {
            return self.hub.handle(&client, id, method, request.params, reply).await;
        }
        if let (Some(method), true) = (method, self.has_begun()) {
            return self.handle_own(id, method, request.params, reply).await;
        }
        let answered = match &mut self.dialect_peer {
            PeerDialect::V1(peer) => peer.request(request, reply).await,
            PeerDialect::Ahp(peer) => peer.request(request, reply).await,
        };
        if let Err((reply, error)) = answered {
            self.refuse(Some(id), error, reply);
        }
    }

    /// Answers one of Grove's own methods, which are the same in every dialect.
    async fn handle_own(&mut self, id: Id, method: x_grove::Method, params: Option<&RawValue>, reply: ReplySink) {
        match method {
            x_grove::Method::Import(method) => self.imports.handle(id, method, params, reply).await,
            x_grove::Method::Tokens(method) => {
                let answered = super::tokens::answer(&self.host, &self.principal, &id, method, params);
                let super::tokens::TokensAnswer { text, ended } = answered.await;
                reply(Encode::Text(text));
                drop(ended);
            }
            x_grove::Method::Removal(method) => {
                reply(Encode::Text(super::removal::answer(&self.host, &id, method, params).await));
            }
            x_grove::Method::History(method) => {
                super::history::handle(&self.host, &self.principal, id, method, params, reply);
            }
            x_grove::Method::Administration(method) => {
                super::administration::handle(&self.host, &self.queue, id, method, params, reply);
            }
            x_grove::Method::Notify(method) => {
                super::notify::handle(&self.host, &self.principal, id, method, params, reply);
            }
            x_grove::Method::Presence => match self.presence(&id, params).await {
                Ok(answer) => reply(Encode::Text(answer)),
                Err(error) => self.refuse(Some(id), error, reply),
            },
            method => match self.begin_own(id.clone(), method, params).await {
                // A summary may take long, and must not hold up the client's next messages.
                Ok((begun, due)) => {
                    let host = self.host.clone();
                    self.host.env().spawn.spawn(Box::pin(async move {
                        let answer = begun.answer(&host).await;
                        reply(Encode::Text(answer));
                        drop(due);
                    }));
                }
                Err(error) => self.refuse(Some(id), error, reply),
            },
        }
    }

    async fn handle_notification(&mut self, method: &str, params: Option<&RawValue>) {
        let taken = match &mut self.dialect_peer {
            PeerDialect::V1(peer) => peer.notified(method, params).await,
            PeerDialect::Ahp(peer) => peer.notified(method, params).await,
        };
        if let Err(error) = taken {
            tracing::debug!(%error, %method, "a client's notification is invalid");
            // A notification has no answer, but a client waits for the echo of an action, by its number: without a number
            // it is told that no echo will come.
            let is_action = method == grove_wire::ahp::notify::DISPATCH_ACTION;
            if is_action && self.has_begun() && params.is_some_and(InvalidSeqAction::has_no_seq) {
                self.queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into()));
            }
        }
    }

    /// Answers with an error, and counts it.
    fn refuse(&self, id: Option<Id>, error: ErrorObject, reply: ReplySink) {
        count_refusal(&self.host, &error);
        reply(Encode::later(move || jsonrpc::error(id.as_ref(), &error)));
    }

    /// Refuses a request that the client may not make: by its scopes, its folders or its process.
    async fn authorize(
        &self,
        needed: ScopeSet,
        method: &str,
        params: Option<&RawValue>,
        client: Option<&ClientId>,
        about: Option<&SessionId>,
    ) -> Result<(), Forbidden> {
        self.principal.authorize(&self.host, needed, method, client, about).await?;
        let folders = further::named_folders(method, params);
        Ok(self.principal.check_folders(&self.host, folders, method).await?)
    }

    /// The scopes that a request needs. An unknown one needs none: the dialect refuses it.
    fn needed_scopes(&self, method: &str, params: Option<&RawValue>) -> ScopeSet {
        if let Some(method) = x_grove::Method::named(method) {
            return ScopeSet::from(scopes::x_grove_method(method)).union(further::x_grove_method(method, params));
        }
        match &self.dialect_peer {
            PeerDialect::V1(_) => v1_wire::Method::named(method).and_then(scopes::v1_method).into(),
            PeerDialect::Ahp(_) => ahp_wire::Method::named(method).map_or(ScopeSet::NONE, |method| {
                ScopeSet::from(scopes::ahp_method(method)).union(further::ahp_method(method, params))
            }),
        }
    }

    /// Counts a request until its answer, or answers that its connection or token has too many.
    fn count(&self, message: &Result<RpcMessage<'_>, InvalidMessage>, reply: ReplySink) -> Result<ReplySink, ()> {
        let Ok(RpcMessage::Request(request)) = message else { return Ok(reply) };
        match self.queue.usage().request(call_cost(&request.method)) {
            Ok(slot) => Ok(Box::new(move |answer| {
                reply(answer);
                drop(slot);
            })),
            Err(reached) => {
                let error = limit_reached(&reached);
                count_refusal(&self.host, &error);
                reply(Encode::Text(jsonrpc::error(Some(&request.id), &error)));
                Err(())
            }
        }
    }

    /// The name of the dialect in spans.
    fn dialect_name(&self) -> &'static str {
        match &self.dialect_peer {
            PeerDialect::V1(_) => "v1",
            PeerDialect::Ahp(_) => "ahp",
        }
    }

    fn has_begun(&self) -> bool {
        match &self.dialect_peer {
            PeerDialect::V1(peer) => peer.has_begun(),
            PeerDialect::Ahp(peer) => peer.has_begun(),
        }
    }

    /// The client's id, once it has sent it.
    fn client(&self) -> Option<ClientId> {
        match &self.dialect_peer {
            PeerDialect::V1(peer) => peer.client().cloned(),
            PeerDialect::Ahp(peer) => peer.client().cloned(),
        }
    }

    /// Answers who is attached to a session.
    async fn presence(&self, id: &Id, params: Option<&RawValue>) -> Result<String, ErrorObject> {
        let client = self.client().ok_or_else(not_initialized)?;
        let params: PresenceParams = read_params(params)?;
        let (session, _) = match &self.dialect_peer {
            PeerDialect::V1(peer) => peer.place(&params.channel).await?,
            PeerDialect::Ahp(peer) => peer.place(&params.channel).await?,
        };
        let asker = PresenceAsker { host: &self.host, client: &client, connection: self.id, queue: &self.queue };
        Ok(encode(id, &asker.list(&session, params)?))
    }

    /// Starts a call of Grove's extensions, which every dialect has.
    async fn begin_own(
        &self,
        id: Id,
        method: x_grove::Method,
        params: Option<&RawValue>,
    ) -> Result<(super::x_grove::PendingCall, Option<DueAnswer>), ErrorObject> {
        let channel = super::x_grove::channel(params)?;
        let (place, shape) = match &self.dialect_peer {
            PeerDialect::V1(peer) => (peer.place(&channel).await?, MessageShape::V1),
            PeerDialect::Ahp(peer) => (peer.place(&channel).await?, MessageShape::Ahp),
        };
        // Noted before it starts: its change may close this connection, which gets its answer first.
        let due = place.0.id().map(|session| self.queue.expect_answer(session));
        let begun = super::x_grove::begin(&self.host, id, method, params, place, shape).await?;
        Ok((begun, due))
    }

    /// Ends the connection.
    pub(crate) fn ended(self) {
        self.imports.ended();
        if let PeerDialect::Ahp(peer) = self.dialect_peer {
            peer.ended();
        }
    }

    /// Says whether a client's first message is of the released protocol.
    ///
    /// That one offers a list of versions; the first dialect names one. A client that reconnects is recognized by the
    /// channel, by members that only that protocol has, or by the journal.
    async fn begins_ahp(&self, method: &str, params: Option<&RawValue>) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeProbe {
            #[serde(default)]
            channel: Option<serde_json::Value>,
            #[serde(default)]
            protocol_versions: Option<serde_json::Value>,
            #[serde(default)]
            client_id: Option<String>,
            #[serde(default)]
            subscriptions: Vec<serde_json::Value>,
        }
        let words = params.and_then(|params| serde_json::from_str::<InitializeProbe>(params.get()).ok());
        let Some(words) = words else { return false };
        match method {
            "initialize" => words.protocol_versions.is_some(),
            "reconnect" => {
                let is_ahp = |subscription: &serde_json::Value| match subscription.as_str() {
                    Some(uri) => uri == ROOT || uri.starts_with("ahp-"),
                    None => subscription.is_object(),
                };
                words.channel.is_some()
                    || words.subscriptions.iter().any(is_ahp)
                    || self.used_ahp(words.client_id.map(ClientId::from))
            }
            _ => false,
        }
    }

    fn used_ahp(&self, client: Option<ClientId>) -> bool {
        let Some(client) = client else { return false };
        let known = self.host.sequencer().find_client(&client);
        known.is_some_and(|known| matches!(known.dialect, Dialect::Ahp { .. }))
    }
}

/// The id that a client gives itself when it connects.
fn named_client(params: Option<&RawValue>) -> Option<ClientId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ClientName {
        client_id: String,
    }
    let name: ClientName = serde_json::from_str(params?.get()).ok()?;
    Some(name.client_id.into())
}
