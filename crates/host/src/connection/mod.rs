//! A connection: reads requests in order and writes the contents of its queue.
//!
//! Reading goes through tungstenite. Output is framed here, events once for all connections, and written without
//! another copy.

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

/// A client's messages that may wait to be handled; with more, nothing is read from it.
const INBOX: usize = 16;
/// The socket's buffers, each way: an idle connection should cost little.
const SOCKET_BUFFER: usize = 8 << 10;
/// The size of one read. The buffer is cleared at every poll, and a poll follows every write.
const READ_BUFFER: usize = 2 << 10;
/// The pieces that are written at once.
const PIECES: usize = 64;
/// The bound of unread control frames (pongs) in tungstenite. With more, only the newest ping is answered.
const CONTROL_BYTES: usize = 64 << 10;
/// The bytes that are framed before they are written: answers are encoded one by one.
const FRAMED: usize = 1 << 20;
/// The time for which a closed client may still read.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Serves one upgraded WebSocket until either side ends it. A `first` message goes out before everything else.
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
    // Both in one task: a slow request does not hold up streamed events.
    let io = Io { host: &host, socket, queue: &queue, inbox, tap };
    tokio::join!(handle_all(&host, messages, &queue, &mut peer), io.run());
    host.0.sequencer.tell(ToSequencer::Detach(id)).await.ok();
    peer.ended();
}

/// Handles a client's messages one after another.
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

/// Handles one frame to its end, so that the requests in it take effect in order.
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

/// The socket, and the queues that it is read into and written from.
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
        // One timer for many messages: it checks if anything came since it was set, and is set again.
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
                    // Only to poll again.
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
                // A frame written in part is completed, or the client could not read the next one.
                out.finish_begun(&mut self.socket).await?;
                let frame = CloseFrame { code: code.into(), reason: Utf8Bytes::from_static(reason) };
                self.socket.send(Message::Close(Some(frame))).await?;
            }
            self.socket.close(None).await
        };
        tokio::select! {
            // Either the client has read it or it is gone.
            _ = farewell => {}
            () = clock.sleep(CLOSE_GRACE) => {}
        }
    }
}

/// Accepts a message of the client. Returns the reason to close, if it is one.
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
            // There is room, since nothing is read otherwise; a closed inbox means that the connection is closing.
            inbox.try_send(text).ok();
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
