//! Why there is no list.

use grove_sessions::{BadId, DuplicateProvider, StateStoreError};

/// Why sessions cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum SessionHubError {
    #[error("sessions cannot be listed: {0}")]
    Id(#[from] BadId),
    /// Somebody registered a provider with the id of this host's.
    #[error("sessions cannot be listed: {0}")]
    Taken(#[from] DuplicateProvider),
    #[error("sessions cannot be listed: {0}")]
    Memory(#[from] StateStoreError),
}
