//! The newest events, for reconnecting clients.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use grove_core::{Change, Session, SessionEvent, SessionId};
use grove_storage::{Position, RecoveredReplay, ReplayStep};

use super::event::{Names, SequencedEvent};
use crate::config::Limits;

/// A window of the newest events, bounded by count and bytes.
#[derive(Debug)]
pub(crate) struct ReplayWindow {
    max_events: usize,
    max_bytes: usize,
    events: VecDeque<(Arc<SequencedEvent>, usize)>,
    bytes: usize,
    /// Everything above this sequence number is here.
    complete_above: u64,
    /// Unknown events happened since the last one.
    gap: bool,
    /// Ranges of sequence numbers that were never used, oldest first, without their bounds.
    /// A client that names one has it from another journal.
    skipped: VecDeque<(u64, u64)>,
}

impl ReplayWindow {
    pub(crate) fn new(max_events: usize, max_bytes: usize, from: u64) -> Self {
        let (events, skipped) = (VecDeque::new(), VecDeque::new());
        Self { max_events, max_bytes, events, bytes: 0, complete_above: from, gap: false, skipped }
    }

    /// The window that an earlier host had, as far as the journal has its events.
    pub(crate) fn recovered(replay: RecoveredReplay, limits: &Limits) -> Self {
        let mut window = Self::new(limits.replay_actions, limits.replay_bytes, replay.complete_above);
        let known = replay.names.iter().map(|(id, names)| (id.clone(), Arc::new(Names::recovered(id, names))));
        let mut names: HashMap<SessionId, Arc<Names>> = known.collect();
        for step in replay.steps {
            match step {
                ReplayStep::Event { seq, event, origin } => {
                    match &event.change {
                        Change::Session(id, SessionEvent::Created(new)) => {
                            names.insert(id.clone(), Arc::new(Names::of(&Session::new(new, event.at))));
                        }
                        Change::Session(id, SessionEvent::ChatAdded(row)) => {
                            if let Some(known) = names.get_mut(id) {
                                *known = Arc::new(known.with(row));
                            }
                        }
                        _ => {}
                    }
                    let names = event.change.session().and_then(|id| names.get(id)).cloned();
                    window.push(Arc::new(SequencedEvent::new(seq, event, origin, names)));
                }
                ReplayStep::Skipped { from, to } => window.skip(from, to),
                ReplayStep::Gap => window.forget(),
            }
        }
        window
    }

    /// Notes that no sequence number above `from` and below `to` is ever used.
    pub(crate) fn skip(&mut self, from: u64, to: u64) {
        match self.skipped.back_mut() {
            // Nothing was published between the two.
            Some(last) if last.0 == from => last.1 = last.1.max(to),
            _ => self.skipped.push_back((from, to)),
        }
    }

    /// Says whether no event and no snapshot of this journal ever had this number.
    ///
    /// A message to one connection has a number of the event's position before it. In journals of earlier versions each
    /// number was a position of its own.
    pub(crate) fn is_skipped(&self, number: u64) -> bool {
        let is_direct = |from: u64| Position::of(from).seq() == from && Position::of(number) == Position::of(from);
        self.skipped.iter().any(|(from, to)| *from < number && number < *to && !is_direct(*from))
    }

    pub(crate) fn push(&mut self, event: Arc<SequencedEvent>) {
        if std::mem::take(&mut self.gap) {
            self.complete_above = event.seq;
        }
        let weight = event.weight();
        self.bytes += weight;
        self.events.push_back((event, weight));
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            let Some((dropped, weight)) = self.events.pop_front() else { break };
            self.bytes -= weight;
            self.complete_above = dropped.seq;
        }
        // A client that names an older number gets snapshots anyway.
        while self.skipped.pop_front_if(|(_, to)| *to <= self.complete_above).is_some() {}
    }

    /// Everything above this sequence number is here.
    pub(crate) fn complete_above(&self) -> u64 {
        self.complete_above
    }

    /// Drops all events, since some between them and the next ones are missing.
    pub(crate) fn forget(&mut self) {
        if let Some((last, _)) = self.events.back() {
            self.complete_above = last.seq;
        }
        self.events.clear();
        self.bytes = 0;
        // Only the next event is known to have nothing missing after it.
        self.gap = true;
    }

    /// The events after `seen`, oldest first, if all of them are here.
    pub(crate) fn after(&self, seen: u64) -> Option<impl Iterator<Item = &Arc<SequencedEvent>>> {
        (seen >= self.complete_above).then(|| {
            let first = self.events.partition_point(|(event, _)| event.seq <= seen);
            self.events.range(first..).map(|(event, _)| event)
        })
    }
}

#[cfg(test)]
mod tests {
    use grove_core::*;

    use super::*;

    fn event(seq: u64) -> Arc<SequencedEvent> {
        let change = Change::Root(RootEvent::ActiveSessionsChanged(0));
        Arc::new(SequencedEvent::new(seq, Event { at: Timestamp(0), change }, None, None))
    }

    fn numbers(replay: &ReplayWindow, seen: u64) -> Option<Vec<u64>> {
        replay.after(seen).map(|events| events.map(|event| event.seq).collect())
    }

    #[test]
    fn a_gap_inside_the_window_is_replayed_and_one_beyond_it_is_not() {
        let mut replay = ReplayWindow::new(3, usize::MAX, 10);
        assert_eq!(numbers(&replay, 10), Some(vec![]), "nothing happened yet");
        assert_eq!(numbers(&replay, 9), None, "what was before the start is not here");
        for seq in [11, 13, 14, 17] {
            replay.push(event(seq));
        }
        assert_eq!(numbers(&replay, 10), None, "11 is gone");
        assert_eq!(numbers(&replay, 11), Some(vec![13, 14, 17]));
        assert_eq!(numbers(&replay, 13), Some(vec![14, 17]));
        assert_eq!(numbers(&replay, 17), Some(vec![]));
    }

    #[test]
    fn numbers_that_were_passed_over_are_known_until_the_window_has_left_them() {
        let mut replay = ReplayWindow::new(2, usize::MAX, 0);
        replay.push(event(3));
        replay.skip(3, 100);
        replay.skip(3, 200);
        assert_eq!([3, 4, 150, 199, 200].map(|number| replay.is_skipped(number)), [false, true, true, true, false]);
        replay.push(event(201));
        replay.skip(201, 300);
        assert!(replay.is_skipped(4) && replay.is_skipped(250));
        (301..305).for_each(|seq| replay.push(event(seq)));
        assert!(replay.skipped.is_empty(), "{:?}", replay.skipped);
    }

    #[test]
    fn the_numbers_of_a_connection_alone_belong_to_the_event_before_them() {
        let mut replay = ReplayWindow::new(9, usize::MAX, 0);
        [1_024, 2_048].into_iter().for_each(|seq| replay.push(event(seq)));
        assert_eq!(numbers(&replay, 1_024 + 1_023), Some(vec![2_048]));
        assert_eq!(numbers(&replay, 2_048 + 5), Some(vec![]));
        replay.skip(2_048, 10_240);
        assert_eq!([2_048 + 5, 3_072, 9_000].map(|number| replay.is_skipped(number)), [false, true, true]);
    }

    #[test]
    fn the_window_is_bounded_by_bytes_too() {
        let weight = event(1).weight();
        let mut replay = ReplayWindow::new(usize::MAX, 2 * weight, 0);
        (1..=5).for_each(|seq| replay.push(event(seq)));
        assert_eq!(numbers(&replay, 3), Some(vec![4, 5]));
        assert_eq!(numbers(&replay, 2), None);
    }
}
