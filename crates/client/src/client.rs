//! The client and its handles, for callers.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use grove_checks::Check;
use grove_wire::jsonrpc::OutgoingCall;
use grove_wire::x_grove;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{broadcast, oneshot, watch};
use tokio::time::timeout;

use crate::client_state::{ClientState, DispatchOutcome, HostNotification, SubscriptionGuard};
use crate::dialect::{Dialect, RequestParams};
use crate::driver::{CloseSignal, Driver, random};
use crate::error::{ConnectError, DispatchError, RequestError};
use crate::options::Options;
use crate::resource::ResourceChanges;
use crate::sessions::SessionList;
use crate::status::{ClientClosed, ConnectionStatus};
use crate::transport::Endpoint;

/// A client of a host.
///
/// Clones are handles of the same client; when the last one and the last [`Subscription`] are dropped, its connection
/// is closed.
pub struct Client<D: Dialect> {
    shared: Arc<ClientState<D>>,
    alive: Arc<CloseOnDrop>,
}

/// Closes the client's connection on drop.
#[derive(Debug)]
struct CloseOnDrop {
    closing: watch::Sender<bool>,
}

impl<D: Dialect> Client<D> {
    /// Connects to a host and identifies this client.
    ///
    /// Must be called on a tokio runtime, where the connection's task runs. The first attempt must succeed; later ones
    /// are repeated as `options` configures.
    pub async fn connect(endpoint: Endpoint, dialect: D, options: Options) -> Result<Self, ConnectError> {
        let Options { client_id, subscriptions, list_sessions, limits, reconnect, log, requests } = options;
        let client_id = client_id.unwrap_or_else(|| format!("grove-{:016x}{:016x}", random(), random()));
        let shared = Arc::new(ClientState::new(dialect, client_id, limits, list_sessions, &subscriptions));
        let (closing, closed) = watch::channel(false);
        let closed = CloseSignal(closed);
        let driver = Driver { shared: shared.clone(), endpoint, backoff: reconnect, log, requests, closing: closed };
        let (first, connected) = oneshot::channel();
        tokio::spawn(driver.run(Some(first)));
        let client = Self { shared, alive: Arc::new(CloseOnDrop { closing }) };
        let ended = |_| Err(ConnectError::Ended("its task was stopped".to_owned()));
        connected.await.unwrap_or_else(ended)?;
        Ok(client)
    }

    /// The id of this client.
    pub fn client_id(&self) -> &str {
        &self.shared.client_id
    }

    /// The host's latest description of itself.
    pub fn server(&self) -> Option<D::HostDescription> {
        self.shared.server()
    }

    /// Returns whether the host announces a method of Grove's protocol extensions.
    pub fn offers(&self, method: x_grove::Method) -> bool {
        self.server().as_ref().and_then(D::announced).is_some_and(|announced| announced.offers(method))
    }

    /// The highest sequence number seen.
    pub fn seen(&self) -> u64 {
        self.shared.seen()
    }

    /// The status of the connection, and its changes.
    pub fn status(&self) -> watch::Receiver<ConnectionStatus> {
        self.shared.status.subscribe()
    }

    /// Waits until the client is connected, or closed for good.
    pub async fn connected(&self) -> Result<(), ClientClosed> {
        let mut status = self.status();
        // The sender lives as long as this handle, so the wait cannot end early.
        match status
            .wait_for(|status| matches!(status, ConnectionStatus::Connected | ConnectionStatus::ClientClosed(_)))
            .await
            .as_deref()
        {
            Ok(ConnectionStatus::ClientClosed(why)) => Err(why.clone()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Subscribes to a resource. If it is already subscribed, nothing is sent, and this is another handle of it.
    pub async fn subscribe(&self, resource: &str) -> Result<Subscription<D>, RequestError> {
        let guard = self.shared.hold(resource).await?;
        let mut version = guard.resource.watch();
        version.mark_unchanged();
        Ok(Subscription { version, guard, client: self.clone() })
    }

    /// Dispatches an action. Subscribers see its effect at once; it is reverted if the host rejects it.
    ///
    /// Nothing is awaited: actions are sent in the order of these calls.
    ///
    /// For a resource that is not subscribed, only rejections are reported.
    pub fn dispatch(&self, resource: &str, change: D::ActionBody) -> Result<DispatchHandle, DispatchError> {
        let (client_seq, outcome) = self.shared.dispatch(resource, change)?;
        Ok(DispatchHandle { client_seq, outcome })
    }

    /// Sends a request of the dialect and waits for its response.
    pub async fn request<C: RequestParams<D>>(&self, command: C) -> Result<C::Response, RequestError> {
        if let Some(server) = self.server() {
            command.check(&server)?;
        }
        self.request_raw(C::METHOD, &command).await
    }

    /// Sends any request and waits for its response.
    pub async fn request_raw<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<R, RequestError> {
        let call: OutgoingCall =
            self.shared.sender()?.call(method, params).map_err(|error| RequestError::new(method, error))?;
        let answer = match Check::AnswerTime.is_enforced() {
            true => timeout(self.shared.limits.answer, call.answer()).await,
            false => Ok(call.answer().await),
        };
        let answer = answer.map_err(|_| RequestError::TimedOut { method: method.to_owned() })?;
        let answer = answer.map_err(|error| RequestError::new(method, error))?;
        serde_json::from_str(answer.get())
            .map_err(|error| RequestError::NotUnderstood { method: method.to_owned(), error })
    }

    /// The session list.
    pub fn sessions(&self) -> SessionListHandle<D> {
        SessionListHandle { client: self.clone(), version: self.shared.list_version.subscribe() }
    }

    /// The host's notifications from now on that are neither actions nor about the session list.
    ///
    /// A listener that falls behind misses the oldest ones, and learns how many.
    pub fn notifications(&self) -> broadcast::Receiver<Arc<HostNotification>> {
        self.shared.notifications()
    }

    /// Closes the connection for all handles of this client, and waits for its end.
    pub async fn close(&self) {
        self.alive.closing.send_replace(true);
        let mut status = self.status();
        status.wait_for(ConnectionStatus::is_closed).await.ok();
    }
}

impl<D: Dialect> Clone for Client<D> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), alive: self.alive.clone() }
    }
}

impl<D: Dialect> std::fmt::Debug for Client<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.shared.status.borrow().clone();
        f.debug_struct("Client").field("client_id", &self.client_id()).field("status", &status).finish_non_exhaustive()
    }
}

/// A dispatched action. Awaiting it returns its outcome; dropping it changes nothing.
#[derive(Debug)]
pub struct DispatchHandle {
    /// The sequence number among the actions of this client.
    pub client_seq: u64,
    outcome: oneshot::Receiver<DispatchOutcome>,
}

impl IntoFuture for DispatchHandle {
    type Output = DispatchOutcome;
    type IntoFuture = Pin<Box<dyn Future<Output = DispatchOutcome> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.outcome.await.unwrap_or(DispatchOutcome::Lost) })
    }
}

/// A subscribed resource. Its state is kept up to date while this, or a clone of it, exists.
pub struct Subscription<D: Dialect> {
    guard: SubscriptionGuard<D>,
    version: watch::Receiver<u64>,
    client: Client<D>,
}

impl<D: Dialect> Subscription<D> {
    pub fn resource(&self) -> &str {
        &self.guard.uri
    }

    pub fn client(&self) -> &Client<D> {
        &self.client
    }

    /// Reads the optimistic state: the confirmed one with all pending actions applied.
    ///
    /// The state is locked meanwhile, and the connection waits: copy the needed values, and return. Reading or
    /// dispatching inside of `read` would deadlock.
    pub fn read<T>(&self, read: impl FnOnce(&D::ResourceState) -> T) -> T {
        self.guard.resource.read(|state| read(state.optimistic()))
    }

    /// Reads the confirmed state, and its sequence number.
    pub fn read_confirmed<T>(&self, read: impl FnOnce(&D::ResourceState, u64) -> T) -> T {
        self.guard.resource.read(|state| read(state.confirmed(), state.seq()))
    }

    /// The number of this client's pending actions.
    pub fn pending(&self) -> usize {
        self.guard.resource.read(|state| state.pending().len())
    }

    /// Returns whether the host has removed the resource. Its last state stays readable.
    pub fn is_gone(&self) -> bool {
        self.guard.resource.is_gone()
    }

    /// Waits for a change since the last call. Several changes may be reported as one.
    pub async fn changed(&mut self) -> Result<(), ClientClosed> {
        changed(&mut self.version, &self.client).await
    }

    /// Waits until `look` finds something in the optimistic state.
    pub async fn until<T>(&mut self, mut look: impl FnMut(&D::ResourceState) -> Option<T>) -> Result<T, ClientClosed> {
        loop {
            self.version.mark_unchanged();
            if let Some(found) = self.read(&mut look) {
                return Ok(found);
            }
            self.changed().await?;
        }
    }

    /// Reads the confirmed state, and follows its changes from exactly there on.
    ///
    /// This is for callers that show each change; [`changed`](Self::changed), which never lags, is better for showing
    /// states.
    pub fn follow<T>(&self, read: impl FnOnce(&D::ResourceState) -> T) -> (T, ResourceChanges<D::Action>) {
        self.guard.resource.follow(self.client.shared.limits.changes, read)
    }

    /// [Dispatches](Client::dispatch) an action to this resource.
    pub fn dispatch(&self, change: D::ActionBody) -> Result<DispatchHandle, DispatchError> {
        self.client.dispatch(&self.guard.uri, change)
    }
}

impl<D: Dialect> Clone for Subscription<D> {
    fn clone(&self) -> Self {
        Self { guard: self.guard.clone(), version: self.version.clone(), client: self.client.clone() }
    }
}

impl<D: Dialect> std::fmt::Debug for Subscription<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("resource", &self.resource()).finish_non_exhaustive()
    }
}

/// The session list of a host: fetched once, updated by notifications, fetched again after each reconnect.
pub struct SessionListHandle<D: Dialect> {
    client: Client<D>,
    version: watch::Receiver<u64>,
}

impl<D: Dialect> SessionListHandle<D> {
    /// Reads the list. As with [`Subscription::read`], copy the needed values, and return.
    pub fn read<T>(&self, read: impl FnOnce(&SessionList<D>) -> T) -> T {
        self.client.shared.read_list(read)
    }

    /// Waits for a change since the last call.
    pub async fn changed(&mut self) -> Result<(), ClientClosed> {
        changed(&mut self.version, &self.client).await
    }

    /// Waits until `look` finds something in the list.
    pub async fn until<T>(&mut self, mut look: impl FnMut(&SessionList<D>) -> Option<T>) -> Result<T, ClientClosed> {
        loop {
            self.version.mark_unchanged();
            if let Some(found) = self.read(&mut look) {
                return Ok(found);
            }
            self.changed().await?;
        }
    }

    /// Fetches the list again, for changes that the host does not announce.
    pub async fn refresh(&self) -> Result<(), RequestError> {
        self.client.shared.fetch_list().await
    }
}

impl<D: Dialect> std::fmt::Debug for SessionListHandle<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionListHandle").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Waits for a change, or for the client's end.
async fn changed<D: Dialect>(version: &mut watch::Receiver<u64>, client: &Client<D>) -> Result<(), ClientClosed> {
    let mut status = client.status();
    tokio::select! {
        biased;
        // The sender lives as long as the client.
        _ = version.changed() => Ok(()),
        closed = status.wait_for(ConnectionStatus::is_closed) => match closed.as_deref() {
            Ok(ConnectionStatus::ClientClosed(why)) => Err(why.clone()),
            Ok(_) | Err(_) => Err(ClientClosed::LocalClose),
        },
    }
}
