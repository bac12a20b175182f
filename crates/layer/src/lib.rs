//! The sessions of every source in one list, for those who are connected to a host: this host's own, those of other hosts, what
//! other tools left, and those of every provider that somebody registers.
//!
//! # What this crate owns
//!
//! - [`SessionHub`]: what a host is given, so that its clients can use `x-grove/sessions/…`. It begins with the first connection that
//!   uses it and ends a while after the last, so that a host which nobody needs can end: its own connection to itself would
//!   keep it.
//! - [`SessionHub::registry`]: the providers. Those of this crate are registered there like any other, for as long as somebody looks;
//!   yours stay for as long as you hold their registration, and come and go while clients are connected.
//! - [`SessionSources`]: where sessions come from, as arguments. [`HostDirectory`]: which other hosts there are, and what is kept of each.
//! - [`list_hosts`]: what other hosts have, for somebody who looks once and goes.
//!
//! Inside, `active_hub` is the providers, their management, and those who look: a client has one view, however often it connects.
//! `hosts` says which hosts are among them, `visit` what a connection may do, `refusal` why something is not done, `publisher`
//! what changed, encoded once for all who hear of it; `rows` is how sessions look on the wire, `groups` when headings are others.
//!
//! # What it never does
//!
//! It knows no data folder and opens no file: what outlives the process is a [`StateStore`]'s, a [`HostDirectory`]' and a
//! [`FolderTrust`]'s. What is wrong with one provider, such as an id that is taken, costs only that one; without the provider of
//! this host there is no list. Every queue has a bound: a client that is too slow is told to list anew.
//!
//! # Example
//!
//! A host with the layer, and a provider of one's own in it ([`NoRemoteHosts`] and [`InMemoryState`] stand for files):
//!
//! ```
//! use std::sync::Arc;
//!
//! use grove_client::Endpoint;
//! use grove_host::server::{self, Credentials, Token};
//! use grove_host::{Config, Env, Host};
//! use grove_layer::{SessionHub, NoRemoteHosts, SessionSources};
//! use grove_sessions::{InMemoryState, SessionsProvider};
//! use tokio::net::TcpListener;
//!
//! /// Serves until the runtime ends. Whoever holds the layer registers what they like, when they like.
//! async fn serve() -> Result<SessionHub, Box<dyn std::error::Error>> {
//!     let env = Env::in_memory();
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let address = listener.local_addr()?;
//!     let token = Token::generate(env.random.as_ref())?;
//!     let host = Host::in_memory(env, Config::default(), Vec::new()).await?;
//!     let layer = SessionHub::new(SessionSources {
//!         this_host: Endpoint::tcp(&format!("ws://{address}/ws"), Some(token.reveal()))?,
//!         hosts: Arc::new(NoRemoteHosts),
//!         history: None,
//!         memory: Arc::new(InMemoryState::default()),
//!         trust: None,
//!     });
//!     host.set_sessions_layer(Arc::new(layer.clone()));
//!     server::serve(host, Credentials::loopback(token, address), Box::new(listener));
//!     Ok(layer)
//! }
//!
//! async fn plug_in(provider: Arc<dyn SessionsProvider>) -> Result<(), Box<dyn std::error::Error>> {
//!     let layer = serve().await?;
//!     let registration = layer.registry().register(provider)?;
//!     // Every client sees its sessions, until:
//!     registration.unregister();
//!     Ok(())
//! }
//! ```
//!
//! `examples/cloud-provider` does that with a cloud.

#![forbid(unsafe_code)]

mod active_hub;
mod error;
mod groups;
mod host_directory;
mod host_lists;
mod hosts;
mod publisher;
mod refusal;
mod rows;
mod visit;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_client::Endpoint;
use grove_core::ClientId;
use grove_history::catalog::Catalog;
use grove_host::FolderTrust;
use grove_host::session_hub::{SessionHubConnection, SessionHubRefusal, SessionHubService};
#[cfg(doc)]
use grove_sessions::InMemoryState;
use grove_sessions::{Registry, StateStore};
use tokio::sync::watch;

use self::active_hub::ActiveHub;
pub use self::error::SessionHubError;
pub use self::host_directory::{
    HostDirectory, HostDirectoryError, NoRemoteHosts, RemoteHost, RemoteHosts, UnusableHost,
};
pub use self::host_lists::{HostList, ListState, list_hosts};
use self::visit::HubConnection;

/// How long all of it goes on when nobody uses it any more: a page that is loaded anew finds it as it was.
const LINGER: Duration = Duration::from_secs(5);

/// Where sessions come from, and what belongs to them.
pub struct SessionSources {
    /// The host that shows them, for its own sessions.
    pub this_host: Endpoint,
    /// Which other hosts there are.
    pub hosts: Arc<dyn HostDirectory>,
    /// What other tools left, where it is shown.
    pub history: Option<HistorySource>,
    /// What outlives the process: what was last open, and what people said of folders.
    pub memory: Arc<dyn StateStore>,
    /// The list of this host's trusted folders. Without one, people are asked about each.
    pub trust: Option<Arc<dyn FolderTrust>>,
}

impl fmt::Debug for SessionSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("hosts", &self.hosts).field("history", &self.history).finish_non_exhaustive()
    }
}

/// The catalog of what other tools left, and how often it was looked at.
#[derive(Clone, Debug)]
pub struct HistorySource {
    pub catalog: Arc<Catalog>,
    pub scanned: watch::Receiver<u64>,
}

/// All sessions, for as long as somebody wants to see them. Clones are the same.
#[derive(Clone)]
pub struct SessionHub(Arc<HubInner>);

struct HubInner {
    sources: SessionSources,
    registry: Registry,
    state: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    active_hub: Option<Arc<ActiveHub>>,
    visits: usize,
    /// Counts visits that began, so that who waits for the end sees that somebody came meanwhile.
    begun: u64,
}

impl SessionHub {
    /// A layer over these sources. Nothing runs yet.
    pub fn new(sources: SessionSources) -> Self {
        Self(Arc::new(HubInner { sources, registry: Registry::new(), state: Mutex::default() }))
    }

    /// The providers. Whoever registers one is seen at once by all who are connected, and by those who come later.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        // Nothing under the lock leaves it half changed.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What runs, begun where nothing does. It is counted until [`SessionHub::leave`].
    fn enter(&self) -> Result<Arc<ActiveHub>, SessionHubError> {
        let mut state = self.state();
        let active_hub = match &state.active_hub {
            Some(active_hub) => {
                active_hub.hosts.keep_up()?;
                active_hub.clone()
            }
            None => {
                let active_hub = Arc::new(ActiveHub::begin(&self.0.sources, self.0.registry.clone())?);
                state.active_hub = Some(active_hub.clone());
                active_hub
            }
        };
        state.visits += 1;
        state.begun += 1;
        Ok(active_hub)
    }

    fn leave(&self) {
        let begun = {
            let mut state = self.state();
            state.visits = state.visits.saturating_sub(1);
            if state.visits > 0 {
                return;
            }
            state.begun
        };
        let layer = self.clone();
        let end = async move {
            tokio::time::sleep(LINGER).await;
            let ended = {
                let mut state = layer.state();
                let ended = if state.begun == begun { state.active_hub.take() } else { None };
                // Before anybody begins anew: two of an id cannot be registered.
                if let Some(ended) = &ended {
                    ended.retire();
                }
                ended
            };
            // Connections are closed outside the lock.
            drop(ended);
        };
        // Without a runtime the host has ended, and everything with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end);
        }
    }
}

impl SessionHubService for SessionHub {
    fn visit(&self, client: &ClientId) -> Result<Arc<dyn SessionHubConnection>, SessionHubRefusal> {
        let active_hub = self.enter().map_err(|error| refusal::failed(error.to_string()))?;
        Ok(Arc::new(HubConnection::new(self.clone(), active_hub, client.clone(), self.0.sources.trust.clone())))
    }
}

impl fmt::Debug for SessionHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider, THIS_HOST};
    use grove_sessions::{InMemoryState, SessionsProvider};

    use super::*;

    /// A host that nobody reaches.
    fn nowhere() -> Endpoint {
        Endpoint::tcp("ws://127.0.0.1:1/ws", None).unwrap()
    }

    fn layer(hosts: Arc<dyn HostDirectory>) -> SessionHub {
        let memory = Arc::new(InMemoryState::default());
        SessionHub::new(SessionSources { this_host: nowhere(), hosts, history: None, memory, trust: None })
    }

    fn provider(name: &str) -> Arc<dyn SessionsProvider> {
        let identity = HostIdentity::other_host(name, name).unwrap();
        Arc::new(HostProvider::new(identity, nowhere(), HostOptions::default()).0)
    }

    fn ids(layer: &SessionHub) -> Vec<String> {
        layer.registry().providers().iter().map(|provider| provider.id().to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn its_own_providers_come_and_go_with_those_who_look_and_others_stay() {
        let layer = layer(Arc::new(NoRemoteHosts));
        let theirs = layer.registry().register(provider("theirs")).unwrap();
        assert_eq!(ids(&layer), ["agenthost-theirs"]);
        let client = ClientId::from("one");
        let visit = layer.visit(&client).unwrap();
        // Somebody who is slow in letting go.
        let held = layer.state().active_hub.clone();
        assert_eq!(ids(&layer), [THIS_HOST, "agenthost-theirs"]);
        drop(visit);
        tokio::time::sleep(LINGER / 2).await;
        assert_eq!(ids(&layer).len(), 2, "who comes back soon finds it as it was");
        tokio::time::sleep(LINGER).await;
        assert_eq!(ids(&layer), ["agenthost-theirs"]);
        let _again = layer.visit(&client).unwrap();
        held.unwrap().hosts.keep_up().unwrap();
        assert_eq!(ids(&layer), [THIS_HOST, "agenthost-theirs"]);
        drop(theirs);
        assert_eq!(ids(&layer), [THIS_HOST]);
    }

    #[derive(Debug)]
    struct TwoHosts;

    impl HostDirectory for TwoHosts {
        fn mark(&self) -> Option<String> {
            None
        }

        fn all(&self) -> Result<RemoteHosts, HostDirectoryError> {
            let host = |name: &str| -> Result<RemoteHost, HostDirectoryError> {
                Ok(RemoteHost {
                    name: name.to_owned(),
                    address: format!("ws://{name}").parse()?,
                    access: Default::default(),
                })
            };
            Ok(RemoteHosts { hosts: vec![host("a")?, host("b")?], ..RemoteHosts::default() })
        }

        fn list_cache(&self, host: &RemoteHost) -> Arc<dyn grove_sessions::providers::hosts::SessionListCache> {
            NoRemoteHosts.list_cache(host)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_id_that_somebody_has_taken_costs_only_its_own_provider() {
        let layer = layer(Arc::new(TwoHosts));
        let address = TwoHosts.all().unwrap().hosts[0].address.to_string();
        let _theirs = layer.registry().register(provider(&address)).unwrap();
        let _visit = layer.visit(&ClientId::from("one")).unwrap();
        assert_eq!(ids(&layer).len(), 3, "{:?}", ids(&layer));
    }
}
