//! The queue of output for one connection: bounded and in order.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use grove_checks::Check;
use grove_core::{SessionId, Timestamp};
use grove_metrics::CloseLabel;
use grove_wire::registry::Registry;
use grove_wire::v1::close_code;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use super::budget::{Budget, ReservedBytes};
use super::{Dialect, frame};
use crate::config::Limits;
use crate::env::{Clock, Task};
use crate::sequencer::SequencedEvent;
use crate::usage::ConnectionUsage;

/// An item of the queue, which becomes one frame or several.
#[derive(Debug)]
pub enum Outgoing {
    Frame(Arc<str>),
    /// Consecutive events, shared by all subscribers with the same dialect.
    EventFrames(Arc<EventFrames>),
    /// One of these events, if they are sent one by one.
    Event(Arc<SequencedEvent>, Arc<str>),
    /// Consecutive deltas of one part, sent as one.
    MergedDelta(MergedDelta),
    /// A notification beside the events, of which only a bounded number waits.
    QueuedNotice(QueuedNotice),
    /// An answer with a fixed position, encoded when it is written.
    QueuedAnswer(QueuedAnswer),
    /// The position of an answer that is still being made.
    Slot(oneshot::Receiver<QueuedAnswer>),
    /// The end: the connection is closed when this is reached.
    Last(DisconnectReason),
}

/// Events of one resource that were published together, with their frames in one dialect.
#[derive(Debug)]
pub struct EventFrames {
    pub dialect: Dialect,
    pub frames: Vec<(Arc<SequencedEvent>, Arc<str>)>,
    /// All frames as bytes of the socket. A server's frames are the same for every client, so they are encoded once.
    pub framed: Bytes,
}

impl EventFrames {
    pub(crate) fn new(dialect: Dialect, frames: Vec<(Arc<SequencedEvent>, Arc<str>)>) -> Self {
        let mut framed = Vec::with_capacity(frames.iter().map(|(_, text)| text.len() + frame::MAX_HEAD).sum());
        frames.iter().for_each(|(_, text)| frame::text(text, &mut framed));
        Self { dialect, frames, framed: framed.into() }
    }
}

/// The capacity that one answer uses until it is written.
#[derive(Debug)]
pub struct AnswerPermit {
    /// One of the answers that a connection may have pending; a further frame of the same answer has none.
    _count: Option<OwnedSemaphorePermit>,
    bytes: ReservedBytes,
}

/// The size added to each message's bytes, so that many small ones count as well.
const ENTRY: usize = 64;

/// An answer's text, or a function that makes it outside the sequencer.
pub enum Encode {
    Text(String),
    Later(Box<dyn FnOnce() -> String + Send>),
}

impl fmt::Debug for Encode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Encode::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Encode::Later(_) => f.write_str("Later(…)"),
        }
    }
}

impl Encode {
    /// A text that is made when it is written.
    pub fn later(make: impl FnOnce() -> String + Send + 'static) -> Self {
        Encode::Later(Box::new(make))
    }

    /// The text, made now if it is not made yet.
    pub fn into_text(self) -> String {
        match self {
            Encode::Text(text) => text,
            Encode::Later(make) => make(),
        }
    }
}

/// An answer that waits to be written.
#[derive(Debug)]
pub struct QueuedAnswer {
    encode: Encode,
    /// Held until the answer is written: a client that does not read its answers cannot send more requests.
    permit: AnswerPermit,
}

impl QueuedAnswer {
    /// An answer that holds its permit until it is written.
    pub fn new(encode: Encode, mut permit: AnswerPermit) -> Self {
        if let Encode::Text(text) = &encode {
            permit.bytes.resize_to(text.len());
        }
        Self { encode, permit }
    }

    /// Says whether the text exists already.
    pub fn is_encoded(&self) -> bool {
        matches!(self.encode, Encode::Text(_))
    }

    /// The text, and the permit to hold until it is written.
    pub fn into_text(self) -> (String, AnswerPermit) {
        let mut permit = self.permit;
        let text = self.encode.into_text();
        permit.bytes.resize_to(text.len());
        (text, permit)
    }
}

/// A notification beside the events.
#[derive(Debug)]
pub struct QueuedNotice {
    pub frame: Arc<str>,
    /// Held until it is written: the next one waits for a client that does not read.
    _permit: OwnedSemaphorePermit,
}

impl QueuedNotice {
    /// A notification that holds its permit until it is written.
    pub fn new(frame: Arc<str>, permit: OwnedSemaphorePermit) -> Self {
        Self { frame, _permit: permit }
    }
}

/// Consecutive deltas of one part, which become one event.
#[derive(Debug)]
pub struct MergedDelta {
    first: Arc<SequencedEvent>,
    text: String,
    last_seq: u64,
    dialect: Dialect,
}

impl MergedDelta {
    /// The frame of all of them together.
    pub fn into_frame(self, registry: &Registry) -> Option<Arc<str>> {
        self.first.merged(self.text, self.last_seq).frame(self.dialect, registry)
    }
}

impl Outgoing {
    fn weight(&self) -> usize {
        match self {
            Outgoing::Frame(frame) | Outgoing::Event(_, frame) => ENTRY + frame.len(),
            Outgoing::QueuedNotice(notice) => ENTRY + notice.frame.len(),
            Outgoing::EventFrames(events) => events.framed.len() + ENTRY * events.frames.len(),
            Outgoing::MergedDelta(merged) => ENTRY + merged.text.len(),
            Outgoing::QueuedAnswer(_) | Outgoing::Slot(_) | Outgoing::Last(_) => ENTRY,
        }
    }

    fn messages(&self) -> usize {
        match self {
            Outgoing::EventFrames(events) => events.frames.len(),
            _ => 1,
        }
    }
}

/// The reason why the host closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The client is gone or the socket failed: no close frame can be sent.
    Gone,
    Behind,
    TakenOver,
    Stopping,
    /// The host stops, since what it stores on was deleted.
    StorageLost,
    TooBig,
    Silent,
    /// No protocol version is supported by both sides.
    Unspoken,
    /// The token of the connection was revoked or rotated, or has expired.
    TokenEnded,
    /// The leaf moved or the working directory changed, which the client's version cannot say.
    Moved,
}

impl DisconnectReason {
    /// The reason's label in metrics.
    pub fn label(self) -> CloseLabel {
        match self {
            DisconnectReason::Gone => CloseLabel::Gone,
            DisconnectReason::Behind => CloseLabel::Behind,
            DisconnectReason::TakenOver => CloseLabel::TakenOver,
            DisconnectReason::Stopping => CloseLabel::Stopping,
            DisconnectReason::StorageLost => CloseLabel::StorageLost,
            DisconnectReason::TooBig => CloseLabel::TooBig,
            DisconnectReason::Silent => CloseLabel::Silent,
            DisconnectReason::Unspoken => CloseLabel::NoVersion,
            DisconnectReason::TokenEnded => CloseLabel::TokenEnded,
            DisconnectReason::Moved => CloseLabel::Moved,
        }
    }

    /// The close code and reason for the WebSocket.
    pub fn code(self) -> Option<(u16, &'static str)> {
        match self {
            DisconnectReason::Gone => None,
            DisconnectReason::Behind => Some((close_code::TOO_FAR_BEHIND, "too far behind: reconnect")),
            DisconnectReason::TakenOver => {
                Some((close_code::TAKEN_OVER, "taken over by a newer connection of this client"))
            }
            DisconnectReason::Stopping => Some((close_code::GOING_AWAY, "the host stops")),
            DisconnectReason::StorageLost => {
                Some((close_code::GOING_AWAY, "the host stops: its data folder was deleted"))
            }
            DisconnectReason::TooBig => Some((close_code::TOO_BIG, "the message is larger than this host takes")),
            DisconnectReason::Silent => Some((close_code::TOO_FAR_BEHIND, "no sign of life: reconnect")),
            DisconnectReason::Unspoken => Some((close_code::NO_COMMON_VERSION, "no version in common")),
            DisconnectReason::TokenEnded => {
                Some((close_code::TOKEN_ENDED, "the token was revoked, replaced or has expired: use another one"))
            }
            DisconnectReason::Moved => {
                Some((close_code::RESYNCHRONIZE, "version 1 cannot say what has changed: reconnect"))
            }
        }
    }
}

/// The queue of one connection. The sequencer and the reader push, the writer takes.
pub struct Queue {
    max_messages: usize,
    max_bytes: usize,
    waiting: Mutex<QueueState>,
    /// The task of the connection, which takes the items and ends with the queue.
    writer: AtomicWaker,
    closing: Notify,
    answers: Arc<Semaphore>,
    answer_bytes: Arc<Budget>,
    usage: ConnectionUsage,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct QueueState {
    items: VecDeque<Outgoing>,
    /// Messages that wait or are being written.
    messages: usize,
    bytes: usize,
    /// Messages that are being written.
    taken_messages: usize,
    taken_bytes: usize,
    /// The reason why the connection is closed, once it is.
    closed: Option<DisconnectReason>,
    /// The writer waits for something to write.
    idle: bool,
    /// The delay of the queue, set while everything in it may wait to be merged with later events.
    patience: Option<MergeDelay>,
    /// The sessions of requests whose answers are still being made, one entry per request.
    due: Vec<SessionId>,
    /// Closes the connection once the due answers about this session are in the queue.
    last: Option<(SessionId, DisconnectReason)>,
}

/// A request about a session whose answer is still being made. Dropping it means the answer is in the queue.
pub struct DueAnswer {
    queue: Arc<Queue>,
    session: SessionId,
}

impl fmt::Debug for DueAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DueAnswer").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Drop for DueAnswer {
    fn drop(&mut self) {
        self.queue.answered(&self.session);
    }
}

#[derive(Clone, Copy)]
enum MergeDelay {
    /// For this long after the writer sees it.
    For(Duration),
    Until(Timestamp),
}

impl Queue {
    /// An empty queue with these bounds, of a connection with this use of the host.
    pub fn new(limits: &Limits, usage: ConnectionUsage) -> Self {
        Self {
            max_messages: limits.queue_messages,
            max_bytes: limits.queue_bytes,
            waiting: Mutex::default(),
            writer: AtomicWaker::new(),
            closing: Notify::new(),
            answers: Arc::new(Semaphore::new(usage.limits().open_answers)),
            answer_bytes: Arc::new(Budget::new(limits.answer_bytes)),
            usage,
        }
    }

    /// The use that the connection makes of the host.
    pub fn usage(&self) -> &ConnectionUsage {
        &self.usage
    }

    /// Appends an item. A full queue closes its connection instead; a closed one accepts nothing.
    pub fn push(&self, item: Outgoing) {
        let (full, wake) = {
            let mut waiting = self.waiting();
            if waiting.closed.is_some() {
                return;
            }
            // A single message above the bound still fits into a queue that is below the bound.
            let full = self.is_full(&waiting);
            let crowded = waiting.messages >= self.max_messages / 2 || waiting.bytes >= self.max_bytes / 2;
            match item {
                _ if full => {}
                Outgoing::EventFrames(events) if crowded => waiting.push_merging(&events),
                item => waiting.push(item),
            }
            // An item without delay takes the delayed ones with it: the order stays.
            let was_patient = waiting.patience.take().is_some();
            (full, std::mem::take(&mut waiting.idle) || was_patient)
        };
        if full {
            self.close(DisconnectReason::Behind);
        } else if wake {
            self.writer.wake();
        }
    }

    /// Says whether a connection is too far behind. It is closed then, and gets a snapshot when it returns.
    fn is_full(&self, waiting: &QueueState) -> bool {
        Check::QueueSize.is_enforced() && (waiting.messages >= self.max_messages || waiting.bytes >= self.max_bytes)
    }

    /// Appends events that may wait for a while; deltas are merged with waiting ones.
    pub(crate) fn push_patiently(&self, events: &Arc<EventFrames>, patience: Duration) {
        let is_delta = |(event, _): &(Arc<SequencedEvent>, Arc<str>)| event.event.change.delta().is_some();
        if patience.is_zero() || !events.frames.iter().all(is_delta) {
            return self.push(Outgoing::EventFrames(events.clone()));
        }
        let (full, wake) = {
            let mut waiting = self.waiting();
            if waiting.closed.is_some() {
                return;
            }
            let full = self.is_full(&waiting);
            let first = waiting.items.is_empty();
            if !full {
                waiting.push_merging(events);
            }
            // Earlier items are urgent, or their delay runs already.
            if first {
                waiting.patience = Some(MergeDelay::For(patience));
            }
            (full, first && std::mem::take(&mut waiting.idle))
        };
        if full {
            self.close(DisconnectReason::Behind);
        } else if wake {
            self.writer.wake();
        }
    }

    /// Waits for something to write and takes everything. Items taken earlier count as written now.
    ///
    /// Only one task may wait at a time. A closed queue returns the reason.
    pub async fn take(&self, into: &mut VecDeque<Outgoing>, clock: &dyn Clock) -> Result<(), DisconnectReason> {
        let mut alarm = None;
        poll_fn(|context| self.poll_take(context, into, &mut alarm, clock)).await
    }

    /// Like [`Queue::take`]. `alarm` belongs to the caller, and is set while the items may wait.
    pub fn poll_take(
        &self,
        context: &mut Context<'_>,
        into: &mut VecDeque<Outgoing>,
        alarm: &mut Option<Task>,
        clock: &dyn Clock,
    ) -> Poll<Result<(), DisconnectReason>> {
        // Before the check, so that nothing is missed between the two.
        self.writer.register(context.waker());
        loop {
            {
                let mut waiting = self.waiting();
                if let Some(reason) = waiting.closed {
                    return Poll::Ready(Err(reason));
                }
                waiting.messages -= std::mem::take(&mut waiting.taken_messages);
                waiting.bytes -= std::mem::take(&mut waiting.taken_bytes);
                if let Some(patience) = waiting.patience {
                    // The alarm may be dropped meanwhile, so the deadline is stored and not the delay.
                    let now = clock.now();
                    let until = match patience {
                        MergeDelay::For(time) => Timestamp(now.0 + time.as_millis() as u64),
                        MergeDelay::Until(until) => until,
                    };
                    waiting.patience = Some(MergeDelay::Until(until));
                    let left = Duration::from_millis(until.0.saturating_sub(now.0));
                    alarm.get_or_insert_with(|| clock.sleep(left));
                } else {
                    *alarm = None;
                    if !waiting.items.is_empty() {
                        // The buffers are swapped, so that neither is allocated again.
                        std::mem::swap(&mut waiting.items, into);
                        waiting.taken_messages = waiting.messages;
                        waiting.taken_bytes = waiting.bytes;
                        return Poll::Ready(Ok(()));
                    }
                }
                waiting.idle = true;
            }
            match alarm {
                None => return Poll::Pending,
                Some(running) => {
                    ready!(running.as_mut().poll(context));
                    *alarm = None;
                    self.waiting().patience = None;
                }
            }
        }
    }

    /// Closes the connection, for the first reason given.
    pub fn close(&self, reason: DisconnectReason) {
        {
            let mut waiting = self.waiting();
            if waiting.closed.is_some() {
                return;
            }
            *waiting = QueueState { closed: Some(reason), ..QueueState::default() };
        }
        self.closing.notify_waiters();
        self.writer.wake();
    }

    /// Notes a request about a session. Its answer goes out before the connection is closed because of that session.
    pub fn expect_answer(self: &Arc<Self>, session: SessionId) -> DueAnswer {
        self.waiting().due.push(session.clone());
        DueAnswer { queue: self.clone(), session }
    }

    /// Closes the connection after all queued items and after the answers to its own requests about this session.
    ///
    /// So a client whose request moved the leaf learns the new leaf before it has to reconnect.
    pub(crate) fn close_behind_answers(&self, session: &SessionId, reason: DisconnectReason) {
        let is_due = {
            let mut waiting = self.waiting();
            let is_due = waiting.due.contains(session);
            if is_due {
                waiting.last.get_or_insert_with(|| (session.clone(), reason));
            }
            is_due
        };
        if !is_due {
            self.push(Outgoing::Last(reason));
        }
    }

    fn answered(&self, session: &SessionId) {
        let last = {
            let mut waiting = self.waiting();
            if let Some(at) = waiting.due.iter().position(|due| due == session) {
                waiting.due.swap_remove(at);
            }
            let is_due = waiting.due.contains(session);
            waiting.last.take_if(|(awaited, _)| !is_due && awaited == session)
        };
        if let Some((_, reason)) = last {
            self.push(Outgoing::Last(reason));
        }
    }

    /// Waits until the connection is to be closed.
    pub async fn closed(&self) -> DisconnectReason {
        let mut closing = pin!(self.closing.notified());
        // A queue that is closed between the check and the wait must not be missed.
        closing.as_mut().enable();
        if let Some(reason) = self.reason() {
            return reason;
        }
        closing.await;
        self.reason().unwrap_or(DisconnectReason::Gone)
    }

    /// Like [`Queue::closed`], for the task that takes the items.
    pub fn poll_closed(&self, context: &mut Context<'_>) -> Poll<DisconnectReason> {
        self.writer.register(context.waker());
        self.reason().map_or(Poll::Pending, Poll::Ready)
    }

    /// The reason why the connection is closed, once it is.
    pub fn reason(&self) -> Option<DisconnectReason> {
        self.waiting().closed
    }

    /// Waits for room for another answer of about so many bytes.
    pub async fn answer_permit(&self, bytes: usize) -> Option<AnswerPermit> {
        let count = self.answers.clone().acquire_owned().await.ok()?;
        let bytes = self.answer_bytes.reserve(bytes).await;
        Some(AnswerPermit { _count: Some(count), bytes })
    }

    /// Waits for room for another frame of an answer that has its permit.
    pub async fn further_permit(&self, bytes: usize) -> AnswerPermit {
        AnswerPermit { _count: None, bytes: self.answer_bytes.reserve(bytes).await }
    }

    /// The bound of the bytes of a connection's answers.
    pub fn answer_bytes(&self) -> usize {
        self.answer_bytes.limit()
    }

    // Nothing in here can panic half-way, so a poisoned lock still guards a valid queue.
    fn waiting(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn push(&mut self, item: Outgoing) {
        self.messages += item.messages();
        self.bytes += item.weight();
        self.items.push_back(item);
    }

    /// Appends events one by one; a delta is merged into the item before it if both extend the same part.
    ///
    /// Only neighbours are merged: moving text past another resource's event would let a client's watermark skip it.
    fn push_merging(&mut self, events: &EventFrames) {
        for (event, frame) in &events.frames {
            if !self.merge(event, events.dialect) {
                self.push(Outgoing::Event(event.clone(), frame.clone()));
            }
        }
    }

    fn merge(&mut self, event: &Arc<SequencedEvent>, dialect: Dialect) -> bool {
        let (Some(delta), Some(last)) = (event.event.change.delta(), self.items.back_mut()) else { return false };
        let before = last.weight();
        match last {
            Outgoing::MergedDelta(merged) if event.event.change.continues(&merged.first.event.change) => {
                merged.text.push_str(delta);
                merged.last_seq = event.seq;
            }
            Outgoing::Event(earlier, _) if event.event.change.continues(&earlier.event.change) => {
                let text = [earlier.event.change.delta().unwrap_or_default(), delta].concat();
                *last =
                    Outgoing::MergedDelta(MergedDelta { first: earlier.clone(), text, last_seq: event.seq, dialect });
            }
            _ => return false,
        }
        self.bytes = self.bytes - before + last.weight();
        true
    }
}
