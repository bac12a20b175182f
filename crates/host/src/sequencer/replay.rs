//! The newest events, for clients that come back.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event::Sequenced;

/// A window of the newest events, bounded by count and bytes.
#[derive(Debug)]
pub(crate) struct Replay {
    max_events: usize,
    max_bytes: usize,
    events: VecDeque<(Arc<Sequenced>, usize)>,
    bytes: usize,
    /// Everything above this number is here.
    complete_above: u64,
    /// Something unknown happened since the last event.
    gap: bool,
}

impl Replay {
    pub(crate) fn new(max_events: usize, max_bytes: usize, from: u64) -> Self {
        Self { max_events, max_bytes, events: VecDeque::new(), bytes: 0, complete_above: from, gap: false }
    }

    pub(crate) fn push(&mut self, event: Arc<Sequenced>) {
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
    }

    /// Everything above this number is here.
    pub(crate) fn complete_above(&self) -> u64 {
        self.complete_above
    }

    /// Says above which number everything will be here. For a window that is still empty.
    pub(crate) fn begin_above(&mut self, seq: u64) {
        self.complete_above = seq;
    }

    /// Gives up what is here, since something before what comes is missing.
    pub(crate) fn forget(&mut self) {
        if let Some((last, _)) = self.events.back() {
            self.complete_above = last.seq;
        }
        self.events.clear();
        self.bytes = 0;
        // The next event is the first of which is known that nothing is missing behind it.
        self.gap = true;
    }

    /// The events after `seen`, oldest first, where all of them are here.
    pub(crate) fn after(&self, seen: u64) -> Option<impl Iterator<Item = &Arc<Sequenced>>> {
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

    fn event(seq: u64) -> Arc<Sequenced> {
        let change = Change::Root(RootEvent::ActiveSessionsChanged(0));
        Arc::new(Sequenced::new(seq, Event { at: Timestamp(0), change }, None, None))
    }

    fn numbers(replay: &Replay, seen: u64) -> Option<Vec<u64>> {
        replay.after(seen).map(|events| events.map(|event| event.seq).collect())
    }

    #[test]
    fn a_gap_inside_the_window_is_replayed_and_one_beyond_it_is_not() {
        let mut replay = Replay::new(3, usize::MAX, 10);
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
    fn the_window_is_bounded_by_bytes_too() {
        let weight = event(1).weight();
        let mut replay = Replay::new(usize::MAX, 2 * weight, 0);
        (1..=5).for_each(|seq| replay.push(event(seq)));
        assert_eq!(numbers(&replay, 3), Some(vec![4, 5]));
        assert_eq!(numbers(&replay, 2), None);
    }
}
