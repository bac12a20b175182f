//! The providers, their management, and those who look.

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

/// How many clients that went may come back to their view. Of more, the view that was left longest ago goes.
const MAX_DETACHED_VIEWERS: usize = 64;
/// How long the first list waits for the sessions of this host.
const FIRST_LIST: Duration = Duration::from_secs(2);

/// All of it, while it runs.
pub(super) struct ActiveHub {
    pub(super) management: Management,
    pub(super) frames: broadcast::Sender<Arc<str>>,
    pub(super) hosts: Arc<Hosts>,
    viewers: Mutex<Viewers>,
    /// Dropping them takes the providers of other tools' sessions out.
    registrations: Vec<Registration>,
    /// Dropping it ends what runs for them.
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
    /// When it was left, as a number that grows.
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
                    Err(error) => tracing::warn!("what a tool left is not listed: {error}"),
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

    /// Takes its providers out, so that those who begin anew can register theirs, whoever still holds this.
    pub(super) fn retire(&self) {
        self.hosts.retire();
        self.registrations.iter().for_each(Registration::unregister);
    }

    /// The management as a client looks at it, which has one more connection now.
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

    /// A connection of a client ended. Gives what is looked at by nobody any more.
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

    /// Waits for a moment until this host's sessions are listed. What other hosts have comes when it comes.
    pub(super) async fn listed(&self) {
        let Some(this_host) = self.hosts.this_host() else { return };
        // Who lists without waiting for what is told sees less then, and no harm is done.
        tokio::time::timeout(FIRST_LIST, this_host.listed()).await.ok();
    }

    fn viewers(&self) -> MutexGuard<'_, Viewers> {
        // Nothing under the lock leaves it half changed.
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has the host of the session that is looked at listen to its channels, which say more than the list.
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
