//! Why there is no list.

use grove_sessions::{BadId, DuplicateProvider, MemoryError};

/// Why sessions cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    #[error("sessions cannot be listed: {0}")]
    Id(#[from] BadId),
    /// Somebody registered a provider with the id of this host's.
    #[error("sessions cannot be listed: {0}")]
    Taken(#[from] DuplicateProvider),
    #[error("sessions cannot be listed: {0}")]
    Memory(#[from] MemoryError),
}
