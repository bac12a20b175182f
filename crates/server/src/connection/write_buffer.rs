//! The output of a connection: framed in pieces, and written within a time limit.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::SinkExt;
use grove_host::subscriber::{AnswerPermit, DisconnectReason, EventFrames, Outgoing, QueuedAnswer, frame};
use grove_host::{Clock, Host};
use grove_metrics::TransportLabel;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error as SocketError;

use super::frame_log::{FrameDirection, FrameTap};
use super::{FRAMED, PIECES};
use crate::listener::Stream;

/// The messages that an item of a queue becomes.
pub(crate) enum Texts {
    None,
    One(Arc<str>),
    QueuedAnswer(String, AnswerPermit),
    EventFrames(Arc<EventFrames>),
    /// The end of the connection.
    Last(DisconnectReason),
}

impl Texts {
    /// Encodes an item. The match is exhaustive, so that a new kind of item cannot be dropped by mistake.
    pub(crate) async fn of(item: Outgoing, host: &Host) -> Self {
        match item {
            Outgoing::Frame(text) | Outgoing::Event(_, text) => Texts::One(text),
            Outgoing::QueuedNotice(notice) => Texts::One(notice.frame),
            Outgoing::EventFrames(events) => Texts::EventFrames(events),
            Outgoing::MergedDelta(merged) => merged.into_frame(&host.config().registry).map_or(Texts::None, Texts::One),
            Outgoing::QueuedAnswer(answer) => Self::answer(answer),
            // A batch of notifications has no answer.
            Outgoing::Slot(place) => place.await.map_or(Texts::None, Self::answer),
            Outgoing::Last(reason) => Texts::Last(reason),
        }
    }

    fn answer(answer: QueuedAnswer) -> Self {
        let (text, permit) = if answer.is_encoded() { answer.into_text() } else { beside(|| answer.into_text()) };
        Texts::QueuedAnswer(text, permit)
    }
}

/// Runs work that may take long, such as encoding a session. Other tasks of this thread continue on another one.
fn beside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A runtime with one thread has no other one.
        Ok(_) | Err(_) => work(),
    }
}

/// Limits the time of a write. One that completes at once needs no timer.
pub(crate) async fn in_time<T, E: From<io::Error>>(
    clock: &dyn Clock,
    limit: Duration,
    write: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let mut write = pin!(write);
    if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await {
        return done;
    }
    tokio::select! {
        biased;
        done = write => done,
        () = clock.sleep(limit) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}

/// Output in pieces. It survives a write that is cancelled half-way.
#[derive(Default)]
pub(super) struct WriteBuffer {
    pieces: VecDeque<Bytes>,
    /// The first piece is written in part.
    begun: bool,
    /// Held until everything is written.
    permits: Vec<AnswerPermit>,
}

impl WriteBuffer {
    /// Frames items of the queue, as many as are written at once. Returns the reason to close, if one is reached.
    pub(super) async fn add(
        &mut self,
        items: &mut VecDeque<Outgoing>,
        host: &Host,
        tap: Option<&FrameTap>,
    ) -> Option<DisconnectReason> {
        let mut own = Vec::new();
        let recorded = |text: &str| {
            if let Some(tap) = tap {
                tap.record(FrameDirection::ToClient, text);
            }
        };
        let mut framed = 0;
        let (mut messages, mut bytes, mut last) = (0, 0, None);
        while framed + own.len() < FRAMED
            && let Some(item) = items.pop_front()
        {
            match Texts::of(item, host).await {
                Texts::None => {}
                Texts::One(text) => {
                    recorded(&text);
                    messages += 1;
                    bytes += text.len();
                    frame::text(&text, &mut own);
                }
                Texts::QueuedAnswer(text, permit) => {
                    recorded(&text);
                    messages += 1;
                    bytes += text.len();
                    frame::text(&text, &mut own);
                    self.permits.push(permit);
                }
                Texts::EventFrames(events) => {
                    if tap.is_some() {
                        events.frames.iter().for_each(|(_, text)| recorded(text));
                    }
                    messages += events.frames.len();
                    bytes += events.framed.len();
                    framed += own.len() + events.framed.len();
                    self.push(&mut own);
                    self.pieces.push_back(events.framed.clone());
                }
                Texts::Last(reason) => {
                    last = Some(reason);
                    break;
                }
            }
        }
        self.push(&mut own);
        // Once for everything that is written together.
        let metrics = &host.env().metrics;
        metrics.messages_sent.of(TransportLabel::WebSocket).add(messages as u64);
        metrics.sent_bytes.of(TransportLabel::WebSocket).add(bytes as u64);
        last
    }

    fn push(&mut self, own: &mut Vec<u8>) {
        if !own.is_empty() {
            self.pieces.push_back(std::mem::take(own).into());
        }
    }

    /// Writes everything. Each step has the same time limit.
    pub(super) async fn write<S: Stream>(
        &mut self,
        socket: &mut WebSocketStream<S>,
        clock: &dyn Clock,
        limit: Duration,
    ) -> Result<(), SocketError> {
        while !in_time(clock, limit, poll_fn(|context| self.poll_write(context, socket))).await? {}
        self.permits.clear();
        Ok(())
    }

    /// Flushes the socket and then writes some pieces. Returns true if there were none left, and all is flushed.
    fn poll_write<S: Stream>(
        &mut self,
        context: &mut Context<'_>,
        socket: &mut WebSocketStream<S>,
    ) -> Poll<Result<bool, SocketError>> {
        // Tungstenite's own output (a pong) must be flushed before anything is written past it. At the end this flushes the
        // stream: TLS keeps bytes in a buffer.
        ready!(socket.poll_flush_unpin(context))?;
        if self.pieces.is_empty() {
            return Poll::Ready(Ok(true));
        }
        ready!(self.poll_some(context, socket.get_mut(), PIECES))?;
        Poll::Ready(Ok(false))
    }

    /// Writes the rest of a piece that is written in part.
    pub(super) async fn finish_begun<S: Stream>(&mut self, socket: &mut WebSocketStream<S>) -> Result<(), SocketError> {
        while self.begun {
            poll_fn(|context| self.poll_some(context, socket.get_mut(), 1)).await?;
        }
        Ok(())
    }

    fn poll_some(&mut self, context: &mut Context<'_>, stream: &mut impl Stream, most: usize) -> Poll<io::Result<()>> {
        let stream = Pin::new(stream);
        let written = match self.pieces.front() {
            // The usual case costs no array of slices.
            Some(only) if self.pieces.len().min(most) == 1 => ready!(stream.poll_write(context, only))?,
            _ => ready!(stream.poll_write_vectored(context, &slices(&self.pieces)[..self.pieces.len().min(most)]))?,
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                self.begun |= written > 0;
                piece.advance(written);
                break;
            }
            written -= piece.len();
            self.pieces.pop_front();
            self.begun = false;
        }
    }
}

/// The first pieces, as one vectored write takes them.
fn slices(pieces: &VecDeque<Bytes>) -> [IoSlice<'_>; PIECES] {
    let mut slices = [IoSlice::new(&[]); PIECES];
    slices.iter_mut().zip(pieces).for_each(|(slice, piece)| *slice = IoSlice::new(piece));
    slices
}
