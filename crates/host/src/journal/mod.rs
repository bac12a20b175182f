//! The journal: every event, written before anybody sees it.
//!
//! The sequencer hands over what arrived while the last batch was being written; a batch is one `write`, for all
//! sessions together. Batches that confirm something to somebody are also synced to the disk before they are published
//! (`durability = "power"`). So what a client saw is there after a crash, and what was confirmed to it is there after a
//! power cut.
//!
//! On disk the journal is a folder of segments, written one after the other. A segment goes when everything in it is in
//! the sessions' own folders, and nobody who reconnects could be given it any more.

mod files;
mod record;
mod recover;

use std::io;

use async_trait::async_trait;

pub use files::{FileJournal, JournalError};
pub(crate) use record::{RecordRef, Spoken};
pub use recover::{Contents, Recovered, recover};

/// Where batches go.
#[async_trait]
pub trait Journal: Send + std::fmt::Debug {
    /// Writes a batch whole, or leaves the journal as it was. `last_seq` is the highest number in it.
    async fn append(&mut self, batch: Vec<u8>, sync: Sync, last_seq: u64) -> io::Result<()>;

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
pub enum Sync {
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
    async fn append(&mut self, _batch: Vec<u8>, _sync: Sync, _last_seq: u64) -> io::Result<()> {
        Ok(())
    }
}
