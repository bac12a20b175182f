//! The way of a session's events to the sequencer.

use grove_core::*;
use grove_storage::ActionOrigin;
use tokio::sync::oneshot;

use crate::sequencer::{
    HostStopped, JournalScope, JournalWriteError, SequencerHandle, ToSequencer, WriteFailurePolicy,
};
use crate::session::Outbox;

/// Publishes the events of a session's task.
pub(in crate::session) struct Publisher {
    sequencer: SequencerHandle,
    /// The part of an event that is on this machine's disk.
    scope: JournalScope,
    /// The last publication that nobody waits for, until it is done.
    outstanding: Option<oneshot::Receiver<Result<u64, JournalWriteError>>>,
    /// The sequence number of the last published event.
    last_seq: u64,
}

impl Publisher {
    pub(super) fn new(sequencer: SequencerHandle, scope: JournalScope, last_seq: u64) -> Self {
        Self { sequencer, scope, outstanding: None, last_seq }
    }

    /// The sequence number of the last published event.
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Says whether everything is published.
    pub(in crate::session) fn is_idle(&self) -> bool {
        self.outstanding.is_none()
    }

    /// Publishes events that have happened. They are held while they cannot be written, and nobody waits for them.
    pub(in crate::session) async fn send(
        &mut self,
        session: &SessionId,
        out: &mut Outbox,
        origin: Option<ActionOrigin>,
    ) -> Result<(), HostStopped> {
        let mut publication = out.publication(origin, WriteFailurePolicy::Hold, self.scope);
        let cursors = std::mem::take(&mut out.marks).into_iter();
        publication.marks = cursors.map(|(chat, cursor)| (session.clone(), chat, cursor)).collect();
        self.outstanding = Some(self.sequencer.publish(publication).await?);
        Ok(())
    }

    /// Publishes events and waits for it. The error says why they are not published and have not happened.
    pub(in crate::session) async fn commit(
        &mut self,
        out: &mut Outbox,
        origin: Option<ActionOrigin>,
        on_write_failure: WriteFailurePolicy,
    ) -> Result<Result<(), JournalWriteError>, HostStopped> {
        let publication = out.publication(origin, on_write_failure, self.scope);
        let published = self.sequencer.publish_now(publication).await?;
        Ok(published.map(|seq| self.last_seq = seq))
    }

    /// Waits for the outstanding publication, if there is one. Returns whether it is written.
    pub(in crate::session) async fn done(&mut self) -> bool {
        let Some(outstanding) = &mut self.outstanding else { return std::future::pending().await };
        // Changes that may be held are never refused, and a sequencer that ended is noticed elsewhere.
        let seq = outstanding.await.ok().and_then(Result::ok);
        self.outstanding = None;
        // A client's action may have been published after it meanwhile.
        self.last_seq = self.last_seq.max(seq.unwrap_or_default());
        seq.is_some()
    }

    /// Tells the sequencer that the session's folder has everything published so far.
    pub(super) async fn persisted(&self, session: &SessionId) {
        // A sequencer that ended is noticed elsewhere.
        self.sequencer.tell(ToSequencer::Persisted(session.clone(), self.last_seq)).await.ok();
    }
}
