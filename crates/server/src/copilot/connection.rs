//! A connection of the SDK: frames in, frames out.
//!
//! Requests are handled in order, except for slow ones (storage, summaries, waiting), which run concurrently. Answers
//! to the host's own calls are taken out of the stream as they arrive, since the request being handled may wait for
//! them.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use grove_host::Host;
use grove_host::subscriber::{AnswerPermit, Budget, DisconnectReason, Outgoing, Queue, ReservedBytes};
use grove_metrics::{ProtocolLabel, TransportLabel};
use grove_wire::copilot::error;
use grove_wire::copilot::framing::{self, Decoder};
use grove_wire::jsonrpc::{self, CallTable, ErrorObject, Frame, Id, RpcMessage};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::endpoint::CopilotEndpoint;
use super::log_in::UnauthenticatedClient;
use super::peer::{ConnectingClient, CopilotPeer};
use crate::connection::{Texts, in_time};
use crate::http::Rejected;
use crate::listener::Stream;
use crate::principal::Principal;

/// A client's messages that may wait; past this the connection is closed.
///
/// Reading never pauses, since an answer to the host may come after them.
pub const MAX_QUEUED_CALLS: usize = 1_024;
/// Calls to a client that may be open.
pub const CALLS: usize = 1_024;
/// The size of one read.
const READ: usize = 16 << 10;
/// The bytes that are framed before they are written: answers are encoded one by one.
const FRAMED: usize = 1 << 20;
/// Bytes of a client's messages that may wait; past this the connection is closed.
pub const MAX_QUEUED_BYTES: usize = 32 << 20;

/// A request or notification of a client.
pub(super) struct IncomingCall {
    /// None for a notification, which has no answer.
    pub(super) id: Option<Id>,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    /// Counts the message's bytes while it waits.
    _waits: Option<ReservedBytes>,
}

impl IncomingCall {
    fn bytes(&self) -> usize {
        self.method.len() + self.params.as_ref().map_or(0, |params| params.get().len())
    }
}

impl CopilotEndpoint {
    /// Serves a connection until it ends, without a secret.
    ///
    /// Its transport has authenticated the client, as pipes between two programs do.
    pub(crate) async fn serve_pipes(&self, stream: impl Stream + 'static, principal: Arc<Principal>) {
        self.serve(stream, ConnectingClient::Known(principal), None).await;
    }

    /// Serves a connection of a client that has to send the endpoint's secret first.
    ///
    /// Until then it may be closed at any time, and is after
    /// [`Limits::unauthenticated_time`](grove_host::Limits::unauthenticated_time).
    pub(crate) async fn serve_guest(
        &self,
        stream: impl Stream + 'static,
        unauthenticated: UnauthenticatedClient,
        rejected: Rejected,
    ) {
        self.serve(stream, ConnectingClient::Unauthenticated(unauthenticated), Some(rejected)).await;
    }

    async fn serve(&self, stream: impl Stream + 'static, client: ConnectingClient, mut rejected: Option<Rejected>) {
        let limits = &self.host().config().limits;
        let id = self.host().next_connection();
        let usage = match &client {
            ConnectingClient::Known(principal) => principal.usage(self.host()),
            ConnectingClient::Unauthenticated(unauthenticated) => {
                self.host().pending_connection_usage(unauthenticated.address.network())
            }
        };
        let queue = Arc::new(Queue::new(limits, usage));
        let calls = Arc::new(CallTable::new(CALLS));
        let peer = CopilotPeer::new(self.clone(), id, queue.clone(), calls.clone(), client);
        let (inbox, messages) = mpsc::channel(MAX_QUEUED_CALLS);
        let (reading, writing) = tokio::io::split(stream);
        self.host().add_unattached(id, queue.clone());
        let metrics = self.host().env().metrics.clone();
        metrics.connections.of(ProtocolLabel::Copilot).increment();
        metrics.connections_opened.of(ProtocolLabel::Copilot).increment();
        let clock = self.host().env().clock.clone();
        let talking = async {
            tokio::join!(
                handle_all(messages, &queue, &peer),
                read_all(reading, self.host(), inbox, &queue, &calls, &peer),
                write_all(writing, &queue, self.host()),
            )
        };
        let must_go = async {
            match &mut rejected {
                Some(rejected) => rejected.signaled().await,
                None => std::future::pending().await,
            }
        };
        let too_late = async {
            clock.sleep(limits.unauthenticated_time).await;
            if peer.is_in() {
                std::future::pending().await
            }
        };
        tokio::select! {
            _ = talking => {}
            () = must_go => queue.close(DisconnectReason::Gone),
            () = peer.token_ended(clock.as_ref()) => queue.close(DisconnectReason::TokenEnded),
            () = too_late => {
                tracing::debug!("an SDK client did not authenticate in time");
                queue.close(DisconnectReason::Gone);
            }
        }
        self.host().remove_unattached(id);
        metrics.connections.of(ProtocolLabel::Copilot).decrement();
        metrics.connections_closed.of(queue.reason().unwrap_or(DisconnectReason::Gone).label()).increment();
        calls.close();
        peer.ended().await;
    }
}

/// Handles a client's messages one after another.
async fn handle_all(mut messages: mpsc::Receiver<IncomingCall>, queue: &Arc<Queue>, peer: &CopilotPeer) {
    let mut closed = pin!(queue.closed());
    loop {
        tokio::select! {
            biased;
            _ = &mut closed => return,
            message = messages.recv() => match message {
                Some(message) => peer.handle(message).await,
                None => break,
            },
        }
    }
    // The client sends nothing more. Handled requests are answered, then the connection ends.
    queue.push(Outgoing::Last(DisconnectReason::Gone));
}

/// Reads a client's messages until the end of the stream.
async fn read_all(
    mut stream: impl AsyncRead + Unpin,
    host: &Host,
    inbox: mpsc::Sender<IncomingCall>,
    queue: &Queue,
    calls: &CallTable,
    peer: &CopilotPeer,
) {
    let (limits, metrics) = (&host.config().limits, &host.env().metrics);
    let mut closed = pin!(queue.closed());
    let mut buffer = vec![0; READ];
    let mut decoder = Decoder::new(limits.unauthenticated_bytes);
    let mut unauthenticated_bytes = 0;
    let waiting = Arc::new(Budget::new(MAX_QUEUED_BYTES));
    loop {
        let read = tokio::select! {
            biased;
            _ = &mut closed => return,
            read = stream.read(&mut buffer) => read,
        };
        let Ok(length) = read else { return queue.close(DisconnectReason::Gone) };
        if length == 0 {
            return;
        }
        decoder.push(&buffer[..length]);
        unauthenticated_bytes = if peer.is_in() { 0 } else { unauthenticated_bytes + length };
        loop {
            let is_in = peer.is_in();
            decoder.set_max_body(if is_in { limits.message_bytes } else { limits.unauthenticated_bytes });
            match decoder.next_frame() {
                Ok(Some(text)) => {
                    metrics.messages_received.of(TransportLabel::Copilot).increment();
                    metrics.received_bytes.of(TransportLabel::Copilot).add(text.len() as u64);
                    let counted = match received(&text, &inbox, queue, calls, peer, &waiting).await {
                        Ok(counted) => counted,
                        Err(reason) => return queue.close(reason),
                    };
                    let wait = queue.usage().count_bytes(text.len()).max(queue.usage().count_messages(counted));
                    if !wait.is_zero() {
                        tokio::select! {
                            biased;
                            _ = &mut closed => return,
                            () = peer.host().env().clock.sleep(wait) => {}
                        }
                    }
                }
                Ok(None) if !is_in && unauthenticated_bytes > limits.unauthenticated_bytes => {
                    return end(queue, error::authentication_required());
                }
                Ok(None) => break,
                Err(error) => {
                    // After an invalid frame the start of the next one is unknown.
                    tracing::warn!(%error, "an SDK client sent an invalid frame");
                    return end(queue, ErrorObject::new(jsonrpc::code::PARSE, error.to_string()));
                }
            }
        }
    }
}

/// Sends the reason for closing the connection, after its queued output.
fn end(queue: &Queue, error: ErrorObject) {
    queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into()));
    queue.push(Outgoing::Last(DisconnectReason::TooBig));
}

/// Handles one frame. Returns the number of messages that count for the client's rate, or the reason to close.
///
/// Before a client is authenticated, its messages are handled here, one by one: none of them needs an answer of the
/// client, and the messages after `connect` are read with the bounds of an authenticated client.
async fn received(
    text: &str,
    inbox: &mpsc::Sender<IncomingCall>,
    queue: &Queue,
    calls: &CallTable,
    peer: &CopilotPeer,
    waiting: &Arc<Budget>,
) -> Result<usize, DisconnectReason> {
    let frame = match jsonrpc::parse(text) {
        Ok(frame) => frame,
        Err(error) => {
            queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into()));
            return Ok(1);
        }
    };
    let messages = match frame {
        Frame::Single(message) => vec![message],
        Frame::Batch(messages) => messages,
    };
    let mut counted = 0;
    for message in messages {
        // Answers to the host's calls are as many as the host asks for.
        counted += usize::from(!matches!(message, Ok(RpcMessage::Response { .. })));
        let mut wanted = match message {
            Ok(RpcMessage::Response { id, outcome }) => {
                // The caller may have stopped waiting.
                calls.settle(&id, outcome);
                continue;
            }
            Ok(RpcMessage::Request(request)) => IncomingCall {
                id: Some(request.id.clone()),
                method: request.method.to_string(),
                params: request.params.map(ToOwned::to_owned),
                _waits: None,
            },
            Ok(RpcMessage::Notification { method, params }) => IncomingCall {
                id: None,
                method: method.to_string(),
                params: params.map(ToOwned::to_owned),
                _waits: None,
            },
            Err(invalid) => {
                queue.push(Outgoing::Frame(jsonrpc::error(invalid.id.as_ref(), &invalid.error).into()));
                continue;
            }
        };
        if !peer.is_in() {
            peer.handle(wanted).await;
            continue;
        }
        let Some(waits) = waiting.try_reserve(wanted.bytes()) else { return Err(DisconnectReason::Behind) };
        wanted._waits = Some(waits);
        match inbox.try_send(wanted) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => return Err(DisconnectReason::Behind),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(DisconnectReason::Gone),
        }
    }
    Ok(counted)
}

/// Writes a client's queued output. Each frame is written in one piece with its head.
async fn write_all(mut stream: impl AsyncWrite + Unpin, queue: &Queue, host: &Host) {
    let (clock, limit) = (host.env().clock.as_ref(), host.config().limits.write_silence);
    let mut closed = pin!(queue.closed());
    let mut items = VecDeque::new();
    'open: loop {
        tokio::select! {
            biased;
            _ = &mut closed => break,
            taken = queue.take(&mut items, clock) => if taken.is_err() { break },
        }
        while !items.is_empty() {
            let write = async {
                let framed = frame_some(&mut items, host).await;
                let mut rest = framed.bytes.as_slice();
                while !rest.is_empty() {
                    match in_time(clock, limit, stream.write(rest)).await? {
                        0 => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                        written => rest = &rest[written..],
                    }
                }
                in_time(clock, limit, stream.flush()).await?;
                Ok(framed.is_last)
            };
            tokio::select! {
                biased;
                written = write => match written {
                    Ok(false) => {}
                    Ok(true) => break 'open,
                    Err(error) => {
                        tracing::debug!(%error, "cannot write to an SDK client");
                        break 'open;
                    }
                },
                _ = &mut closed => break 'open,
            }
        }
    }
    queue.close(DisconnectReason::Gone);
    // The SDK waits for the end of the connection after it has ended its half.
    in_time(clock, limit, stream.shutdown()).await.ok();
}

/// Frames that are written together.
#[derive(Default)]
struct FrameBatch {
    bytes: Vec<u8>,
    /// Held until they are written.
    permits: Vec<AnswerPermit>,
    is_last: bool,
}

/// Frames items of the queue, as many as are written at once.
async fn frame_some(items: &mut VecDeque<Outgoing>, host: &Host) -> FrameBatch {
    let mut framed = FrameBatch::default();
    let mut messages = 0;
    while framed.bytes.len() < FRAMED
        && let Some(item) = items.pop_front()
    {
        match Texts::of(item, host).await {
            Texts::None => {}
            Texts::One(text) => {
                messages += 1;
                framed.bytes.extend(framing::frame(&text));
            }
            Texts::QueuedAnswer(text, permit) => {
                messages += 1;
                framed.bytes.extend(framing::frame(&text));
                framed.permits.push(permit);
            }
            Texts::EventFrames(events) => {
                messages += events.frames.len();
                events.frames.iter().for_each(|(_, text)| framed.bytes.extend(framing::frame(text)));
            }
            Texts::Last(_) => {
                framed.is_last = true;
                break;
            }
        }
    }
    let metrics = &host.env().metrics;
    metrics.messages_sent.of(TransportLabel::Copilot).add(messages as u64);
    metrics.sent_bytes.of(TransportLabel::Copilot).add(framed.bytes.len() as u64);
    framed
}
