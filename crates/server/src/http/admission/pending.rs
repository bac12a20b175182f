//! Connections that have not shown a token yet.
//!
//! Each listener has few slots for them. If there are more, one is closed: the oldest of those that gave a wrong token,
//! then the oldest of those from which the host waits for bytes. A connection whose bytes the host has not handled yet
//! is never closed, since it is the host that is late; instead no further one is accepted. So silent and guessing
//! connections keep nobody out and use up nothing, and a client that sends its token at once gets in.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use grove_checks::Check;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, oneshot};

/// The pending connections of a listener. Clones share them.
#[derive(Clone, Debug)]
pub(in crate::http) struct PendingConnections {
    limit: usize,
    waiting: Arc<Mutex<PendingQueue>>,
    /// Signals that a connection has ended.
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct PendingQueue {
    next: u64,
    /// The pending connections, oldest first.
    connections: BTreeMap<u64, PendingEntry>,
    /// Their number, including those that are being closed.
    present: usize,
}

#[derive(Debug)]
struct PendingEntry {
    standing: Standing,
    /// Closes it.
    close: oneshot::Sender<()>,
}

/// The state of a pending connection, in the order in which they are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It gave a wrong token.
    Refused,
    /// The host has handled everything that came, and waits for the client.
    Waiting,
    /// The host has yet to read or to handle what came.
    Working,
}

/// A pending connection, until this is dropped.
#[derive(Debug)]
pub(in crate::http) struct PendingConnection(Arc<PendingKey>);

/// Finds a pending connection in its queue.
#[derive(Debug)]
struct PendingKey {
    pending_connections: PendingConnections,
    number: u64,
    /// It is admitted or has ended.
    is_over: AtomicBool,
}

/// Tells a pending connection to close.
#[derive(Debug)]
pub(crate) struct Rejected(Option<oneshot::Receiver<()>>);

impl PendingConnections {
    /// For at most so many, and at least one.
    pub(in crate::http) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), waiting: Arc::default(), left: Arc::default() }
    }

    /// Adds a connection, and closes another one if there are too many.
    pub(in crate::http) fn enter(&self) -> (PendingConnection, Rejected) {
        let (close, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.connections.insert(number, PendingEntry { standing: Standing::Working, close });
        waiting.present += 1;
        waiting.make_room(self.limit);
        drop(waiting);
        let key = PendingKey { pending_connections: self.clone(), number, is_over: AtomicBool::new(false) };
        (PendingConnection(Arc::new(key)), Rejected(Some(receiver)))
    }

    /// Waits until there are no more than the limit, with those that are being closed.
    ///
    /// A listener waits for it before it accepts the next one: otherwise connections that come faster than others end
    /// would be unbounded.
    pub(in crate::http) async fn settled(&self) {
        // `Notify` remembers a connection that ends between the check and the wait.
        while Check::PendingConnections.is_enforced() && self.waiting().present > self.limit {
            self.left.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, PendingQueue> {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingQueue {
    /// Closes connections beyond the limit, unless the host is late with all of them.
    fn make_room(&mut self, limit: usize) {
        while Check::PendingConnections.is_enforced() && self.connections.len() > limit {
            let first = self.connections.iter().min_by_key(|(number, entry)| (entry.standing, **number));
            let Some((&number, standing)) = first.map(|(number, entry)| (number, entry.standing)) else { return };
            if standing == Standing::Working {
                return;
            }
            if let Some(entry) = self.connections.remove(&number) {
                // It may have ended by itself.
                entry.close.send(()).ok();
                tracing::debug!(limit, ?standing, "a connection without a token is closed to make room");
            }
        }
    }
}

impl PendingConnection {
    /// Notes that it gave a wrong token.
    pub(super) fn refuse(&self) {
        self.0.set_standing(Standing::Refused);
    }

    /// Its bytes.
    pub(in crate::http) fn watch<S>(&self, stream: S) -> PendingStream<S> {
        PendingStream { stream, connection: Some(self.0.clone()), standing: Standing::Working }
    }
}

impl PendingKey {
    fn set_standing(&self, standing: Standing) {
        let mut waiting = self.pending_connections.waiting();
        if let Some(entry) = waiting.connections.get_mut(&self.number)
            && entry.standing != Standing::Refused
        {
            entry.standing = standing;
            waiting.make_room(self.pending_connections.limit);
        }
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        let PendingKey { pending_connections, number, is_over } = &*self.0;
        is_over.store(true, Ordering::Relaxed);
        let mut waiting = pending_connections.waiting();
        waiting.connections.remove(number);
        waiting.present -= 1;
        drop(waiting);
        pending_connections.left.notify_one();
    }
}

impl Rejected {
    /// For a connection that is never told to close.
    pub(super) const NEVER: Self = Self(None);

    /// Waits until the connection has to close, which never happens once it is authenticated.
    pub(crate) async fn signaled(&mut self) {
        let signaled = match &mut self.0 {
            Some(signaled) => signaled.await.is_ok(),
            None => false,
        };
        // It is polled once.
        self.0 = None;
        if !signaled {
            std::future::pending().await
        }
    }
}

/// The bytes of a connection. While it is pending, its queue learns which side the other one waits for.
#[derive(Debug)]
pub(crate) struct PendingStream<S> {
    stream: S,
    /// None once it is not pending any more.
    connection: Option<Arc<PendingKey>>,
    /// The standing that the queue knows from here.
    standing: Standing,
}

impl<S> PendingStream<S> {
    /// A stream of a connection that is not pending.
    pub(super) fn admitted(stream: S) -> Self {
        Self { stream, connection: None, standing: Standing::Working }
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }

    fn note(&mut self, standing: Standing) {
        let Some(connection) = &self.connection else { return };
        if connection.is_over.load(Ordering::Relaxed) {
            self.connection = None;
        } else if self.standing != standing {
            self.standing = standing;
            connection.set_standing(standing);
        }
    }

    fn note_written<T>(&mut self, written: Poll<T>) -> Poll<T> {
        if written.is_pending() {
            self.note(Standing::Waiting);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PendingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note(if read.is_pending() { Standing::Waiting } else { Standing::Working });
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PendingStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note_written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.note_written(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.note_written(shut)
    }
}
