//! `initialize`, `reconnect` and `subscribe`.

use std::time::Duration;

use grove_host::history::HistoryOpenError;
use grove_host::sequencer::{
    Attach, AttachAnswer, AttachMode, ClientClaim, MissedEvents, PublishedState, ReconnectPosition, ReplayedEvent,
    ReplySink, Subscribe, SubscribeOutcome, SubscriptionTarget,
};
use grove_host::subscriber::{Dialect, DisconnectReason, Encode, Outgoing};
use grove_host::terminals::SubscriptionStart;
use grove_wire::ahp::uri::{ChannelName, Spelling};
use grove_wire::ahp::{self, NegotiationError, ReconnectParams, error_code};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use serde_json::value::RawValue;

use super::snapshot::{HistorySnapshot, PendingSnapshot, SnapshotLimits, cut, cut_all};
use super::{Peer, not_found, wanted};
use crate::dialect::answer::{claim_client, encode, join, limit_reached, read_params, stopped};
use crate::dialect::history::not_opened;
use crate::dialect::x_grove::announcement;
use grove_wire::registry::Registry;

/// The longest time for which text waits to be merged, whatever delay a client requests.
pub const MAX_MERGE_DELAY: Duration = Duration::from_secs(5);
/// The characters at which a client requests completions.
const TRIGGERS: &[&str] = &["@"];

impl Peer {
    pub(super) async fn initialize(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let params = match read_params::<ahp::InitializeParams>(params) {
            Ok(params) => params,
            Err(error) => return Err((reply, error)),
        };
        let version = match ahp::negotiate(&params.protocol_versions) {
            Ok(version) => version,
            Err(error @ NegotiationError::Malformed(_)) => {
                return Err((reply, ErrorObject::invalid_params(error.to_string())));
            }
            Err(error @ NegotiationError::Unsupported) => {
                let supported = ahp::version::supported_ranges();
                let error = ErrorObject {
                    data: Some(serde_json::json!({ "supportedVersions": supported })),
                    ..ErrorObject::new(error_code::UNSUPPORTED_PROTOCOL_VERSION, error.to_string())
                };
                reply(Encode::later(move || jsonrpc::error(Some(&id), &error)));
                self.queue.push(Outgoing::Last(DisconnectReason::Unspoken));
                return Ok(());
            }
        };
        let client = match claim_client(&self.host, &self.principal, params.client_id) {
            Ok(client) => client,
            Err(error) => return Err((reply, error)),
        };
        self.asked = self.host.editors().begun(self.id, client.client(), &self.queue, params.meta.as_ref());
        let info = params.client_info.as_ref();
        self.party = self.principal.party(info.map(|info| info.title.as_deref().unwrap_or(&info.name)));
        let limits = self.host.config().limits;
        let folder = self.host.config().folders.default_directory.as_deref().map(grove_work::file_uri);
        let channels = params.initial_subscriptions.unwrap_or_default();
        let announced = announcement(&self.host);
        let foreign = self.open_all(&channels, SubscriptionStart::Snapshot).await;
        let asked = channels.clone();
        let answer: AttachAnswer = Box::new(move |attached| {
            let server_seq = attached.published.seq;
            let cuts = cut_all(&asked, foreign, &attached, &limits);
            Encode::later(move || {
                let begun = ahp::InitializeResult {
                    protocol_version: version.to_string(),
                    server_seq,
                    server_info: Some(ahp::Implementation {
                        name: "grove".to_owned(),
                        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                        title: Some("Grove".to_owned()),
                    }),
                    meta: Some(announced.meta()),
                    default_directory: folder,
                    completion_trigger_characters: Some(TRIGGERS.iter().map(ToString::to_string).collect()),
                    ..ahp::InitializeResult::default()
                };
                let snapshots = join(cuts.iter().map(|cut| cut.json()));
                // Nothing before the snapshots can contain this text: a client chooses none of it.
                let answer = encode(&id, &begun);
                answer.replacen(r#""snapshots":[]"#, &format!(r#""snapshots":[{snapshots}]"#), 1)
            })
        });
        let dialect = Dialect::Ahp { version, spelling: Spelling::Computed };
        self.attach(client, AttachMode::New(dialect), &channels, answer, reply).await;
        Ok(())
    }

    pub(super) async fn reconnect(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let params = match read_params::<ReconnectParams>(params) {
            Ok(params) => params,
            Err(error) => return Err((reply, error)),
        };
        let client = match claim_client(&self.host, &self.principal, params.client_id().to_owned()) {
            Ok(client) => client,
            Err(error) => return Err((reply, error)),
        };
        // An unknown client has nothing to resume: it must initialize.
        let dialect = match self.host.sequencer().find_client(client.client()) {
            Some(known) if matches!(known.dialect, Dialect::Ahp { .. }) => {
                self.party = self.principal.party(known.name.as_deref());
                known.dialect
            }
            Some(_) | None => {
                let error = ErrorObject::new(error_code::NOT_FOUND, "this client is unknown: send `initialize`");
                return Err((reply, error));
            }
        };
        self.asked = self.host.editors().begun(self.id, client.client(), &self.queue, params.meta());
        let limits = self.host.config().limits;
        let registry = self.host.config().registry;
        let (channels, seen) = match params {
            ReconnectParams::Watermark(params) => {
                (params.subscriptions, ReconnectPosition::UpTo(params.last_seen_server_seq))
            }
            ReconnectParams::Cursors(params) => {
                let (channels, seen) = params
                    .subscriptions
                    .into_iter()
                    .map(|cursor| (cursor.channel, cursor.last_seen_server_seq))
                    .unzip();
                (channels, ReconnectPosition::Each(seen))
            }
        };
        let foreign = self.open_all(&channels, SubscriptionStart::Actions).await;
        let asked: Vec<String> = channels.clone();
        let answer: AttachAnswer = Box::new(move |mut attached| -> Encode {
            match std::mem::replace(&mut attached.missed, MissedEvents::Together(None)) {
                MissedEvents::Together(Some(missed)) => {
                    // Another tool's session has no events, so none was missed.
                    let there = attached.subscribed.into_iter().zip(foreign);
                    let there: Vec<bool> = there.map(|(there, foreign)| there || foreign.is_some()).collect();
                    Encode::later(move || {
                        let missing = asked.iter().zip(there).filter(|(_, there)| !there).map(|(uri, _)| uri);
                        let missing = serde_json::to_string(&missing.collect::<Vec<_>>()).unwrap_or_default();
                        let actions = actions(&missed, &registry);
                        let result = format!(r#"{{"type":"replay","actions":[{actions}],"missing":{missing}}}"#);
                        jsonrpc::response_raw(&id, &result)
                    })
                }
                MissedEvents::Together(None) => {
                    let cuts = cut_all(&asked, foreign, &attached, &limits);
                    Encode::later(move || {
                        let snapshots = join(cuts.iter().map(|cut| cut.json()));
                        jsonrpc::response_raw(&id, &format!(r#"{{"type":"snapshot","snapshots":[{snapshots}]}}"#))
                    })
                }
                MissedEvents::Each(each) => {
                    let view = SnapshotLimits::all(&limits, asked.len());
                    let seq = attached.published.seq;
                    let outcomes = asked.iter().zip(foreign).zip(each).zip(attached.subscribed);
                    let outcomes = outcomes.map(|(((uri, foreign), missed), there)| match (there, missed) {
                        (true, Some(missed)) => ReconnectReply::Replay(missed),
                        (true, None) => cut(uri, attached.published, &limits, view).into(),
                        // It may have grown since, which no action says.
                        (false, _) => foreign.map(|foreign| foreign.at(uri, seq)).into(),
                    });
                    let outcomes: Vec<_> = outcomes.collect();
                    Encode::later(move || {
                        let outcomes = asked.iter().zip(outcomes).map(|(uri, outcome)| {
                            let channel = serde_json::to_string(uri).unwrap_or_default();
                            match outcome {
                                ReconnectReply::Replay(missed) => {
                                    let actions = actions(&missed, &registry);
                                    format!(r#"{{"kind":"replay","channel":{channel},"actions":[{actions}]}}"#)
                                }
                                ReconnectReply::Snapshot(cut) => {
                                    let cut = cut.json();
                                    format!(r#"{{"kind":"snapshot","channel":{channel},"snapshot":{cut}}}"#)
                                }
                                ReconnectReply::Missing => format!(r#"{{"kind":"missing","channel":{channel}}}"#),
                            }
                        });
                        jsonrpc::response_raw(&id, &format!(r#"{{"channels":[{}]}}"#, join(outcomes)))
                    })
                }
            }
        });
        let how = AttachMode::Returning { seen, unless_known: dialect };
        self.attach(client, how, &channels, answer, reply).await;
        Ok(())
    }

    async fn attach(
        &mut self,
        claim: ClientClaim,
        how: AttachMode,
        channels: &[String],
        answer: AttachAnswer,
        reply: ReplySink,
    ) {
        let client = claim.client().clone();
        self.client = Some(client.clone());
        let mut subscriptions = Vec::with_capacity(channels.len());
        for uri in channels {
            let wanted = self.wanted(uri).await;
            // An unknown name keeps its position, so that the answer can say so.
            subscriptions.push(wanted.unwrap_or_else(nothing));
        }
        let attach = Attach {
            connection: self.id,
            queue: self.queue.clone(),
            client,
            token: self.principal.token_id(),
            party: self.party.clone(),
            how,
            subscriptions,
            spellings: self.spellings.clone(),
            answer,
            reply,
        };
        // A stopping host closes the connection; that is the answer.
        self.host.sequencer().attach(attach).await.ok();
        drop(claim);
        self.start_terminals();
    }

    /// The target of a channel's name, with its session loaded.
    pub(super) async fn wanted(&self, uri: &str) -> Option<SubscriptionTarget> {
        let wanted = wanted(ChannelName::parse(uri)?)?;
        // Marked before it is looked up, so that it is not evicted in between.
        if let Some(session) = wanted.names_session() {
            self.host.mark_used(session);
        }
        // Nearly always it is loaded, and there is nothing else to do.
        let look = |published: &PublishedState| {
            let session = wanted.session(published)?;
            let must_be_found = wanted.names_session().is_none();
            (must_be_found || published.evicted.contains_key(&session)).then_some(session)
        };
        if let Some(session) = self.host.sequencer().read(look) {
            // A stopping host loads nothing, and says so by itself.
            self.host.load(&session).await.ok();
        }
        Some(wanted)
    }

    pub(super) async fn subscribe(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let params = match read_params::<ahp::SubscribeParams>(params) {
            Ok(params) => params,
            Err(error) => return Err((reply, error)),
        };
        let uri = params.channel;
        if let Some(ChannelName::Terminal(_)) = ChannelName::parse(&uri) {
            let state = match self.subscribe_terminal(&uri, SubscriptionStart::Snapshot) {
                Ok(state) => state,
                Err(error) => return Err((reply, error)),
            };
            let snapshot = self.terminal_snapshot(&uri, state);
            reply(Encode::later(move || encode(&id, &snapshot)));
            self.start_terminals();
            return Ok(());
        }
        if let Some(ChannelName::ResourceWatch(watch)) = ChannelName::parse(&uri) {
            let Some(snapshot) = self.watches.subscribe(&watch, &uri).await else {
                return Err((reply, not_found(&uri)));
            };
            reply(Encode::later(move || encode(&id, &snapshot)));
            return Ok(());
        }
        let Some(wanted) = self.wanted(&uri).await else { return Err((reply, not_found(&uri))) };
        let limits = self.host.config().limits;
        let most = params.view.and_then(|view| view.turns).and_then(|turns| usize::try_from(turns).ok());
        let view = SnapshotLimits { turns: most.unwrap_or(usize::MAX), ..SnapshotLimits::all(&limits, 1) };
        match self.opened(&wanted, view).await {
            // Another tool's session has no events, so there is nothing to subscribe to.
            Ok(Some((foreign, seq))) => {
                let cut = foreign.at(&uri, seq);
                reply(Encode::later(move || jsonrpc::response_raw(&id, &format!(r#"{{"snapshot":{}}}"#, cut.json()))));
                return Ok(());
            }
            Ok(None) => {}
            Err(error) => return Err((reply, not_opened(&error))),
        }
        let latency = params.delivery.and_then(|delivery| delivery.max_latency_ms).unwrap_or(0);
        let patience = Duration::from_millis(latency).min(MAX_MERGE_DELAY);
        let missing = match &wanted {
            SubscriptionTarget::Session(name) => self.missing(&name.id, &uri).await,
            SubscriptionTarget::Root | SubscriptionTarget::SessionWithMainChat(_) | SubscriptionTarget::Chat(_) => {
                not_found(&uri)
            }
        };
        let subscribe = Subscribe {
            connection: self.id,
            wanted,
            patience,
            answer: Box::new(move |subscribed| match subscribed {
                SubscribeOutcome::Yes(published) => {
                    let cut = cut(&uri, published, &limits, view);
                    Encode::later(move || match cut {
                        Some(cut) => jsonrpc::response_raw(&id, &format!(r#"{{"snapshot":{}}}"#, cut.json())),
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

    /// Another tool's session that a name refers to, and the sequence number at which it was read.
    async fn opened(
        &self,
        wanted: &SubscriptionTarget,
        view: SnapshotLimits,
    ) -> Result<Option<(HistorySnapshot, u64)>, HistoryOpenError> {
        let opened = self.host.open_history(wanted, view.turns, view.bytes).await?;
        Ok(opened.and_then(|(opened, seq)| Some((HistorySnapshot::of(wanted, &opened, view)?, seq))))
    }

    /// Reads every requested terminal and session of other tools, in order, when a client connects.
    ///
    /// Unreadable ones are left out, and so are those beyond the subscriptions that a connection may have.
    async fn open_all(&mut self, channels: &[String], start: SubscriptionStart) -> Vec<Option<HistorySnapshot>> {
        let limits = self.host.config().limits;
        let (view, mut left) =
            (SnapshotLimits::all(&limits, channels.len()), self.queue.usage().limits().subscriptions);
        let mut all = Vec::with_capacity(channels.len());
        for uri in channels {
            if let Some(ChannelName::Terminal(_)) = ChannelName::parse(uri) {
                // One that is missing, or one too many, is left out.
                let state = self.subscribe_terminal(uri, start).ok();
                all.push(state.map(|state| HistorySnapshot::of_terminal(&state)));
                continue;
            }
            let opened = match ChannelName::parse(uri).and_then(wanted).filter(|_| left > 0) {
                Some(wanted) => self.opened(&wanted, view).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, %uri, "a session of another tool is left out");
                    None
                }),
                None => None,
            };
            left -= usize::from(opened.is_some());
            all.push(opened.map(|(foreign, _)| foreign));
        }
        all
    }

    pub(super) async fn unsubscribe(&mut self, uri: &str) -> Result<(), ErrorObject> {
        match ChannelName::parse(uri) {
            Some(ChannelName::ResourceWatch(watch)) => self.watches.drop(&watch),
            Some(ChannelName::Terminal(_)) => self.terminals.drop(uri),
            Some(channel) => {
                if let Some(wanted) = wanted(channel) {
                    self.host.sequencer().unsubscribe(self.id, wanted).await.map_err(stopped)?;
                }
            }
            None => {}
        }
        Ok(())
    }
}

/// The answer about one channel to a reconnecting client.
enum ReconnectReply {
    Replay(Vec<ReplayedEvent>),
    Snapshot(PendingSnapshot),
    Missing,
}

impl From<Option<PendingSnapshot>> for ReconnectReply {
    fn from(cut: Option<PendingSnapshot>) -> Self {
        cut.map_or(ReconnectReply::Missing, ReconnectReply::Snapshot)
    }
}

/// The target of an unknown name.
fn nothing() -> SubscriptionTarget {
    SubscriptionTarget::SessionWithMainChat("".into())
}

/// Missed events as envelopes.
fn actions(missed: &[ReplayedEvent], registry: &Registry) -> String {
    let frames: Vec<_> = missed.iter().filter_map(|(event, dialect)| event.frame(*dialect, registry)).collect();
    join(frames.iter().filter_map(|frame| ahp::encode::envelope_in(frame)))
}
