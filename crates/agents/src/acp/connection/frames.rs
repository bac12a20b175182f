//! Tracking the agent's frames that are handled.
//!
//! A frame may need an answer that takes days, so "all up to here" is not enough: frames that still need an answer are
//! listed beside it ([`FrameCursor`]).

use std::collections::BTreeMap;

use grove_core::FrameCursor;

/// The progress of one process's frames.
#[derive(Debug)]
pub(crate) struct FrameTracker {
    process: u64,
    handled: u64,
    /// Frames that need answers, and how many each.
    open: BTreeMap<u64, usize>,
    /// The frame that ended the last turn. It counts as handled when another turn has begun: a host that comes back
    /// before the end is stored has to hear it again.
    ending: Option<u64>,
}

impl FrameTracker {
    /// An earlier host handled all frames up to `handled`.
    pub(crate) fn new(process: u64, handled: u64) -> Self {
        Self { process, handled, open: BTreeMap::new(), ending: None }
    }

    pub(crate) fn process(&self) -> u64 {
        self.process
    }

    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    /// The number of answers that the agent waits for.
    pub(crate) fn wanted(&self) -> usize {
        self.open.values().sum()
    }

    /// Marks a frame as handled, except for the answers that it needs.
    pub(crate) fn mark_handled(&mut self, frame: u64) {
        self.handled = self.handled.max(frame);
    }

    pub(crate) fn wants_answer(&mut self, frame: u64) {
        *self.open.entry(frame).or_default() += 1;
    }

    pub(crate) fn answered(&mut self, frame: u64) {
        if let Some(wanted) = self.open.get_mut(&frame) {
            *wanted -= 1;
            if *wanted == 0 {
                self.open.remove(&frame);
            }
        }
    }

    /// The agent has ended: no answer would reach it.
    pub(crate) fn nobody_waits(&mut self) {
        self.open.clear();
    }

    pub(crate) fn turn_began(&mut self) {
        self.ending = None;
    }

    pub(crate) fn turn_ended(&mut self, frame: u64) {
        self.ending = Some(frame);
    }

    pub(crate) fn mark(&self) -> FrameCursor {
        let mut open: Vec<u64> = self.open.keys().copied().chain(self.ending).collect();
        open.sort_unstable();
        open.dedup();
        FrameCursor { process: self.process, frame: self.handled, open }
    }
}

/// The last frame that no host will read again once this mark is stored.
pub(crate) fn settled(mark: &FrameCursor) -> u64 {
    mark.open.iter().min().map_or(mark.frame, |first| mark.frame.min(first.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_what_still_wants_an_answer_and_settles_what_lies_before() {
        let mut frames = FrameTracker::new(7, 3);
        frames.mark_handled(4);
        frames.wants_answer(4);
        frames.wants_answer(4);
        frames.mark_handled(6);
        assert_eq!(frames.mark(), FrameCursor { process: 7, frame: 6, open: vec![4] });
        assert_eq!(settled(&frames.mark()), 3);
        frames.answered(4);
        assert_eq!((frames.wanted(), settled(&frames.mark())), (1, 3), "one of two");
        frames.answered(4);
        frames.answered(4);
        assert_eq!((frames.wanted(), settled(&frames.mark())), (0, 6));
    }

    #[test]
    fn the_end_of_a_turn_is_heard_again_until_another_begins() {
        let mut frames = FrameTracker::new(7, 0);
        frames.mark_handled(9);
        frames.turn_ended(9);
        frames.mark_handled(11);
        assert_eq!((settled(&frames.mark()), frames.mark().open), (8, vec![9]));
        frames.turn_began();
        assert_eq!(settled(&frames.mark()), 11);
    }

    #[test]
    fn a_mark_from_before_processes_were_told_apart_is_of_none() {
        let mark: FrameCursor = serde_json::from_str(r#"{"frame":4503601774854151}"#).unwrap_or_default();
        assert_eq!(mark, FrameCursor { process: 0, frame: 4_503_601_774_854_151, open: vec![] });
    }
}
