//! The registry of providers. The management has their sessions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use thiserror::Error;
use tokio::sync::{broadcast, watch};

use crate::ids::ProviderId;
use crate::provider::SessionsProvider;
use crate::subscription::Subscription;

/// The events that wait for a slow listener.
const EVENTS: usize = 256;

/// The registered providers. Clones share it.
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

/// A registered provider. Its number distinguishes it from a later one with the same id.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredProvider {
    pub(crate) number: u64,
    pub(crate) provider: Arc<dyn SessionsProvider>,
    order: i32,
}

/// Changes of the registered providers.
#[derive(Clone, Debug, Default)]
pub struct ProvidersChange {
    /// The added providers.
    pub added: Vec<Arc<dyn SessionsProvider>>,
    /// The removed providers.
    pub removed: Vec<Arc<dyn SessionsProvider>>,
}

/// Keeps a provider registered. Dropping it unregisters the provider, as [`Registration::unregister`] does.
#[derive(Debug)]
#[must_use = "the provider is taken out when this is dropped"]
pub struct Registration {
    shared: Weak<RegistryState>,
    number: u64,
}

/// The error for an id that is already registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a sessions provider {0} is registered already: give this one another id, or unregister that one first")]
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
            // Announced while the list is locked, so that events come in the order of the changes.
            self.shared.tell(ProvidersChange { added: vec![provider.clone()], removed: Vec::new() });
            true
        });
        match duplicate {
            Some(duplicate) => Err(duplicate),
            None => Ok(Registration { shared: Arc::downgrade(&self.shared), number }),
        }
    }

    /// All providers, by their order, equal ones in the order of registration.
    pub fn providers(&self) -> Vec<Arc<dyn SessionsProvider>> {
        self.shared.entries.borrow().iter().map(|entry| entry.provider.clone()).collect()
    }

    /// The provider with an id.
    pub fn get(&self, id: &str) -> Option<Arc<dyn SessionsProvider>> {
        let entries = self.shared.entries.borrow();
        entries.iter().find(|entry| entry.provider.id().as_str() == id).map(|entry| entry.provider.clone())
    }

    /// The events from now on.
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
        // Without a listener, nothing is lost.
        self.events.send(change).ok();
    }
}

impl Registration {
    /// Unregisters the provider. A second call does nothing.
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
