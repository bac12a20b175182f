//! A connection: reads requests in order and writes the contents of its queue.
//!
//! Reading goes through tungstenite. Output is framed here, events once for all connections, and written without
//! another copy.

pub(crate) mod batch;
pub(crate) mod editor;
mod frame_log;
pub(crate) mod in_process;
mod write_buffer;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use grove_checks::Check;
use grove_host::sequencer::{ConnectionId, ReplySink};
use grove_host::subscriber::{DisconnectReason, Outgoing, Queue, QueuedAnswer};
use grove_host::{Host, Task};
use grove_metrics::{Metrics, SlowLabel, TransportLabel};
use grove_wire::jsonrpc::{self, ErrorObject, Frame, RpcMessage};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Utf8Bytes};
use tracing::Span;

pub use editor::{EditorConnection, EditorHost, EditorService};
pub(crate) use editor::{EditorRequest, serve_editor};
pub use frame_log::FrameLog;
pub use in_process::{InProcessConnection, InProcessHost, InProcessMessage};
pub(crate) use write_buffer::{Texts, in_time};

use crate::dialect::{ConnectionPeer, count_refusal};
use crate::listener::{PeerAddress, Stream};
use crate::principal::Principal;
use frame_log::{FrameDirection, FrameTap};
use write_buffer::WriteBuffer;

/// A client's messages that may wait to be handled; with more, nothing is read from it.
pub const MAX_QUEUED_MESSAGES: usize = 16;
/// The socket's buffers, each way: an idle connection should cost little.
const SOCKET_BUFFER: usize = 8 << 10;
/// The size of one read. The buffer is cleared at every poll, and a poll follows every write.
const READ_BUFFER: usize = 2 << 10;
/// The pieces that are written at once.
const PIECES: usize = 64;
/// The bound of unread control frames (pongs) in tungstenite. With more, only the newest ping is answered.
pub const CONTROL_BYTES: usize = 64 << 10;
/// The bytes that are framed before they are written: answers are encoded one by one.
const FRAMED: usize = 1 << 20;
/// The time for which a closed client may still read.
pub const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// The delay before a connection with a message above the bound is closed. A client that sends one in each connection
/// would otherwise cost a complete handshake for each message.
pub const OVERSIZE_DELAY: Duration = Duration::from_secs(1);
/// The length at which the log cuts off the name of a method.
const METHOD_CHARS: usize = 64;

/// The stream of an upgraded connection.
pub(crate) struct UpgradedStream {
    pub(crate) stream: Box<dyn Stream>,
    /// The bytes that were read from the stream with the request to upgrade.
    pub(crate) read: Vec<u8>,
    /// A message that goes out before everything else.
    pub(crate) first: Option<String>,
}

/// Serves one upgraded WebSocket of a client until either side ends it.
pub(crate) async fn serve(
    host: Host,
    frame_log: Option<&FrameLog>,
    upgraded: UpgradedStream,
    principal: Arc<Principal>,
) {
    let id = host.next_connection();
    Span::current().record("id", id.0);
    let queue = Arc::new(Queue::new(&host.config().limits, principal.usage(&host)));
    let mut peer = Box::new(ConnectionPeer::new(host.clone(), id, queue.clone(), principal.clone()));
    let inbox = Inbox::default();
    let tap = frame_log.map(|log| log.tap(id, host.env().clock.clone()));
    let mut connection = Box::pin(Connection::open(&host, tap, upgraded, queue.clone())).await;
    // Both in one task: a slow request does not hold up streamed events.
    connection.serve(id, &principal, &inbox, pin!(handle_all(&host, &inbox, &queue, &mut peer))).await;
    host.sequencer().detach(id).await.ok();
    peer.ended();
}

/// The messages of a client that wait to be handled.
#[derive(Default)]
struct Inbox(Mutex<VecDeque<Utf8Bytes>>);

impl Inbox {
    fn push(&self, text: Utf8Bytes) {
        self.messages().push_back(text);
    }

    fn is_full(&self) -> bool {
        self.messages().len() >= MAX_QUEUED_MESSAGES
    }

    /// Waits for a message. It is polled with its connection, which puts the messages in, so it needs no waker.
    async fn next(&self) -> Utf8Bytes {
        poll_fn(|_| self.messages().pop_front().map_or(Poll::Pending, Poll::Ready)).await
    }

    // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
    fn messages(&self) -> MutexGuard<'_, VecDeque<Utf8Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles a client's messages one after another, for ever.
async fn handle_all(host: &Host, inbox: &Inbox, queue: &Arc<Queue>, peer: &mut ConnectionPeer) -> Infallible {
    loop {
        let text = inbox.next().await;
        // Boxed, since the futures of all requests are large and most connections are idle.
        let started = Instant::now();
        Box::pin(handle(host, &text, queue, peer)).await;
        note_request(&host.env().metrics, &text, started.elapsed());
    }
}

/// Counts a handled frame, and logs it if that was slow.
fn note_request(metrics: &Metrics, text: &str, took: Duration) {
    metrics.request_seconds.observe(took);
    if metrics.is_slow(SlowLabel::Request, took) {
        let method = method_shown(text);
        tracing::warn!(?method, ms = took.as_millis() as u64, bytes = text.len(), "slow: the handling of a request");
    }
}

/// The method of a frame for the log, shortened.
fn method_shown(text: &str) -> Option<String> {
    match jsonrpc::parse(text).ok()? {
        Frame::Single(Ok(RpcMessage::Request(request))) => Some(request.method.chars().take(METHOD_CHARS).collect()),
        Frame::Single(Ok(RpcMessage::Notification { method, .. })) => Some(method.chars().take(METHOD_CHARS).collect()),
        Frame::Single(Ok(RpcMessage::Response { .. }) | Err(_)) | Frame::Batch(_) => None,
    }
}

/// Handles one frame to its end, so that the requests in it take effect in order.
async fn handle(host: &Host, text: &str, queue: &Arc<Queue>, peer: &mut ConnectionPeer) {
    match jsonrpc::parse(text) {
        Err(error) => {
            count_refusal(host, &error);
            queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into()));
        }
        Ok(Frame::Single(message)) => {
            let Some(permit) = queue.answer_permit(batch::ANSWER_BYTES).await else { return };
            let queue = queue.clone();
            let reply: ReplySink =
                Box::new(move |encode| queue.push(Outgoing::QueuedAnswer(QueuedAnswer::new(encode, permit))));
            peer.handle(message, reply).await;
        }
        Ok(Frame::Batch(messages)) => {
            // The frame itself is counted where it is read.
            let wait = queue.usage().count_messages(messages.len() - 1);
            if !wait.is_zero() {
                host.env().clock.sleep(wait).await;
            }
            batch::handle(messages, queue, peer, host.env().spawn.as_ref()).await;
        }
    }
}

/// The output side of a connection, and its socket. It is boxed: the task of a connection should be small.
struct Connection {
    host: Host,
    socket: WebSocketStream<Box<dyn Stream>>,
    queue: Arc<Queue>,
    tap: Option<FrameTap>,
    /// Taken from the queue.
    items: VecDeque<Outgoing>,
    out: WriteBuffer,
    /// The delay of items that may wait.
    merge_alarm: Option<Task>,
    /// Nothing is read until it is over: the client sent more than its rate.
    pause: Option<Task>,
    /// One timer for many messages: it checks if anything came since it was set, and is set again.
    silence_alarm: Task,
    silent_alarms: u32,
}

/// Wakes a connection.
enum ConnectionEvent {
    /// Items were taken from the queue.
    Output,
    Received(Option<Result<Message, SocketError>>),
    SilenceAlarm,
    Closed(DisconnectReason),
}

/// The outcome of a step: the reason to close, if it is one.
type StepResult = Result<Option<DisconnectReason>, SocketError>;

impl Connection {
    async fn open(host: &Host, tap: Option<FrameTap>, upgraded: UpgradedStream, queue: Arc<Queue>) -> Box<Self> {
        let UpgradedStream { stream, read, first } = upgraded;
        if let Some(first) = first {
            queue.push(Outgoing::Frame(first.into()));
        }
        let limits = &host.config().limits;
        let message_bytes = Check::MessageSize.is_enforced().then_some(limits.message_bytes);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(SOCKET_BUFFER)
            .max_write_buffer_size(CONTROL_BYTES)
            .max_message_size(message_bytes)
            .max_frame_size(message_bytes);
        let clock = &host.env().clock;
        Box::new(Self {
            socket: WebSocketStream::from_partially_read(stream, read, Role::Server, Some(config)).await,
            tap,
            silence_alarm: clock.sleep(limits.connection_silence / 3),
            host: host.clone(),
            queue,
            items: VecDeque::new(),
            out: WriteBuffer::default(),
            merge_alarm: None,
            pause: None,
            silent_alarms: 0,
        })
    }

    /// Reads, writes and handles until either side ends the connection, and closes it.
    async fn serve(&mut self, id: ConnectionId, principal: &Principal, inbox: &Inbox, mut handling: Handling<'_>) {
        let (host, queue) = (self.host.clone(), self.queue.clone());
        let reason = {
            let mut token_ended = Box::pin(principal.ended(host.env().clock.as_ref()));
            tokio::select! {
                biased;
                reason = self.run(inbox, handling.as_mut()) => reason,
                never = async {
                    token_ended.as_mut().await;
                    // The connection ends by itself then, between two frames.
                    queue.close(DisconnectReason::TokenEnded);
                    std::future::pending::<Infallible>().await
                } => match never {},
            }
        };
        queue.close(reason);
        // A connection over the host's own socket breaks with its program alone, so that client does not return.
        if reason == DisconnectReason::TokenEnded || matches!(principal.address(), PeerAddress::Unix { .. }) {
            host.presence().expel(id);
        }
        host.env().metrics.connections_closed.of(reason.label()).increment();
        // The rest is handled as far as it does not wait.
        poll_fn(|context| {
            let Poll::Pending = handling.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
        Box::pin(self.farewell(reason)).await;
    }

    /// Reads and writes until the connection has to be closed. Messages are handled meanwhile.
    async fn run(&mut self, inbox: &Inbox, mut handling: Handling<'_>) -> DisconnectReason {
        loop {
            let event = poll_fn(|context| self.poll_event(context, inbox, handling.as_mut())).await;
            let done = match event {
                ConnectionEvent::Output => self.write(handling.as_mut()).await,
                ConnectionEvent::Received(message) => {
                    self.silent_alarms = 0;
                    self.count(&message);
                    received(message, inbox, &self.queue, self.tap.as_ref(), &self.host.env().metrics)
                }
                ConnectionEvent::SilenceAlarm => Box::pin(self.check_silence(handling.as_mut())).await,
                ConnectionEvent::Closed(reason) => return reason,
            };
            match done {
                Ok(None) => {}
                Ok(Some(reason)) => return reason,
                Err(SocketError::Capacity(_)) => return DisconnectReason::TooBig,
                Err(SocketError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => {
                    return DisconnectReason::Silent;
                }
                Err(_) => return DisconnectReason::Gone,
            }
        }
    }

    fn poll_event(
        &mut self,
        context: &mut Context<'_>,
        inbox: &Inbox,
        handling: Handling<'_>,
    ) -> Poll<ConnectionEvent> {
        // It never ends.
        let Poll::Pending = handling.poll(context);
        let clock = self.host.env().clock.as_ref();
        if let Poll::Ready(taken) = self.queue.poll_take(context, &mut self.items, &mut self.merge_alarm, clock) {
            return Poll::Ready(taken.map_or_else(ConnectionEvent::Closed, |()| ConnectionEvent::Output));
        }
        // With a full inbox, the message that is being handled wakes the connection.
        if !inbox.is_full()
            && self.poll_pause(context).is_ready()
            && let Poll::Ready(message) = self.socket.poll_next_unpin(context)
        {
            return Poll::Ready(ConnectionEvent::Received(message));
        }
        self.silence_alarm.as_mut().poll(context).map(|()| ConnectionEvent::SilenceAlarm)
    }

    /// Waits for the end of a pause in reading.
    fn poll_pause(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        Poll::Ready(())
    }

    /// Counts a frame of the client, whatever it is, and pauses reading if it is beyond the client's rates.
    fn count(&mut self, message: &Option<Result<Message, SocketError>>) {
        let Some(Ok(message)) = message else { return };
        let usage = self.queue.usage();
        let wait = usage.count_bytes(message.len()).max(usage.count_messages(1));
        if !wait.is_zero() {
            self.pause = Some(self.host.env().clock.sleep(wait));
        }
    }

    /// Writes the items that were taken.
    async fn write(&mut self, handling: Handling<'_>) -> StepResult {
        let Self { host, socket, queue, tap, items, out, .. } = self;
        let (clock, limit) = (host.env().clock.as_ref(), host.config().limits.write_silence);
        let writing = async {
            while !items.is_empty() {
                let last = out.add(items, host, tap.as_ref()).await;
                out.write(socket, clock, limit).await?;
                if last.is_some() {
                    return Ok(last);
                }
            }
            Ok(None)
        };
        alongside(handling, queue, writing).await
    }

    /// Sends a ping to a client that was silent; closes after several.
    async fn check_silence(&mut self, handling: Handling<'_>) -> StepResult {
        let limits = &self.host.config().limits;
        let clock = self.host.env().clock.as_ref();
        self.silence_alarm = clock.sleep(limits.connection_silence / 3);
        self.silent_alarms += 1;
        if self.silent_alarms > 3 {
            return Ok(Some(DisconnectReason::Silent));
        }
        let ping = self.socket.send(Message::Ping(Bytes::new()));
        let ping = in_time(clock, limits.write_silence, ping);
        alongside(handling, &self.queue, async { ping.await.map(|()| None) }).await
    }

    /// Tells the client the reason, if it can be told, and closes the socket.
    async fn farewell(&mut self, reason: DisconnectReason) {
        let Self { host, socket, out, .. } = self;
        if reason == DisconnectReason::TooBig && Check::OversizeDelay.is_enforced() {
            host.env().clock.sleep(OVERSIZE_DELAY).await;
        }
        let farewell = async {
            if let Some((code, reason)) = reason.code() {
                // A frame written in part is completed, or the client could not read the next one.
                out.finish_begun(socket).await?;
                let frame = CloseFrame { code: code.into(), reason: Utf8Bytes::from_static(reason) };
                socket.send(Message::Close(Some(frame))).await?;
            }
            socket.close(None).await
        };
        tokio::select! {
            // Either the client has read it or it is gone.
            _ = farewell => {}
            () = host.env().clock.sleep(CLOSE_GRACE) => {}
        }
    }
}

/// The handling of a client's messages, which is polled with its connection.
type Handling<'a> = Pin<&'a mut (dyn Future<Output = Infallible> + Send + 'a)>;

/// Runs a step while messages are handled, until the connection is closed.
async fn alongside(mut handling: Handling<'_>, queue: &Queue, step: impl Future<Output = StepResult>) -> StepResult {
    let mut step = pin!(step);
    poll_fn(|context| {
        let Poll::Pending = handling.as_mut().poll(context);
        if let Poll::Ready(done) = step.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        queue.poll_closed(context).map(|reason| Ok(Some(reason)))
    })
    .await
}

/// Accepts a message of the client. Returns the reason to close, if it is one.
fn received(
    message: Option<Result<Message, SocketError>>,
    inbox: &Inbox,
    queue: &Queue,
    tap: Option<&FrameTap>,
    metrics: &Metrics,
) -> StepResult {
    match message {
        Some(Ok(Message::Text(text))) => {
            if let Some(tap) = tap {
                tap.record(FrameDirection::FromClient, &text);
            }
            metrics.messages_received.of(TransportLabel::WebSocket).increment();
            metrics.received_bytes.of(TransportLabel::WebSocket).add(text.len() as u64);
            // There is room, since nothing is read otherwise.
            inbox.push(text);
            Ok(None)
        }
        Some(Ok(Message::Binary(_))) => {
            let error = ErrorObject::new(jsonrpc::code::PARSE, "binary frames are not supported: send text");
            queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into()));
            Ok(None)
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
        Some(Ok(Message::Close(_))) | None => Ok(Some(DisconnectReason::Gone)),
        Some(Err(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use grove_host::{Config, Env};

    use super::*;

    /// The futures of all requests together have several times this size.
    const MAX_TASK_BYTES: usize = 4 << 10;

    #[tokio::test]
    async fn the_task_of_an_idle_connection_does_not_hold_the_futures_of_requests() {
        let host = Host::in_memory(Env::in_memory(), Config::default(), Vec::new()).await.unwrap();
        let (stream, _client) = tokio::io::duplex(64);
        let upgraded = UpgradedStream { stream: Box::new(stream), read: Vec::new(), first: None };
        let task = serve(host, None, upgraded, Arc::new(Principal::in_process()));
        assert!(size_of_val(&task) <= MAX_TASK_BYTES, "{} bytes", size_of_val(&task));
    }
}
