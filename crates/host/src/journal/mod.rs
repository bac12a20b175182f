//! The journal: every event, written before anybody sees it.
//!
//! The sequencer hands over what arrived while the last batch was being written; a batch is one `write`, for all
//! sessions together. Batches that confirm something to somebody are also synced to the disk before they are published
//! (`durability = "power"`). So what a client saw is there after a crash, and what was confirmed to it is there after a
//! power cut.
//!
//! On disk the journal is a folder of segments, written one after the other. A segment goes when everything in it is in
//! the sessions' own folders, and nobody who reconnects could be given it any more.

mod end;
mod files;
mod record;
mod recover;
mod restore;

use std::io;

use async_trait::async_trait;
use grove_core::Timestamp;

pub use files::{FileJournal, JournalError};
pub(crate) use record::{ClientVersion, JournalRecordRef};
pub(crate) use recover::lacks_numbers;
pub use recover::{JournalContents, RecoveredState, recover};

/// The largest number that is believed when it is read from a disk. Every client can count to 2^53; this leaves room to
/// go on from there for longer than anybody will.
pub(crate) const MAX_SEQ: u64 = (1 << 53) - (1 << 50);

/// How many numbers a host has for each millisecond.
const NUMBERS_PER_MS: u64 = 1_024;

/// The number of the state with which a host starts; the first event gets the next one. No host that ran before, with
/// whatever journal, has given a number above it: numbers follow the clock, and no host gives so many in a millisecond.
pub(crate) fn number_at_start(last: u64, now: Timestamp) -> u64 {
    let by_clock = now.0.checked_mul(NUMBERS_PER_MS).filter(|number| *number <= MAX_SEQ).unwrap_or(0);
    last.max(by_clock.saturating_sub(1))
}

/// Where batches go.
#[async_trait]
pub trait Journal: Send + std::fmt::Debug {
    /// Writes a batch whole, or leaves the journal as it was. `last_seq` is the highest number in it.
    async fn append(&mut self, batch: Vec<u8>, sync: SyncMode, last_seq: u64) -> io::Result<()>;

    /// Whether the next batch begins a segment. It must then say again what only the journal knows, since the segments
    /// before it will go.
    fn begins_segment(&self) -> bool {
        false
    }

    /// Nothing up to this number is needed any more.
    async fn release(&mut self, _upto: u64) {}
}

/// Whether a batch must have reached the disk before it counts as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// It must.
    Now,
    /// The operating system may take its time.
    Later,
}

/// A journal that keeps nothing, for hosts that live in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

#[async_trait]
impl Journal for NoJournal {
    async fn append(&mut self, _batch: Vec<u8>, _sync: SyncMode, _last_seq: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_a_start_follow_the_clock_and_never_go_back() {
        assert_eq!(number_at_start(7, Timestamp(1_000)), 1_024_000 - 1);
        assert_eq!(number_at_start(2_000_000, Timestamp(1_000)), 2_000_000);
        assert_eq!(number_at_start(7, Timestamp(0)), 7);
        for odd in [Timestamp(u64::MAX), Timestamp(1 << 53), Timestamp(MAX_SEQ)] {
            assert_eq!(number_at_start(7, odd), 7, "a clock that is off by centuries is not followed");
        }
    }
}
