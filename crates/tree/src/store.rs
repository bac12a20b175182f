//! Logs on a [`SessionFs`]: thin readers around the functions over bytes.

use std::future::poll_fn;
use std::task::Poll;

use grove_fs::{FsError, SessionFs};

use crate::error::LogError;
use crate::index::{EntryNo, LogIndex};
use crate::indexer::Indexer;
use crate::migrate::{Migration, migrate};
use crate::side_index::{self, SideIndex};

/// The size of one read of a log.
const CHUNK: usize = 1 << 20;
/// The maximum gap between lines that are read together.
const GAP: u64 = 16 << 10;
/// The maximum size of a joint read, unless a single line is longer.
const MAX_READ: u64 = 4 << 20;

/// An opened log.
#[derive(Clone, Debug)]
pub struct OpenedLog {
    pub index: LogIndex,
    /// The log as version 3 if the file is older. Offsets then refer to these bytes, and the next write must replace
    /// the file by them before it appends anything.
    pub migrated: Option<Migration>,
    /// The origin of the index.
    pub origin: IndexOrigin,
}

/// The origin of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOrigin {
    /// The log was read from its beginning.
    Log,
    /// The side index was used, and this many uncovered bytes were read.
    SideIndex { read: u64 },
}

/// Opens a log, reading all of it in chunks. `new_id` makes the ids that version 1 lacks.
pub async fn open_log(
    fs: &dyn SessionFs,
    path: &str,
    new_id: &mut (dyn FnMut() -> String + Send),
) -> Result<OpenedLog, LogError> {
    let mut indexer = Indexer::new();
    feed(fs, path, &mut indexer).await?;
    if indexer.version().is_some_and(|version| version < crate::VERSION) {
        return open_old(fs, path, new_id).await;
    }
    let index = indexer.finish()?;
    Ok(OpenedLog { index, migrated: None, origin: IndexOrigin::Log })
}

/// The index of a log's first `boundary` bytes. The log must have the current version: an older one is migrated before
/// anything is cut from it.
pub async fn index_below(fs: &dyn SessionFs, path: &str, boundary: u64) -> Result<LogIndex, LogError> {
    let mut indexer = Indexer::new();
    let mut offset = 0;
    while offset < boundary {
        let most = usize::try_from(boundary - offset).unwrap_or(CHUNK).min(CHUNK);
        let chunk = fs.read_range(path, offset, most).await?;
        if chunk.is_empty() {
            let reason = format!("it ends at byte {offset}, and was cut at {boundary} before");
            return Err(FsError::Other { path: path.to_owned(), reason }.into());
        }
        offset += chunk.len() as u64;
        indexer.feed(&chunk);
    }
    indexer.finish()
}

/// Opens a log by its side index, if that can be trusted, and the bytes appended since; else like [`open_log`].
pub async fn open_log_with_side_index(
    fs: &dyn SessionFs,
    path: &str,
    side_path: &str,
    new_id: &mut (dyn FnMut() -> String + Send),
) -> Result<OpenedLog, LogError> {
    if let Some(index) = trusted(fs, path, side_path).await? {
        let covered = index.log_length();
        if fs.stat(path).await?.size == covered {
            return Ok(OpenedLog { index, migrated: None, origin: IndexOrigin::SideIndex { read: 0 } });
        }
        if let Some(mut indexer) = Indexer::resume(index) {
            feed_from(fs, path, covered, &mut indexer).await?;
            let index = indexer.finish()?;
            let read = index.log_length() - covered;
            return Ok(OpenedLog { index, migrated: None, origin: IndexOrigin::SideIndex { read } });
        }
    }
    open_log(fs, path, new_id).await
}

/// The size of a write of a side index.
const SIDE_PIECE: usize = 256 << 10;

/// Writes the side index of a log. Returns false if it has none: a log that does not end with a complete line.
pub async fn write_side_index(
    fs: &dyn SessionFs,
    path: &str,
    side_path: &str,
    index: &LogIndex,
) -> Result<bool, LogError> {
    let [head, tail] = probe(fs, path, side_index::probes(index.log_length())).await?;
    let Some(bytes) = side_index::render(index, &head, &tail) else { return Ok(false) };
    if bytes.len() <= SIDE_PIECE {
        fs.write_file(side_path, &bytes).await?;
        return Ok(true);
    }
    // A store may copy what it is given, so it is given pieces. The file gets its name when it is complete.
    let unfinished = format!("{side_path}.new");
    fs.write_file(&unfinished, b"").await?;
    for piece in bytes.chunks(SIDE_PIECE) {
        fs.append_file(&unfinished, piece).await?;
    }
    fs.rename(&unfinished, side_path).await?;
    Ok(true)
}

/// Reads the lines of some entries, in their order, by offset. Entries close together are read together.
pub async fn read_lines(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    entries: &[EntryNo],
) -> Result<Vec<Vec<u8>>, LogError> {
    let mut by_place: Vec<usize> = (0..entries.len()).collect();
    by_place.sort_unstable_by_key(|at| index.offset(entries[*at]));
    let mut lines = vec![Vec::new(); entries.len()];
    let mut rest = by_place.as_slice();
    while let Some(first) = rest.first() {
        let start = index.offset(entries[*first]);
        let end_of = |at: usize| index.offset(entries[at]) + index.length(entries[at]) as u64;
        let mut end = end_of(*first);
        let mut count = 1;
        while let Some(next) = rest.get(count) {
            let further = end_of(*next).max(end);
            if index.offset(entries[*next]) > end + GAP || further - start > MAX_READ {
                break;
            }
            end = further;
            count += 1;
        }
        let bytes = fs.read_range(path, start, (end - start) as usize).await?;
        for at in &rest[..count] {
            let from = (index.offset(entries[*at]) - start) as usize;
            let line = bytes.get(from..from + index.length(entries[*at]));
            // A file that became shorter is not the log that was indexed.
            let line = line.ok_or_else(|| FsError::Other {
                path: path.to_owned(),
                reason: "it is shorter than its index says: remove the side index".to_owned(),
            })?;
            lines[*at] = line.to_vec();
        }
        rest = &rest[count..];
    }
    Ok(lines)
}

/// Reads the newest entries of the branch to the leaf, at most `count`, with their lines. Nothing else is read.
pub async fn read_tail(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    count: usize,
) -> Result<Vec<(EntryNo, Vec<u8>)>, LogError> {
    let entries = index.leaf().map(|leaf| index.tail(leaf, count)).unwrap_or_default();
    let lines = read_lines(fs, path, index, &entries).await?;
    Ok(entries.into_iter().zip(lines).collect())
}

async fn feed(fs: &dyn SessionFs, path: &str, indexer: &mut Indexer) -> Result<(), LogError> {
    feed_from(fs, path, 0, indexer).await
}

async fn feed_from(fs: &dyn SessionFs, path: &str, from: u64, indexer: &mut Indexer) -> Result<(), LogError> {
    let mut chunk = fs.read_range(path, from, CHUNK).await?;
    let mut offset = from;
    loop {
        offset += chunk.len() as u64;
        // The store fetches the next chunk while this one is being read.
        let mut next = fs.read_range(path, offset, CHUNK);
        let early = poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
        indexer.feed(&chunk);
        let old = indexer.version().is_some_and(|version| version < crate::VERSION);
        if chunk.is_empty() || old || indexer.has_failed() {
            return Ok(());
        }
        chunk = match early {
            Poll::Ready(read) => read?,
            Poll::Pending => next.await?,
        };
    }
}

async fn open_old(
    fs: &dyn SessionFs,
    path: &str,
    new_id: &mut (dyn FnMut() -> String + Send),
) -> Result<OpenedLog, LogError> {
    let bytes = fs.read_file(path).await?;
    let migrated = migrate(&bytes, new_id)?;
    let index = crate::indexer::index(migrated.as_ref().map_or(&bytes, |migration| &migration.bytes))?;
    Ok(OpenedLog { index, migrated, origin: IndexOrigin::Log })
}

async fn trusted(fs: &dyn SessionFs, path: &str, side_path: &str) -> Result<Option<LogIndex>, LogError> {
    let bytes = match fs.read_file(side_path).await {
        Ok(bytes) => bytes,
        Err(FsError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Ok(side_index) = SideIndex::parse(&bytes) else { return Ok(None) };
    let [head, tail] = probe(fs, path, side_index.probes()).await?;
    Ok(side_index.trust(&head, &tail).ok())
}

async fn probe(fs: &dyn SessionFs, path: &str, probes: [(u64, usize); 2]) -> Result<[Vec<u8>; 2], LogError> {
    let [head, tail] = probes;
    Ok([fs.read_range(path, head.0, head.1).await?, fs.read_range(path, tail.0, tail.1).await?])
}
