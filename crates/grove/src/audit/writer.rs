//! The thread that writes the audit log.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use grove_host::audit::{AuditLog, AuditRecord};

use super::{FILE_BYTES, FILES, file};

/// The records that may wait to be written.
pub(crate) const MAX_QUEUED: usize = 4_096;

/// The audit log of a data folder. Dropping it ends its thread when everything is written.
#[derive(Debug)]
pub(crate) struct AuditFiles {
    queue: SyncSender<AuditRecord>,
    dropped: Arc<AtomicU64>,
}

impl AuditFiles {
    /// Opens the log, and starts its thread.
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        let dropped = Arc::new(AtomicU64::new(0));
        let mut files = OpenFiles::open(folder, FILE_BYTES)?;
        let (queue, records) = sync_channel(MAX_QUEUED);
        let counter = dropped.clone();
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || files.write_all(&records, &counter))?;
        Ok(Self { queue, dropped })
    }
}

impl AuditLog for AuditFiles {
    fn record(&self, record: AuditRecord) {
        if self.queue.try_send(record).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The newest file of the log.
#[derive(Debug)]
struct OpenFiles {
    folder: PathBuf,
    file_bytes: u64,
    file: File,
    written: u64,
    /// The last write has failed, and may have left a part of its line.
    is_cut: bool,
    /// The last write has failed, and that was reported.
    is_failing: bool,
}

impl OpenFiles {
    fn open(folder: PathBuf, file_bytes: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut file = append_to(&file(&folder, 0))?;
        let written = file.metadata()?.len();
        // A line that a crash has cut is ended, so that the next one can be read.
        if written > 0 && !ends_with_line_break(&super::file(&folder, 0)) {
            file.write_all(b"\n")?;
        }
        Ok(Self { folder, file_bytes, file, written, is_cut: false, is_failing: false })
    }

    fn write_all(&mut self, records: &Receiver<AuditRecord>, dropped: &AtomicU64) {
        while let Ok(record) = records.recv() {
            let missing = dropped.swap(0, Ordering::Relaxed);
            if let Err(error) = self.write(&record, missing) {
                dropped.fetch_add(missing + 1, Ordering::Relaxed);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(%error, "the audit log cannot be written: free some space; records are missing until then");
                }
            } else {
                self.is_failing = false;
            }
        }
    }

    fn write(&mut self, record: &AuditRecord, missing: u64) -> io::Result<()> {
        if self.written >= self.file_bytes {
            self.rotate()?;
        }
        let mut line = Vec::new();
        if self.is_cut {
            line.push(b'\n');
        }
        if missing > 0 {
            writeln!(line, "{}", serde_json::json!({"time": record.time, "dropped": missing}))?;
        }
        serde_json::to_writer(&mut line, record)?;
        line.push(b'\n');
        // One write for a line: after a crash, at most the last one is cut.
        let written = self.file.write_all(&line);
        self.is_cut = written.is_err();
        self.written += line.len() as u64;
        written
    }

    /// Begins a new file, and deletes the oldest.
    fn rotate(&mut self) -> io::Result<()> {
        for age in (0..FILES - 1).rev() {
            match fs::rename(file(&self.folder, age), file(&self.folder, age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = append_to(&file(&self.folder, 0))?;
        self.written = 0;
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn ends_with_line_break(path: &Path) -> bool {
    use std::io::{Read, Seek, SeekFrom};
    let mut last = [0];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)
    });
    read.is_ok() && last == *b"\n"
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use grove_core::Timestamp;
    use grove_host::audit::AuditAction;

    use super::super::{AuditFilter, AuditReader};
    use super::*;

    fn record(number: u64) -> AuditRecord {
        let name = format!("operation {number}");
        AuditRecord::new(Timestamp(number), "host", "here".to_owned(), AuditAction::Change, &name)
    }

    #[test]
    fn files_are_private_and_rotated_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = OpenFiles::open(folder.path().join("audit"), 1_000).unwrap();
        for number in 0..200 {
            files.write(&record(number), 0).unwrap();
        }
        let names = fs::read_dir(folder.path().join("audit")).unwrap().map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(names.len(), FILES);
        for entry in &names {
            let found = entry.metadata().unwrap();
            assert!(found.permissions().mode() & 0o777 == 0o600 && found.len() < 1_300, "{found:?}");
        }
        let reader = AuditReader::open(&folder.path().join("audit"), AuditFilter::default());
        let numbers: Vec<u64> = reader.map(|record| record.time.0).collect();
        assert!(numbers.len() > 40 && numbers.is_sorted() && numbers.last() == Some(&199), "{numbers:?}");
    }

    #[test]
    fn a_cut_line_costs_itself_alone_and_dropped_records_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), 0);
        let mut files = OpenFiles::open(folder.path().to_owned(), 1_000).unwrap();
        files.write(&record(1), 0).unwrap();
        files.file.write_all(br#"{"time":2,"token":"ho"#).unwrap();
        let mut files = OpenFiles::open(folder.path().to_owned(), 1_000).unwrap();
        files.write(&record(3), 7).unwrap();
        let reader = AuditReader::open(folder.path(), AuditFilter::default());
        assert_eq!(reader.map(|record| record.time.0).collect::<Vec<_>>(), [1, 3]);
        assert!(fs::read_to_string(path).unwrap().contains(r#"{"time":3,"dropped":7}"#));
    }

    /// A small and reproducible generator.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    /// Random appends, failures, crashes and restarts. The log always has the newest records, each once and in order.
    #[test]
    fn whatever_happens_the_log_has_the_newest_records_in_order() {
        for seed in 0..30 {
            let (folder, mut dice) = (tempfile::tempdir().unwrap(), Dice(seed));
            let mut files = OpenFiles::open(folder.path().to_owned(), 2_000).unwrap();
            let mut written = Vec::new();
            for number in 0..150 {
                match dice.below(10) {
                    // A crash in the middle of a line.
                    0 => {
                        let line = serde_json::to_vec(&record(number)).unwrap();
                        let end = dice.below(line.len() as u64) as usize;
                        files.file.write_all(&line[..end]).unwrap();
                        files = OpenFiles::open(folder.path().to_owned(), 2_000).unwrap();
                    }
                    1 => files = OpenFiles::open(folder.path().to_owned(), 2_000).unwrap(),
                    // A full disk, after a part of the line.
                    2 => {
                        files.file.write_all(b"{\"time\":").unwrap();
                        files.is_cut = true;
                    }
                    // A line that no host writes, which ends in a record.
                    3 => {
                        let forged = serde_json::to_vec(&record(1_000_000)).unwrap();
                        let mut line = vec![b' '; crate::audit::reader::MAX_LINE as usize];
                        line.extend(forged);
                        line.push(b'\n');
                        files.file.write_all(&line).unwrap();
                        files.written += line.len() as u64;
                    }
                    _ => {
                        files.write(&record(number), dice.below(2)).unwrap();
                        written.push(number);
                    }
                }
                let reader = AuditReader::open(folder.path(), AuditFilter::default());
                let read: Vec<u64> = reader.map(|record| record.time.0).collect();
                assert!(written.ends_with(&read), "seed {seed}: {read:?} of {written:?}");
                assert_eq!(read.last(), written.last(), "seed {seed}");
                assert!(read.len() == written.len() || read.len() >= FILES - 1, "seed {seed}: {read:?}");
                assert!(fs::read_dir(folder.path()).unwrap().count() <= FILES);
            }
        }
    }

    #[test]
    fn a_queue_that_is_full_never_blocks() {
        let (queue, records) = sync_channel(1);
        let log = AuditFiles { queue, dropped: Arc::default() };
        (0..5).for_each(|number| log.record(record(number)));
        assert_eq!(log.dropped.load(Ordering::Relaxed), 4);
        assert_eq!(records.try_iter().count(), 1);
    }
}
