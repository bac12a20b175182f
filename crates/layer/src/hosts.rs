//! The providers of hosts: this one, and those that are known by name.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_client::Endpoint;
use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider, THIS_HOST};
use grove_sessions::{Registration, Registry, SessionId};

use super::Sources;
use crate::error::LayerError;
use crate::known::{KnownHosts, OtherHost, Unread};

/// How often it is looked whether other hosts are known than before.
const LOOK: Duration = Duration::from_secs(2);

/// The hosts whose sessions are listed. Dropping it ends their providers.
pub(super) struct Hosts {
    registry: Registry,
    this_host: Endpoint,
    known: Arc<dyn KnownHosts>,
    listed: Mutex<Listed>,
}

#[derive(Default)]
struct Listed {
    by_id: HashMap<String, OneHost>,
    /// The list of names as it was when it was read.
    mark: Option<String>,
    /// Nothing is listed any more.
    is_over: bool,
}

struct OneHost {
    provider: Arc<HostProvider>,
    /// What was known of it; this host has no name.
    known: Option<OtherHost>,
    /// Dropping it takes the provider out, which ends what runs for it.
    _registration: Registration,
}

/// A host whose sessions are to be listed.
struct Wanted {
    identity: HostIdentity,
    endpoint: Endpoint,
    known: Option<OtherHost>,
}

impl Hosts {
    pub(super) fn new(registry: Registry, sources: &Sources) -> Self {
        let (this_host, known) = (sources.this_host.clone(), sources.hosts.clone());
        Self { registry, this_host, known, listed: Mutex::default() }
    }

    /// Looks every now and then whether hosts came, went or changed, for as long as it is not dropped.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if let Err(error) = self.keep_up() {
                tracing::warn!("hosts that came are not listed: {error}");
            }
        }
    }

    /// Lists the hosts that are known now: those that came meanwhile, and not those that went. One that is reached in another
    /// way than before is reached so. Where nothing has changed, nothing but the file's mark is looked at.
    pub(super) fn keep_up(&self) -> Result<(), LayerError> {
        let mut listed = self.listed();
        if listed.is_over {
            return Ok(());
        }
        // Before it is read: what is written meanwhile is seen the next time.
        let mark = self.known.mark();
        if listed.by_id.contains_key(THIS_HOST) && listed.mark == mark {
            return Ok(());
        }
        let this_host = HostIdentity::this_host("Grove")?;
        let mut wanted = vec![Wanted { identity: this_host, endpoint: self.this_host.clone(), known: None }];
        let mut is_read = true;
        match self.known.all() {
            Ok(known) => wanted.extend(known.into_iter().filter_map(other_host)),
            // Somebody may be in the middle of writing it by hand: what is listed stays.
            Err(error) => {
                tracing::warn!(%error, "hosts that came or went are not noticed");
                is_read = false;
            }
        }
        // A host that has two names is listed under the first.
        let mut ids = HashSet::new();
        wanted.retain(|wanted| ids.insert(wanted.identity.id().to_string()));
        if is_read {
            listed.by_id.retain(|id, _| ids.contains(id));
        }
        for wanted in wanted {
            let (id, is_other) = (wanted.identity.id().to_string(), wanted.known.is_some());
            match self.list(&mut listed, wanted) {
                // Somebody has taken its id: the others are there all the same.
                Err(error) if is_other => tracing::warn!(host = id, "its sessions are not listed: {error}"),
                done => done?,
            }
        }
        listed.mark = mark;
        Ok(())
    }

    fn list(&self, listed: &mut Listed, wanted: Wanted) -> Result<(), LayerError> {
        let Wanted { identity, endpoint, known } = wanted;
        let id = identity.id().to_string();
        match listed.by_id.get_mut(&id) {
            Some(host) if host.known == known => return Ok(()),
            Some(host) if host.provider.host() == &identity => {
                host.provider.reach(endpoint);
                host.known = known;
                return Ok(());
            }
            // It is called something else now. Two of the same id cannot be there.
            Some(_) => drop(listed.by_id.remove(&id)),
            None => {}
        }
        let mut options = HostOptions::default();
        if let Some(known) = &known {
            options.kept = self.known.kept(known);
        }
        let (provider, driver) = HostProvider::new(identity, endpoint, options);
        let provider = Arc::new(provider);
        let registration = self.registry.register(provider.clone())?;
        tokio::spawn(driver.run());
        listed.by_id.insert(id, OneHost { provider, known, _registration: registration });
        Ok(())
    }

    /// Takes all of them out, for good.
    pub(super) fn retire(&self) {
        let mut listed = self.listed();
        listed.is_over = true;
        listed.by_id.clear();
    }

    pub(super) fn this_host(&self) -> Option<Arc<HostProvider>> {
        self.listed().by_id.get(THIS_HOST).map(|host| host.provider.clone())
    }

    /// The host that a session is on.
    pub(super) fn of(&self, session: &SessionId) -> Option<Arc<HostProvider>> {
        self.listed().by_id.get(session.provider()).map(|host| host.provider.clone())
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        // Nothing under the lock leaves it half changed.
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A host that is known by name. What is wrong with one costs only that.
fn other_host(host: OtherHost) -> Option<Wanted> {
    let reach = || -> Result<(HostIdentity, Endpoint), Unread> {
        Ok((HostIdentity::other_host(&host.address.to_string(), host.name.as_str())?, host.endpoint()?))
    };
    match reach() {
        Ok((identity, endpoint)) => Some(Wanted { identity, endpoint, known: Some(host) }),
        Err(error) => {
            tracing::warn!(host = %host.name, "its sessions are not listed: {error}");
            None
        }
    }
}
