//! The journal's files.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use async_trait::async_trait;
use grove_metrics::Metrics;
use tokio::sync::oneshot;

use super::contents::{JournalContents, JournalItem};
use super::end::{self, EndFile};
use super::record::{JournalRecord, JournalRecordRef, SegmentEnd};
use super::record_journal::{JournalStorage, SyncMode};

/// The size at which a segment ends and the next one starts.
pub const SEGMENT_BYTES: u64 = 16 << 20;
/// The length of the zeros that a segment is filled with in advance.
///
/// A sync inside a file need not sync the file's length, which takes most of the time. The zeros are cut off when the
/// segment is closed, or read again.
const FILL_BYTES: u64 = 4 << 20;
/// The length of a piece of these zeros. Some file systems handle what was written at once as one page, and look through
/// all of it for every record that is written there later.
const FILL_PIECE: usize = 16 << 10;
/// The largest number of a segment: its file's name has twelve digits.
const LAST_SEGMENT: u64 = 999_999_999_999;
/// The longest line. A message of a client is smaller, and so is everything made of it.
pub const LINE_BYTES: u64 = 64 << 20;
/// The largest batch that is written without the thread. It is one copy into the page cache, which takes less than
/// waking a thread and being woken by it.
const DIRECT_BYTES: usize = 16 << 10;

/// The reason why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the journal {path} cannot be used: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The segments of a journal in a folder.
///
/// A thread of their own writes and syncs them, since both block. A small batch that need not be synced is written in
/// place, unless the thread is at work.
#[derive(Debug)]
pub struct SegmentFiles {
    writer: Arc<Mutex<SegmentWriter>>,
    /// `Some` until it is dropped.
    jobs: Option<mpsc::SyncSender<JournalJob>>,
    thread: Option<JoinHandle<()>>,
    /// The segments before the current one, and the highest sequence number in each.
    closed: VecDeque<(u64, u64)>,
    number: u64,
    length: u64,
    /// The end of the segment before the current one.
    previous: Option<SegmentEnd>,
    last_seq: u64,
}

enum JournalJob {
    Append { batch: Vec<u8>, sync: SyncMode, segment: u64, done: oneshot::Sender<io::Result<()>> },
    FillAhead,
    Remove { segment: u64 },
}

impl SegmentFiles {
    /// Reads the journal in a folder and opens it for writing. A torn end, as a crash leaves it, is cut off.
    pub fn open(folder: &Path) -> Result<(Self, JournalContents), JournalError> {
        let failed = |error| JournalError::Io { path: folder.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let noted = end::noted(folder);
        let LoadedJournal { contents, segments, .. } = read(folder, TornTailPolicy::CutOff)?;
        let closed = segments.iter().map(|segment| (segment.number, segment.last_seq)).collect();
        let previous = segments.last().map(|segment| SegmentEnd { number: segment.number, bytes: segment.bytes });
        let last = previous.or(noted).map_or(0, |end| end.number);
        if last >= LAST_SEGMENT {
            return Err(failed(io::Error::other(format!("its last segment has the number {last}: remove that file"))));
        }
        let end = EndFile::open(folder).map_err(failed)?;
        let writer = SegmentWriter::begin(folder.to_owned(), last + 1, end, Arc::default()).map_err(failed)?;
        let number = last + 1;
        // One batch is in progress at a time; further slots keep the sender from waiting.
        let (jobs, inbox) = mpsc::sync_channel(16);
        let writer = Arc::new(Mutex::new(writer));
        let of_thread = writer.clone();
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || run(&of_thread, &inbox));
        let (jobs, thread) = (Some(jobs), Some(thread.map_err(failed)?));
        let last_seq = contents.last_seq();
        Ok((Self { writer, jobs, thread, closed, number, length: 0, previous, last_seq }, contents))
    }

    /// Counts the writes in these metrics from now on.
    pub(super) fn count_in(&self, metrics: Arc<Metrics>) {
        lock(&self.writer).metrics = metrics;
    }

    /// Reads the journal in a folder and changes nothing.
    pub fn look(folder: &Path) -> Result<JournalContents, JournalError> {
        match folder.try_exists() {
            Ok(false) if end::noted(folder).is_none() => Ok(JournalContents::default()),
            _ => Ok(read(folder, TornTailPolicy::Left)?.contents),
        }
    }
}

impl Drop for SegmentFiles {
    /// Waits until the thread has cut off the zeros and noted the end.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to do.
            thread.join().ok();
        }
    }
}

/// Handling of a torn end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TornTailPolicy {
    CutOff,
    Left,
}

/// The journal of a folder, read.
struct LoadedJournal {
    contents: JournalContents,
    segments: Vec<ScannedSegment>,
}

struct ScannedSegment {
    number: u64,
    /// The length of its complete records.
    bytes: u64,
    /// The highest sequence number in it and in earlier ones.
    last_seq: u64,
}

/// Reads all segments, and reports gaps between them and after them.
fn read(folder: &Path, torn: TornTailPolicy) -> Result<LoadedJournal, JournalError> {
    let failed = |error| JournalError::Io { path: folder.to_owned(), error };
    let mut contents = JournalContents::default();
    let mut segments: Vec<ScannedSegment> = Vec::new();
    // First, since a host may write on meanwhile.
    let noted = end::noted(folder);
    let found = match list_segments(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => found.map_err(failed)?,
    };
    for (n, (number, path)) in found.iter().enumerate() {
        let begin = contents.found.len();
        let last = n + 1 == found.len();
        let in_file = |error| JournalError::Io { path: path.clone(), error };
        let SegmentScan { whole, after } = match read_segment(path, last, torn, &mut contents) {
            // A running host has removed it meanwhile.
            Err(error) if torn == TornTailPolicy::Left && error.kind() == io::ErrorKind::NotFound => continue,
            read => read.map_err(in_file)?,
        };
        if let Some(before) = segments.last() {
            let missing = match after {
                _ if before.number + 1 < *number => {
                    let (first, last) = (before.number + 1, number - 1);
                    Some(format!("the journal's segments {first} to {last} are missing"))
                }
                Some(end) if end.number == before.number && end.bytes > before.bytes => {
                    Some(cut_off(end, before.bytes))
                }
                Some(_) | None => None,
            };
            // It was lost before this segment started.
            missing.into_iter().for_each(|missing| contents.found.insert(begin, JournalItem::Damage(missing)));
        }
        segments.push(ScannedSegment { number: *number, bytes: whole, last_seq: contents.last_seq() });
    }
    if let Some(end) = noted {
        let lost = match segments.iter().find(|segment| segment.number == end.number) {
            Some(segment) if segment.bytes < end.bytes => Some(cut_off(end, segment.bytes)),
            Some(_) => None,
            // A host that wrote nothing into its segment keeps the earlier ones.
            None if end.bytes > 0 || (segments.is_empty() && end.number > 1) => {
                Some(format!("the journal's newest segment, {}, is missing: it had {} bytes", end.number, end.bytes))
            }
            None => None,
        };
        contents.found.extend(lost.map(JournalItem::Damage));
    }
    contents.replace_times();
    Ok(LoadedJournal { contents, segments })
}

fn cut_off(end: SegmentEnd, bytes: u64) -> String {
    let SegmentEnd { number, bytes: had } = end;
    format!("the journal's segment {number} had {had} bytes and has {bytes}: the rest is lost")
}

#[async_trait]
impl JournalStorage for SegmentFiles {
    async fn append(&mut self, batch: Vec<u8>, sync: SyncMode, last_seq: u64) -> io::Result<()> {
        let rotate = self.length >= SEGMENT_BYTES;
        let segment = if rotate { self.number + 1 } else { self.number };
        let batch = if rotate || self.length == 0 { self.with_head(&batch, rotate)? } else { batch };
        let bytes = batch.len() as u64;
        if rotate || sync == SyncMode::Now || !self.append_directly(&batch)? {
            let (done, written) = oneshot::channel();
            self.send(JournalJob::Append { batch, sync, segment, done })?;
            written.await.map_err(|_| thread_ended())??;
        }
        if rotate {
            self.closed.push_back((self.number, self.last_seq));
            self.previous = Some(SegmentEnd { number: self.number, bytes: self.length });
            self.number = segment;
            self.length = 0;
        }
        self.length += bytes;
        self.last_seq = self.last_seq.max(last_seq);
        Ok(())
    }

    fn begins_segment(&self) -> bool {
        self.length == 0 || self.length >= SEGMENT_BYTES
    }

    async fn release(&mut self, upto: u64) {
        // The others stay until the current segment repeats the facts that only the journal has.
        if self.length == 0 {
            return;
        }
        while let Some((segment, _)) = self.closed.pop_front_if(|(_, last_seq)| *last_seq <= upto) {
            // A segment that stays, because the thread has ended, is read again and does no harm.
            self.send(JournalJob::Remove { segment }).ok();
        }
    }
}

impl SegmentFiles {
    fn send(&self, job: JournalJob) -> io::Result<()> {
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(thread_ended)
    }

    /// Writes a batch in place. Returns false if it is too large, or if the thread is at work.
    fn append_directly(&self, batch: &[u8]) -> io::Result<bool> {
        if batch.len() > DIRECT_BYTES {
            return Ok(false);
        }
        let Ok(mut writer) = self.writer.try_lock() else { return Ok(false) };
        writer.append(batch, SyncMode::Later)?;
        let needs_zeros = writer.needs_zeros();
        drop(writer);
        if needs_zeros {
            // The batch is written, whatever becomes of the zeros.
            self.send(JournalJob::FillAhead).ok();
        }
        Ok(true)
    }

    /// The first batch of a segment, with the length of the one before it.
    fn with_head(&self, batch: &[u8], rotate: bool) -> io::Result<Vec<u8>> {
        let current = SegmentEnd { number: self.number, bytes: self.length };
        let after = if rotate { Some(current) } else { self.previous };
        let mut whole = Vec::with_capacity(batch.len() + 64);
        JournalRecordRef::Segment { after }.write(&mut whole)?;
        whole.extend_from_slice(batch);
        Ok(whole)
    }
}

/// The segments, oldest first.
fn list_segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        match (number, path.extension().and_then(|end| end.to_str())) {
            (Some(number), Some("journal")) if number <= LAST_SEGMENT => segments.push((number, path)),
            (Some(_), Some("journal")) => {
                tracing::warn!(
                    file = %path.display(),
                    "a file's number is too large for a segment of the journal: it is not read"
                );
            }
            _ => {}
        }
    }
    segments.sort_unstable();
    Ok(segments)
}

fn read_segment(
    path: &Path,
    last: bool,
    torn: TornTailPolicy,
    contents: &mut JournalContents,
) -> io::Result<SegmentScan> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = if last { SegmentTail::MayBeTorn } else { SegmentTail::IsWhole };
    let read = read_lines(BufReader::with_capacity(1 << 20, File::open(path)?), &name, end, contents)?;
    let whole = read.whole;
    if torn == TornTailPolicy::CutOff && fs::metadata(path)?.len() > whole {
        tracing::info!(segment = %name, "the journal's torn end is cut off");
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(whole)?;
        file.sync_data()?;
    }
    Ok(read)
}

/// The results of reading a segment.
pub(super) struct SegmentScan {
    /// The end of the last line that is kept.
    whole: u64,
    /// The end of the previous segment, according to this one.
    after: Option<SegmentEnd>,
}

/// Says whether half a line at the end is what a crash leaves, or damage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentTail {
    MayBeTorn,
    IsWhole,
}

/// Reads every complete record.
///
/// Records of one group were published together. At a torn end an incomplete group is dropped as a whole: nobody has
/// seen any of it.
pub(super) fn read_lines(
    mut reader: impl BufRead,
    name: &str,
    end: SegmentTail,
    contents: &mut JournalContents,
) -> io::Result<SegmentScan> {
    let mut line = Vec::new();
    let mut after = None;
    let (mut number, mut whole) = (0usize, 0u64);
    // The start of the current group, and its records so far.
    let (mut begun, mut together) = (0u64, Vec::new());
    loop {
        line.clear();
        number += 1;
        let length = io::Read::take(&mut reader, LINE_BYTES).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            if end == SegmentTail::IsWhole {
                contents.found.append(&mut together);
            }
            return Ok(SegmentScan { whole: if together.is_empty() { whole } else { begun }, after });
        }
        let record = match line.strip_suffix(b"\n") {
            Some(line) => JournalRecord::read(line).map_err(|bad| bad.to_string()),
            None => Err("it is cut off".to_owned()),
        };
        match record {
            Ok(JournalRecord::Segment { after: end }) => after = end,
            Ok(record) => {
                let more = record.has_more();
                if together.is_empty() {
                    begun = whole;
                }
                together.push(JournalItem::JournalRecord(record));
                if !more {
                    contents.found.append(&mut together);
                }
            }
            // It was never published: nothing leaves before its batch is written.
            Err(_) if end == SegmentTail::MayBeTorn && reader.fill_buf()?.is_empty() => {
                return Ok(SegmentScan { whole: if together.is_empty() { whole } else { begun }, after });
            }
            Err(problem) => {
                contents.found.append(&mut together);
                contents.found.push(JournalItem::Damage(format!("{name}, line {number}: {problem}")));
            }
        }
        whole += length;
    }
}

fn thread_ended() -> io::Error {
    io::Error::other("the journal's thread has ended")
}

/// Writes segments.
#[derive(Debug)]
struct SegmentWriter {
    folder: PathBuf,
    number: u64,
    file: File,
    /// The device and the inode of the file.
    identity: (u64, u64),
    /// The offset of the next batch.
    length: u64,
    /// The end of the zeros in the file.
    filled: u64,
    end: EndFile,
    metrics: Arc<Metrics>,
}

/// The journal's file was removed or replaced: written data would be lost.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} was removed or replaced while the host runs: put the data folder back, or stop the host and start it again",
    .0.display()
)]
struct SegmentRemoved(PathBuf);

impl SegmentWriter {
    fn begin(folder: PathBuf, number: u64, end: EndFile, metrics: Arc<Metrics>) -> io::Result<Self> {
        let path = segment_path(&folder, number);
        // A failed attempt may have created it.
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        let identity = identity(&file.metadata()?);
        let mut writer = Self { folder, number, file, identity, length: 0, filled: 0, end, metrics };
        writer.fill_ahead()?;
        writer.file.sync_all()?;
        // The segment's name must survive a power cut, too.
        File::open(&writer.folder)?.sync_all()?;
        writer.end.note(SegmentEnd { number, bytes: 0 });
        Ok(writer)
    }

    /// Fails if the open file has lost its name. A file without a name is gone with the process.
    fn must_be_in_place(&self) -> io::Result<()> {
        let path = segment_path(&self.folder, self.number);
        match fs::metadata(&path) {
            Ok(named) if identity(&named) == self.identity => Ok(()),
            Ok(_) => Err(io::Error::other(SegmentRemoved(path))),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(io::Error::other(SegmentRemoved(path)))
            }
            Err(error) => Err(error),
        }
    }

    fn needs_zeros(&self) -> bool {
        self.filled < self.length + FILL_BYTES / 2
    }

    /// Fills the segment with zeros in advance, while no batch waits.
    fn fill_ahead(&mut self) -> io::Result<()> {
        if self.needs_zeros() {
            let from = self.filled.max(self.length);
            let until = self.length + FILL_BYTES;
            for offset in (from..until).step_by(FILL_PIECE) {
                let length = (until - offset).min(FILL_PIECE as u64) as usize;
                self.file.write_all_at(&[0; FILL_PIECE][..length], offset)?;
            }
            self.filled = until;
        }
        Ok(())
    }

    /// Fills ahead, and syncs the zeros: the next batch that is synced should not wait for them.
    fn refill(&mut self) {
        // If there is no space for zeros, the next batch reports it.
        if self.needs_zeros() && self.fill_ahead().is_ok() {
            self.file.sync_data().ok();
        }
    }

    /// Ends the segment and starts another one.
    fn rotate(&mut self, segment: u64) -> io::Result<()> {
        self.must_be_in_place()?;
        self.file.set_len(self.length)?;
        self.file.sync_data()?;
        *self = Self::begin(self.folder.clone(), segment, self.end.try_clone()?, self.metrics.clone())?;
        Ok(())
    }

    /// Removes an earlier segment.
    fn remove(&self, segment: u64) {
        // In another host's folder it would be another host's segment.
        if self.must_be_in_place().is_err() {
            return;
        }
        if let Err(error) = fs::remove_file(segment_path(&self.folder, segment)) {
            tracing::warn!(segment, %error, "an unneeded segment of the journal could not be removed");
        }
    }

    /// Cuts off the zeros, which do no harm but are not needed either.
    fn close(&self) {
        self.file.set_len(self.length).ok();
        if self.file.sync_data().is_ok() && self.must_be_in_place().is_ok() {
            self.note_end();
        }
    }

    fn note_end(&self) {
        self.end.note(SegmentEnd { number: self.number, bytes: self.length });
    }

    fn append(&mut self, batch: &[u8], sync: SyncMode) -> io::Result<()> {
        // Confirmed data must be on a disk under a name, after the sync.
        let written = self.write(batch, sync).and_then(|()| self.must_be_in_place());
        if written.is_err() {
            // A partial write must not be read as a record, nor precede the next one.
            self.filled = self.length;
            self.file.set_len(self.length)?;
            return written;
        }
        self.length += batch.len() as u64;
        Ok(())
    }

    fn write(&mut self, batch: &[u8], sync: SyncMode) -> io::Result<()> {
        let started = Instant::now();
        self.file.write_all_at(batch, self.length)?;
        let written = Instant::now();
        self.metrics.journal_write_seconds.observe(written - started);
        self.metrics.journal_bytes.add(batch.len() as u64);
        if sync == SyncMode::Now {
            self.file.sync_data()?;
            self.metrics.journal_sync_seconds.observe(written.elapsed());
        }
        Ok(())
    }
}

/// Carries out the jobs of a journal until its sender is dropped.
fn run(writer: &Mutex<SegmentWriter>, inbox: &mpsc::Receiver<JournalJob>) {
    while let Ok(job) = inbox.recv() {
        let mut writer = lock(writer);
        match job {
            JournalJob::Append { batch, sync, segment, done } => {
                let is_current = segment == writer.number;
                let begun = if is_current { Ok(()) } else { writer.rotate(segment) };
                let appended = begun.and_then(|()| writer.append(&batch, sync));
                let is_synced = sync == SyncMode::Now && appended.is_ok();
                // The caller may have stopped waiting.
                done.send(appended).ok();
                // Nobody has to wait for the note, nor for the zeros.
                if is_synced {
                    writer.note_end();
                }
                writer.refill();
            }
            JournalJob::FillAhead => writer.refill(),
            JournalJob::Remove { segment } => writer.remove(segment),
        }
    }
    lock(writer).close();
}

// The length counts only what was written whole, so a poisoned lock still guards valid data.
fn lock(writer: &Mutex<SegmentWriter>) -> MutexGuard<'_, SegmentWriter> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device and the inode, which identify a file under any name.
fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.journal"))
}
