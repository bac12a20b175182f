//! The sender of messages to the sequencer.

use std::sync::Arc;

use grove_core::*;
use tokio::sync::{mpsc, oneshot};

use super::{
    ClientRecord, Counters, JournalWriteError, Listen, ListenScope, Publication, PublishedState, SequencedEvent,
    ToSequencer,
};

/// The sender of messages to the sequencer.
#[derive(Clone)]
pub(crate) struct SequencerHandle(pub(super) mpsc::Sender<ToSequencer>);

/// The sequencer has ended, and the host with it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the host is stopping")]
pub struct HostStopped;

impl SequencerHandle {
    /// A handle to the receiver of these messages, which a test serves itself.
    #[cfg(test)]
    pub(crate) fn to(messages: mpsc::Sender<ToSequencer>) -> Self {
        Self(messages)
    }

    pub(crate) async fn tell(&self, message: ToSequencer) -> Result<(), HostStopped> {
        self.0.send(message).await.map_err(|_| HostStopped)
    }

    /// Sends without waiting; returns whether it was sent.
    pub(crate) fn tell_now(&self, message: ToSequencer) -> bool {
        self.0.try_send(message).is_ok()
    }

    /// The loaded sessions without subscribers and without work, with their stores.
    pub(crate) async fn idle_sessions(&self) -> Result<Vec<(SessionId, StoreName)>, HostStopped> {
        let (sender, told) = oneshot::channel();
        self.tell(ToSequencer::ListIdle(sender)).await?;
        told.await.map_err(|_| HostStopped)
    }

    /// Publishes; returns a receiver that resolves when it is done.
    pub(crate) async fn publish(
        &self,
        mut publication: Publication,
    ) -> Result<oneshot::Receiver<Result<u64, JournalWriteError>>, HostStopped> {
        let (done, told) = oneshot::channel();
        publication.done = Some(done);
        self.tell(ToSequencer::Publish(publication)).await?;
        Ok(told)
    }

    /// Publishes and waits until it is done.
    pub(crate) async fn publish_now(
        &self,
        publication: Publication,
    ) -> Result<Result<u64, JournalWriteError>, HostStopped> {
        self.publish(publication).await?.await.map_err(|_| HostStopped)
    }

    /// The record of a client.
    pub(crate) async fn find_client(&self, client: ClientId) -> Result<Option<ClientRecord>, HostStopped> {
        let (sender, known) = oneshot::channel();
        self.tell(ToSequencer::FindClient(client, sender)).await?;
        known.await.map_err(|_| HostStopped)
    }

    /// Subscribes to sessions inside this process, starting with a read of the published state.
    ///
    /// At most this many events may wait; with more, the subscription ends.
    pub(crate) async fn listen<T: Send + 'static>(
        &self,
        what: ListenScope,
        most: usize,
        look: impl FnOnce(&PublishedState) -> T + Send + 'static,
    ) -> Result<(T, mpsc::Receiver<Arc<SequencedEvent>>), HostStopped> {
        let (listener, heard) = mpsc::channel(most);
        let (sender, seen) = oneshot::channel();
        let begin = Box::new(move |published: &PublishedState| {
            // The caller may have stopped waiting.
            sender.send(look(published)).ok();
        });
        self.tell(ToSequencer::Listen(Listen { what, listener, begin })).await?;
        Ok((seen.await.map_err(|_| HostStopped)?, heard))
    }

    /// Reads the published state, after everything sent before.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&PublishedState, Counters) -> T + Send + 'static,
    ) -> Result<T, HostStopped> {
        let (sender, seen) = oneshot::channel();
        let read = Box::new(move |published: &PublishedState, counters| {
            // The caller may have stopped waiting.
            sender.send(look(published, counters)).ok();
        });
        self.tell(ToSequencer::Read(read)).await?;
        seen.await.map_err(|_| HostStopped)
    }
}
