//! The journal: every event, written before anybody sees it.
//!
//! The sequencer passes on the events that arrived while the last batch was being written; a batch is one `write`, for
//! all sessions together. Batches that confirm something are also synced to the disk before they are published
//! (`durability = "power"`). So events that a client saw survive a crash, and confirmed ones survive a power cut.
//!
//! On disk the journal is a folder of segments, written one after another. A segment is deleted when all of it is in
//! the sessions' own folders, and no reconnecting client could need it for replay.

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

/// The largest sequence number that is accepted from a disk.
///
/// Every client can count to 2^53; this leaves more room above it than will ever be needed.
pub(crate) const MAX_SEQ: u64 = (1 << 53) - (1 << 50);

/// The sequence numbers that a host has for each millisecond.
const NUMBERS_PER_MS: u64 = 1_024;

/// The sequence number of the state with which a host starts; the first event gets the next one.
///
/// No earlier host, with any journal, has used a number above it: numbers follow the clock, and no host uses so many in
/// a millisecond.
pub(crate) fn number_at_start(last: u64, now: Timestamp) -> u64 {
    let by_clock = now.0.checked_mul(NUMBERS_PER_MS).filter(|number| *number <= MAX_SEQ).unwrap_or(0);
    last.max(by_clock.saturating_sub(1))
}

/// The destination of batches.
#[async_trait]
pub trait Journal: Send + std::fmt::Debug {
    /// Writes a batch whole, or leaves the journal as it was. `last_seq` is its highest sequence number.
    async fn append(&mut self, batch: Vec<u8>, sync: SyncMode, last_seq: u64) -> io::Result<()>;

    /// Says whether the next batch starts a segment.
    ///
    /// It must then repeat the facts that only the journal has, since earlier segments will be deleted.
    fn begins_segment(&self) -> bool {
        false
    }

    /// Releases everything up to this sequence number.
    async fn release(&mut self, _upto: u64) {}
}

/// When a batch must reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Before it counts as written.
    Now,
    /// Whenever the operating system writes it.
    Later,
}

/// A journal that keeps nothing, for hosts in memory.
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
