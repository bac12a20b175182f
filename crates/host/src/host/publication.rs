//! Publishing the host's own events.

use grove_core::*;

use super::Host;
use crate::sequencer::{HostStopped, JournalScope, JournalWriteError, Publication, PublishedState, WriteFailurePolicy};

impl Host {
    /// Publishes the number of sessions, if it has changed.
    pub(crate) async fn publish_session_count(&self) -> Result<(), HostStopped> {
        let differs = |published: &PublishedState| {
            usize::try_from(published.state.root.active_sessions).ok() != Some(session_count(published))
        };
        if self.0.sequencer.read(differs) { self.active_sessions_changed().await } else { Ok(()) }
    }

    pub(crate) async fn active_sessions_changed(&self) -> Result<(), HostStopped> {
        let count = self.0.sequencer.read(session_count);
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
        scope: JournalScope,
    ) -> Result<Result<u64, JournalWriteError>, HostStopped> {
        self.0.sequencer.publish_now(publication(events, on_write_failure, scope)).await
    }

    /// Publishes the events of a new session and the number of sessions that there are then, in one write.
    pub(super) async fn publish_creation(
        &self,
        events: Vec<Event>,
        scope: JournalScope,
    ) -> Result<Result<u64, JournalWriteError>, HostStopped> {
        let refuse = WriteFailurePolicy::Refuse;
        let count = u32::try_from(self.0.sequencer.read(session_count) + 1).unwrap_or(u32::MAX);
        let counted = Change::Root(RootEvent::ActiveSessionsChanged(count));
        let counted = Event { at: self.0.env.clock.now(), change: counted };
        let counted = publication(vec![counted], refuse, JournalScope::AllEvents);
        self.0.sequencer.publish_both(publication(events, refuse, scope), counted).await
    }
}

/// The number of sessions, loaded or not.
fn session_count(published: &PublishedState) -> usize {
    published.state.sessions.len() + published.evicted.len()
}

fn publication(events: Vec<Event>, on_write_failure: WriteFailurePolicy, scope: JournalScope) -> Publication {
    Publication { events, origin: None, finished: Vec::new(), marks: Vec::new(), on_write_failure, scope, done: None }
}
