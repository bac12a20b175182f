//! The last known session list of a host, for when it is unreachable.

use std::cmp::Reverse;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use grove_core::Timestamp;
use grove_wire::ahp::SessionSummary;
use serde::{Deserialize, Serialize};

use super::state::at;

/// The most sessions of a host that are cached: those that changed last.
pub const MAX_CACHED_ROWS: usize = 2_000;

/// The session list of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CachedSessionList {
    /// The time of the list.
    pub at: Timestamp,
    /// Set if the host had no others.
    pub is_whole: bool,
    /// The session that changed last comes first.
    pub sessions: Vec<SessionSummary>,
}

impl CachedSessionList {
    /// The present sessions of a host: the newest, [`MAX_CACHED_ROWS`] at most.
    pub fn new<'a>(at_time: Timestamp, sessions: impl IntoIterator<Item = &'a SessionSummary>) -> Self {
        let mut newest: Vec<&SessionSummary> = sessions.into_iter().collect();
        newest.sort_by_cached_key(|session| Reverse(at(&session.modified_at)));
        let is_whole = newest.len() <= MAX_CACHED_ROWS;
        Self { at: at_time, is_whole, sessions: newest.into_iter().take(MAX_CACHED_ROWS).cloned().collect() }
    }

    /// The newer half of it, for a cache with less room.
    pub fn newer_half(mut self) -> Self {
        self.sessions.truncate(self.sessions.len() / 2);
        self.is_whole = false;
        self
    }
}

/// The cache of one host's list. It never fails: a list that cannot be written or read does not exist.
pub trait SessionListCache: Send + Sync + fmt::Debug {
    /// The cached list, if it is newer than `than`. It may have to read a file.
    fn newer(&self, than: Option<Timestamp>) -> Option<CachedSessionList>;

    /// Replaces the cached list. It answers at once: a cache on a disk writes in the background.
    fn keep(&self, list: CachedSessionList);

    /// Returns when the list has been written, for a program that is about to end. It may wait for a disk.
    fn settle(&self) {}
}

/// Keeps a list as long as it lives.
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
