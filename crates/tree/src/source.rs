//! Access to a log's bytes beside its index.

use std::borrow::Cow;

use grove_fs::FsError;

use crate::index::{EntryNo, LogIndex};
use crate::log::Log;

/// The maximum gap between lines that are read together.
const GAP: u64 = 16 << 10;
/// The maximum size of a joint read, unless a single line is longer.
const MAX_READ: u64 = 4 << 20;

/// The bytes of a log. Views of a tree read only the lines that they show, so a log on a disk is read by ranges. A log
/// in memory lends its bytes.
pub trait LogSource {
    /// The bytes of a range. Fewer if the log ends earlier: the caller handles that.
    fn read(&self, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, FsError>;
}

impl LogSource for [u8] {
    fn read(&self, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, FsError> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        Ok(Cow::Borrowed(&self[from..from.saturating_add(length).min(self.len())]))
    }
}

impl LogSource for Log {
    fn read(&self, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, FsError> {
        self.bytes().read(offset, length)
    }
}

/// The line of one entry.
pub(crate) fn line<'a>(
    index: &LogIndex,
    source: &'a (impl LogSource + ?Sized),
    entry: EntryNo,
) -> Result<Cow<'a, [u8]>, FsError> {
    let line = source.read(index.offset(entry), index.length(entry))?;
    if line.len() < index.length(entry) { Err(too_short()) } else { Ok(line) }
}

/// Passes the lines of entries to `see` in the given order. Neighbours in this order are read together.
pub(crate) fn each_line<'a, S: LogSource + ?Sized>(
    index: &LogIndex,
    source: &'a S,
    entries: &[EntryNo],
    mut see: impl FnMut(EntryNo, Cow<'a, [u8]>) -> Result<(), FsError>,
) -> Result<(), FsError> {
    let end_of = |entry: EntryNo| index.offset(entry) + index.length(entry) as u64;
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let start = index.offset(*first);
        let mut end = end_of(*first);
        let mut count = 1;
        while let Some(next) = rest.get(count) {
            let offset = index.offset(*next);
            if offset < end || offset > end + GAP || end_of(*next) - start > MAX_READ {
                break;
            }
            end = end_of(*next);
            count += 1;
        }
        let bytes = source.read(start, usize::try_from(end - start).unwrap_or(usize::MAX))?;
        for entry in &rest[..count] {
            let from = (index.offset(*entry) - start) as usize;
            let range = from..from + index.length(*entry);
            let line = match &bytes {
                Cow::Borrowed(bytes) => bytes.get(range).map(Cow::Borrowed),
                Cow::Owned(bytes) => bytes.get(range).map(|line| Cow::Owned(line.to_vec())),
            };
            see(*entry, line.ok_or_else(too_short)?)?;
        }
        rest = &rest[count..];
    }
    Ok(())
}

/// The error for a log that became shorter since it was indexed.
pub(crate) fn too_short() -> FsError {
    FsError::Other {
        path: "log".to_owned(),
        reason: "it is shorter than its index says: remove the side index".to_owned(),
    }
}
