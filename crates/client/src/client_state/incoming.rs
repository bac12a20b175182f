//! Updates of the shared state by the connection: every message of the host is handled here, in order.

use std::collections::HashSet;
use std::sync::Arc;

use grove_checks::Check;
use grove_wire::jsonrpc::CallError;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{CallPurpose, ClientState, ConnectionSender, DispatchOutcome, HostNotification, Slot, SubscriptionGuard};
use crate::dialect::{
    Dialect, InitializeResponse, ListChange, ReconnectResponse, ResourceSnapshot, SequencedAction, method,
};
use crate::error::RequestError;
use crate::resource::Resource;
use crate::sessions::SessionListChange;
use crate::status::{ClientClosed, ConnectionStatus};

/// Tells whether a page of the list is followed by another.
enum NextPage {
    InFlight,
    None,
}

impl<D: Dialect> ClientState<D> {
    /// The first message of a connection.
    pub(crate) fn send_handshake(&self, sender: &ConnectionSender, from_scratch: bool) -> Result<(), CallError> {
        let table = self.table();
        let (dialect, client) = (&self.dialect, &self.client_id);
        let live = |(uri, slot): (&String, &Slot<D>)| slot.live().map(|_| uri.clone());
        let resources: Vec<String> = table.slots.iter().filter_map(live).collect();
        // Without state there is nothing to resume.
        if from_scratch || resources.is_empty() || table.server.is_none() {
            let wanted = |slot: &Slot<D>| slot.resource.is_none() || slot.live().is_some();
            let wanted = table.slots.iter().filter(|(_, slot)| wanted(slot)).map(|(uri, _)| uri.clone());
            let resources: Vec<String> = wanted.collect();
            let params = dialect.initialize(client, &resources);
            return sender.track(method::INITIALIZE, &params, CallPurpose::Initialize { resources: resources.clone() });
        }
        let params = dialect.reconnect(client, table.last_seen_seq, &resources);
        sender.track(method::RECONNECT, &params, CallPurpose::Reconnect { resources: resources.clone() })
    }

    pub(crate) fn initialized(
        self: &Arc<Self>,
        initialized: InitializeResponse<D>,
        requested_uris: &[String],
        sender: &ConnectionSender,
    ) {
        let InitializeResponse { server, server_seq, snapshots } = initialized;
        self.table().server = Some(server);
        self.install(snapshots, Some(server_seq), requested_uris, sender);
        self.attach(sender, requested_uris, Vec::new());
    }

    pub(crate) fn reconnected(
        self: &Arc<Self>,
        reconnected: ReconnectResponse<D>,
        requested_uris: &[String],
        sender: &ConnectionSender,
    ) {
        match reconnected {
            ReconnectResponse::Replay { envelopes, missing } => {
                envelopes.into_iter().for_each(|envelope| self.apply_action(envelope));
                let table = self.table();
                for uri in &missing {
                    if let Some(slot) = table.slots.get(self.dialect.canonical(uri)) {
                        slot.resource.iter().for_each(|resource| resource.go());
                    }
                }
                drop(table);
                self.attach(sender, requested_uris, requested_uris.to_vec());
            }
            ReconnectResponse::Snapshots(snapshots) => {
                self.install(snapshots, None, requested_uris, sender);
                self.attach(sender, requested_uris, Vec::new());
            }
        }
    }

    /// Installs new snapshots for all requested resources.
    fn install(
        &self,
        snapshots: Vec<ResourceSnapshot<D::ResourceState>>,
        server_seq: Option<u64>,
        requested_uris: &[String],
        sender: &ConnectionSender,
    ) {
        let mut table = self.table();
        let mut newest_seq = server_seq;
        let mut there = HashSet::new();
        for ResourceSnapshot { resource: uri, state, from_seq } in snapshots {
            let uri = self.dialect.canonical(&uri).to_owned();
            newest_seq = newest_seq.max(Some(from_seq));
            match table.slots.get_mut(&uri) {
                Some(Slot { resource: Some(resource), .. }) => resource.replace(state, from_seq),
                Some(slot) => slot.resource = Some(Arc::new(Resource::new(state, from_seq))),
                None => sender.unsubscribe(&self.dialect, &uri),
            }
            there.insert(uri);
        }
        for uri in requested_uris.iter().filter(|uri| !there.contains(*uri)) {
            if let Some(resource) = table.slots.get(uri).and_then(|slot| slot.resource.as_ref()) {
                resource.go();
            }
        }
        // Not the higher of both: a host that lost its state counts from its own number.
        table.last_seen_seq = newest_seq.unwrap_or(table.last_seen_seq);
    }

    /// Marks the client as connected, with all states up to date.
    ///
    /// Actions that are unanswered now were sent on a connection that is gone.
    fn attach(self: &Arc<Self>, sender: &ConnectionSender, requested_uris: &[String], doubtful: Vec<String>) {
        let mut table = self.table();
        table.slots.values().filter_map(|slot| slot.resource.as_ref()).for_each(|resource| resource.give_up());
        let lost = table.lose(|_| true);
        // Their last handles were dropped meanwhile.
        for uri in requested_uris.iter().filter(|uri| !table.slots.contains_key(*uri)) {
            sender.unsubscribe(&self.dialect, uri);
        }
        table.sender = Some(sender.clone());
        if self.list_sessions
            && let Err(error) = self.begin_list(sender, doubtful)
        {
            tracing::warn!(%error, "cannot fetch the session list");
        }
        drop(table);
        drop(lost);
        self.status.send_replace(ConnectionStatus::Connected);
    }

    /// Handles the response to `subscribe`.
    pub(crate) fn subscribed(
        self: &Arc<Self>,
        uri: &str,
        answer: Result<ResourceSnapshot<D::ResourceState>, RequestError>,
    ) {
        let mut table = self.table();
        let Some(slot) = table.slots.get_mut(uri) else { return };
        slot.asking = false;
        let waiters = std::mem::take(&mut slot.waiters);
        match answer {
            Ok(ResourceSnapshot { state, from_seq, .. }) => {
                let resource = match &slot.resource {
                    Some(resource) => {
                        resource.replace(state, from_seq);
                        resource.clone()
                    }
                    None => slot.resource.insert(Arc::new(Resource::new(state, from_seq))).clone(),
                };
                slot.holders += waiters.len();
                table.last_seen_seq = table.last_seen_seq.max(from_seq);
                // Waiters that are gone release the resource in `SubscriptionGuard::drop`, which needs the table.
                drop(table);
                for waiter in waiters {
                    let held =
                        SubscriptionGuard { resource: resource.clone(), uri: uri.to_owned(), shared: self.clone() };
                    waiter.send(Ok(held)).ok();
                }
            }
            Err(error) => {
                if slot.holders == 0 {
                    table.slots.remove(uri);
                }
                drop(table);
                notify_waiters(waiters, Err(error));
            }
        }
    }

    pub(crate) fn apply_action(&self, envelope: SequencedAction<D::Action>) {
        let SequencedAction { server_seq, origin, rejection, content } = envelope;
        let own = origin.as_ref().filter(|origin| origin.client_id == self.client_id).map(|origin| origin.client_seq);
        let mut table = self.table();
        table.last_seen_seq = table.last_seen_seq.max(server_seq);
        let waiting = own.and_then(|own| table.waiting.remove(&own));
        let live = |uri: &str| table.slots.get(uri).and_then(Slot::live).cloned();
        match (rejection, content) {
            (None, content) => {
                if let Some(content) = content
                    && let Some(resource) = live(self.dialect.canonical(&content.resource))
                {
                    let removed = D::removed(&content.action).map(|uri| self.dialect.canonical(uri).to_owned());
                    drop(table);
                    resource.take(server_seq, origin, own, content.action);
                    if let Some(removed) = removed {
                        self.go(|uri| uri == removed);
                    }
                }
                if let Some(waiting) = waiting {
                    waiting.answer.send(DispatchOutcome::Confirmed(server_seq)).ok();
                }
            }
            (Some(reason), _) => {
                // Some hosts send rejections to all clients; those of other clients are ignored.
                let (Some(waiting), Some(own)) = (waiting, own) else { return };
                if let Some(resource) = live(&waiting.resource) {
                    resource.settle(own);
                }
                drop(table);
                waiting.answer.send(DispatchOutcome::Rejected(reason)).ok();
            }
        }
    }

    pub(crate) fn apply_list_change(&self, news: SessionListChange<D>) {
        if let ListChange::Removed(session) = &news {
            let row = self.list().get(session).cloned();
            self.go(|uri| self.dialect.belongs_to_session(session, row.as_ref(), uri));
        }
        if self.list_sessions {
            self.list().take(news);
            self.list_version.send_modify(|version| *version += 1);
        }
    }

    /// Marks resources as removed. Their pending actions get no answer.
    fn go(&self, which: impl Fn(&str) -> bool) {
        let mut table = self.table();
        for (_, slot) in table.slots.iter().filter(|(uri, _)| which(uri)) {
            slot.resource.iter().for_each(|resource| resource.go());
        }
        let lost = table.lose(|waiting| which(&waiting.resource));
        drop(table);
        drop(lost);
    }

    pub(crate) fn take_notification(&self, method: &str, params: &RawValue) {
        if let Some(notifications) = self.notifications.get() {
            let notification = HostNotification { method: method.to_owned(), params: params.to_owned() };
            // There may be no listener at the moment.
            notifications.send(Arc::new(notification)).ok();
        }
    }

    pub(super) fn begin_list(&self, sender: &ConnectionSender, doubtful: Vec<String>) -> Result<(), RequestError> {
        // Before the request is sent, since the response may arrive at once.
        self.list().begin(doubtful);
        sender.track(method::LIST_SESSIONS, &self.dialect.list(None), CallPurpose::List).map_err(|error| {
            self.list().abandon();
            RequestError::new(method::LIST_SESSIONS, error)
        })
    }

    /// Handles a page of the list.
    pub(crate) fn listed(&self, sender: &ConnectionSender, answer: Result<Box<RawValue>, RequestError>) {
        let next = answer.and_then(|result| self.take_page(sender, &result));
        let (outcome, waiters) = {
            // Callers that request the list hold this lock, too, and so wait for this response or for the next one.
            let mut table = self.table();
            let outcome = match next {
                Ok(NextPage::InFlight) => return,
                Ok(NextPage::None) => Ok(self.list().finish()),
                Err(error) => {
                    tracing::warn!(%error, "cannot fetch the session list");
                    self.list().abandon();
                    Err(error)
                }
            };
            (outcome, std::mem::take(&mut table.list_waiters))
        };
        let outcome = outcome.map(|doubtful| self.drop_missing_resources(&doubtful));
        self.list_version.send_modify(|version| *version += 1);
        notify_waiters(waiters, outcome);
    }

    fn take_page(&self, sender: &ConnectionSender, result: &RawValue) -> Result<NextPage, RequestError> {
        let method = method::LIST_SESSIONS;
        let not_understood = |error| RequestError::NotUnderstood { method: method.to_owned(), error };
        let page = self.dialect.listed(result).map_err(not_understood)?;
        let pages = self.list().page(page.rows);
        let Some(cursor) = page.next else { return Ok(NextPage::None) };
        if Check::ListPages.is_enforced() && pages >= self.limits.list_pages {
            return Err(RequestError::Endless { method: method.to_owned(), pages });
        }
        let next = sender.track(method, &self.dialect.list(Some(&cursor)), CallPurpose::List);
        next.map(|()| NextPage::InFlight).map_err(|error| RequestError::new(method, error))
    }

    /// Finds resources in the list that were removed while the connection was lost.
    fn drop_missing_resources(&self, doubtful: &[String]) {
        let gone: Vec<&String> = {
            let list = self.list();
            doubtful.iter().filter(|uri| self.dialect.is_gone(uri, &list)).collect()
        };
        let table = self.table();
        let resources = gone.iter().filter_map(|uri| table.slots.get(*uri)?.resource.as_ref());
        resources.for_each(|resource| resource.go());
    }

    /// Gives up actions that the host has not answered for too long.
    ///
    /// The optimistic state must not depend on them for ever.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let mut table = self.table();
        let late = table.lose(|waiting| waiting.until <= now);
        for (client_seq, waiting) in &late {
            tracing::debug!(client_seq, resource = waiting.resource, "an action was not answered in time");
            if let Some(resource) = table.slots.get(&waiting.resource).and_then(|slot| slot.resource.as_ref()) {
                resource.settle(*client_seq);
            }
        }
        drop(table);
    }

    /// Handles the loss of the connection. Pending actions stay: a replay may still contain their echoes.
    pub(crate) fn detach(&self) {
        let mut table = self.table();
        table.sender = None;
        table.list_waiters.clear();
        let waiters: Vec<_> = table
            .slots
            .values_mut()
            .map(|slot| {
                slot.asking = false;
                std::mem::take(&mut slot.waiters)
            })
            .collect();
        table.slots.retain(|_, slot| slot.holders > 0);
        drop(table);
        drop(waiters);
        self.list().abandon();
    }

    /// Closes the client for good.
    pub(crate) fn close(&self, why: ClientClosed) {
        let mut table = self.table();
        for resource in table.slots.values().filter_map(|slot| slot.resource.as_ref()) {
            resource.give_up();
            resource.end();
        }
        let lost = table.lose(|_| true);
        drop(table);
        drop(lost);
        self.status.send_replace(ConnectionStatus::ClientClosed(why));
    }
}

/// Sends the outcome to all waiters. An error that cannot be copied goes to the first; the others get `Lost`.
fn notify_waiters<T>(waiters: Vec<oneshot::Sender<Result<T, RequestError>>>, outcome: Result<T, RequestError>)
where
    T: Clone,
{
    let mut first = Some(outcome);
    for waiter in waiters {
        let outcome = match &first {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(RequestError::Refused { method, error })) => {
                Err(RequestError::Refused { method: method.clone(), error: error.clone() })
            }
            Some(Err(RequestError::TimedOut { method })) => Err(RequestError::TimedOut { method: method.clone() }),
            Some(Err(_)) | None => {
                let lost = || Err(RequestError::Lost { method: String::from("it") });
                first.take().unwrap_or_else(lost)
            }
        };
        // The waiter may be gone.
        waiter.send(outcome).ok();
    }
}
