//! `initialize`, `reconnect` and `subscribe`.

use std::sync::Arc;
use std::time::Duration;

use grove_host::history::HistoryOpenError;
use grove_host::sequencer::{
    Attach, AttachAnswer, AttachMode, ClientClaim, MissedEvents, ReconnectPosition, ReplySink, Subscribe,
    SubscribeOutcome, SubscriptionTarget,
};
use grove_host::subscriber::{Dialect, Encode};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::v1::{self, error_code};
use grove_work::file_uri;
use serde_json::value::RawValue;

use super::snapshot::{HistorySnapshot, cut, cut_all, share};
use super::{Peer, wanted};
use crate::dialect::answer::{claim_client, join, limit_reached, read_params};
use crate::dialect::history::not_opened;
use crate::dialect::x_grove::announcement;

impl Peer {
    pub(super) async fn initialize(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let checked = read_params::<v1::InitializeParams>(params).and_then(|params| {
            let version = self.host.config().registry.negotiate(params.protocol_version);
            let version =
                version.map_err(|error| ErrorObject::new(error_code::UNSUPPORTED_VERSION, error.to_string()))?;
            Ok((
                claim_client(&self.host, &self.principal, params.client_id)?,
                version,
                params.client_info,
                params.initial_subscriptions.unwrap_or_default(),
            ))
        });
        let (client, version, info, subscriptions) = match checked {
            Ok(checked) => checked,
            Err(error) => return Err((reply, error)),
        };
        let name = info.as_ref().map(|info| info.title.as_deref().unwrap_or(&info.name));
        self.party = self.principal.party(name);
        let limits = self.host.config().limits;
        let folder = self.host.config().folders.default_directory.clone();
        let announced = announcement(&self.host);
        let foreign = self.open_all(&subscriptions).await;
        let wanted = subscriptions.clone();
        self.attach(
            client,
            AttachMode::New(Dialect::V1 { version }),
            &subscriptions,
            Box::new(move |attached| {
                let seq = attached.published.seq;
                let cuts = cut_all(&wanted, foreign, &attached, &limits);
                Encode::later(move || {
                    let folder = folder.and_then(|folder| serde_json::to_string(&file_uri(&folder)).ok());
                    let folder = folder.map(|folder| format!(r#","defaultDirectory":{folder}"#)).unwrap_or_default();
                    let meta = serde_json::Value::Object(announced.meta());
                    let snapshots = join(cuts.iter().map(|cut| cut.json()));
                    jsonrpc::response_raw(
                        &id,
                        &format!(
                            r#"{{"protocolVersion":{version},"serverSeq":{seq},"snapshots":[{snapshots}]{folder},"_meta":{meta}}}"#
                        ),
                    )
                })
            }),
            reply,
        )
        .await;
        Ok(())
    }

    pub(super) async fn reconnect(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let checked = read_params::<v1::ReconnectParams>(params).and_then(|params| {
            let client = claim_client(&self.host, &self.principal, params.client_id)?;
            Ok((client, params.last_seen_server_seq, params.subscriptions))
        });
        let (client, seen, subscriptions) = match checked {
            Ok(checked) => checked,
            Err(error) => return Err((reply, error)),
        };
        // The name of the first `initialize` stays.
        if let Some(known) = self.host.sequencer().find_client(client.client()) {
            self.party = self.principal.party(known.name.as_deref());
        }
        let limits = self.host.config().limits;
        let registry = self.host.config().registry;
        let foreign = self.open_all(&subscriptions).await;
        let wanted = subscriptions.clone();
        self.attach(
            client,
            AttachMode::Returning {
                seen: ReconnectPosition::UpTo(seen),
                unless_known: Dialect::V1 { version: registry.current },
            },
            &subscriptions,
            Box::new(move |attached| -> Encode {
                match attached.missed {
                    MissedEvents::Together(Some(missed)) => Encode::later(move || {
                        let frames: Vec<_> =
                            missed.iter().filter_map(|(event, dialect)| event.frame(*dialect, &registry)).collect();
                        let actions = join(frames.iter().filter_map(|frame| v1::encode::envelope_in(frame)));
                        jsonrpc::response_raw(&id, &format!(r#"{{"type":"replay","actions":[{actions}]}}"#))
                    }),
                    MissedEvents::Together(None) | MissedEvents::Each(_) => {
                        let cuts = cut_all(&wanted, foreign, &attached, &limits);
                        Encode::later(move || {
                            let snapshots = join(cuts.iter().map(|cut| cut.json()));
                            jsonrpc::response_raw(&id, &format!(r#"{{"type":"snapshot","snapshots":[{snapshots}]}}"#))
                        })
                    }
                }
            }),
            reply,
        )
        .await;
        Ok(())
    }

    pub(super) async fn subscribe(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let uri = match read_params::<v1::SubscribeParams>(params) {
            Ok(params) => params.resource,
            Err(error) => return Err((reply, error)),
        };
        self.load(&uri).await;
        let limits = self.host.config().limits;
        match self.opened(&uri, limits.snapshot_bytes).await {
            Ok(Some((foreign, seq))) => {
                let cut = foreign.at(&uri, seq);
                reply(Encode::later(move || jsonrpc::response_raw(&id, &cut.json())));
                return Ok(());
            }
            Ok(None) => {}
            Err(error) => return Err((reply, not_opened(&error))),
        }
        let missing = self.missing(&uri).await;
        let subscribe = Subscribe {
            connection: self.id,
            wanted: wanted(&uri),
            patience: Duration::ZERO,
            answer: Box::new(move |subscribed| match subscribed {
                SubscribeOutcome::Yes(published) => {
                    let cut = cut(&uri, published, &limits, limits.snapshot_bytes);
                    Encode::later(move || match cut {
                        Some(cut) => jsonrpc::response_raw(&id, &cut.json()),
                        None => jsonrpc::error(Some(&id), &missing),
                    })
                }
                SubscribeOutcome::Unknown => Encode::later(move || jsonrpc::error(Some(&id), &missing)),
                SubscribeOutcome::TooMany(reached) => {
                    Encode::later(move || jsonrpc::error(Some(&id), &limit_reached(&reached)))
                }
            }),
            reply,
        };
        self.host.sequencer().subscribe(subscribe).await.ok();
        Ok(())
    }

    async fn attach(
        &mut self,
        claim: ClientClaim,
        how: AttachMode,
        subscriptions: &[String],
        answer: AttachAnswer,
        reply: ReplySink,
    ) {
        let client = claim.client().clone();
        self.client = Some(client.clone());
        for uri in subscriptions {
            self.load(uri).await;
        }
        let attach = Attach {
            connection: self.id,
            queue: self.queue.clone(),
            client,
            token: self.principal.token_id(),
            party: self.party.clone(),
            how,
            subscriptions: subscriptions.iter().map(|uri| wanted(uri)).collect(),
            spellings: Arc::default(),
            answer,
            reply,
        };
        // A stopping host closes the connection; that is the answer.
        self.host.sequencer().attach(attach).await.ok();
        drop(claim);
    }

    /// Loads a session before it is read. A stopping host loads nothing, and says so by itself.
    pub(super) async fn load(&self, uri: &str) {
        if let SubscriptionTarget::SessionWithMainChat(uri) = wanted(uri)
            && let Some(id) = uri.id()
        {
            self.host.load(&id).await.ok();
        }
    }

    /// Another tool's session. It has no events, so there is nothing to subscribe to.
    async fn opened(&self, uri: &str, bytes: usize) -> Result<Option<(HistorySnapshot, u64)>, HistoryOpenError> {
        let opened = self.host.open_history(&wanted(uri), usize::MAX, bytes).await?;
        Ok(opened.map(|(opened, seq)| (HistorySnapshot::of(&opened.session, bytes), seq)))
    }

    /// Reads every requested session of other tools, in order, when a client connects.
    ///
    /// Unreadable ones are left out, and so are those beyond the subscriptions that a connection may have.
    async fn open_all(&self, uris: &[String]) -> Vec<Option<HistorySnapshot>> {
        let limits = &self.host.config().limits;
        let (share, mut left) = (share(limits, uris.len()), self.queue.usage().limits().subscriptions);
        let mut foreign = Vec::with_capacity(uris.len());
        for uri in uris {
            let opened = match left {
                0 => None,
                _ => self.opened(uri, share).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, %uri, "a session of another tool is left out");
                    None
                }),
            };
            left -= usize::from(opened.is_some());
            foreign.push(opened.map(|(foreign, _)| foreign));
        }
        foreign
    }
}
