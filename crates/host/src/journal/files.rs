//! The journal's files.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::record::Record;
use super::recover::{Contents, Found};
use super::{Journal, Sync};

/// How large a segment may grow before the next one begins.
const SEGMENT_BYTES: u64 = 16 << 20;
/// How far ahead a segment is filled with zeros. A sync of what lies inside a file need not sync the file's length, which
/// is what a sync mostly waits for; the zeros are cut off when the segment is closed, or read again.
const FILL_BYTES: u64 = 2 << 20;
/// How long a line may be. A message of a client is smaller, and so is everything made of it.
const LINE_BYTES: u64 = 64 << 20;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the journal {path} cannot be used: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The journal in a folder. A thread of its own writes it, since writing and syncing block.
#[derive(Debug)]
pub struct FileJournal {
    jobs: mpsc::SyncSender<Job>,
    /// The segments before the one that is written, and the highest number in each.
    closed: VecDeque<(u64, u64)>,
    number: u64,
    length: u64,
    last_seq: u64,
}

enum Job {
    Append { batch: Vec<u8>, sync: Sync, segment: u64, done: oneshot::Sender<io::Result<()>> },
    Remove { segment: u64 },
}

impl FileJournal {
    /// Reads what the folder's journal holds and opens it for what comes. A torn end, as a crash leaves it, is cut off.
    pub fn open(folder: &Path) -> Result<(Self, Contents), JournalError> {
        let failed = |error| JournalError::Io { path: folder.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let segments = segments(folder).map_err(failed)?;
        let mut contents = Contents::default();
        let mut closed = VecDeque::new();
        for (n, (number, path)) in segments.iter().enumerate() {
            let last = n + 1 == segments.len();
            read_segment(path, last, &mut contents).map_err(|error| JournalError::Io { path: path.clone(), error })?;
            closed.push_back((*number, contents.last_seq()));
        }
        let number = segments.last().map_or(0, |(number, _)| *number) + 1;
        let writer = Writer::begin(folder.to_owned(), number).map_err(failed)?;
        // One batch is under way at a time; further places keep the hand-over from waiting.
        let (jobs, inbox) = mpsc::sync_channel(16);
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run(&inbox)).map_err(failed)?;
        Ok((Self { jobs, closed, number, length: 0, last_seq: contents.last_seq() }, contents))
    }
}

#[async_trait]
impl Journal for FileJournal {
    async fn append(&mut self, batch: Vec<u8>, sync: Sync, last_seq: u64) -> io::Result<()> {
        let gone = || io::Error::other("the journal's thread has ended");
        let rotate = self.length >= SEGMENT_BYTES;
        let segment = if rotate { self.number + 1 } else { self.number };
        let bytes = batch.len() as u64;
        let (done, written) = oneshot::channel();
        self.jobs.send(Job::Append { batch, sync, segment, done }).map_err(|_| gone())?;
        written.await.map_err(|_| gone())??;
        if rotate {
            self.closed.push_back((self.number, self.last_seq));
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
        // Until the segment that is written has said again what only the journal knows, the others stay.
        if self.length == 0 {
            return;
        }
        while let Some((segment, _)) = self.closed.pop_front_if(|(_, last_seq)| *last_seq <= upto) {
            // What stays behind, because the thread has ended, is read again and does no harm.
            self.jobs.send(Job::Remove { segment }).ok();
        }
    }
}

/// The segments, oldest first.
fn segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (Some(number), Some("journal")) = (number, path.extension().and_then(|end| end.to_str())) {
            segments.push((number, path));
        }
    }
    segments.sort_unstable();
    Ok(segments)
}

fn read_segment(path: &Path, last: bool, contents: &mut Contents) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = if last { End::MayBeTorn } else { End::IsWhole };
    let whole = read_lines(BufReader::with_capacity(1 << 20, File::open(path)?), &name, end, contents)?;
    if fs::metadata(path)?.len() > whole {
        tracing::info!(segment = %name, "the journal's torn end is cut off");
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(whole)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Whether half a line at the end is what a crash leaves, or damage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    MayBeTorn,
    IsWhole,
}

/// Takes every whole record; gives where the last line that is kept ends. What belongs together was published together,
/// so at a torn end the beginning of it goes with the rest: nobody has seen any of it.
pub(super) fn read_lines(mut reader: impl BufRead, name: &str, end: End, contents: &mut Contents) -> io::Result<u64> {
    let mut line = Vec::new();
    let (mut number, mut whole) = (0usize, 0u64);
    // Where what belongs together begins, and what of it was found.
    let (mut begun, mut together) = (0u64, Vec::new());
    loop {
        line.clear();
        number += 1;
        let length = io::Read::take(&mut reader, LINE_BYTES).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            if end == End::IsWhole {
                contents.found.append(&mut together);
            }
            return Ok(if together.is_empty() { whole } else { begun });
        }
        let record = match line.strip_suffix(b"\n") {
            Some(line) => Record::read(line).map_err(|bad| bad.to_string()),
            None => Err("it is cut off".to_owned()),
        };
        match record {
            Ok(record) => {
                let more = record.has_more();
                if together.is_empty() {
                    begun = whole;
                }
                together.push(Found::Record(record));
                if !more {
                    contents.found.append(&mut together);
                }
            }
            // It was never published: nothing leaves before its batch is written.
            Err(_) if end == End::MayBeTorn && reader.fill_buf()?.is_empty() => {
                return Ok(if together.is_empty() { whole } else { begun });
            }
            Err(problem) => {
                contents.found.append(&mut together);
                contents.found.push(Found::Damage(format!("{name}, line {number}: {problem}")));
            }
        }
        whole += length;
    }
}

/// Writes segments.
struct Writer {
    folder: PathBuf,
    number: u64,
    file: File,
    /// Where the next batch goes.
    length: u64,
    /// Up to where the file has zeros.
    filled: u64,
}

impl Writer {
    fn begin(folder: PathBuf, number: u64) -> io::Result<Self> {
        let path = segment_path(&folder, number);
        // A try that failed before may have made it.
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        let mut writer = Self { folder, number, file, length: 0, filled: 0 };
        writer.fill_ahead()?;
        writer.file.sync_all()?;
        // The segment's name must survive a power cut, too.
        File::open(&writer.folder)?.sync_all()?;
        Ok(writer)
    }

    /// Sees to it that there are zeros ahead, while nobody waits.
    fn fill_ahead(&mut self) -> io::Result<()> {
        if self.filled < self.length + FILL_BYTES / 2 {
            let from = self.filled.max(self.length);
            let until = self.length + FILL_BYTES;
            self.file.write_all_at(&vec![0; usize::try_from(until - from).unwrap_or(0)], from)?;
            self.filled = until;
        }
        Ok(())
    }

    fn run(mut self, inbox: &mpsc::Receiver<Job>) {
        while let Ok(job) = inbox.recv() {
            match job {
                Job::Append { batch, sync, segment, done } => {
                    // Whoever waited may have gone meanwhile.
                    done.send(self.append(&batch, sync, segment)).ok();
                    // Where there is no room for zeros, the next batch will say so.
                    self.fill_ahead().ok();
                }
                Job::Remove { segment } => {
                    if let Err(error) = fs::remove_file(segment_path(&self.folder, segment)) {
                        tracing::warn!(segment, %error, "a segment of the journal that is not needed stays behind");
                    }
                }
            }
        }
        // Nobody reads the zeros, but nobody needs them either.
        self.file.set_len(self.length).ok();
    }

    fn append(&mut self, batch: &[u8], sync: Sync, segment: u64) -> io::Result<()> {
        if segment != self.number {
            self.file.set_len(self.length)?;
            self.file.sync_data()?;
            *self = Self::begin(self.folder.clone(), segment)?;
        }
        let written = self.write(batch, sync);
        if written.is_err() {
            // What was written of it must not be taken for a record, nor stand before the next one.
            self.filled = self.length;
            self.file.set_len(self.length)?;
            return written;
        }
        self.length += batch.len() as u64;
        Ok(())
    }

    fn write(&mut self, batch: &[u8], sync: Sync) -> io::Result<()> {
        self.file.write_all_at(batch, self.length)?;
        match sync {
            Sync::Now => self.file.sync_data(),
            Sync::Later => Ok(()),
        }
    }
}

fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.journal"))
}
