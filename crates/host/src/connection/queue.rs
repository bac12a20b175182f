//! What waits to be written to one connection: bounded, in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::ws::Utf8Bytes;
use grove_wire::v1::close_code;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};

use crate::config::Limits;
use crate::dialect::Dialect;
use crate::sequencer::Sequenced;

/// Something that will be one frame.
pub(crate) enum Outgoing {
    Frame(Utf8Bytes),
    /// An event, with its frame in this connection's dialect.
    Event(Arc<Sequenced>, Dialect, Utf8Bytes),
    /// Deltas of one part in a row, told as one.
    Merged(Merged),
    /// An answer whose place is here and whose bytes are made when it is written.
    Answer(Answer),
    /// A place for an answer that is still being made.
    Slot(oneshot::Receiver<String>),
    /// Nothing more follows: the connection is closed when this is reached.
    Last(Close),
}

/// Makes an answer's text, outside the sequencer.
pub(crate) type Encode = Box<dyn FnOnce() -> String + Send>;

/// An answer still to be encoded.
pub(crate) struct Answer {
    pub(crate) encode: Encode,
    /// Held until the answer is written: a client that does not read its answers waits with its questions.
    pub(crate) _permit: OwnedSemaphorePermit,
}

pub(crate) struct Merged {
    pub(crate) first: Arc<Sequenced>,
    pub(crate) text: String,
    pub(crate) last_seq: u64,
    pub(crate) dialect: Dialect,
}

impl Outgoing {
    fn weight(&self) -> usize {
        // What a queue's own entry takes, so that many small messages count as well.
        const ENTRY: usize = 64;
        ENTRY
            + match self {
                Outgoing::Frame(frame) | Outgoing::Event(_, _, frame) => frame.len(),
                Outgoing::Merged(merged) => merged.text.len(),
                Outgoing::Answer(_) | Outgoing::Slot(_) | Outgoing::Last(_) => 0,
            }
    }
}

/// Why a connection is closed by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// The client is gone, or the socket failed: there is nobody to tell.
    Gone,
    Behind,
    TakenOver,
    Stopping,
    TooBig,
    Silent,
}

impl Close {
    /// The code and reason to close the WebSocket with.
    pub(crate) fn code(self) -> Option<(u16, &'static str)> {
        match self {
            Close::Gone => None,
            Close::Behind => Some((close_code::BEHIND, "too far behind: reconnect")),
            Close::TakenOver => Some((close_code::TAKEN_OVER, "taken over by a newer connection of this client")),
            Close::Stopping => Some((close_code::GOING_AWAY, "the host stops")),
            Close::TooBig => Some((close_code::TOO_BIG, "the message is larger than this host takes")),
            Close::Silent => Some((close_code::BEHIND, "no sign of life: reconnect")),
        }
    }
}

/// The queue of one connection. The sequencer and the reader put in, the writer takes out.
pub(crate) struct Queue {
    max_messages: usize,
    max_bytes: usize,
    waiting: Mutex<Waiting>,
    filled: Notify,
    close: watch::Sender<Option<Close>>,
    answers: Arc<Semaphore>,
}

#[derive(Default)]
struct Waiting {
    items: VecDeque<Outgoing>,
    bytes: usize,
}

impl Queue {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            max_messages: limits.queue_messages,
            max_bytes: limits.queue_bytes,
            waiting: Mutex::default(),
            filled: Notify::new(),
            close: watch::Sender::new(None),
            answers: Arc::new(Semaphore::new(limits.open_answers)),
        }
    }

    /// Puts something at the end. A queue that is full closes its connection instead; one that is closed takes nothing.
    pub(crate) fn push(&self, item: Outgoing) {
        if self.is_closed() {
            return;
        }
        let overflow = {
            let mut waiting = self.waiting();
            let crowded = waiting.items.len() >= self.max_messages / 2 || waiting.bytes >= self.max_bytes / 2;
            match if crowded { waiting.merge(item) } else { Some(item) } {
                None => waiting.bytes >= self.max_bytes,
                Some(_) if waiting.items.len() >= self.max_messages || waiting.bytes >= self.max_bytes => true,
                Some(item) => {
                    waiting.bytes += item.weight();
                    waiting.items.push_back(item);
                    false
                }
            }
        };
        if overflow { self.close(Close::Behind) } else { self.filled.notify_one() }
    }

    /// Waits for something to write and takes up to `most` items.
    pub(crate) async fn take(&self, most: usize, into: &mut Vec<Outgoing>) {
        loop {
            {
                let mut waiting = self.waiting();
                let count = waiting.items.len().min(most);
                if count > 0 {
                    let taken = waiting.items.drain(..count);
                    let mut weight = 0;
                    into.extend(taken.inspect(|item| weight += item.weight()));
                    waiting.bytes -= weight;
                    return;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Closes the connection, for the first reason given.
    pub(crate) fn close(&self, reason: Close) {
        let first = self.close.send_if_modified(|close| match close {
            None => {
                *close = Some(reason);
                true
            }
            Some(_) => false,
        });
        if first {
            let mut waiting = self.waiting();
            waiting.items.clear();
            waiting.bytes = 0;
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.close.borrow().is_some()
    }

    /// Waits until the connection is to be closed.
    pub(crate) async fn closed(&self) -> Close {
        let mut close = self.close.subscribe();
        match close.wait_for(Option::is_some).await {
            Ok(reason) => reason.unwrap_or(Close::Gone),
            Err(_) => Close::Gone,
        }
    }

    /// Waits for room for one more answer.
    pub(crate) async fn answer_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.answers.clone().acquire_owned().await.ok()
    }

    // Nothing in here can panic half-way, so a poisoned lock still guards a whole queue.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Merges a delta into the item before it, where both fill the same part. Only neighbours are merged: moving text
    /// past another resource's event would let a client's watermark skip it. Gives back what cannot be merged.
    fn merge(&mut self, item: Outgoing) -> Option<Outgoing> {
        let Outgoing::Event(event, dialect, frame) = item else { return Some(item) };
        let (Some(delta), Some(last)) = (event.delta(), self.items.back_mut()) else {
            return Some(Outgoing::Event(event, dialect, frame));
        };
        let before = last.weight();
        match last {
            Outgoing::Merged(merged) if event.continues(&merged.first) => {
                merged.text.push_str(delta);
                merged.last_seq = event.seq;
            }
            Outgoing::Event(earlier, _, _) if event.continues(earlier) => {
                let text = [earlier.delta().unwrap_or_default(), delta].concat();
                *last = Outgoing::Merged(Merged { first: earlier.clone(), text, last_seq: event.seq, dialect });
            }
            _ => return Some(Outgoing::Event(event, dialect, frame)),
        }
        let after = last.weight();
        self.bytes = self.bytes - before + after;
        None
    }
}
