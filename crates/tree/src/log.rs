//! A log in memory: its bytes and its index.

use crate::context::{Context, Rules};
use crate::error::LogError;
use crate::index::{EntryNo, LogIndex};
use crate::indexer::index;
use crate::migrate::{Migration, migrate};

/// A log in memory.
#[derive(Clone, Debug)]
pub struct Log {
    bytes: Vec<u8>,
    index: LogIndex,
    migrated_from: Option<u32>,
}

/// Opens a log from the bytes of its file. Versions 1 and 2 are migrated in memory; `new_id` makes the ids that version
/// 1 lacks.
pub fn open(bytes: Vec<u8>, new_id: &mut dyn FnMut() -> String) -> Result<Log, LogError> {
    let (bytes, migrated_from) = match migrate_if_old(&bytes, new_id)? {
        Some(Migration { from, bytes }) => (bytes, Some(from)),
        None => (bytes, None),
    };
    Ok(Log { index: index(&bytes)?, bytes, migrated_from })
}

/// Migrates an old version. Reads no further than the header to decide.
fn migrate_if_old(bytes: &[u8], new_id: &mut dyn FnMut() -> String) -> Result<Option<Migration>, LogError> {
    let mut indexer = crate::Indexer::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        indexer.feed(line);
        match indexer.version() {
            Some(crate::VERSION) => return Ok(None),
            Some(_) => return migrate(bytes, new_id),
            None if indexer.has_failed() => return Ok(None),
            None => {}
        }
    }
    // A header without its line feed is read only at the end.
    match indexer.finish() {
        Ok(index) if index.header().is_some() => migrate(bytes, new_id),
        Ok(_) | Err(_) => Ok(None),
    }
}

impl Log {
    pub fn index(&self) -> &LogIndex {
        &self.index
    }

    /// The file's bytes, migrated to version 3 if it is older.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The version of the file if it is older than 3. The next write must then replace the whole file by [`Log::bytes`]
    /// before it appends anything.
    pub fn migrated_from(&self) -> Option<u32> {
        self.migrated_from
    }

    /// An entry's raw line.
    pub fn line(&self, entry: EntryNo) -> &[u8] {
        let start = self.index.offset(entry) as usize;
        &self.bytes[start..start + self.index.length(entry)]
    }

    /// A model's context at an entry; at `None`, before the first one.
    pub fn context(&self, rules: Rules, at: Option<EntryNo>) -> Context<'_> {
        // The index belongs to these bytes, so no line is missing.
        Context::at(&self.index, self, rules, at).unwrap_or_else(|_| Context::empty(rules))
    }
}
