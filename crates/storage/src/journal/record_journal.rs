//! The journal as records in a storage: it gives positions by counting on from the last one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use grove_core::ClientId;
use grove_metrics::Metrics;

use super::contents::JournalContents;
use super::files::{JournalError, SegmentFiles};
use super::record::{ClientProfile, JournalRecordRef};
use super::{AppendOutcome, EventGroup, Journal, JournalEntry, JournalStart, KnownClient, PendingEntry, Position};

/// The storage of a journal's records.
#[async_trait]
pub trait JournalStorage: Send + std::fmt::Debug {
    /// Writes a batch of records whole, or leaves the storage as it was. `last_seq` is its highest sequence number.
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

/// The journal of one host, as records in a storage of its own.
#[derive(Debug)]
pub struct RecordJournal<S> {
    storage: S,
    /// The last position that was taken.
    last: Position,
    /// The known clients. Each segment repeats them.
    clients: BTreeMap<ClientId, ClientProfile>,
}

/// The journal in a folder.
pub type FileJournal = RecordJournal<SegmentFiles>;

impl<S: JournalStorage> RecordJournal<S> {
    pub fn new(storage: S) -> Self {
        Self { storage, last: Position::default(), clients: BTreeMap::new() }
    }

    /// Appends the records that a segment starts with.
    fn write_head(&self, lines: &mut Vec<u8>) -> io::Result<()> {
        JournalRecordRef::Reserved(self.last.seq()).write(lines)?;
        self.write_clients(lines)
    }

    fn write_clients(&self, lines: &mut Vec<u8>) -> io::Result<()> {
        for (id, profile) in &self.clients {
            JournalRecordRef::Client { id, profile }.write(lines)?;
        }
        Ok(())
    }
}

impl FileJournal {
    /// Reads the journal in a folder and opens it for writing. A torn end, as a crash leaves it, is cut off.
    pub fn open(folder: &Path) -> Result<(Self, JournalContents), JournalError> {
        let (files, contents) = SegmentFiles::open(folder)?;
        Ok((Self::new(files), contents))
    }

    /// Counts the writes in these metrics from now on.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        self.storage.count_in(metrics);
        self
    }

    /// Reads the journal in a folder and changes nothing.
    pub fn look(folder: &Path) -> Result<JournalContents, JournalError> {
        SegmentFiles::look(folder)
    }
}

#[async_trait]
impl<S: JournalStorage> Journal for RecordJournal<S> {
    async fn begin(&mut self, start: &JournalStart) -> io::Result<Position> {
        let position = start.position();
        self.clients = start.clients.iter().cloned().collect();
        let mut lines = Vec::new();
        JournalRecordRef::Jump { from: start.last_published, to: position.seq() }.write(&mut lines)?;
        if self.storage.begins_segment() {
            self.write_clients(&mut lines)?;
        }
        // Sessions' folders contain such numbers, too.
        self.storage.append(lines, SyncMode::Now, position.seq()).await?;
        self.last = position;
        Ok(position)
    }

    async fn append(&mut self, batch: &[JournalEntry<'_>], sync: SyncMode) -> io::Result<Vec<AppendOutcome>> {
        let mut lines = Vec::new();
        if self.storage.begins_segment() {
            self.write_head(&mut lines)?;
        }
        let mut last = self.last;
        let mut outcomes = Vec::with_capacity(batch.len());
        for entry in batch {
            let first = last.plus(1);
            last = last.plus(entry.positions());
            match entry {
                JournalEntry::Events(group) => write_events(group, first, &mut lines)?,
                // Their content never reaches this disk.
                JournalEntry::Positions { .. } => JournalRecordRef::Reserved(last.seq()).write(&mut lines)?,
                JournalEntry::Client(KnownClient { id, profile }) => {
                    JournalRecordRef::Client { id, profile }.write(&mut lines)?;
                }
            }
            outcomes.push(AppendOutcome::Written(first));
        }
        self.storage.append(lines, sync, last.seq()).await?;
        self.last = last;
        let clients = batch.iter().filter_map(|entry| match entry {
            JournalEntry::Client(client) => Some((client.id.clone(), client.profile.clone())),
            JournalEntry::Events(_) | JournalEntry::Positions { .. } => None,
        });
        self.clients.extend(clients);
        Ok(outcomes)
    }

    /// A storage of one's own always says whether it has written something.
    async fn look_up(&mut self, _entry: PendingEntry) -> io::Result<Option<Position>> {
        Ok(None)
    }

    fn forget_clients(&mut self, clients: &[ClientId]) {
        clients.iter().for_each(|client| drop(self.clients.remove(client)));
    }

    async fn release(&mut self, upto: u64) {
        self.storage.release(upto).await;
    }
}

fn write_events(group: &EventGroup<'_>, first: Position, lines: &mut Vec<u8>) -> io::Result<()> {
    let mut origin = group.origin;
    let mut left = group.events.len() + group.cursors.len();
    let mut more = || {
        left -= 1;
        left > 0
    };
    for (number, event) in group.events.iter().enumerate() {
        let seq = first.plus(number).seq();
        JournalRecordRef::Event { seq, origin: origin.take(), event, more: more() }.write(lines)?;
    }
    for (session, chat, mark) in group.cursors {
        JournalRecordRef::FrameCursor { session, chat, mark, more: more() }.write(lines)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use grove_core::{Change, Event, RootEvent, SessionId, Timestamp};

    use super::super::ClientVersion;
    use super::*;

    /// A storage in memory that can be full, and whose next batch can start a segment.
    #[derive(Clone, Debug, Default)]
    struct MemoryStorage(Arc<Mutex<Stored>>);

    #[derive(Debug, Default)]
    struct Stored {
        text: String,
        is_full: bool,
        begins_segment: bool,
    }

    #[async_trait]
    impl JournalStorage for MemoryStorage {
        async fn append(&mut self, batch: Vec<u8>, _sync: SyncMode, _last_seq: u64) -> io::Result<()> {
            let mut stored = self.0.lock().unwrap();
            if stored.is_full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            stored.text.push_str(std::str::from_utf8(&batch).unwrap());
            stored.begins_segment = false;
            Ok(())
        }

        fn begins_segment(&self) -> bool {
            self.0.lock().unwrap().begins_segment
        }
    }

    fn start(used: u64) -> JournalStart {
        let clients = vec![("c".into(), ClientProfile { version: ClientVersion::V1(1), token: None })];
        JournalStart { used, last_published: used, now: Timestamp(0), clients }
    }

    fn events(count: u32) -> Vec<Event> {
        let event = |number| Event { at: Timestamp(1), change: Change::Root(RootEvent::ActiveSessionsChanged(number)) };
        (0..count).map(event).collect()
    }

    fn group(events: &[Event]) -> JournalEntry<'_> {
        JournalEntry::Events(EventGroup { events, origin: None, cursors: &[] })
    }

    #[tokio::test]
    async fn entries_take_the_positions_after_the_last_one_and_a_failed_batch_takes_none() {
        let storage = MemoryStorage::default();
        let mut journal = RecordJournal::new(storage.clone());
        // A number of an earlier version.
        let begun = journal.begin(&start(5_000)).await.unwrap();
        assert_eq!(begun.seq(), 5 * 1_024);
        let (two, one) = (events(2), events(1));
        let written = |count| AppendOutcome::Written(begun.plus(count));
        let batch = [group(&two), group(&[]), group(&one)];
        assert_eq!(journal.append(&batch, SyncMode::Now).await.unwrap(), [written(1), written(3), written(3)]);
        storage.0.lock().unwrap().is_full = true;
        journal.append(&batch, SyncMode::Now).await.unwrap_err();
        storage.0.lock().unwrap().is_full = false;
        assert_eq!(journal.append(&[group(&one)], SyncMode::Now).await.unwrap(), [written(4)]);
        let text = storage.0.lock().unwrap().text.clone();
        let contents = JournalContents::from_bytes(text.as_bytes());
        assert_eq!(contents.last_seq(), begun.plus(4).seq());
    }

    #[tokio::test]
    async fn positions_without_content_are_written_and_a_segment_repeats_what_only_the_journal_has() {
        let storage = MemoryStorage::default();
        let mut journal = RecordJournal::new(storage.clone());
        let begun = journal.begin(&start(0)).await.unwrap();
        let session = SessionId::from("kept");
        let bodyless = [JournalEntry::Positions { session: Some(&session), count: 3 }];
        journal.append(&bodyless, SyncMode::Later).await.unwrap();
        let last = begun.plus(3).seq();
        assert!(storage.0.lock().unwrap().text.ends_with(&format!("{{\"reserved\":{last}}}\n")));
        assert!(!storage.0.lock().unwrap().text.contains("kept"));
        *storage.0.lock().unwrap() = Stored { begins_segment: true, ..Stored::default() };
        journal.append(&[group(&events(1))], SyncMode::Later).await.unwrap();
        let text = storage.0.lock().unwrap().text.clone();
        let records: Vec<&str> = text.lines().map(|line| &line[9..]).collect();
        assert_eq!(records[0], format!("{{\"reserved\":{last}}}"));
        assert_eq!(records[1], r#"{"client":{"id":"c","version":1}}"#);
        assert!(records[2].contains(&format!("\"seq\":{}", begun.plus(4).seq())), "{}", records[2]);
    }
}
