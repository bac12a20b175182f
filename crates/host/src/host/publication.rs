//! Publishing the host's own events.

use grove_core::*;

use super::Host;
use crate::sequencer::{HostStopped, JournalScope, JournalWriteError, Publication, PublishedState, WriteFailurePolicy};

impl Host {
    /// Publishes the number of sessions, if it has changed.
    pub(crate) async fn publish_session_count(&self) -> Result<(), HostStopped> {
        let differs = |published: &PublishedState, _| {
            let count = published.state.sessions.len() + published.evicted.len();
            usize::try_from(published.state.root.active_sessions).ok() != Some(count)
        };
        if self.0.sequencer.read(differs).await? { self.active_sessions_changed().await } else { Ok(()) }
    }

    pub(crate) async fn active_sessions_changed(&self) -> Result<(), HostStopped> {
        let all = |published: &PublishedState, _| published.state.sessions.len() + published.evicted.len();
        let count = self.0.sequencer.read(all).await?;
        self.publish_root(RootEvent::ActiveSessionsChanged(u32::try_from(count).unwrap_or(u32::MAX))).await
    }

    pub(super) async fn publish_root(&self, event: RootEvent) -> Result<(), HostStopped> {
        let event = Event { at: self.0.env.clock.now(), change: Change::Root(event) };
        // Changes that may be held are never refused.
        self.publish(vec![event], WriteFailurePolicy::Hold, JournalScope::AllEvents).await.map(|_| ())
    }

    pub(crate) async fn publish(
        &self,
        events: Vec<Event>,
        on_write_failure: WriteFailurePolicy,
        trace: JournalScope,
    ) -> Result<Result<u64, JournalWriteError>, HostStopped> {
        let publication = Publication {
            events,
            origin: None,
            finished: Vec::new(),
            marks: Vec::new(),
            on_write_failure,
            trace,
            done: None,
        };
        self.0.sequencer.publish_now(publication).await
    }
}
