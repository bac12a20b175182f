//! The running hub: the providers, their management, and the views of clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_core::ClientId;
use grove_sessions::providers::history::{HistoryDriver, HistoryProvider};
use grove_sessions::{Management, Registration, Registry, SessionId};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use super::SessionSources;
use super::hosts::Hosts;
use super::publisher::{ChangePublisher, FRAMES};
use crate::error::SessionHubError;

/// The number of disconnected clients whose views are kept; beyond it, the oldest view is dropped.
pub const MAX_DETACHED_VIEWERS: usize = 64;
/// How long the first list waits for the sessions of this host.
pub const FIRST_LIST: Duration = Duration::from_secs(2);

/// The state of a running hub.
pub(super) struct ActiveHub {
    pub(super) management: Management,
    pub(super) frames: broadcast::Sender<Arc<str>>,
    pub(super) hosts: Arc<Hosts>,
    viewers: Mutex<Viewers>,
    /// Dropping them unregisters the providers of other tools' sessions.
    registrations: Vec<Registration>,
    /// Dropping it ends their tasks.
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Viewers {
    by_client: HashMap<ClientId, Viewer>,
    next: u64,
}

struct Viewer {
    management: Arc<Management>,
    connections: usize,
    /// The order of disconnection, as a growing number.
    left: u64,
}

impl ActiveHub {
    pub(super) fn begin(sources: &SessionSources, registry: Registry) -> Result<Self, SessionHubError> {
        let (mut registrations, mut tasks) = (Vec::new(), JoinSet::new());
        let hosts = Arc::new(Hosts::new(registry.clone(), sources));
        hosts.keep_up()?;
        tasks.spawn(hosts.clone().watch());
        if let Some(history) = &sources.history {
            let providers = HistoryProvider::of_all_tools(&history.catalog)?;
            for provider in &providers {
                match registry.register(provider.clone()) {
                    Ok(registration) => registrations.push(registration),
                    Err(error) => tracing::warn!("cannot list the sessions of a tool: {error}"),
                }
            }
            tasks.spawn(HistoryDriver { providers, changed: history.scanned.clone() }.run());
        }
        let (management, driver) = Management::new(registry, sources.memory.clone())?;
        tasks.spawn(driver.run());
        let frames = broadcast::Sender::new(FRAMES);
        tasks.spawn(ChangePublisher::new(management.new_viewer(), frames.clone()).run());
        Ok(Self { management, frames, hosts, viewers: Mutex::default(), registrations, _tasks: tasks })
    }

    /// Unregisters its providers, so that a new hub can register its own while this one is still referenced.
    pub(super) fn retire(&self) {
        self.hosts.retire();
        self.registrations.iter().for_each(Registration::unregister);
    }

    /// The view of a client, which gets one more connection.
    pub(super) fn viewer(&self, client: &ClientId) -> Arc<Management> {
        let mut viewers = self.viewers();
        let viewer = viewers.by_client.entry(client.clone()).or_insert_with(|| {
            let management = Arc::new(self.management.new_viewer());
            let hosts = self.hosts.clone();
            // It ends with the viewer, whose channel it listens to.
            tokio::spawn(listen_to_active(
                management.observe(|view| view.active_session.as_ref().map(|active| active.session().id().clone())),
                hosts,
            ));
            Viewer { management, connections: 0, left: 0 }
        });
        viewer.connections += 1;
        viewer.management.clone()
    }

    /// Handles the end of a connection. Returns a view that is no longer used.
    pub(super) fn left(&self, client: &ClientId) -> Option<Arc<Management>> {
        let mut viewers = self.viewers();
        viewers.next += 1;
        let now = viewers.next;
        if let Some(viewer) = viewers.by_client.get_mut(client) {
            viewer.connections = viewer.connections.saturating_sub(1);
            viewer.left = now;
        }
        let gone = || viewers.by_client.iter().filter(|(_, viewer)| viewer.connections == 0);
        if gone().count() <= MAX_DETACHED_VIEWERS {
            return None;
        }
        let oldest = gone().min_by_key(|(_, viewer)| viewer.left).map(|(client, _)| client.clone())?;
        viewers.by_client.remove(&oldest).map(|viewer| viewer.management)
    }

    /// Waits a moment until this host's sessions are listed. Other hosts' sessions are added later.
    pub(super) async fn listed(&self) {
        let Some(this_host) = self.hosts.this_host() else { return };
        // After the timeout the first list is incomplete, and is completed by notifications.
        tokio::time::timeout(FIRST_LIST, this_host.listed()).await.ok();
    }

    fn viewers(&self) -> MutexGuard<'_, Viewers> {
        // No panic leaves the state half changed.
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the host of the active session subscribe to its channels, which have more details than the list.
async fn listen_to_active(
    mut active: grove_sessions::Observable<Option<SessionId>, grove_sessions::management::ActiveView>,
    hosts: Arc<Hosts>,
) {
    let mut now = active.get();
    loop {
        let _opened = now.as_ref().and_then(|session| hosts.of(session)?.open(session));
        match active.changed().await {
            Some(next) => now = next,
            None => return,
        }
    }
}
