//! The providers of hosts: this one, and those that are known by name.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_client::Endpoint;
use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider, THIS_HOST};
use grove_sessions::{Registration, Registry, SessionId, SessionsProvider};

use super::Sources;
use crate::hosts::{KnownHost, all_hosts};

/// The hosts whose sessions are listed. Dropping it ends their providers.
pub(super) struct Hosts {
    registry: Registry,
    by_id: Mutex<HashMap<String, Listed>>,
}

struct Listed {
    provider: Arc<HostProvider>,
    /// Dropping it takes the provider out, which ends what runs for it.
    _registration: Registration,
}

impl Hosts {
    pub(super) fn new(registry: Registry) -> Self {
        Self { registry, by_id: Mutex::default() }
    }

    /// Lists the hosts that are known now: those that came meanwhile, and not those that went.
    pub(super) fn keep_up(&self, sources: &Sources) -> anyhow::Result<()> {
        let mut wanted = vec![(HostIdentity::this_host("Grove")?, sources.this_host.clone())];
        wanted.extend(other_hosts(&sources.data_dir));
        let mut listed = self.listed();
        let ids: HashSet<&str> = wanted.iter().map(|(identity, _)| identity.id().as_str()).collect();
        listed.retain(|id, _| ids.contains(id.as_str()));
        for (identity, endpoint) in wanted {
            // A host that has two names is listed under the first.
            if listed.contains_key(identity.id().as_str()) {
                continue;
            }
            let (provider, driver) = HostProvider::new(identity, endpoint, HostOptions::default());
            let provider = Arc::new(provider);
            let registration = self.registry.register(provider.clone())?;
            tokio::spawn(driver.run());
            listed.insert(provider.id().as_str().to_owned(), Listed { provider, _registration: registration });
        }
        Ok(())
    }

    pub(super) fn this_host(&self) -> Option<Arc<HostProvider>> {
        self.listed().get(THIS_HOST).map(|listed| listed.provider.clone())
    }

    /// The host that a session is on.
    pub(super) fn of(&self, session: &SessionId) -> Option<Arc<HostProvider>> {
        self.listed().get(session.provider()).map(|listed| listed.provider.clone())
    }

    fn listed(&self) -> MutexGuard<'_, HashMap<String, Listed>> {
        // Nothing under the lock leaves it half changed.
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hosts that are known by name. What is wrong with one, or with the list, costs only that.
fn other_hosts(data_dir: &Path) -> Vec<(HostIdentity, Endpoint)> {
    let known = all_hosts(data_dir).unwrap_or_else(|error| {
        tracing::warn!(%error, "sessions of other hosts are not listed");
        Vec::new()
    });
    let reach = |host: &KnownHost| -> anyhow::Result<(HostIdentity, Endpoint)> {
        Ok((HostIdentity::other_host(&host.address.to_string(), host.name.as_str())?, host.endpoint()?))
    };
    let mut hosts = Vec::new();
    for host in &known {
        match reach(host) {
            Ok(reached) => hosts.push(reached),
            Err(error) => tracing::warn!(host = %host.name, "its sessions are not listed: {error:#}"),
        }
    }
    hosts
}
