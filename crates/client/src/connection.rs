//! One connection: reads the host's messages in order, and writes queued ones.
//!
//! Both halves run in one task and neither waits for the other: a host that does not read cannot stop this side from
//! reading. Nothing here waits for a consumer either: states are changed in place, slow followers miss changes and
//! learn so, and responses go to their callers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt, StreamExt};
use grove_checks::Check;
use grove_wire::jsonrpc::{self, CallError, CallTable, ErrorObject, Frame};
use grove_wire::v1::close_code;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Error as SocketError, Utf8Bytes};

use crate::client_state::{CallPurpose, ClientState, ConnectionSender, TrackedCall};
use crate::dialect::{Dialect, IncomingNotification, method};
use crate::driver::CloseSignal;
use crate::error::{ConnectError, RequestError};
use crate::options::{FrameDirection, FrameLog, HostRequest, RequestHandler};
use crate::transport::{MessageSink, MessageSocket, MessageStream, TransportError};

/// The requests of the host that are answered at the same time; a further one is refused.
const HOST_REQUESTS: usize = 64;

/// The callbacks of a client's owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionCallbacks<'a> {
    pub(crate) log: Option<&'a FrameLog>,
    pub(crate) requests: Option<&'a RequestHandler>,
}

/// Reports the first connection, or why it failed.
pub(crate) type ConnectReply = Option<oneshot::Sender<Result<(), ConnectError>>>;

/// The end of a connection.
#[derive(Debug)]
pub(crate) enum ConnectionEnd {
    LocalClose,
    TakenOver,
    NotOpened(TransportError),
    /// The host rejected this client.
    Refused(ErrorObject),
    /// The host sent an invalid message: states cannot be trusted.
    ProtocolError(String),
    Lost(String),
}

impl std::fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConnectionEnd::LocalClose => f.write_str("this client was closed"),
            ConnectionEnd::TakenOver => f.write_str("another connection took over"),
            ConnectionEnd::NotOpened(error) => error.fmt(f),
            ConnectionEnd::Refused(error) => error.fmt(f),
            ConnectionEnd::ProtocolError(why) => write!(f, "the host sent an invalid message: {why}"),
            ConnectionEnd::Lost(why) => f.write_str(why),
        }
    }
}

impl From<SocketError> for ConnectionEnd {
    fn from(error: SocketError) -> Self {
        match error {
            SocketError::Io(error) => match TransportError::from(error) {
                TransportError::Unreachable(error) => ConnectionEnd::Lost(format!("the connection broke: {error}")),
                // Only our own `ssh` was at the other end, never a host.
                known => ConnectionEnd::NotOpened(known),
            },
            error => ConnectionEnd::Lost(format!("the connection broke: {error}")),
        }
    }
}

/// Serves a socket until either side ends it. `closing` is this side's request to end.
pub(crate) async fn serve<D: Dialect>(
    shared: &Arc<ClientState<D>>,
    socket: MessageSocket,
    callbacks: ConnectionCallbacks<'_>,
    from_scratch: bool,
    mut closing: CloseSignal,
    first: &mut ConnectReply,
) -> ConnectionEnd {
    let MessageSocket { sink, stream } = socket;
    let (frames, queue) = mpsc::unbounded_channel();
    let (tracked, new) = mpsc::unbounded_channel();
    let calls = Arc::new(CallTable::new(shared.limits.open_requests));
    let sender = ConnectionSender { frames, calls: calls.clone(), tracked };
    if let Err(error) = shared.send_handshake(&sender, from_scratch) {
        return ConnectionEnd::Lost(error.to_string());
    }
    let ConnectionCallbacks { log, requests } = callbacks;
    let reader = ConnectionReader {
        shared,
        sender,
        new,
        open: FuturesUnordered::new(),
        requests,
        answers: FuturesUnordered::new(),
        attached: false,
        first,
        log,
    };
    let writer = ConnectionWriter { sink, queue, log, pings: shared.limits.silence / 3 };
    let end = tokio::select! {
        end = reader.run(stream) => end,
        end = writer.run(closing.clone()) => end,
        // Only if the writer is blocked and cannot close the connection.
        () = async {
            closing.wait().await;
            sleep(shared.limits.farewell).await;
        } => ConnectionEnd::LocalClose,
    };
    calls.close();
    end
}

struct ConnectionReader<'a, D: Dialect> {
    shared: &'a Arc<ClientState<D>>,
    sender: ConnectionSender,
    /// Requests whose responses are handled here, before they are among the open ones.
    new: mpsc::UnboundedReceiver<TrackedCall>,
    open: FuturesUnordered<BoxFuture<'static, TrackedResponse>>,
    requests: Option<&'a RequestHandler>,
    /// The answers to requests of the host that are not known yet.
    answers: FuturesUnordered<BoxFuture<'static, String>>,
    /// The host has accepted this client.
    attached: bool,
    first: &'a mut ConnectReply,
    log: Option<&'a FrameLog>,
}

/// A request that is handled here, with its response.
type TrackedResponse = (CallPurpose, CallResponse);

enum CallResponse {
    Received(Result<Box<RawValue>, CallError>),
    TimedOut,
}

impl<D: Dialect> ConnectionReader<'_, D> {
    async fn run(mut self, mut stream: MessageStream) -> ConnectionEnd {
        let limit = self.shared.limits.silence;
        let silence = if Check::HostSilence.is_enforced() { limit } else { Duration::from_secs(86_400) };
        let mut last_message_at = Instant::now();
        let mut sweep = ticks(self.shared.limits.answer / 4);
        loop {
            let step = tokio::select! {
                biased;
                Some(answered) = self.open.next(), if !self.open.is_empty() => self.answered(answered),
                Some(answer) = self.answers.next(), if !self.answers.is_empty() => {
                    self.sender.send(answer).map_err(|error| ConnectionEnd::Lost(error.to_string()))
                }
                Some(tracked) = self.new.recv() => {
                    self.open(tracked);
                    Ok(())
                }
                message = timeout_at(last_message_at + silence, stream.next()) => {
                    last_message_at = Instant::now();
                    match message {
                        Ok(message) => self.received(message),
                        Err(_) => Err(ConnectionEnd::Lost(format!("the host was silent for {silence:?}"))),
                    }
                }
                _ = sweep.tick() => {
                    self.shared.sweep();
                    Ok(())
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    fn received(&mut self, message: Option<Result<Message, SocketError>>) -> Result<(), ConnectionEnd> {
        match message {
            Some(Ok(Message::Text(text))) => self.frame(&text),
            Some(Ok(Message::Close(frame))) => Err(closed(frame)),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => Ok(()),
            Some(Err(error)) => Err(error.into()),
            None => Err(ConnectionEnd::Lost("the connection broke".to_owned())),
        }
    }

    fn frame(&mut self, text: &str) -> Result<(), ConnectionEnd> {
        if let Some(log) = self.log {
            log.note(FrameDirection::FromHost, text);
        }
        match jsonrpc::parse(text).map_err(|error| ConnectionEnd::ProtocolError(error.message))? {
            Frame::Single(message) => self.message(message),
            Frame::Batch(messages) => messages.into_iter().try_for_each(|message| self.message(message)),
        }
    }

    fn message(
        &mut self,
        message: Result<jsonrpc::RpcMessage<'_>, jsonrpc::InvalidMessage>,
    ) -> Result<(), ConnectionEnd> {
        match message {
            Ok(jsonrpc::RpcMessage::Notification { method, params }) => {
                self.notified(&method, params.unwrap_or(RawValue::NULL))
            }
            Ok(jsonrpc::RpcMessage::Response { id, outcome }) => {
                if !self.sender.calls.settle(&id, outcome) {
                    tracing::debug!(id = id.as_json(), "received an answer without a request");
                }
                self.settled()
            }
            Ok(jsonrpc::RpcMessage::Request(request)) => {
                let answer = match (request.method.as_ref(), self.requests) {
                    (method::PING, _) => jsonrpc::response_raw(&request.id, "null"),
                    (_, Some(requests)) if self.answers.len() < HOST_REQUESTS => {
                        self.answers.push(answer(requests, request));
                        return Ok(());
                    }
                    (_, Some(_)) => {
                        let message = format!("{HOST_REQUESTS} requests are open: wait for an answer");
                        jsonrpc::error(Some(&request.id), &ErrorObject::invalid_request(message))
                    }
                    (other, None) => jsonrpc::error(Some(&request.id), &ErrorObject::unknown_method(other)),
                };
                self.sender.send(answer).map_err(|error| ConnectionEnd::Lost(error.to_string()))
            }
            Err(invalid) => Err(ConnectionEnd::ProtocolError(invalid.error.message)),
        }
    }

    fn notified(&mut self, method: &str, params: &RawValue) -> Result<(), ConnectionEnd> {
        let incoming = self.shared.dialect.notified(method, params);
        match incoming.map_err(|error| ConnectionEnd::ProtocolError(format!("{method}: {error}")))? {
            // Actions before the end of the handshake belong to no state.
            IncomingNotification::Action(envelope) if self.attached => self.shared.apply_action(envelope),
            IncomingNotification::Action(_) => {}
            IncomingNotification::List(news) => self.shared.apply_list_change(news),
            IncomingNotification::Other => self.shared.take_notification(method, params),
        }
        Ok(())
    }

    fn open(&mut self, tracked: TrackedCall) {
        let TrackedCall { purpose, call } = tracked;
        let limit = self.shared.limits.answer;
        self.open.push(Box::pin(async move {
            let answer = timeout(limit, call.answer()).await.map_or(CallResponse::TimedOut, CallResponse::Received);
            (purpose, answer)
        }));
    }

    /// Handles a response that just arrived, if it must be in order with the actions.
    fn settled(&mut self) -> Result<(), ConnectionEnd> {
        while let Ok(tracked) = self.new.try_recv() {
            self.open(tracked);
        }
        // The response has already arrived, so this does not wait.
        while let Some(Some(answered)) = self.open.next().now_or_never() {
            self.answered(answered)?;
        }
        Ok(())
    }

    fn answered(&mut self, (purpose, answer): TrackedResponse) -> Result<(), ConnectionEnd> {
        let shared = self.shared;
        let not_understood =
            |method: &str, error| ConnectionEnd::ProtocolError(format!("the answer to {method}: {error}"));
        match purpose {
            CallPurpose::Initialize { resources } => {
                let result = handshake(method::INITIALIZE, answer)?.map_err(ConnectionEnd::Refused)?;
                let initialized = shared.dialect.initialized(&result);
                let initialized = initialized.map_err(|error| not_understood(method::INITIALIZE, error))?;
                shared.initialized(initialized, &resources, &self.sender);
                self.attach();
            }
            CallPurpose::Reconnect { resources } => match handshake(method::RECONNECT, answer)? {
                Ok(result) => {
                    let reconnected = shared.dialect.reconnected(&result);
                    let reconnected = reconnected.map_err(|error| not_understood(method::RECONNECT, error))?;
                    shared.reconnected(reconnected, &resources, &self.sender);
                    self.attach();
                }
                // The host no longer knows this client, or cannot tell what it missed.
                Err(error) => {
                    tracing::debug!(%error, "the host cannot resume this client; it starts over");
                    shared
                        .send_handshake(&self.sender, true)
                        .map_err(|error| ConnectionEnd::Lost(error.to_string()))?;
                }
            },
            CallPurpose::Subscribe(uri) => {
                let method = method::SUBSCRIBE;
                let snapshot = request(method, answer).and_then(|result| {
                    let not_understood = |error| RequestError::NotUnderstood { method: method.to_owned(), error };
                    shared.dialect.subscribed(&uri, &result).map_err(not_understood)
                });
                shared.subscribed(&uri, snapshot);
            }
            CallPurpose::List => shared.listed(&self.sender, request(method::LIST_SESSIONS, answer)),
        }
        Ok(())
    }

    fn attach(&mut self) {
        self.attached = true;
        if let Some(first) = self.first.take() {
            // The caller may be gone; then `closing` is set.
            first.send(Ok(())).ok();
        }
    }
}

/// The answer to a request of the host, as a frame.
fn answer(requests: &RequestHandler, request: jsonrpc::Request<'_>) -> BoxFuture<'static, String> {
    let params = request.params.unwrap_or(RawValue::NULL).to_owned();
    let outcome = requests.answer(HostRequest { method: request.method.into_owned(), params });
    let id = request.id;
    Box::pin(async move {
        match outcome.await {
            Ok(result) => jsonrpc::response_raw(&id, result.get()),
            Err(error) => jsonrpc::error(Some(&id), &error),
        }
    })
}

/// The response to the first message: a result, or the host's rejection.
fn handshake(method: &str, answer: CallResponse) -> Result<Result<Box<RawValue>, ErrorObject>, ConnectionEnd> {
    match answer {
        CallResponse::Received(Ok(result)) => Ok(Ok(result)),
        CallResponse::Received(Err(CallError::Refused(error))) => Ok(Err(error)),
        CallResponse::Received(Err(error)) => Err(ConnectionEnd::Lost(error.to_string())),
        CallResponse::TimedOut => Err(ConnectionEnd::Lost(format!("{method} was not answered in time"))),
    }
}

fn request(method: &str, answer: CallResponse) -> Result<Box<RawValue>, RequestError> {
    match answer {
        CallResponse::Received(answer) => answer.map_err(|error| RequestError::new(method, error)),
        CallResponse::TimedOut => Err(RequestError::TimedOut { method: method.to_owned() }),
    }
}

fn closed(frame: Option<CloseFrame>) -> ConnectionEnd {
    match frame {
        Some(frame) if u16::from(frame.code) == close_code::TAKEN_OVER => ConnectionEnd::TakenOver,
        Some(frame) => {
            ConnectionEnd::Lost(format!("the host closed the connection: {} ({})", frame.reason, frame.code))
        }
        None => ConnectionEnd::Lost("the host closed the connection".to_owned()),
    }
}

struct ConnectionWriter<'a> {
    sink: MessageSink,
    queue: mpsc::UnboundedReceiver<String>,
    log: Option<&'a FrameLog>,
    pings: Duration,
}

impl ConnectionWriter<'_> {
    async fn run(mut self, mut closing: CloseSignal) -> ConnectionEnd {
        match self.write(&mut closing).await {
            Ok(()) => ConnectionEnd::LocalClose,
            Err(error) => error.into(),
        }
    }

    async fn write(&mut self, closing: &mut CloseSignal) -> Result<(), SocketError> {
        let mut pings = ticks(self.pings);
        loop {
            tokio::select! {
                biased;
                frame = self.queue.recv() => {
                    let Some(frame) = frame else { return Ok(()) };
                    self.feed(frame).await?;
                    while let Ok(frame) = self.queue.try_recv() {
                        self.feed(frame).await?;
                    }
                    self.sink.flush().await?;
                }
                () = closing.wait() => {
                    let farewell = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
                    return self.sink.send(Message::Close(Some(farewell))).await;
                }
                _ = pings.tick() => self.sink.send(Message::Ping(Bytes::new())).await?,
            }
        }
    }

    async fn feed(&mut self, frame: String) -> Result<(), SocketError> {
        if let Some(log) = self.log {
            log.note(FrameDirection::ToHost, &frame);
        }
        self.sink.feed(Message::text(frame)).await
    }
}

/// An interval that starts after the first period, and skips missed ticks.
fn ticks(period: Duration) -> tokio::time::Interval {
    let period = period.max(Duration::from_millis(1));
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    ticks
}
