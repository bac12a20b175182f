//! What a host had when it was last seen, kept for when it cannot be reached.

use std::cmp::Reverse;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use grove_core::Timestamp;
use grove_wire::ahp::SessionSummary;
use serde::{Deserialize, Serialize};

use super::state::at;

/// How many sessions of a host are kept: those that changed last.
pub const MAX_CACHED_ROWS: usize = 2_000;

/// The sessions of a host as it listed them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CachedSessionList {
    /// When that was.
    pub at: Timestamp,
    /// Whether it had no others.
    pub is_whole: bool,
    /// The one that changed last first.
    pub sessions: Vec<SessionSummary>,
}

impl CachedSessionList {
    /// What a host has at a time: the newest of it, [`MAX_CACHED_ROWS`] at most.
    pub fn new<'a>(at_time: Timestamp, sessions: impl IntoIterator<Item = &'a SessionSummary>) -> Self {
        let mut newest: Vec<&SessionSummary> = sessions.into_iter().collect();
        newest.sort_by_cached_key(|session| Reverse(at(&session.modified_at)));
        let is_whole = newest.len() <= MAX_CACHED_ROWS;
        Self { at: at_time, is_whole, sessions: newest.into_iter().take(MAX_CACHED_ROWS).cloned().collect() }
    }

    /// The newer half of it, for those who have no room for more.
    pub fn newer_half(mut self) -> Self {
        self.sessions.truncate(self.sessions.len() / 2);
        self.is_whole = false;
        self
    }
}

/// Where the list of one host is kept. It never fails: what cannot be kept or read is not there.
pub trait SessionListCache: Send + Sync + fmt::Debug {
    /// What was last kept, where that is newer than `than`. It may have to read a file.
    fn newer(&self, than: Option<Timestamp>) -> Option<CachedSessionList>;

    /// Keeps a list in place of an older one. It answers at once: one on a disk writes behind.
    fn keep(&self, list: CachedSessionList);

    /// Returns when what was kept has been written, for who ends soon. It may wait for a disk.
    fn settle(&self) {}
}

/// Keeps a list for as long as it lives.
#[derive(Debug, Default)]
pub struct InMemorySessionListCache {
    list: Mutex<Option<CachedSessionList>>,
}

impl SessionListCache for InMemorySessionListCache {
    fn newer(&self, than: Option<Timestamp>) -> Option<CachedSessionList> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.clone().filter(|list| Some(list.at) > than)
    }

    fn keep(&self, list: CachedSessionList) {
        *self.list.lock().unwrap_or_else(PoisonError::into_inner) = Some(list);
    }
}
