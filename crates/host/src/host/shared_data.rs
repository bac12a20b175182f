//! Data about a host that other crates share, such as the event feeds of all SDK endpoints.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Host;

/// One value for each type.
#[derive(Default)]
pub(super) struct SharedData(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Host {
    /// The value of this type that everybody who knows this host shares. It is created when it is first asked for.
    ///
    /// A value that holds the host keeps it alive.
    pub fn shared_data<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        // A value that panics while it is created is not inserted, so a poisoned lock still guards valid data.
        let mut all = self.0.shared_data.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(&TypeId::of::<T>()).cloned().and_then(|known| known.downcast().ok());
        known.unwrap_or_else(|| {
            let created = Arc::new(T::default());
            all.insert(TypeId::of::<T>(), created.clone());
            created
        })
    }
}
