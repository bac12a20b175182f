//! The way to the sequencer, and to the state that it publishes.

#[cfg(test)]
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grove_core::*;
use grove_storage::session_file::EvictedSession;
use tokio::sync::{mpsc, oneshot};

use super::state::{ClientClaim, SharedState};
use super::{
    Attach, ClientRecord, ConnectionId, DirectReply, JournalWriteError, Listen, ListenScope, Publication,
    PublishedState, ReplySink, SequencedEvent, Subscribe, SubscriptionTarget, ToSequencer,
};
#[cfg(test)]
use crate::env::Env;
use crate::presence::Presence;
use crate::subscriber::Encode;
use crate::tokens::TokenPublicId;

/// The sender of messages to the sequencer, and the reader of what it publishes.
#[derive(Clone)]
pub struct SequencerHandle {
    inbox: mpsc::Sender<ToSequencer>,
    shared: Arc<SharedState>,
    passes: Arc<AtomicU64>,
}

impl fmt::Debug for SequencerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequencerHandle").finish_non_exhaustive()
    }
}

/// The sequencer has ended, and the host with it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the host is stopping")]
pub struct HostStopped;

impl SequencerHandle {
    pub(super) fn new(inbox: mpsc::Sender<ToSequencer>, shared: Arc<SharedState>) -> Self {
        Self { inbox, shared, passes: Arc::default() }
    }

    /// A handle to the receiver of these messages, which a test serves itself.
    #[cfg(test)]
    pub(crate) fn to(messages: mpsc::Sender<ToSequencer>) -> Self {
        Self::new(
            messages,
            Arc::new(SharedState::new(PublishedState::default(), HashMap::new(), Presence::new(&Env::in_memory()))),
        )
    }

    pub(crate) async fn tell(&self, message: ToSequencer) -> Result<(), HostStopped> {
        self.count(&message);
        self.inbox.send(message).await.map_err(|_| HostStopped)
    }

    /// Sends without waiting; returns whether it was sent.
    pub(crate) fn tell_now(&self, message: ToSequencer) -> bool {
        self.count(&message);
        self.inbox.try_send(message).is_ok()
    }

    /// Counts a message. Nobody waits for the note that a folder is written.
    fn count(&self, message: &ToSequencer) {
        if !matches!(message, ToSequencer::Persisted(..)) {
            self.passes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends a message, and waits until it is handled.
    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> ToSequencer) -> Result<T, HostStopped> {
        let (sender, reply) = oneshot::channel();
        self.tell(message(sender)).await?;
        reply.await.map_err(|_| HostStopped)
    }

    /// The number of messages to the sequencer so far that somebody waits for, or may. Each may wait for the disk.
    pub(crate) fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// Reads the published state. It waits for nothing, so messages that were sent before may not be handled yet.
    pub fn read<T>(&self, look: impl FnOnce(&PublishedState) -> T) -> T {
        look(&self.shared.published())
    }

    /// The record of a client.
    pub fn find_client(&self, client: &ClientId) -> Option<ClientRecord> {
        let clients = self.shared.clients();
        clients.get(client).map(|client| ClientRecord {
            dialect: client.dialect,
            name: client.name.clone(),
            token: client.token,
            connected: client.connection.is_some(),
            touched: client.touched,
        })
    }

    /// The attached clients of all sessions.
    pub fn presence(&self) -> &Arc<Presence> {
        self.shared.presence()
    }

    /// Claims the id of a client that is about to attach; `None` if it belongs to another token that exists.
    ///
    /// The claim is kept until the client is attached: then the sequencer remembers its token.
    pub fn claim_client(
        &self,
        client: ClientId,
        token: Option<TokenPublicId>,
        exists: impl Fn(Option<TokenPublicId>) -> bool,
    ) -> Option<ClientClaim> {
        self.shared.claim_client(client, token, exists)
    }

    /// The number of clients that are connected or remembered.
    pub(crate) fn known_clients(&self) -> usize {
        self.shared.clients().len()
    }

    /// The number of connections whose clients are known.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections()
    }

    /// Attaches a connection. Its answer is in its place when this returns, so that later answers come behind it.
    pub async fn attach(&self, mut attach: Attach) -> Result<(), HostStopped> {
        let (reply, answered) = noting(attach.reply);
        attach.reply = reply;
        self.tell(ToSequencer::Attach(attach)).await?;
        answered.await.map_err(|_| HostStopped)
    }

    /// Subscribes a connection. Its answer is in its place when this returns, so that later answers come behind it.
    pub async fn subscribe(&self, mut subscribe: Subscribe) -> Result<(), HostStopped> {
        let (reply, answered) = noting(subscribe.reply);
        subscribe.reply = reply;
        self.tell(ToSequencer::Subscribe(subscribe)).await?;
        answered.await.map_err(|_| HostStopped)
    }

    /// Sends a message to one connection, and the answer behind it. The answer is in its place when this returns.
    pub async fn send_with_answer(
        &self,
        mut message: DirectReply,
        (reply, answer): (ReplySink, Encode),
    ) -> Result<(), HostStopped> {
        let (reply, answered) = noting(reply);
        message.answer = Some((reply, answer));
        self.tell(ToSequencer::SendDirect(message)).await?;
        answered.await.map_err(|_| HostStopped)
    }

    /// Sends a message to one connection.
    pub async fn send_direct(&self, message: DirectReply) -> Result<(), HostStopped> {
        self.tell(ToSequencer::SendDirect(message)).await
    }

    /// Ends a connection's subscription.
    pub async fn unsubscribe(&self, connection: ConnectionId, wanted: SubscriptionTarget) -> Result<(), HostStopped> {
        self.tell(ToSequencer::Unsubscribe(connection, wanted)).await
    }

    /// Ends a connection; its client counts as disconnected when this returns.
    pub async fn detach(&self, connection: ConnectionId) -> Result<(), HostStopped> {
        self.ask(|done| ToSequencer::Detach(connection, done)).await
    }

    /// Adds a session from its folder to the published state, unless it is loaded already.
    pub(crate) async fn load(&self, session: Session) -> Result<(), HostStopped> {
        self.ask(|done| ToSequencer::Load(Box::new(session), done)).await
    }

    /// Lists an imported session, all of which is in its folder.
    pub(crate) async fn add_evicted(&self, evicted: EvictedSession) -> Result<(), HostStopped> {
        self.ask(|done| ToSequencer::AddEvicted(Box::new(evicted), done)).await
    }

    /// The loaded sessions without subscribers and without work, with their stores.
    pub(crate) async fn idle_sessions(&self) -> Result<Vec<(SessionId, StoreName)>, HostStopped> {
        self.ask(ToSequencer::ListIdle).await
    }

    /// Publishes; returns a receiver that resolves when it is done.
    pub(crate) async fn publish(
        &self,
        mut publication: Publication,
    ) -> Result<oneshot::Receiver<Result<u64, JournalWriteError>>, HostStopped> {
        let (done, outcome) = oneshot::channel();
        publication.done = Some(done);
        self.tell(ToSequencer::Publish(publication)).await?;
        Ok(outcome)
    }

    /// Publishes and waits until it is done.
    pub(crate) async fn publish_now(
        &self,
        publication: Publication,
    ) -> Result<Result<u64, JournalWriteError>, HostStopped> {
        self.publish(publication).await?.await.map_err(|_| HostStopped)
    }

    /// Publishes two publications in one write, and waits until the first is done.
    pub(crate) async fn publish_both(
        &self,
        mut first: Publication,
        second: Publication,
    ) -> Result<Result<u64, JournalWriteError>, HostStopped> {
        let publish = |done| {
            first.done = Some(done);
            ToSequencer::PublishBoth(Box::new([first, second]))
        };
        self.ask(publish).await
    }

    /// Subscribes to sessions inside this process, starting with a read of the published state.
    ///
    /// At most this many events may wait; with more, the subscription ends.
    pub async fn listen<T: Send + 'static>(
        &self,
        what: ListenScope,
        most: usize,
        look: impl FnOnce(&PublishedState) -> T + Send + 'static,
    ) -> Result<(T, mpsc::Receiver<Arc<SequencedEvent>>), HostStopped> {
        let (listener, events) = mpsc::channel(most);
        let (sender, seen) = oneshot::channel();
        let begin = Box::new(move |published: &PublishedState| {
            // The caller may have stopped waiting.
            sender.send(look(published)).ok();
        });
        self.tell(ToSequencer::Listen(Listen { what, listener, begin })).await?;
        Ok((seen.await.map_err(|_| HostStopped)?, events))
    }

    /// Reads the published state, after everything sent before.
    pub(crate) async fn read_in_order<T: Send + 'static>(
        &self,
        look: impl FnOnce(&PublishedState) -> T + Send + 'static,
    ) -> Result<T, HostStopped> {
        let read = |sender: oneshot::Sender<T>| {
            ToSequencer::Read(Box::new(move |published| {
                // The caller may have stopped waiting.
                sender.send(look(published)).ok();
            }))
        };
        self.ask(read).await
    }
}

/// The same destination of an answer, and a receiver that resolves when the answer is there.
fn noting(reply: ReplySink) -> (ReplySink, oneshot::Receiver<()>) {
    let (answered, noted) = oneshot::channel();
    let reply = move |answer| {
        reply(answer);
        // The connection may be gone.
        answered.send(()).ok();
    };
    (Box::new(reply), noted)
}
