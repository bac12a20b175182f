//! The state of the host and of its storage.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use grove_core::{ChatId, SessionId};
use grove_metrics::Sessions;

use super::Host;
use crate::sequencer::HostStopped;

/// A host's activity in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStatus {
    pub sessions: usize,
    /// The sessions in memory: those with subscribers, now or a while ago.
    pub loaded: usize,
    pub running_turns: usize,
    pub connections: usize,
    pub server_seq: u64,
    /// The sessions in which everything is allowed without a question (`allowAll`), by their ids.
    pub allow_all: Vec<SessionId>,
}

/// The sizes of the tables that must not grow with the clients and sessions that there once were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Clients, connected or remembered; at most [`Limits::known_clients`](crate::Limits::known_clients) that are gone.
    pub clients: usize,
    /// Sessions with a task.
    pub open_sessions: usize,
    /// Sessions that are noted as used, so that they are not evicted.
    pub used_sessions: usize,
    /// Sessions whose temporary files are kept.
    pub kept_temp_files: usize,
    /// Sessions with attached clients, or with clients that may return.
    pub attended_sessions: usize,
}

/// Checks that the host's storage is still there; returns a description of the problem.
pub(super) type StorageCheck = Arc<dyn Fn() -> Option<String> + Send + Sync>;

impl Host {
    /// The load of the host.
    pub async fn status(&self) -> Result<HostStatus, HostStopped> {
        let connections = self.0.sequencer.connections();
        Ok(self.0.sequencer.read(|published| {
            let sessions = &published.state.sessions;
            let chats = sessions.values().flat_map(|session| &session.chats);
            let allowing = published.listed().filter(|(session, _)| session.details.allows_all());
            let mut allow_all: Vec<SessionId> = allowing.map(|(session, _)| session.id.clone()).collect();
            allow_all.sort_unstable();
            HostStatus {
                sessions: sessions.len() + published.evicted.len(),
                loaded: sessions.len(),
                running_turns: chats.filter(|chat| chat.active.is_some()).count(),
                connections,
                server_seq: published.seq,
                allow_all,
            }
        }))
    }

    /// The chats with a running turn.
    pub fn running_chats(&self) -> Vec<(SessionId, ChatId)> {
        self.0.sequencer.read(|published| {
            let sessions = published.state.sessions.values();
            let chats = sessions.flat_map(|session| session.chats.iter().map(move |chat| (session, chat)));
            let running = chats.filter(|(_, chat)| chat.active.is_some());
            running.map(|(session, chat)| (session.id.clone(), chat.id.clone())).collect()
        })
    }

    /// Sets the metrics that are read when somebody asks for them.
    pub async fn refresh_metrics(&self) -> Result<(), HostStopped> {
        let status = self.status().await?;
        let sessions = Sessions { all: status.sessions, loaded: status.loaded, running_turns: status.running_turns };
        let env = self.env();
        let uptime = Duration::from_millis(env.clock.now().0.saturating_sub(self.started_at().0));
        let metrics = env.metrics.clone();
        // It reads files of the system. If that fails, the numbers are those of the last time.
        env.spawn.run_blocking(move || metrics.refresh(sessions, uptime)).await.ok();
        Ok(())
    }

    /// The sizes of tables that could grow.
    pub fn table_sizes(&self) -> TableSizes {
        let clients = self.0.sequencer.known_clients();
        let kept_temp_files = self.0.keeping.lock().unwrap_or_else(PoisonError::into_inner).len();
        let sessions = self.sessions();
        let (open_sessions, used_sessions) = (sessions.open.len(), sessions.rest.noted());
        let attended_sessions = self.0.sequencer.presence().sessions_len();
        TableSizes { clients, open_sessions, used_sessions, kept_temp_files, attended_sessions }
    }

    /// The number of times that anything went through the sequencer, where it may wait for the disk.
    pub fn sequencer_passes(&self) -> u64 {
        self.0.sequencer.passes()
    }

    /// Descriptions of the damage that was found when the host started.
    pub fn damage(&self) -> &[String] {
        &self.0.damage
    }

    /// Sets the check behind [`Host::storage_problem`]. Only the first call has an effect.
    pub fn set_storage_check(&self, check: impl Fn() -> Option<String> + Send + Sync + 'static) {
        if self.0.storage_check.set(Arc::new(check)).is_err() {
            tracing::warn!("a host has one check of its storage: the second one is not used");
        }
    }

    /// The reason why nothing can be stored at the moment; `None` if it can.
    pub fn storage_problem(&self) -> Option<String> {
        let check = self.0.storage_check.get();
        check.and_then(|check| check()).or_else(|| self.0.storage.problem())
    }
}
