//! A cache beside an immutable value, for those who derive something from it.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// A value that a user of this crate derives from another one, such as its encodings. Nothing here reads it.
///
/// A clone begins empty, since it may be changed.
#[derive(Default)]
pub struct DerivedCache(OnceLock<Box<dyn Any + Send + Sync>>);

impl DerivedCache {
    /// The derived value, created empty at the first call. `None` if the cache holds a value of another type.
    pub fn get_or_default<T: Any + Default + Send + Sync>(&self) -> Option<&T> {
        self.0.get_or_init(|| Box::new(T::default())).downcast_ref()
    }
}

impl Clone for DerivedCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for DerivedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DerivedCache").field(&self.0.get().is_some()).finish()
    }
}
