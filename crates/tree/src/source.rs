//! Where a log's bytes come from when an index alone does not do.

use std::borrow::Cow;

use grove_fs::FsError;

use crate::index::{EntryNo, LogIndex};
use crate::log::Log;

/// Lines that stand no further apart than this are read together.
const GAP: u64 = 16 << 10;
/// How much is read together at most, unless one line alone is longer.
const MAX_READ: u64 = 4 << 20;

/// The bytes of a log. Views of a tree ask for the lines that they show and for no others, so a log on a disk is read by
/// ranges. One that is in memory lends its bytes.
pub trait LogSource {
    /// The bytes of a range. Fewer where the log ends before: whoever asked says what that means.
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

/// Shows the lines of entries in the order given. Neighbours that come one after the other are read together.
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

/// A log that became shorter under our eyes is not the one that was indexed.
pub(crate) fn too_short() -> FsError {
    FsError::Other {
        path: "log".to_owned(),
        reason: "it is shorter than its index says: remove the side index".to_owned(),
    }
}
