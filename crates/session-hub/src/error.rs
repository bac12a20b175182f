//! Errors of the session hub.

use grove_sessions::{BadId, DuplicateProvider, StateStoreError};

/// The reason why sessions cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum SessionHubError {
    #[error("sessions cannot be listed: {0}")]
    Id(#[from] BadId),
    /// Another provider has the id of this host's.
    #[error("sessions cannot be listed: {0}")]
    Taken(#[from] DuplicateProvider),
    #[error("sessions cannot be listed: {0}")]
    Memory(#[from] StateStoreError),
}
