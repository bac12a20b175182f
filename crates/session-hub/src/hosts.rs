//! The providers of hosts: this one, and the known other ones.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_client::Endpoint;
use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider, THIS_HOST};
use grove_sessions::{Registration, Registry, SessionId};

use super::SessionSources;
use crate::error::SessionHubError;
use crate::host_directory::{HostDirectory, HostDirectoryError, RemoteHost, RemoteHosts};
use crate::this_host;

/// The interval of checks for changes of the list of hosts.
const LOOK: Duration = Duration::from_secs(2);

/// The hosts whose sessions are listed. Dropping it ends their providers.
pub(super) struct Hosts {
    registry: Registry,
    this_host: Endpoint,
    known: Arc<dyn HostDirectory>,
    listed: Mutex<HostProviders>,
}

#[derive(Default)]
struct HostProviders {
    by_id: HashMap<String, HostEntry>,
    /// The mark of the list of hosts when it was read.
    mark: Option<String>,
    /// The hub has ended, and nothing is listed any more.
    is_over: bool,
}

struct HostEntry {
    provider: Arc<HostProvider>,
    /// The host's entry in the list; this host has none.
    known: Option<RemoteHost>,
    /// Dropping it unregisters the provider, which ends its tasks.
    _registration: Registration,
}

/// A host whose sessions are to be listed.
struct HostSpec {
    identity: HostIdentity,
    endpoint: Endpoint,
    known: Option<RemoteHost>,
}

impl Hosts {
    pub(super) fn new(registry: Registry, sources: &SessionSources) -> Self {
        let this_host = this_host::endpoint(sources.this_host.clone());
        Self { registry, this_host, known: sources.hosts.clone(), listed: Mutex::default() }
    }

    /// Checks regularly for changes of the list of hosts, until it is dropped.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if let Err(error) = self.look() {
                tracing::warn!("cannot list new hosts: {error}");
            }
        }
    }

    /// Handles a new connection: updates the list of hosts, and retries those that rejected us.
    pub(super) fn keep_up(&self) -> Result<(), SessionHubError> {
        self.look()?;
        self.listed().by_id.values().for_each(|host| host.provider.retry_now());
        Ok(())
    }

    /// Updates the providers from the list of hosts: adds new hosts, removes missing ones, and reconnects changed ones.
    ///
    /// If the mark has not changed, nothing else is read.
    fn look(&self) -> Result<(), SessionHubError> {
        let mut listed = self.listed();
        if listed.is_over {
            return Ok(());
        }
        // Before the list is read: later changes are noticed the next time.
        let mark = self.known.mark();
        if listed.by_id.contains_key(THIS_HOST) && listed.mark == mark {
            return Ok(());
        }
        let this_host = HostIdentity::this_host("Grove")?;
        let mut wanted = vec![HostSpec { identity: this_host, endpoint: self.this_host.clone(), known: None }];
        // A user may be editing the file. Invalid entries, or an invalid file, leave the listed hosts unchanged.
        let mut unusable: Option<HashSet<String>> = None;
        match self.known.all() {
            Ok(RemoteHosts { hosts, unusable: unused }) => {
                let broken = unused.into_iter().map(|host| {
                    tracing::warn!(
                        host = host.name,
                        "the entry is invalid, so the host stays as it was: {}",
                        host.error
                    );
                    host.name
                });
                let mut broken: HashSet<String> = broken.collect();
                for host in hosts {
                    let name = host.name.clone();
                    match other_host(host) {
                        Some(host) => wanted.push(host),
                        None => _ = broken.insert(name),
                    }
                }
                unusable = Some(broken);
            }
            Err(error) => tracing::warn!(%error, "cannot read the list of hosts"),
        }
        // A host with two names is listed under the first.
        let mut ids = HashSet::new();
        wanted.retain(|wanted| ids.insert(wanted.identity.id().to_string()));
        if let Some(unusable) = unusable {
            let is_unusable =
                |host: &HostEntry| host.known.as_ref().is_some_and(|known| unusable.contains(&known.name));
            listed.by_id.retain(|id, host| ids.contains(id) || is_unusable(host));
        }
        for wanted in wanted {
            let (id, is_other) = (wanted.identity.id().to_string(), wanted.known.is_some());
            match self.list(&mut listed, wanted) {
                // Another provider has its id: the other hosts are still listed.
                Err(error) if is_other => tracing::warn!(host = id, "its sessions are not listed: {error}"),
                done => done?,
            }
        }
        listed.mark = mark;
        Ok(())
    }

    fn list(&self, listed: &mut HostProviders, wanted: HostSpec) -> Result<(), SessionHubError> {
        let HostSpec { identity, endpoint, known } = wanted;
        let id = identity.id().to_string();
        match listed.by_id.get_mut(&id) {
            Some(host) if host.known == known => return Ok(()),
            Some(host) if host.provider.host() == &identity => {
                host.provider.reach(endpoint);
                host.known = known;
                return Ok(());
            }
            // The host was renamed. There cannot be two with the same id.
            Some(_) => drop(listed.by_id.remove(&id)),
            None => {}
        }
        let mut options = HostOptions::default();
        if let Some(known) = &known {
            options.list_cache = self.known.list_cache(known);
        }
        let (provider, driver) = HostProvider::new(identity, endpoint, options);
        let provider = Arc::new(provider);
        let registration = self.registry.register(provider.clone())?;
        tokio::spawn(driver.run());
        listed.by_id.insert(id, HostEntry { provider, known, _registration: registration });
        Ok(())
    }

    /// Unregisters all of them for good.
    pub(super) fn retire(&self) {
        let mut listed = self.listed();
        listed.is_over = true;
        listed.by_id.clear();
    }

    pub(super) fn this_host(&self) -> Option<Arc<HostProvider>> {
        self.listed().by_id.get(THIS_HOST).map(|host| host.provider.clone())
    }

    /// The host of a session.
    pub(super) fn of(&self, session: &SessionId) -> Option<Arc<HostProvider>> {
        self.listed().by_id.get(session.provider()).map(|host| host.provider.clone())
    }

    fn listed(&self) -> MutexGuard<'_, HostProviders> {
        // No panic leaves the state half changed.
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A known host. A problem with it affects only that one.
fn other_host(host: RemoteHost) -> Option<HostSpec> {
    let reach = || -> Result<(HostIdentity, Endpoint), HostDirectoryError> {
        Ok((HostIdentity::other_host(&host.address.to_string(), host.name.as_str())?, host.endpoint()?))
    };
    match reach() {
        Ok((identity, endpoint)) => Some(HostSpec { identity, endpoint, known: Some(host) }),
        Err(error) => {
            tracing::warn!(host = %host.name, "its sessions are not listed: {error}");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use grove_client::Credentials;
    use grove_sessions::providers::hosts::{InMemorySessionListCache, SessionListCache};

    use super::*;
    use crate::host_directory::UnusableHost;

    fn names(hosts: &Hosts) -> Vec<String> {
        let listed = hosts.listed();
        let mut names: Vec<String> =
            listed.by_id.values().filter_map(|host| host.known.as_ref()).map(|known| known.name.clone()).collect();
        names.sort();
        names
    }

    fn provider(hosts: &Hosts, name: &str) -> Arc<HostProvider> {
        let listed = hosts.listed();
        let is_it = |host: &&HostEntry| host.known.as_ref().is_some_and(|known| known.name == name);
        listed.by_id.values().find(is_it).unwrap().provider.clone()
    }

    /// The list of hosts for tests.
    #[derive(Debug, Default)]
    struct TestHosts {
        times: u64,
        hosts: Vec<(&'static str, &'static str)>,
        unusable: Vec<&'static str>,
        is_damaged: bool,
    }

    #[derive(Debug, Default)]
    struct EditableDirectory(Mutex<TestHosts>);

    impl EditableDirectory {
        fn write(&self, written: TestHosts) {
            let mut book = self.0.lock().unwrap();
            *book = TestHosts { times: book.times + 1, ..written };
        }
    }

    impl HostDirectory for EditableDirectory {
        fn mark(&self) -> Option<String> {
            Some(self.0.lock().unwrap().times.to_string())
        }

        fn all(&self) -> Result<RemoteHosts, HostDirectoryError> {
            let book = self.0.lock().unwrap();
            if book.is_damaged {
                return Err("it is damaged".into());
            }
            let host = |(name, address): &(&str, &str)| RemoteHost {
                name: (*name).to_owned(),
                address: address.parse().unwrap(),
                access: Credentials::default(),
            };
            let unusable = |name: &&str| UnusableHost { name: (*name).to_owned(), error: "no address".into() };
            let (hosts, unusable) = (book.hosts.iter().map(host), book.unusable.iter().map(unusable));
            Ok(RemoteHosts { hosts: hosts.collect(), unusable: unusable.collect() })
        }

        fn list_cache(&self, _host: &RemoteHost) -> Arc<dyn SessionListCache> {
            Arc::new(InMemorySessionListCache::default())
        }
    }

    // No host answers at these addresses.
    const A: (&str, &str) = ("a", "ws://127.0.0.1:1/");
    const B: (&str, &str) = ("b", "ws://127.0.0.1:2/");
    const C: (&str, &str) = ("c", "ws://127.0.0.1:4/");

    #[tokio::test]
    async fn what_cannot_be_used_leaves_what_runs_as_it_is_and_the_rest_is_kept_up_with() {
        let book = Arc::new(EditableDirectory::default());
        book.write(TestHosts { hosts: vec![A, B], ..TestHosts::default() });
        let hosts = Hosts {
            registry: Registry::new(),
            this_host: Endpoint::tcp("ws://127.0.0.1:3/", None).unwrap(),
            known: book.clone(),
            listed: Mutex::default(),
        };
        hosts.keep_up().unwrap();
        assert_eq!(names(&hosts), ["a", "b"]);
        let (a, b) = (provider(&hosts, "a"), provider(&hosts, "b"));

        book.write(TestHosts { hosts: vec![A, C], unusable: vec!["b"], ..TestHosts::default() });
        hosts.keep_up().unwrap();
        assert_eq!(names(&hosts), ["a", "b", "c"], "an unusable host does not affect the others");
        book.write(TestHosts { is_damaged: true, ..TestHosts::default() });
        hosts.keep_up().unwrap();
        assert_eq!(names(&hosts), ["a", "b", "c"], "nor does a list that cannot be read");
        assert!(Arc::ptr_eq(&a, &provider(&hosts, "a")) && Arc::ptr_eq(&b, &provider(&hosts, "b")));

        book.write(TestHosts { hosts: vec![A], ..TestHosts::default() });
        hosts.keep_up().unwrap();
        assert_eq!(names(&hosts), ["a"], "a removed host is gone");
        assert!(Arc::ptr_eq(&a, &provider(&hosts, "a")));
    }
}
