//! The journal's files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::record::Record;
use super::recover::Recovered;
use super::{Journal, Sync};
use crate::config::Limits;

/// How large a segment may grow before the next one begins.
const SEGMENT_BYTES: u64 = 16 << 20;
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
}

struct Job {
    batch: Vec<u8>,
    sync: Sync,
    done: oneshot::Sender<io::Result<()>>,
}

impl FileJournal {
    /// Reads what the folder's journal holds and opens it for what comes. A torn end, as a crash leaves it, is cut off.
    pub fn open(folder: &Path, limits: &Limits) -> Result<(Self, Recovered), JournalError> {
        let failed = |error| JournalError::Io { path: folder.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let segments = segments(folder).map_err(failed)?;
        let mut recovered = Recovered::nothing(limits);
        for (n, (_, path)) in segments.iter().enumerate() {
            let last = n + 1 == segments.len();
            read_segment(path, last, &mut recovered).map_err(|error| JournalError::Io { path: path.clone(), error })?;
        }
        let number = segments.last().map_or(0, |(number, _)| *number) + 1;
        let writer = Writer::begin(folder.to_owned(), number).map_err(failed)?;
        // One batch is under way at a time; a second place keeps the hand-over from waiting.
        let (jobs, inbox) = mpsc::sync_channel(2);
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run(&inbox)).map_err(failed)?;
        Ok((Self { jobs }, recovered))
    }
}

#[async_trait]
impl Journal for FileJournal {
    async fn append(&mut self, batch: Vec<u8>, sync: Sync) -> io::Result<()> {
        let gone = || io::Error::other("the journal's thread has ended");
        let (done, written) = oneshot::channel();
        self.jobs.send(Job { batch, sync, done }).map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
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

fn read_segment(path: &Path, last: bool, recovered: &mut Recovered) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = if last { End::MayBeTorn } else { End::IsWhole };
    let whole = read_lines(BufReader::with_capacity(1 << 20, File::open(path)?), &name, end, recovered)?;
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

/// Takes every whole record; gives where the last line that is kept ends.
pub(super) fn read_lines(mut reader: impl BufRead, name: &str, end: End, recovered: &mut Recovered) -> io::Result<u64> {
    let mut line = Vec::new();
    let (mut number, mut whole) = (0usize, 0u64);
    loop {
        line.clear();
        number += 1;
        let length = io::Read::take(&mut reader, LINE_BYTES).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            return Ok(whole);
        }
        let record = match line.strip_suffix(b"\n") {
            Some(line) => Record::read(line).map_err(|bad| bad.to_string()),
            None => Err("it is cut off".to_owned()),
        };
        match record {
            Ok(record) => recovered.take(record),
            // It was never published: nothing leaves before its batch is written.
            Err(_) if end == End::MayBeTorn && reader.fill_buf()?.is_empty() => return Ok(whole),
            Err(problem) => recovered.damaged(format!("{name}, line {number}: {problem}")),
        }
        whole += length;
    }
}

/// Writes segments.
struct Writer {
    folder: PathBuf,
    number: u64,
    file: File,
    length: u64,
}

impl Writer {
    fn begin(folder: PathBuf, number: u64) -> io::Result<Self> {
        let path = folder.join(format!("{number:012}.journal"));
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)?;
        // The segment's name must survive a power cut, too.
        File::open(&folder)?.sync_all()?;
        Ok(Self { folder, number, file, length: 0 })
    }

    fn run(mut self, inbox: &mpsc::Receiver<Job>) {
        while let Ok(job) = inbox.recv() {
            let written = self.append(&job.batch, job.sync);
            // Whoever waited may have gone meanwhile.
            job.done.send(written).ok();
        }
    }

    fn append(&mut self, batch: &[u8], sync: Sync) -> io::Result<()> {
        if self.length >= SEGMENT_BYTES {
            self.file.sync_data()?;
            *self = Self::begin(self.folder.clone(), self.number + 1)?;
        }
        let written = self.file.write_all(batch).and_then(|()| match sync {
            Sync::Now => self.file.sync_data(),
            Sync::Later => Ok(()),
        });
        if written.is_err() {
            // What was written of it must not be taken for a record, nor stand before the next one.
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::End(0))?;
            return written;
        }
        self.length += batch.len() as u64;
        Ok(())
    }
}
