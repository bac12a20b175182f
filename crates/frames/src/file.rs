//! The writer of a log of frames.
//!
//! A connection only puts a copy of a frame into a bounded channel, and a thread does the rest. So a slow disk costs lines of
//! this file and nothing else; a line in their place says how many.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use grove_checks::Check;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

/// Frames that may wait to be written; more are counted and left out.
pub const MAX_FRAMES: usize = 8_192;
/// Bytes of frames that may wait, likewise.
pub const MAX_BYTES: usize = 32 << 20;

/// A frame with what its line says about it.
pub trait FrameRecord: Send + 'static {
    /// The size of the frame, which counts while it waits.
    fn bytes(&self) -> usize;

    /// Appends the frame's lines.
    fn write_lines(&self, out: &mut String);

    /// Appends the line that says how many frames before this one are missing.
    fn write_dropped(&self, dropped: u64, out: &mut String);
}

/// A log of frames. Clones are the same file.
#[derive(Debug)]
pub struct FrameFile<R> {
    entries: mpsc::Sender<FrameFileEntry<R>>,
    backlog: Arc<Backlog>,
}

impl<R> Clone for FrameFile<R> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), backlog: self.backlog.clone() }
    }
}

#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    /// Frames left out since the last line that counted them.
    dropped: AtomicU64,
}

#[derive(Debug)]
enum FrameFileEntry<R> {
    Frame(R),
    /// Signals that everything before it is in the file.
    Written(oneshot::Sender<()>),
}

impl<R: FrameRecord> FrameFile<R> {
    /// Appends to a file that only its owner can read: it holds conversations. A thread of this name writes it.
    pub fn append_to(path: &Path, thread: &str) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        // An existing file may have other permissions.
        if Check::FrameLogMode.is_enforced() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        let (entries, receiver) = mpsc::channel(MAX_FRAMES);
        let backlog = Arc::new(Backlog::default());
        let name = path.display().to_string();
        let file = BufWriter::new(file);
        let writer = FrameFileWriter { entries: receiver, backlog: backlog.clone(), file, name, failed: false };
        std::thread::Builder::new().name(thread.to_owned()).spawn(move || writer.run())?;
        Ok(Self { entries, backlog })
    }

    /// Records a frame of so many bytes, if there is room for it. Otherwise it is not even copied.
    pub fn record(&self, bytes: usize, copy: impl FnOnce() -> R) {
        let fits = self.backlog.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_BYTES;
        if !fits || self.entries.try_send(FrameFileEntry::Frame(copy())).is_err() {
            self.backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.backlog.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until every frame recorded so far is in the file.
    pub async fn written(&self) {
        let (done, written) = oneshot::channel();
        // A writer that has ended has nothing left to write.
        if self.entries.send(FrameFileEntry::Written(done)).await.is_ok() {
            written.await.ok();
        }
    }
}

struct FrameFileWriter<R> {
    entries: mpsc::Receiver<FrameFileEntry<R>>,
    backlog: Arc<Backlog>,
    file: BufWriter<File>,
    name: String,
    /// The file could not be written, and that was logged.
    failed: bool,
}

impl<R: FrameRecord> FrameFileWriter<R> {
    fn run(mut self) {
        while let Some(entry) = self.next() {
            match entry {
                FrameFileEntry::Frame(frame) => {
                    let dropped = self.backlog.dropped.swap(0, Ordering::Relaxed);
                    let mut lines = String::new();
                    if dropped > 0 {
                        frame.write_dropped(dropped, &mut lines);
                    }
                    frame.write_lines(&mut lines);
                    self.write(|file| file.write_all(lines.as_bytes()));
                    self.backlog.bytes.fetch_sub(frame.bytes(), Ordering::Relaxed);
                }
                FrameFileEntry::Written(done) => {
                    self.write(|file| file.flush());
                    done.send(()).ok();
                }
            }
        }
        self.write(|file| file.flush());
    }

    /// The next entry. The file is flushed before the thread waits for it.
    fn next(&mut self) -> Option<FrameFileEntry<R>> {
        match self.entries.try_recv() {
            Ok(entry) => Some(entry),
            Err(TryRecvError::Empty) => {
                self.write(|file| file.flush());
                self.entries.blocking_recv()
            }
            Err(TryRecvError::Disconnected) => None,
        }
    }

    fn write(&mut self, how: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if let Err(error) = how(&mut self.file)
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::warn!(%error, file = self.name, "a log of frames cannot be written: frames are missing from it");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use super::*;

    struct Line(&'static str);

    impl FrameRecord for Line {
        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn write_lines(&self, out: &mut String) {
            out.push_str(self.0);
            out.push('\n');
        }

        fn write_dropped(&self, dropped: u64, out: &mut String) {
            out.push_str(&format!("dropped {dropped}\n"));
        }
    }

    #[tokio::test]
    async fn frames_without_room_are_counted_and_the_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        std::fs::write(&path, "before\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let file = FrameFile::append_to(&path, "frames").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        file.record(MAX_BYTES + 1, || panic!("it is not copied"));
        file.record(MAX_BYTES + 1, || panic!("it is not copied"));
        file.record(3, || Line("one"));
        file.written().await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\ndropped 2\none\n");
        assert_eq!(file.backlog.bytes.load(Ordering::Relaxed), 0);
    }
}
