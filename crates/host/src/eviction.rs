//! Eviction: idle sessions leave memory, and are loaded from their folders when they are needed again.
//!
//! Time is counted in rounds. A session that was used in neither of the last two, that has no subscribers and no work,
//! ends its task and leaves the published state; its row stays in lists. The sequencer evicts it under the lock of the
//! published state, and only if it was not used until then. So the next request, which marks it as used before it looks,
//! finds it either loaded or in its folder, and never in between.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::SessionId;

use crate::host::Host;
use crate::sequencer::{HostStopped, ToSequencer};
use crate::session::ToSession;
use crate::session::spills::SessionSpills;

/// The sessions whose last use is tracked.
///
/// One past it might be evicted just before a client reads it, who is then told that it is missing; a retry finds it.
pub const MAX_TRACKED_SESSIONS: usize = 100_000;

/// The last use of sessions, and the temporary files of evicted ones.
#[derive(Debug, Default)]
pub(crate) struct EvictionState {
    round: u64,
    /// The round in which each was last used.
    wanted: HashMap<SessionId, u64>,
    /// Temporary files of evicted sessions: their agents know their names.
    spills: HashMap<SessionId, SessionSpills>,
}

impl EvictionState {
    fn note(&mut self, id: &SessionId) {
        if self.wanted.len() < MAX_TRACKED_SESSIONS || self.wanted.contains_key(id) {
            self.wanted.insert(id.clone(), self.round);
        }
    }

    /// Starts a round, and forgets uses before the last one.
    fn next_round(&mut self) {
        self.round += 1;
        let round = self.round;
        self.wanted.retain(|_, wanted| *wanted + 1 >= round);
    }

    /// Forgets a session that does not exist, or no longer.
    pub(crate) fn forget(&mut self, id: &SessionId) {
        self.wanted.remove(id);
        self.spills.remove(id);
    }

    /// The number of sessions that are noted as used.
    pub(crate) fn noted(&self) -> usize {
        self.wanted.len()
    }

    fn is_wanted(&self, id: &SessionId) -> bool {
        self.wanted.contains_key(id)
    }

    /// The temporary files of a session that is loaded again.
    pub(crate) fn take_spills(&mut self, id: &SessionId) -> Option<SessionSpills> {
        self.spills.remove(id)
    }
}

impl Host {
    /// Notes that a session is used.
    pub fn mark_used(&self, id: &SessionId) {
        self.sessions().rest.note(id);
    }

    /// Starts evicting sessions, as long as the host lives.
    pub(crate) fn start_eviction(&self) {
        let idle = self.0.config.limits.session_idle;
        if idle.is_zero() {
            return;
        }
        let (host, clock) = (Arc::downgrade(&self.0), self.0.env.clock.clone());
        self.0.env.spawn.spawn(Box::pin(async move {
            loop {
                clock.sleep(idle).await;
                let Some(host) = host.upgrade().map(Host) else { return };
                if host.eviction_round().await.is_err() {
                    return;
                }
            }
        }));
    }

    async fn eviction_round(&self) -> Result<(), HostStopped> {
        self.sessions().rest.next_round();
        let idle_sessions = self.0.sequencer.idle_sessions().await?;
        for (id, store) in idle_sessions {
            // Client-stored sessions are closed by their storage client.
            if self.0.env.stores.is_client_stored(&store) {
                continue;
            }
            let sessions = self.sessions();
            if sessions.stopping || sessions.rest.is_wanted(&id) {
                continue;
            }
            match sessions.open.get(&id) {
                // A session whose inbox is full is not idle.
                Some(handle) => drop(handle.inbox.try_send(ToSession::Evict)),
                None => drop(self.0.sequencer.tell_now(self.evict(&id))),
            }
        }
        Ok(())
    }

    /// The request to evict a session, unless it is used until then.
    fn evict(&self, id: &SessionId) -> ToSequencer {
        let (host, wanted) = (Arc::downgrade(&self.0), id.clone());
        let is_unused = move || host.upgrade().is_some_and(|host| !Host(host).sessions().rest.is_wanted(&wanted));
        ToSequencer::Evict(id.clone(), Box::new(is_unused))
    }

    /// Removes the task of a session, unless it is in use at this moment. Returns whether it did.
    pub(crate) fn rest(&self, id: &SessionId, spills: &SessionSpills, is_unwanted: impl FnOnce() -> bool) -> bool {
        let mut sessions = self.sessions();
        if sessions.stopping || sessions.rest.is_wanted(id) || !is_unwanted() {
            return false;
        }
        // A sequencer that is too busy is asked in a later round.
        if !self.0.sequencer.tell_now(self.evict(id)) {
            return false;
        }
        sessions.open.remove(id);
        if spills.are_there() {
            sessions.rest.spills.insert(id.clone(), spills.clone());
        }
        true
    }

    /// Removes the temporary files of evicted sessions, when the host stops.
    pub(crate) async fn remove_spills_of_evicted(&self) {
        let left = std::mem::take(&mut self.sessions().rest.spills);
        for spills in left.into_values() {
            spills.remove().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_wanted_in_this_round_or_the_last_does_not_rest() {
        let (mut eviction_state, id) = (EvictionState::default(), SessionId::from("a"));
        eviction_state.note(&id);
        eviction_state.next_round();
        assert!(eviction_state.is_wanted(&id), "it was wanted a moment ago, perhaps");
        eviction_state.next_round();
        assert!(!eviction_state.is_wanted(&id));
        eviction_state.note(&id);
        assert!(eviction_state.is_wanted(&id));
    }

    #[test]
    fn what_is_noted_is_bounded() {
        let mut eviction_state = EvictionState::default();
        (0..=MAX_TRACKED_SESSIONS)
            .for_each(|number| eviction_state.note(&SessionId::from(number.to_string().as_str())));
        assert_eq!(eviction_state.wanted.len(), MAX_TRACKED_SESSIONS);
        eviction_state.next_round();
        eviction_state.next_round();
        assert!(eviction_state.wanted.is_empty(), "and it is forgotten");
    }
}
