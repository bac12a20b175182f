//! The journal: every event, written before anybody sees it.
//!
//! The sequencer passes on the events that arrived while the last batch was being written; a batch is one `write`, for
//! all sessions together. The journal gives each entry of a batch its position, so nothing else numbers events. Batches
//! that confirm something are also synced to the disk before they are published (`durability = "power"`). So events that
//! a client saw survive a crash, and confirmed ones survive a power cut.
//!
//! On disk the journal is a folder of segments, written one after another. A segment is deleted when all of it is in
//! the sessions' own folders, and no reconnecting client could need it for replay.

mod contents;
mod end;
pub(crate) mod files;
mod position;
mod record;
mod record_journal;

use std::io;

use async_trait::async_trait;
use grove_core::{ChatId, ClientId, Event, FrameCursor, SessionId, Timestamp};

pub use contents::JournalContents;
pub(crate) use contents::{JournalItem, JournaledMove};
pub use files::{JournalError, SegmentFiles};
pub(crate) use position::MAX_SEQ;
pub use position::Position;
pub(crate) use record::JournalRecord;
pub use record::{ActionOrigin, ClientProfile, ClientVersion};
pub use record_journal::{FileJournal, JournalStorage, RecordJournal, SyncMode};

/// Writes batches of entries, and gives each entry its position.
///
/// Only the journal knows positions: behind another implementation, other hosts may take some of them.
#[async_trait]
pub trait Journal: Send + std::fmt::Debug {
    /// Takes a position above all earlier ones, for the state with which a host starts. It comes before every other call.
    async fn begin(&mut self, start: &JournalStart) -> io::Result<Position>;

    /// Writes a batch, and returns the outcome of each entry in order. After an error nothing of the batch is written.
    ///
    /// The positions of written entries ascend.
    async fn append(&mut self, batch: &[JournalEntry<'_>], sync: SyncMode) -> io::Result<Vec<AppendOutcome>>;

    /// The position of an entry with an unknown outcome; `None` if it is not written and never will be.
    async fn look_up(&mut self, entry: PendingEntry) -> io::Result<Option<Position>>;

    /// Forgets clients that have been gone for long.
    fn forget_clients(&mut self, _clients: &[ClientId]) {}

    /// Releases everything up to this sequence number.
    async fn release(&mut self, _upto: u64) {}
}

/// Facts about earlier hosts, for the start of a journal.
#[derive(Clone, Debug)]
pub struct JournalStart {
    /// No sequence number up to here is used again.
    pub used: u64,
    /// The highest sequence number of an event, or of the state with which a host started.
    pub last_published: u64,
    pub now: Timestamp,
    /// The known clients, with the versions that they spoke and their tokens.
    pub clients: Vec<(ClientId, ClientProfile)>,
}

impl JournalStart {
    /// The position at which a host starts: above every number used so far, and not below the clock's milliseconds.
    pub fn position(&self) -> Position {
        Position::at_start(self.used, self.now)
    }
}

/// A part of a batch that is written whole or not at all.
#[derive(Debug)]
pub enum JournalEntry<'a> {
    /// Events that happened together. Each takes a position.
    Events(EventGroup<'a>),
    /// Positions without content: events of a session that a client stores, or the next position for a connection.
    Positions { session: Option<&'a SessionId>, count: usize },
    /// A client and the version that it speaks. It takes no position.
    Client(KnownClient<'a>),
}

impl JournalEntry<'_> {
    /// The positions that this entry takes.
    pub fn positions(&self) -> usize {
        match self {
            JournalEntry::Events(group) => group.events.len(),
            JournalEntry::Positions { count, .. } => *count,
            JournalEntry::Client(_) => 0,
        }
    }
}

/// Events of one session that happened together.
#[derive(Debug)]
pub struct EventGroup<'a> {
    pub events: &'a [Event],
    /// The client's action behind the first event.
    pub origin: Option<&'a ActionOrigin>,
    /// The frame cursors of agents after these events.
    pub cursors: &'a [(SessionId, ChatId, FrameCursor)],
}

/// A client that connects for the first time, in another version, or with another token.
#[derive(Debug)]
pub struct KnownClient<'a> {
    pub id: &'a ClientId,
    pub profile: ClientProfile,
}

/// The outcome of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is written. Its first event has this position, the others have the following ones.
    Written(Position),
    /// It is not written: the session belongs to another host now.
    Refused,
    /// It has to be looked up whether it is written.
    Unknown(PendingEntry),
}

/// The name of an entry whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingEntry {
    /// The number of its batch, in the journal's own count.
    pub batch: u64,
    /// Its index in the batch.
    pub index: usize,
}

/// A journal that keeps nothing, for hosts in memory.
#[derive(Clone, Debug, Default)]
pub struct NoJournal {
    last: Position,
}

#[async_trait]
impl Journal for NoJournal {
    async fn begin(&mut self, start: &JournalStart) -> io::Result<Position> {
        self.last = start.position();
        Ok(self.last)
    }

    async fn append(&mut self, batch: &[JournalEntry<'_>], _sync: SyncMode) -> io::Result<Vec<AppendOutcome>> {
        let written = batch.iter().map(|entry| {
            let first = self.last.plus(1);
            self.last = self.last.plus(entry.positions());
            AppendOutcome::Written(first)
        });
        Ok(written.collect())
    }

    async fn look_up(&mut self, _entry: PendingEntry) -> io::Result<Option<Position>> {
        Ok(None)
    }
}
