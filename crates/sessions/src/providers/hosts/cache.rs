//! The newest rows of a host, kept for when it cannot be reached.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use grove_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::ProviderId;
use crate::memory::MemoryError;
use crate::session::SessionState;

/// How many rows of a host are kept: those that changed last.
pub const MAX_KEPT_ROWS: usize = 100;

/// A row as it was last seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptRow {
    /// The session's URI on its host.
    pub on_host: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// All that was known.
    pub state: SessionState,
}

/// Where rows are kept. It answers at once, as [`Memory`](crate::Memory) does: one on a disk keeps the newest in memory and
/// writes it behind.
pub trait KeepRows: Send + Sync + fmt::Debug {
    /// The rows of a host, as they were last kept.
    fn rows(&self, host: &ProviderId) -> Result<Vec<KeptRow>, MemoryError>;

    /// Keeps the rows of a host in place of those that were kept before; [`MAX_KEPT_ROWS`] at most.
    fn keep(&self, host: &ProviderId, rows: Vec<KeptRow>) -> Result<(), MemoryError>;
}

/// Keeps rows for as long as it lives.
#[derive(Debug, Default)]
pub struct RowsInMemory {
    rows: Mutex<HashMap<ProviderId, Vec<KeptRow>>>,
}

impl KeepRows for RowsInMemory {
    fn rows(&self, host: &ProviderId) -> Result<Vec<KeptRow>, MemoryError> {
        Ok(self.rows.lock().unwrap_or_else(PoisonError::into_inner).get(host).cloned().unwrap_or_default())
    }

    fn keep(&self, host: &ProviderId, rows: Vec<KeptRow>) -> Result<(), MemoryError> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).insert(host.clone(), rows);
        Ok(())
    }
}
