//! A connection: reads requests in their order, writes what its queue holds.
//!
//! Reading goes through tungstenite. What goes out is framed here: events once for all connections, the rest as it
//! comes, and written without another copy.

mod batch;
mod budget;
mod frame;
mod frame_log;
mod queue;
mod write_buffer;

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use grove_wire::jsonrpc::{self, ErrorObject, Frame};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Utf8Bytes};

pub(crate) use budget::{Budget, ReservedBytes};
pub use frame_log::FrameLog;
pub(crate) use queue::{
    AnswerPermit, DisconnectReason, DueAnswer, Encode, EventFrames, Outgoing, Queue, QueuedAnswer, QueuedNotice,
};
pub(crate) use write_buffer::{Texts, in_time};

use crate::dialect::ConnectionPeer;
use crate::env::Stream;
use crate::host::Host;
use crate::sequencer::{ReplySink, ToSequencer};
use frame_log::{FrameDirection, FrameTap};
use write_buffer::WriteBuffer;

/// How many messages of a client may wait to be handled; with more, nothing is read from it.
const INBOX: usize = 16;
/// The socket's buffers, each way: a connection that is idle should cost little.
const SOCKET_BUFFER: usize = 8 << 10;
/// How much is read at once. It is cleared at every look whether something came, and one follows every write.
const READ_BUFFER: usize = 2 << 10;
/// How many pieces are written at once.
const PIECES: usize = 64;
/// The bound of unread control frames (pongs) in tungstenite. With more, the newest ping alone is
/// answered.
const CONTROL_BYTES: usize = 64 << 10;
/// How much is framed before it is written: answers are put together one by one.
const FRAMED: usize = 1 << 20;
/// How long a client that is told to go may take to hear it.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Serves one WebSocket, its upgrade done, until either side ends it. A `first` message goes out before everything else.
pub(crate) async fn serve(host: Host, stream: impl Stream, first: Option<String>) {
    let limits = &host.0.config.limits;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(SOCKET_BUFFER)
        .max_write_buffer_size(CONTROL_BYTES)
        .max_message_size(Some(limits.message_bytes))
        .max_frame_size(Some(limits.message_bytes));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let id = host.next_connection();
    let queue = Arc::new(Queue::new(limits));
    if let Some(first) = first {
        queue.push(Outgoing::Frame(first.into()));
    }
    let mut peer = ConnectionPeer::new(host.clone(), id, queue.clone());
    let (inbox, messages) = mpsc::channel(INBOX);
    let tap = host.0.config.frame_log.as_ref().map(|log| log.tap(id, host.0.env.clock.clone()));
    // Both in one task: a request that takes its time does not hold up what streams out.
    let io = Io { host: &host, socket, queue: &queue, inbox, tap };
    tokio::join!(handle_all(&host, messages, &queue, &mut peer), io.run());
    host.0.sequencer.tell(ToSequencer::Detach(id)).await.ok();
    peer.ended();
}

/// Handles a client's messages one after the other.
async fn handle_all(
    host: &Host,
    mut messages: mpsc::Receiver<Utf8Bytes>,
    queue: &Arc<Queue>,
    peer: &mut ConnectionPeer,
) {
    let mut closed = pin!(queue.closed());
    loop {
        let step = async {
            match messages.recv().await {
                Some(text) => {
                    handle(host, &text, queue, peer).await;
                    true
                }
                None => false,
            }
        };
        tokio::select! {
            biased;
            more = step => if !more { return },
            _ = &mut closed => return,
        }
    }
}

/// Handles one frame to its end, so that what comes in one breath takes effect in its order.
async fn handle(host: &Host, text: &str, queue: &Arc<Queue>, peer: &mut ConnectionPeer) {
    match jsonrpc::parse(text) {
        Err(error) => queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into())),
        Ok(Frame::Single(message)) => {
            let Some(permit) = queue.answer_permit(batch::ANSWER_BYTES).await else { return };
            let queue = queue.clone();
            let reply: ReplySink =
                Box::new(move |encode| queue.push(Outgoing::QueuedAnswer(QueuedAnswer::new(encode, permit))));
            peer.handle(message, reply).await;
        }
        Ok(Frame::Batch(messages)) => batch::handle(messages, queue, peer, host.0.env.spawn.as_ref()).await,
    }
}

/// What goes in and out of the socket.
struct Io<'a, S> {
    host: &'a Host,
    socket: WebSocketStream<S>,
    queue: &'a Queue,
    inbox: mpsc::Sender<Utf8Bytes>,
    tap: Option<FrameTap>,
}

impl<S: Stream> Io<'_, S> {
    async fn run(mut self) {
        let silence = self.host.0.config.limits.connection_silence;
        let limit = self.host.0.config.limits.write_silence;
        let clock = self.host.0.env.clock.clone();
        let mut closed = pin!(self.queue.closed());
        // One alarm for many messages: it looks whether anything came since it was set, and is set again.
        let mut alarm = clock.sleep(silence / 3);
        let mut silent_alarms = 0;
        let mut items = VecDeque::new();
        let mut out = WriteBuffer::default();
        let reason = loop {
            let full = self.inbox.capacity() == 0;
            let step = async {
                tokio::select! {
                    biased;
                    () = self.queue.take(&mut items, clock.as_ref()) => {
                        while !items.is_empty() {
                            let last = out.add(&mut items, self.host, self.tap.as_ref()).await;
                            out.write(&mut self.socket, clock.as_ref(), limit).await?;
                            if last.is_some() {
                                return Ok(last);
                            }
                        }
                        Ok(None)
                    }
                    message = self.socket.next(), if !full => {
                        silent_alarms = 0;
                        received(message, &self.inbox, self.queue, self.tap.as_ref())
                    }
                    // Only to look again.
                    _ = self.inbox.reserve(), if full => Ok(None),
                    () = &mut alarm => {
                        alarm = clock.sleep(silence / 3);
                        silent_alarms += 1;
                        if silent_alarms > 3 {
                            return Ok(Some(DisconnectReason::Silent));
                        }
                        let ping = self.socket.send(Message::Ping(Bytes::new()));
                        in_time(clock.as_ref(), limit, ping).await?;
                        Ok(None)
                    }
                }
            };
            tokio::select! {
                biased;
                done = step => match done {
                    Ok(None) => {}
                    Ok(Some(reason)) => break reason,
                    Err(SocketError::Capacity(_)) => break DisconnectReason::TooBig,
                    Err(SocketError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => break DisconnectReason::Silent,
                    Err(_) => break DisconnectReason::Gone,
                },
                reason = &mut closed => break reason,
            }
        };
        self.queue.close(reason);
        let farewell = async {
            if let Some((code, reason)) = reason.code() {
                // What was begun is finished, or the client could not read what follows.
                out.finish_begun(&mut self.socket).await?;
                let frame = CloseFrame { code: code.into(), reason: Utf8Bytes::from_static(reason) };
                self.socket.send(Message::Close(Some(frame))).await?;
            }
            self.socket.close(None).await
        };
        tokio::select! {
            // Either it was heard or there is nobody to hear it.
            _ = farewell => {}
            () = clock.sleep(CLOSE_GRACE) => {}
        }
    }
}

/// Takes a message of the client. Gives the reason to close, where it is one.
fn received(
    message: Option<Result<Message, SocketError>>,
    inbox: &mpsc::Sender<Utf8Bytes>,
    queue: &Queue,
    tap: Option<&FrameTap>,
) -> Result<Option<DisconnectReason>, SocketError> {
    match message {
        Some(Ok(Message::Text(text))) => {
            if let Some(tap) = tap {
                tap.record(FrameDirection::FromClient, &text);
            }
            // There is room, since nothing is read otherwise; where nobody listens any more, the connection is closed.
            inbox.try_send(text).ok();
            Ok(None)
        }
        Some(Ok(Message::Binary(_))) => {
            let error = ErrorObject::new(jsonrpc::code::PARSE, "binary frames are not understood: send text");
            queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into()));
            Ok(None)
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
        Some(Ok(Message::Close(_))) | None => Ok(Some(DisconnectReason::Gone)),
        Some(Err(error)) => Err(error),
    }
}
