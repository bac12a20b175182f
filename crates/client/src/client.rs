//! The client: what callers hold.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

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

/// A client of a host. Clones are handles of the same client; when the last one and the last [`Subscription`] are
/// gone, its connection is closed.
pub struct Client<D: Dialect> {
    shared: Arc<ClientState<D>>,
    alive: Arc<CloseOnDrop>,
}

/// Ends the client's connection when it is dropped.
#[derive(Debug)]
struct CloseOnDrop {
    closing: watch::Sender<bool>,
}

impl<D: Dialect> Client<D> {
    /// Connects to a host and says who this is. Must be called on a tokio runtime, where the connection's task runs.
    ///
    /// The first attempt must succeed; later ones are made again as `options` say.
    pub async fn connect(endpoint: Endpoint, dialect: D, options: Options) -> Result<Self, ConnectError> {
        let Options { client_id, subscriptions, list_sessions, limits, reconnect, log } = options;
        let client_id = client_id.unwrap_or_else(|| format!("grove-{:016x}{:016x}", random(), random()));
        let shared = Arc::new(ClientState::new(dialect, client_id, limits, list_sessions, &subscriptions));
        let (closing, closed) = watch::channel(false);
        let driver = Driver { shared: shared.clone(), endpoint, backoff: reconnect, log, closing: CloseSignal(closed) };
        let (first, connected) = oneshot::channel();
        tokio::spawn(driver.run(Some(first)));
        let client = Self { shared, alive: Arc::new(CloseOnDrop { closing }) };
        let ended = |_| Err(ConnectError::Ended("its task was stopped".to_owned()));
        connected.await.unwrap_or_else(ended)?;
        Ok(client)
    }

    /// Who this client is.
    pub fn client_id(&self) -> &str {
        &self.shared.client_id
    }

    /// What the host said of itself when it last said so.
    pub fn server(&self) -> Option<D::HostDescription> {
        self.shared.server()
    }

    /// Whether the host serves what Grove adds to the protocols. One that is none, or has nothing behind it, has said so.
    pub fn offers(&self, method: x_grove::Method) -> bool {
        self.server().as_ref().and_then(D::announced).is_some_and(|announced| announced.offers(method))
    }

    /// The highest sequence number seen.
    pub fn seen(&self) -> u64 {
        self.shared.seen()
    }

    /// How it stands with the connection, and how it changes.
    pub fn status(&self) -> watch::Receiver<ConnectionStatus> {
        self.shared.status.subscribe()
    }

    /// Waits until there is a connection, or will be none any more.
    pub async fn connected(&self) -> Result<(), ClientClosed> {
        let mut status = self.status();
        // The sender lives as long as this handle, so the wait ends only with what it waits for.
        match status
            .wait_for(|status| matches!(status, ConnectionStatus::Connected | ConnectionStatus::ClientClosed(_)))
            .await
            .as_deref()
        {
            Ok(ConnectionStatus::ClientClosed(why)) => Err(why.clone()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Subscribes to a resource. Where it is subscribed already, nothing is sent, and this is another handle of it.
    pub async fn subscribe(&self, resource: &str) -> Result<Subscription<D>, RequestError> {
        let guard = self.shared.hold(resource).await?;
        let mut seen = guard.resource.watch();
        seen.mark_unchanged();
        Ok(Subscription { seen, guard, client: self.clone() })
    }

    /// Dispatches an action: its effect is seen at once where the resource is subscribed, and reverted if the host
    /// refuses it. Nothing is awaited: actions are sent in the order of these calls.
    ///
    /// Of an action for a resource that is not subscribed only a refusal is heard.
    pub fn dispatch(&self, resource: &str, change: D::ActionBody) -> Result<DispatchHandle, DispatchError> {
        let (client_seq, outcome) = self.shared.dispatch(resource, change)?;
        Ok(DispatchHandle { client_seq, outcome })
    }

    /// Sends a request of the dialect and waits for its answer.
    pub async fn request<C: RequestParams<D>>(&self, command: C) -> Result<C::Response, RequestError> {
        if let Some(server) = self.server() {
            command.check(&server)?;
        }
        self.request_raw(C::METHOD, &command).await
    }

    /// Sends any request and waits for its answer.
    pub async fn request_raw<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<R, RequestError> {
        let call: OutgoingCall =
            self.shared.sender()?.call(method, params).map_err(|error| RequestError::new(method, error))?;
        let answer = timeout(self.shared.limits.answer, call.answer()).await;
        let answer = answer.map_err(|_| RequestError::TimedOut { method: method.to_owned() })?;
        let answer = answer.map_err(|error| RequestError::new(method, error))?;
        serde_json::from_str(answer.get())
            .map_err(|error| RequestError::NotUnderstood { method: method.to_owned(), error })
    }

    /// The session list.
    pub fn sessions(&self) -> SessionListHandle<D> {
        SessionListHandle { client: self.clone(), seen: self.shared.list_version.subscribe() }
    }

    /// The host's notifications that are neither actions nor about the session list, from now on. A listener that
    /// falls behind misses the oldest, and is told how many.
    pub fn notifications(&self) -> broadcast::Receiver<Arc<HostNotification>> {
        self.shared.notifications()
    }

    /// Ends the connection, whoever else holds this client, and waits until it has ended.
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

/// An action that was sent. Awaiting it gives what became of it; dropping it changes nothing.
#[derive(Debug)]
pub struct DispatchHandle {
    /// The how-manieth action of this client it is.
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

/// A subscribed resource. Its state is kept as long as this, or a clone of it, is held.
pub struct Subscription<D: Dialect> {
    guard: SubscriptionGuard<D>,
    seen: watch::Receiver<u64>,
    client: Client<D>,
}

impl<D: Dialect> Subscription<D> {
    pub fn resource(&self) -> &str {
        &self.guard.uri
    }

    pub fn client(&self) -> &Client<D> {
        &self.client
    }

    /// Looks at the state as it will be if the host takes what is pending.
    ///
    /// The state cannot change while it is looked at, and the connection waits for that: take what is needed, and
    /// return. Reading or dispatching inside of `read` would wait for itself.
    pub fn read<T>(&self, read: impl FnOnce(&D::ResourceState) -> T) -> T {
        self.guard.resource.read(|state| read(state.optimistic()))
    }

    /// Looks at the state as the host has confirmed it, and at the number up to which that is.
    pub fn read_confirmed<T>(&self, read: impl FnOnce(&D::ResourceState, u64) -> T) -> T {
        self.guard.resource.read(|state| read(state.confirmed(), state.seq()))
    }

    /// How many actions of this client the host has not answered.
    pub fn pending(&self) -> usize {
        self.guard.resource.read(|state| state.pending().len())
    }

    /// Whether the host has no such resource any more. The last state stays readable.
    pub fn is_gone(&self) -> bool {
        self.guard.resource.is_gone()
    }

    /// Waits until something has changed since the last time that this waited. Changes in a row may be seen as one.
    pub async fn changed(&mut self) -> Result<(), ClientClosed> {
        changed(&mut self.seen, &self.client).await
    }

    /// Waits until the state, pending actions included, has what is looked for.
    pub async fn until<T>(&mut self, mut look: impl FnMut(&D::ResourceState) -> Option<T>) -> Result<T, ClientClosed> {
        loop {
            self.seen.mark_unchanged();
            if let Some(found) = self.read(&mut look) {
                return Ok(found);
            }
            self.changed().await?;
        }
    }

    /// Looks at the confirmed state, and follows what changes it from exactly there on. For those who show each
    /// change: whoever shows states is served better by [`changed`](Self::changed), which is never late.
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
        Self { guard: self.guard.clone(), seen: self.seen.clone(), client: self.client.clone() }
    }
}

impl<D: Dialect> std::fmt::Debug for Subscription<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("resource", &self.resource()).finish_non_exhaustive()
    }
}

/// The session list of a host: fetched once, kept by what the host tells, fetched again after each reconnect.
pub struct SessionListHandle<D: Dialect> {
    client: Client<D>,
    seen: watch::Receiver<u64>,
}

impl<D: Dialect> SessionListHandle<D> {
    /// Looks at the list. As with [`Subscription::read`], take what is needed and return.
    pub fn read<T>(&self, read: impl FnOnce(&SessionList<D>) -> T) -> T {
        self.client.shared.read_list(read)
    }

    /// Waits until something has changed since the last time that this waited.
    pub async fn changed(&mut self) -> Result<(), ClientClosed> {
        changed(&mut self.seen, &self.client).await
    }

    /// Waits until the list has what is looked for.
    pub async fn until<T>(&mut self, mut look: impl FnMut(&SessionList<D>) -> Option<T>) -> Result<T, ClientClosed> {
        loop {
            self.seen.mark_unchanged();
            if let Some(found) = self.read(&mut look) {
                return Ok(found);
            }
            self.changed().await?;
        }
    }

    /// Fetches the list again, for what the host does not tell by itself.
    pub async fn refresh(&self) -> Result<(), RequestError> {
        self.client.shared.fetch_list().await
    }
}

impl<D: Dialect> std::fmt::Debug for SessionListHandle<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Waits for a change, or for the client's end.
async fn changed<D: Dialect>(seen: &mut watch::Receiver<u64>, client: &Client<D>) -> Result<(), ClientClosed> {
    let mut status = client.status();
    tokio::select! {
        biased;
        // The sender lives as long as the client.
        _ = seen.changed() => Ok(()),
        closed = status.wait_for(ConnectionStatus::is_closed) => match closed.as_deref() {
            Ok(ConnectionStatus::ClientClosed(why)) => Err(why.clone()),
            Ok(_) | Err(_) => Err(ClientClosed::LocalClose),
        },
    }
}
