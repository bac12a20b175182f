//! The health of the journal, for status reports.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::JournalWriteError;

/// The reason why the last write to the journal failed, if it did. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StorageHealth(Arc<Mutex<Option<String>>>);

impl StorageHealth {
    pub(crate) fn problem(&self) -> Option<String> {
        self.reason().clone()
    }

    pub(super) fn works(&self) {
        *self.reason() = None;
    }

    /// Notes a failure. Returns whether the reason is a new one.
    pub(super) fn fails(&self, error: &JournalWriteError) -> bool {
        let reason = Some(error.to_string());
        let mut known = self.reason();
        let is_new = *known != reason;
        *known = reason;
        is_new
    }

    // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
    fn reason(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
