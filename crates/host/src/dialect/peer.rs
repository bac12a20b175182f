//! The host's end of a connection, before and after it is known what the client speaks.

use std::sync::Arc;

use grove_core::ClientId;
use grove_wire::ahp::ROOT;
use grove_wire::invalid_seq::InvalidSeqAction;
use grove_wire::jsonrpc::{self, ErrorObject, Id, InvalidMessage, RpcMessage};
use grove_wire::x_grove;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::import::ImportJobs;
use super::sessions::SessionHubClient;
use super::x_grove::MessageShape;
use super::{Dialect, ahp, v1};
use crate::connection::{DueAnswer, Encode, Outgoing, Queue};
use crate::host::Host;
use crate::sequencer::{ConnectionId, ReplySink};

pub(crate) struct ConnectionPeer {
    host: Host,
    id: ConnectionId,
    queue: Arc<Queue>,
    dialect_peer: PeerDialect,
    imports: ImportJobs,
    layer: SessionHubClient,
}

enum PeerDialect {
    /// The first dialect, or nothing yet: until a client begins, both answer the same.
    V1(v1::Peer),
    Ahp(Box<ahp::Peer>),
}

impl ConnectionPeer {
    pub(crate) fn new(host: Host, id: ConnectionId, queue: Arc<Queue>) -> Self {
        let first = v1::Peer::new(host.clone(), id, queue.clone());
        let imports = ImportJobs::new(host.clone());
        let layer = SessionHubClient::new(host.clone(), queue.clone());
        Self { host, id, queue, dialect_peer: PeerDialect::V1(first), imports, layer }
    }

    /// Handles one message. Its effect has taken place, or has its place, when this returns.
    pub(crate) async fn handle(&mut self, message: Result<RpcMessage<'_>, InvalidMessage>, reply: ReplySink) {
        if let (PeerDialect::V1(first), Ok(RpcMessage::Request(request))) = (&self.dialect_peer, &message)
            && !first.has_begun()
            && self.begins_ahp(&request.method, request.params).await
        {
            let peer = ahp::Peer::new(self.host.clone(), self.id, self.queue.clone());
            self.dialect_peer = PeerDialect::Ahp(Box::new(peer));
        }
        match message {
            Ok(RpcMessage::Request(request)) => {
                let id = request.id.clone();
                let method = x_grove::Method::named(&request.method);
                if let (Some(x_grove::Method::Sessions(method)), Some(client)) = (method, self.client()) {
                    return self.layer.handle(&client, id, method, request.params, reply).await;
                }
                let request = match method {
                    Some(x_grove::Method::Import(method)) if self.has_begun() => {
                        return self.imports.handle(id, method, request.params, reply).await;
                    }
                    Some(x_grove::Method::Removal(method)) if self.has_begun() => {
                        let answer = super::removal::answer(&self.host, &id, method, request.params).await;
                        return reply(Encode::Text(answer));
                    }
                    Some(x_grove::Method::History(method)) if self.has_begun() => {
                        return super::history::handle(&self.host, id, method, request.params, reply);
                    }
                    Some(method) if self.has_begun() => {
                        return match self.begin_own(id.clone(), method, request.params).await {
                            // A summary may take long: what the client says meanwhile is not held up.
                            Ok((begun, due)) => {
                                let host = self.host.clone();
                                self.host.0.env.spawn.spawn(Box::pin(async move {
                                    let answer = begun.answer(&host).await;
                                    reply(Encode::Text(answer));
                                    drop(due);
                                }));
                            }
                            Err(error) => reply(Encode::later(move || jsonrpc::error(Some(&id), &error))),
                        };
                    }
                    Some(_) | None => request,
                };
                let answered = match &mut self.dialect_peer {
                    PeerDialect::V1(peer) => peer.request(request, reply).await,
                    PeerDialect::Ahp(peer) => peer.request(request, reply).await,
                };
                if let Err((reply, error)) = answered {
                    reply(Encode::later(move || jsonrpc::error(Some(&id), &error)));
                }
            }
            Ok(RpcMessage::Notification { method, params }) => {
                let taken = match &mut self.dialect_peer {
                    PeerDialect::V1(peer) => peer.notified(&method, params).await,
                    PeerDialect::Ahp(peer) => peer.notified(&method, params).await,
                };
                if let Err(error) = taken {
                    tracing::debug!(%error, %method, "a client's notification was not understood");
                    // Nobody waits for an answer to a notification, but for the echo of an action, by its number: a client
                    // that gave none hears that it waits in vain.
                    let is_action = method == grove_wire::ahp::notify::DISPATCH_ACTION;
                    if is_action && self.has_begun() && params.is_some_and(InvalidSeqAction::has_no_seq) {
                        self.queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into()));
                    }
                }
            }
            Ok(RpcMessage::Response { id, outcome }) => match &self.dialect_peer {
                // Nothing is asked in this dialect, so no answer is awaited.
                PeerDialect::V1(_) => {}
                PeerDialect::Ahp(peer) => peer.answered(&id, outcome),
            },
            Err(InvalidMessage { id, error }) => reply(Encode::later(move || jsonrpc::error(id.as_ref(), &error))),
        }
    }

    fn has_begun(&self) -> bool {
        match &self.dialect_peer {
            PeerDialect::V1(peer) => peer.has_begun(),
            PeerDialect::Ahp(peer) => peer.has_begun(),
        }
    }

    /// Who the client is, once it has said so.
    fn client(&self) -> Option<ClientId> {
        match &self.dialect_peer {
            PeerDialect::V1(peer) => peer.client().cloned(),
            PeerDialect::Ahp(peer) => peer.client().cloned(),
        }
    }

    /// Begins what Grove adds to every dialect.
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
        // Noted before it begins: what it changes may close this connection, which has its answer first.
        let due = place.0.id().map(|session| self.queue.expect_answer(session));
        let begun = super::x_grove::begin(&self.host, id, method, params, place, shape).await?;
        Ok((begun, due))
    }

    /// The connection is over.
    pub(crate) fn ended(self) {
        self.imports.ended();
        if let PeerDialect::Ahp(peer) = self.dialect_peer {
            peer.ended();
        }
    }

    /// Whether a client's first words are of the released protocol. It offers a list of versions where the first
    /// dialect names one; a client that comes back names the channel, or what only that protocol has, or is remembered.
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
                    || self.used_ahp(words.client_id.map(ClientId::from)).await
            }
            _ => false,
        }
    }

    async fn used_ahp(&self, client: Option<ClientId>) -> bool {
        let Some(client) = client else { return false };
        // A host that is stopping says so by itself.
        let known = self.host.0.sequencer.find_client(client).await.ok().flatten();
        known.is_some_and(|known| matches!(known.dialect, Dialect::Ahp { .. }))
    }
}
