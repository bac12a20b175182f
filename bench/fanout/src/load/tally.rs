//! Counting the messages of all subscribers.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use memchr::memchr;
use memchr::memmem::Finder;

use super::decode::{Kind, Received};
use crate::job::Contestant;
use crate::shape::{self, Words};

pub(super) struct Tally {
    /// For each dialect; subscribers alternate between them.
    needles: Vec<Needles>,
    before_text: Finder<'static>,
    counts: RefCell<Counts>,
    failure: RefCell<Option<String>>,
    began: Instant,
    first_delta: Cell<Option<Instant>>,
    last_delta: Cell<Option<Instant>>,
    last_event: Cell<Option<Instant>>,
}

/// The searched words of a dialect.
struct Needles {
    delta: Finder<'static>,
    event: Option<Finder<'static>>,
    turn_started: Finder<'static>,
    turn_complete: Finder<'static>,
}

impl Needles {
    fn new(words: Words) -> Self {
        Self {
            delta: Finder::new(words.delta),
            event: words.event.map(Finder::new),
            turn_started: Finder::new(words.turn_started),
            turn_complete: Finder::new(words.turn_complete),
        }
    }
}

/// The counts since the last [`Tally::reset`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) deltas: u64,
    pub(super) delta_bytes: u64,
    /// Bytes of text in these deltas.
    pub(super) text_bytes: u64,
    pub(super) events: u64,
    pub(super) turns_started: usize,
    pub(super) turns_complete: usize,
    /// Deltas that arrived before every subscriber had seen the turn start.
    pub(super) early: u64,
}

#[derive(Default)]
struct Counts {
    subscribers: usize,
    totals: Totals,
    /// The number of deltas of each subscriber.
    each: Vec<usize>,
    /// The arrival of each delta at each subscriber, in nanoseconds; empty if not requested.
    arrivals: Vec<u64>,
    /// The number of deltas for which [`Counts::arrivals`] has room.
    timed: usize,
}

impl Tally {
    pub(super) fn new(contestant: Contestant) -> Self {
        let words = contestant.dialects().iter().map(|dialect| dialect.words());
        Self {
            needles: words.map(Needles::new).collect(),
            before_text: Finder::new(shape::BEFORE_TEXT),
            counts: RefCell::default(),
            failure: RefCell::default(),
            began: Instant::now(),
            first_delta: Cell::default(),
            last_delta: Cell::default(),
            last_event: Cell::default(),
        }
    }

    /// Assigns a number to a subscriber.
    pub(super) fn join(&self) -> usize {
        let mut counts = self.counts.borrow_mut();
        counts.subscribers += 1;
        counts.each.push(0);
        counts.subscribers - 1
    }

    pub(super) fn subscribers(&self) -> usize {
        self.counts.borrow().subscribers
    }

    /// Resets the counts. The arrivals of the next `timed` deltas are kept.
    pub(super) fn reset(&self, timed: usize) {
        let mut counts = self.counts.borrow_mut();
        let subscribers = counts.subscribers;
        *counts = Counts {
            subscribers,
            totals: Totals::default(),
            each: vec![0; subscribers],
            arrivals: vec![0; subscribers * timed],
            timed,
        };
        self.first_delta.set(None);
        self.last_delta.set(None);
        self.last_event.set(None);
    }

    pub(super) fn count(&self, subscriber: usize, message: Received<'_>, now: Instant) {
        match message.kind {
            Kind::Message => {}
            Kind::Close => return self.fail(format!("the server closed subscriber {subscriber}")),
            Kind::Other => return,
        }
        let counts = &mut *self.counts.borrow_mut();
        let totals = &mut counts.totals;
        let needles = &self.needles[subscriber % self.needles.len()];
        if let Some(at) = needles.delta.find(message.bytes) {
            totals.deltas += 1;
            totals.delta_bytes += message.length as u64;
            totals.text_bytes += self.text_in(&message.bytes[at..]) as u64;
            if totals.turns_started < counts.subscribers {
                totals.early += 1;
            }
            let index = counts.each[subscriber];
            counts.each[subscriber] += 1;
            if index < counts.timed {
                let at = (now - self.began).as_nanos() as u64;
                counts.arrivals[subscriber * counts.timed + index] = at;
            }
            if self.first_delta.get().is_none() {
                self.first_delta.set(Some(now));
            }
            self.last_delta.set(Some(now));
        } else if needles.event.as_ref().is_some_and(|event| event.find(message.bytes).is_some()) {
            totals.events += 1;
            self.last_event.set(Some(now));
        } else if needles.turn_started.find(message.bytes).is_some() {
            totals.turns_started += 1;
        } else if needles.turn_complete.find(message.bytes).is_some() {
            totals.turns_complete += 1;
        }
    }

    /// The length of a delta's text, which follows its type and contains no quotes.
    fn text_in(&self, delta: &[u8]) -> usize {
        let text = self.before_text.find(delta).map(|at| &delta[at + shape::BEFORE_TEXT.len()..]);
        text.and_then(|text| memchr(b'"', text)).unwrap_or_default()
    }

    pub(super) fn fail(&self, why: String) {
        self.failure.borrow_mut().get_or_insert(why);
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub(super) fn totals(&self) -> Totals {
        self.counts.borrow().totals
    }

    /// Seconds from the first delta at any subscriber to the last at any.
    pub(super) fn stream_seconds(&self) -> f64 {
        match (self.first_delta.get(), self.last_delta.get()) {
            (Some(first), Some(last)) => (last - first).as_secs_f64(),
            _ => 0.0,
        }
    }

    pub(super) fn last_event(&self) -> Option<Instant> {
        self.last_event.get()
    }

    /// The arrivals of every delta: for each subscriber, nanoseconds after the earliest.
    pub(super) fn delays(&self) -> Vec<u64> {
        let counts = self.counts.borrow();
        let mut delays = Vec::with_capacity(counts.arrivals.len());
        for index in 0..counts.timed {
            let arrivals = || counts.arrivals.iter().skip(index).step_by(counts.timed).copied();
            let Some(earliest) = arrivals().min() else { continue };
            delays.extend(arrivals().map(|at| at - earliest));
        }
        delays
    }
}
