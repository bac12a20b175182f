//! The session hub: the sessions of all sources in one list, for the clients of a host.
//!
//! The sources are this host, other hosts, other tools on this machine, and every registered provider.
//!
//! # What this crate owns
//!
//! - [`SessionHub`]: the implementation of `x-grove/sessions/…` for a host. It starts with the first connection that
//!   uses it and stops a while after the last, since it holds connections to other hosts. It reaches the sessions of its
//!   own host in process.
//! - [`SessionHub::registry`]: the providers. Those of this crate are registered while the hub runs; yours stay while
//!   you hold their registration, and can be added and removed while clients are connected.
//! - [`SessionSources`]: the sources, as arguments. [`HostDirectory`]: the list of other hosts, and the cache for each.
//! - [`list_hosts`]: the sessions of other hosts, for a single request. [`list_page`]: a page of a list, filtered.
//!
//! Internal modules: `active_hub` has the providers, their management, and the views: a client has one view, however
//! often it connects. `hosts` manages the providers of hosts, `this_host` connects the one of this host, `visit` serves
//! the requests of a connection, `refusal` maps errors, `publisher` encodes changes once for all clients; `rows` has the
//! wire format of sessions, `listing` filters and orders them, `groups` has the headings, `waiting` the requests that wait
//! for a person, `throttle` limits how often a row is told.
//!
//! # What it never does
//!
//! It knows no data folder and opens no file: a [`StateStore`], a [`HostDirectory`] and a [`FolderTrust`] keep what
//! outlives the process. A problem with one provider, such as a duplicate id, affects only that one; without the
//! provider of this host there is no list. Every queue is bounded: a client that is too slow must list again.
//!
//! # Example
//!
//! A host with a session hub, and a custom provider in it ([`NoRemoteHosts`] and [`InMemoryState`] stand for files):
//!
//! ```
//! use std::sync::Arc;
//!
//! use grove_host::{Config, Env, Host, Token};
//! use grove_server::{AccessPolicy, InProcessHost};
//! use grove_session_hub::{NoRemoteHosts, SessionHub, SessionSources};
//! use grove_sessions::{InMemoryState, SessionsProvider};
//! use tokio::net::TcpListener;
//!
//! /// Serves until the runtime ends. The holder of the hub can register providers at any time.
//! async fn serve() -> Result<SessionHub, Box<dyn std::error::Error>> {
//!     let env = Env::in_memory();
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let address = listener.local_addr()?;
//!     let token = Token::generate(env.random.as_ref())?;
//!     let host = Host::in_memory(env, Config::default(), Vec::new()).await?;
//!     let hub = SessionHub::new(SessionSources {
//!         this_host: InProcessHost::new(&host),
//!         hosts: Arc::new(NoRemoteHosts),
//!         history: None,
//!         memory: Arc::new(InMemoryState::default()),
//!         trust: None,
//!     });
//!     host.set_session_hub(Arc::new(hub.clone()));
//!     grove_server::serve(host, AccessPolicy::loopback(token, address), Box::new(listener));
//!     Ok(hub)
//! }
//!
//! async fn plug_in(provider: Arc<dyn SessionsProvider>) -> Result<(), Box<dyn std::error::Error>> {
//!     let hub = serve().await?;
//!     let registration = hub.registry().register(provider)?;
//!     // Every client sees its sessions, until:
//!     registration.unregister();
//!     Ok(())
//! }
//! ```
//!
//! `examples/cloud-provider` is a complete example.

#![forbid(unsafe_code)]

mod active_hub;
mod error;
mod groups;
mod host_directory;
mod host_lists;
mod hosts;
pub mod limits;
mod listing;
mod publisher;
mod refusal;
mod rows;
#[cfg(test)]
mod sample;
mod this_host;
mod throttle;
mod visit;
mod waiting;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_core::ClientId;
use grove_history::catalog::Catalog;
use grove_host::FolderTrust;
use grove_host::session_hub::{SessionHubConnection, SessionHubRefusal, SessionHubService};
use grove_server::InProcessHost;
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
pub use self::listing::list_page;
pub use self::this_host::message_channel;
use self::visit::HubConnection;

/// How long the hub goes on without connections: a page that is reloaded finds its state.
pub const LINGER: Duration = Duration::from_secs(5);

/// The sources of sessions.
pub struct SessionSources {
    /// This host, for its own sessions.
    pub this_host: InProcessHost,
    /// The list of other hosts.
    pub hosts: Arc<dyn HostDirectory>,
    /// The sessions of other tools, if they are shown.
    pub history: Option<HistorySource>,
    /// The store of the state that outlives the process: the last open session, and the trust of folders.
    pub memory: Arc<dyn StateStore>,
    /// The list of this host's trusted folders. Without it, users are asked about each.
    pub trust: Option<Arc<dyn FolderTrust>>,
}

impl fmt::Debug for SessionSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSources")
            .field("hosts", &self.hosts)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

/// The catalog of other tools' sessions, and the number of scans.
#[derive(Clone, Debug)]
pub struct HistorySource {
    pub catalog: Arc<Catalog>,
    pub scanned: watch::Receiver<u64>,
}

/// All sessions, kept up to date while clients use them. Clones share one state.
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
    /// Counts connections, so that a pending stop notices a new one.
    connection_count: u64,
}

impl SessionHub {
    /// Creates a hub for these sources. Nothing runs yet.
    pub fn new(sources: SessionSources) -> Self {
        Self(Arc::new(HubInner { sources, registry: Registry::new(), state: Mutex::default() }))
    }

    /// The providers. All connected and later clients see a new one at once.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        // No panic leaves the state half changed.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the hub if it does not run, and counts the connection until [`SessionHub::leave`].
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
        state.connection_count += 1;
        Ok(active_hub)
    }

    fn leave(&self) {
        let connection_count = {
            let mut state = self.state();
            state.visits = state.visits.saturating_sub(1);
            if state.visits > 0 {
                return;
            }
            state.connection_count
        };
        let hub = self.clone();
        let end = async move {
            tokio::time::sleep(LINGER).await;
            let ended = {
                let mut state = hub.state();
                let ended = if state.connection_count == connection_count { state.active_hub.take() } else { None };
                // Before another hub starts: there cannot be two providers with the same id.
                if let Some(ended) = &ended {
                    ended.retire();
                }
                ended
            };
            // Connections are closed outside the lock.
            drop(ended);
        };
        // Without a runtime the host has ended.
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
        f.debug_struct("SessionHub").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grove_client::Endpoint;
    use grove_host::{Config, Env, Host};
    use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider, THIS_HOST};
    use grove_sessions::{InMemoryState, SessionsProvider};

    use super::*;

    /// An endpoint without a host.
    fn nowhere() -> Endpoint {
        Endpoint::tcp("ws://127.0.0.1:1/ws", None).unwrap()
    }

    /// A host with a hub.
    async fn hub(hosts: Arc<dyn HostDirectory>) -> (Host, SessionHub) {
        let host = Host::in_memory(Env::in_memory(), Config::default(), Vec::new()).await.unwrap();
        let (this_host, memory) = (InProcessHost::new(&host), Arc::new(InMemoryState::default()));
        let sources = SessionSources { this_host, hosts, history: None, memory, trust: None };
        (host, SessionHub::new(sources))
    }

    fn provider(name: &str) -> Arc<dyn SessionsProvider> {
        let identity = HostIdentity::other_host(name, name).unwrap();
        Arc::new(HostProvider::new(identity, nowhere(), HostOptions::default()).0)
    }

    fn ids(hub: &SessionHub) -> Vec<String> {
        hub.registry().providers().iter().map(|provider| provider.id().to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn its_own_providers_come_and_go_with_those_who_look_and_others_stay() {
        let (_host, hub) = hub(Arc::new(NoRemoteHosts)).await;
        let theirs = hub.registry().register(provider("theirs")).unwrap();
        assert_eq!(ids(&hub), ["agenthost-theirs"]);
        let client = ClientId::from("one");
        let visit = hub.visit(&client).unwrap();
        // A slow holder of the running hub.
        let held = hub.state().active_hub.clone();
        assert_eq!(ids(&hub), [THIS_HOST, "agenthost-theirs"]);
        drop(visit);
        tokio::time::sleep(LINGER / 2).await;
        assert_eq!(ids(&hub).len(), 2, "a client that reconnects soon finds the same hub");
        tokio::time::sleep(LINGER).await;
        assert_eq!(ids(&hub), ["agenthost-theirs"]);
        let _again = hub.visit(&client).unwrap();
        held.unwrap().hosts.keep_up().unwrap();
        assert_eq!(ids(&hub), [THIS_HOST, "agenthost-theirs"]);
        drop(theirs);
        assert_eq!(ids(&hub), [THIS_HOST]);
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
        let (_host, hub) = hub(Arc::new(TwoHosts)).await;
        let address = TwoHosts.all().unwrap().hosts[0].address.to_string();
        let _theirs = hub.registry().register(provider(&address)).unwrap();
        let _visit = hub.visit(&ClientId::from("one")).unwrap();
        assert_eq!(ids(&hub).len(), 3, "{:?}", ids(&hub));
    }
}
