//! Terminals: creating, subscribing, and the actions on them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{AbortHandle, abortable};
use grove_core::{ClientId, ScopeSet};
use grove_host::sequencer::DirectReply;
use grove_host::terminals::{ClientTerminalError, NewTerminal, SubscriptionStart, TerminalSubscription};
use grove_host::{LimitReached, UsageSlot};
use grove_wire::ahp::uri::ChannelName;
use grove_wire::ahp::{self, Action, TerminalClaim};
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::refusal::LimitReachedData;
use grove_wire::scopes;
use serde_json::value::RawValue;

use super::sessions::ChannelTarget;
use super::{Peer, not_found, shown};
use crate::dialect::answer::{limit_reached, read_params, refused, stopped};
use crate::recording;

/// The subscriptions of a connection to terminals. They end with it.
#[derive(Default)]
pub(super) struct TerminalSubscriptions {
    running: HashMap<String, RunningSubscription>,
    /// Those that start when the client is attached.
    waiting: Vec<(String, TerminalSubscription, UsageSlot)>,
}

struct RunningSubscription {
    abort: AbortHandle,
    /// Counts the subscription for its token.
    _slot: UsageSlot,
}

impl Drop for RunningSubscription {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// The answer to a refused request about a terminal.
fn terminal_error(error: &ClientTerminalError) -> ErrorObject {
    let data = match error {
        ClientTerminalError::TooMany { name, .. } => {
            serde_json::to_value(LimitReachedData { limit: (*name).to_owned(), retry_after_ms: None }).ok()
        }
        _ => None,
    };
    ErrorObject { data, ..refused(error) }
}

impl TerminalSubscriptions {
    pub(super) fn drop(&mut self, channel: &str) {
        self.running.remove(channel);
    }
}

impl Peer {
    pub(super) async fn create_terminal(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: ahp::CreateTerminalParams = read_params(params)?;
        let Some(ChannelName::Terminal(_)) = ChannelName::parse(&params.channel) else {
            let message = format!("{} is not a terminal's URI: choose ahp-terminal:/<id>", shown(&params.channel));
            return Err(ErrorObject::invalid_params(message));
        };
        self.check_claim(&params.claim).await?;
        let cwd = match params.cwd {
            Some(cwd) => {
                let path = grove_work::local_path(&self.host.config().folders.expand(cwd));
                path.map_err(|error| ErrorObject::invalid_params(error.to_string()))?
            }
            None => self.default_folder(),
        };
        let (title, columns, rows) = (params.name, params.cols, params.rows);
        let new =
            NewTerminal { uri: params.channel, title, claim: params.claim, cwd, columns, rows, connection: self.id };
        self.host.terminals().create(&self.host, new).await.map_err(|error| terminal_error(&error))
    }

    pub(super) async fn dispose_terminal(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: ahp::ChannelParams = read_params(params)?;
        self.host.terminals().dispose(&params.channel).await.map_err(|error| terminal_error(&error))
    }

    fn default_folder(&self) -> PathBuf {
        let folder = self.host.config().folders.default_directory.clone();
        folder.or_else(|| std::env::var_os("HOME").map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("/"))
    }

    /// Refuses a claim for another client, or for a session that does not exist.
    async fn check_claim(&self, claim: &TerminalClaim) -> Result<(), ErrorObject> {
        match claim {
            TerminalClaim::Client(claim) if Some(&ClientId::from(claim.client_id.as_str())) == self.client.as_ref() => {
                Ok(())
            }
            TerminalClaim::Client(_) => Err(ErrorObject::invalid_params("a client claims a terminal for itself alone")),
            TerminalClaim::Session(claim) => match self.find(&claim.session).await? {
                Some(ChannelTarget::Session(_)) => Ok(()),
                Some(_) | None => Err(not_found(&claim.session)),
            },
        }
    }

    /// Subscribes to a terminal. The subscription starts when the answer has its place.
    pub(super) fn subscribe_terminal(
        &mut self,
        uri: &str,
        start: SubscriptionStart,
    ) -> Result<ahp::TerminalState, ErrorObject> {
        let (most, host) = (self.queue.usage().limits().subscriptions, &self.host);
        // An earlier subscription to the same terminal ends first, and those to terminals that are gone.
        self.terminals.running.retain(|known, _| known != uri && host.terminals().has(known));
        if self.terminals.running.len() + self.terminals.waiting.len() >= most {
            return Err(limit_reached(&LimitReached::subscriptions(most)));
        }
        let slot = self.queue.usage().subscription().map_err(|reached| limit_reached(&reached))?;
        let reader = (self.id, self.queue.clone());
        let subscribed = self.host.terminals().subscribe(&self.host, uri, reader, start);
        let (state, subscription) = subscribed.map_err(|_| not_found(uri))?;
        self.terminals.waiting.push((uri.to_owned(), subscription, slot));
        Ok(state)
    }

    /// Starts the subscriptions whose answers have their place.
    pub(super) fn start_terminals(&mut self) {
        for (channel, subscription, slot) in std::mem::take(&mut self.terminals.waiting) {
            let (task, abort) = abortable(subscription.run(channel.clone()));
            self.terminals.running.insert(channel, RunningSubscription { abort, _slot: slot });
            self.host.env().spawn.spawn(Box::pin(async move {
                // It is over, stopped or ended by itself.
                task.await.ok();
            }));
        }
    }

    /// The snapshot with which a subscription starts.
    pub(super) fn terminal_snapshot(&self, uri: &str, state: ahp::TerminalState) -> ahp::SubscribeResult {
        let from_seq = self.host.sequencer().read(|published| published.seq);
        let state = ahp::SnapshotState::Terminal(Box::new(state));
        ahp::SubscribeResult { snapshot: Some(ahp::Snapshot { resource: uri.to_owned(), state, from_seq }) }
    }

    /// Carries out an action on a terminal. One for an unknown terminal is ignored without an echo.
    pub(super) async fn act_on_terminal(
        &self,
        client: ClientId,
        params: ahp::DispatchActionParams,
    ) -> Result<(), ErrorObject> {
        if !self.host.terminals().has(&params.channel) {
            return Ok(());
        }
        let origin = ahp::ActionOrigin { client_id: client.to_string(), client_seq: params.client_seq };
        let outcome = self.try_action(&client, &params, origin.clone()).await;
        let reason = match outcome {
            // Its own subscription has the echo.
            Ok(true) => return Ok(()),
            Ok(false) => None,
            Err(reason) => Some(reason),
        };
        let (channel, action) = (params.channel, params.action);
        let frame = move |seq| ahp::encode::action_frame(&channel, &action, seq, Some(origin), reason).map(Arc::from);
        let reply = DirectReply { connection: self.id, frame: Box::new(frame), answer: None, permit: None };
        self.host.sequencer().send_direct(reply).await.map_err(stopped)
    }

    /// Carries out an action. Returns whether a subscription of this connection echoes it, or the reason of its refusal.
    async fn try_action(
        &self,
        client: &ClientId,
        params: &ahp::DispatchActionParams,
        origin: ahp::ActionOrigin,
    ) -> Result<bool, String> {
        let action = params.action().map_err(|error| error.to_string())?;
        let needed = ScopeSet::from(scopes::ahp_action(&action));
        // What is typed is not recorded, and neither is each key.
        let is_recorded = !matches!(&action, Action::Terminal(ahp::TerminalAction::Input(_)));
        let record = is_recorded.then(|| {
            let (host, principal, client) = (&self.host, &self.principal, Some(client));
            recording::begin(host, principal, client, needed, action.kind(), Some(params.channel.as_str()))
        });
        let allowed = self.principal.authorize(&self.host, needed, action.kind(), Some(client), None).await;
        let outcome = match (allowed, &action) {
            (Err(forbidden), _) => Err(forbidden.to_string()),
            (Ok(()), Action::Terminal(action)) => match self.check_action(action).await {
                Ok(()) => {
                    let raw: Arc<RawValue> = Arc::from(params.action.clone());
                    let acted = self.host.terminals().act(&params.channel, action, raw, (origin, self.id));
                    acted.map_err(|error| error.to_string())
                }
                Err(error) => Err(error.message),
            },
            (Ok(()), _) => Err("this action does not belong on this channel".to_owned()),
        };
        if let Some(record) = record {
            recording::finish_action(record, outcome.as_ref().err().map(String::as_str));
        }
        outcome
    }

    async fn check_action(&self, action: &ahp::TerminalAction) -> Result<(), ErrorObject> {
        match action {
            ahp::TerminalAction::Claimed(claimed) => self.check_claim(&claimed.claim).await,
            _ => Ok(()),
        }
    }
}
