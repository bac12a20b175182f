//! Entries outside turns that tell of the session, for clients that list events.

use std::collections::VecDeque;
use std::sync::Arc;

use grove_fs::SessionFs;
use grove_tree::{EntryNo, EntryType, LogError, LogIndex, Owner, entries, store};

/// The entries that are kept in memory; of more, the newest.
pub const MAX_INFO_ENTRIES: usize = 1_000;
/// The bytes of their lines; of more, the newest.
pub const MAX_INFO_BYTES: usize = 4 << 20;

/// An entry outside turns.
#[derive(Clone, Debug)]
pub struct InfoEntry {
    pub entry: EntryNo,
    pub line: Arc<str>,
}

/// The newest of them, in the log's order.
#[derive(Clone, Debug, Default)]
pub(super) struct InfoEntries {
    entries: VecDeque<InfoEntry>,
    bytes: usize,
}

impl InfoEntries {
    /// Reads the newest ones of a log.
    pub(super) async fn read(fs: &dyn SessionFs, path: &str, index: &LogIndex) -> Result<Self, LogError> {
        let is_candidate =
            |entry: &EntryNo| index.owner(*entry) == Owner::Grove || index.kind(*entry) == EntryType::Compaction;
        let candidates: Vec<EntryNo> = index.entries().filter(is_candidate).collect();
        let lines = store::read_lines(fs, path, index, &candidates).await?;
        let mut infos = Self::default();
        for (entry, line) in candidates.into_iter().zip(lines) {
            infos.note(index, entry, &line);
        }
        Ok(infos)
    }

    /// Notes an entry, if it is one of them.
    pub(super) fn note(&mut self, index: &LogIndex, entry: EntryNo, line: &[u8]) {
        let is_info = match (index.owner(entry), index.kind(entry)) {
            (Owner::Tree, kind) => kind == EntryType::Compaction,
            (Owner::Grove, _) => entries::is_info(line),
        };
        if !is_info {
            return;
        }
        self.bytes += line.len();
        self.entries.push_back(InfoEntry { entry, line: String::from_utf8_lossy(line).into() });
        while self.entries.len() > MAX_INFO_ENTRIES || (self.bytes > MAX_INFO_BYTES && self.entries.len() > 1) {
            let oldest = self.entries.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.line.len().min(self.bytes));
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &InfoEntry> {
        self.entries.iter()
    }
}
