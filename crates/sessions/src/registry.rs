//! Which providers there are. Nothing else: sessions are the management's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use thiserror::Error;
use tokio::sync::{broadcast, watch};

use crate::ids::ProviderId;
use crate::provider::SessionsProvider;
use crate::subscription::Subscription;

/// How many events wait for a slow listener.
const EVENTS: usize = 256;

/// The registered providers. Clones are the same registry.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    shared: Arc<RegistryState>,
}

#[derive(Debug)]
struct RegistryState {
    entries: watch::Sender<Arc<Vec<RegisteredProvider>>>,
    events: broadcast::Sender<ProvidersChange>,
    next: AtomicU64,
}

/// A registered provider. Its number tells it from another one that has its id later.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredProvider {
    pub(crate) number: u64,
    pub(crate) provider: Arc<dyn SessionsProvider>,
    order: i32,
}

/// Which providers came and went.
#[derive(Clone, Debug, Default)]
pub struct ProvidersChange {
    /// Those that came.
    pub added: Vec<Arc<dyn SessionsProvider>>,
    /// Those that went.
    pub removed: Vec<Arc<dyn SessionsProvider>>,
}

/// Keeps a provider registered. Dropping it takes the provider out, as [`Registration::unregister`] does.
#[derive(Debug)]
#[must_use = "the provider is taken out when this is dropped"]
pub struct Registration {
    shared: Weak<RegistryState>,
    number: u64,
}

/// A provider's id is taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a sessions provider {0} is registered already: give this one another id, or take that one out first")]
pub struct DuplicateProvider(pub ProviderId);

impl Registry {
    /// A registry without providers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a provider for as long as the handle lives.
    pub fn register(&self, provider: Arc<dyn SessionsProvider>) -> Result<Registration, DuplicateProvider> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let order = provider.order();
        let mut duplicate = None;
        self.shared.entries.send_if_modified(|entries| {
            if entries.iter().any(|entry| entry.provider.id() == provider.id()) {
                duplicate = Some(DuplicateProvider(provider.id().clone()));
                return false;
            }
            let place = entries.partition_point(|entry| entry.order <= order);
            Arc::make_mut(entries).insert(place, RegisteredProvider { number, provider: provider.clone(), order });
            // Told while the list is held, so that events come in the order of the changes.
            self.shared.tell(ProvidersChange { added: vec![provider.clone()], removed: Vec::new() });
            true
        });
        match duplicate {
            Some(duplicate) => Err(duplicate),
            None => Ok(Registration { shared: Arc::downgrade(&self.shared), number }),
        }
    }

    /// All providers, by their order, equal ones as they were registered.
    pub fn providers(&self) -> Vec<Arc<dyn SessionsProvider>> {
        self.shared.entries.borrow().iter().map(|entry| entry.provider.clone()).collect()
    }

    /// The provider with an id.
    pub fn get(&self, id: &str) -> Option<Arc<dyn SessionsProvider>> {
        let entries = self.shared.entries.borrow();
        entries.iter().find(|entry| entry.provider.id().as_str() == id).map(|entry| entry.provider.clone())
    }

    /// What happens from now on.
    pub fn subscribe(&self) -> Subscription<ProvidersChange> {
        Subscription::new(self.shared.events.subscribe())
    }

    pub(crate) fn snapshot(&self) -> Arc<Vec<RegisteredProvider>> {
        self.shared.entries.borrow().clone()
    }

    pub(crate) fn entries(&self) -> watch::Receiver<Arc<Vec<RegisteredProvider>>> {
        self.shared.entries.subscribe()
    }
}

impl Default for RegistryState {
    fn default() -> Self {
        Self {
            entries: watch::Sender::new(Arc::default()),
            events: broadcast::Sender::new(EVENTS),
            next: AtomicU64::new(0),
        }
    }
}

impl RegistryState {
    fn tell(&self, change: ProvidersChange) {
        // An error says that nobody listens, which is nobody's loss.
        self.events.send(change).ok();
    }
}

impl Registration {
    /// Takes the provider out. Doing so twice does it once.
    pub fn unregister(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        shared.entries.send_if_modified(|entries| {
            let Some(place) = entries.iter().position(|entry| entry.number == self.number) else { return false };
            let entry = Arc::make_mut(entries).remove(place);
            shared.tell(ProvidersChange { added: Vec::new(), removed: vec![entry.provider] });
            true
        });
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.unregister();
    }
}
