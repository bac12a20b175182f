//! Positions and the numbers on the wire.

use grove_core::Timestamp;

/// The largest sequence number that is accepted from a disk.
///
/// Every client can count to 2^53; this leaves more room above it than will ever be needed.
pub(crate) const MAX_SEQ: u64 = (1 << 53) - (1 << 50);

/// A position in the order of everything that a host publishes.
///
/// A sequence number on the wire is position × 1,024 + k. Events have k = 0. Messages to one connection alone have the
/// next k of that connection, so they use up no position and need no record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u64);

impl Position {
    /// The sequence numbers of one position.
    pub(crate) const NUMBERS: u64 = 1_024;

    /// The position of a sequence number.
    pub fn of(seq: u64) -> Self {
        Self(seq / Self::NUMBERS)
    }

    /// The sequence number of an event at this position.
    pub fn seq(self) -> u64 {
        self.0 * Self::NUMBERS
    }

    /// The position this many further on.
    pub fn plus(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }

    /// The position at which a host starts: above every number used so far, and not below the clock's milliseconds.
    ///
    /// So a host that lost its journal uses no number again, unless the lost one published more than a thousand events a
    /// second for its whole life. A clock that is off by centuries is not followed.
    pub(crate) fn at_start(used: u64, now: Timestamp) -> Self {
        let by_clock = if now.0 <= MAX_SEQ / Self::NUMBERS { now.0 } else { 0 };
        Self(by_clock).max(Self::of(used).plus(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_at_a_start_follow_the_clock_and_never_go_back() {
        assert_eq!(Position::at_start(7, Timestamp(1_000)).seq(), 1_024_000);
        assert_eq!(Position::at_start(2_000_000, Timestamp(1_000)), Position(1_954));
        assert_eq!(Position::at_start(7, Timestamp(0)), Position(1));
        for odd in [Timestamp(u64::MAX), Timestamp(1 << 53), Timestamp(MAX_SEQ)] {
            assert_eq!(Position::at_start(7, odd), Position(1), "a clock that is off by centuries is not followed");
        }
    }

    #[test]
    fn the_numbers_of_a_position_are_between_its_event_and_the_next_one() {
        let position = Position(3);
        for k in [0, 1, 1_023] {
            assert_eq!(Position::of(position.seq() + k), position);
        }
        assert_eq!(Position::of(position.seq() + 1_024), position.plus(1));
        assert!(Position::of(MAX_SEQ).seq() < 1 << 53);
    }
}
