//! The log of the agent's stderr: two files, of which the older one is dropped.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::folder::{self, LOG, OLD_LOG};

/// The writer's end. If the disk fails, the agent's stderr is lost, and its turn is not.
#[derive(Debug)]
pub(crate) struct StderrLog {
    folder: PathBuf,
    /// The limit of one file, so that both together stay within theirs.
    file_bytes: u64,
    file: Option<File>,
    written: u64,
}

impl StderrLog {
    pub(crate) fn new(folder: &Path, most_bytes: u64) -> Self {
        let path = folder.join(LOG);
        let file = folder::create(&path).ok();
        let written = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
        Self { folder: folder.to_owned(), file_bytes: (most_bytes / 2).max(1), file, written }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let room = usize::try_from(self.file_bytes).unwrap_or(usize::MAX);
        for piece in bytes.chunks(room) {
            if self.written + piece.len() as u64 > self.file_bytes {
                self.turn();
            }
            if let Some(file) = &mut self.file
                && file.write_all(piece).is_ok()
            {
                self.written += piece.len() as u64;
            }
        }
    }

    fn turn(&mut self) {
        let path = self.folder.join(LOG);
        if fs::rename(&path, self.folder.join(OLD_LOG)).is_ok() {
            self.file = folder::create(&path).ok();
            self.written = 0;
        } else {
            // No log is better than an unbounded one.
            self.file = None;
        }
    }
}

/// The files of the agent's stderr in a shim's folder: the newest part, and the part before. Either may be missing. The
/// first replaces the second when it has grown large.
pub fn stderr_files(folder: &Path) -> [PathBuf; 2] {
    [folder.join(LOG), folder.join(OLD_LOG)]
}

/// The end of the agent's stderr in a shim's folder, at most so many bytes, in complete lines if it is cut. It can be
/// read while the shim runs and afterwards.
pub fn stderr_tail(folder: &Path, most_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut cut = false;
    for name in [LOG, OLD_LOG] {
        let left = most_bytes.saturating_sub(bytes.len() as u64);
        let mut file = match File::open(folder.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        let from = length.saturating_sub(left);
        cut |= from > 0;
        file.seek(SeekFrom::Start(from))?;
        let mut older = Vec::new();
        file.take(left).read_to_end(&mut older)?;
        older.append(&mut bytes);
        bytes = older;
    }
    if cut && let Some(end) = memchr::memchr(b'\n', &bytes) {
        bytes.drain(..=end);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_within_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(stderr_tail(folder.path(), 100).unwrap(), "");
        let mut log = StderrLog::new(folder.path(), 1_000);
        for number in 0..1_000 {
            log.write(format!("line {number}\n").as_bytes());
        }
        let bytes: u64 = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes > 400 && bytes <= 1_000, "{bytes}");
        let tail = stderr_tail(folder.path(), 25).unwrap();
        assert_eq!(tail, "line 998\nline 999\n");
        let all = stderr_tail(folder.path(), 100_000).unwrap();
        assert!(all.starts_with("line ") && all.ends_with("line 998\nline 999\n"), "{all}");
    }

    #[test]
    fn a_flood_at_once_stays_within_the_bound_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = StderrLog::new(folder.path(), 100);
        log.write(&[b'x'; 10_000]);
        log.write(b"\nthe end\n");
        let tail = stderr_tail(folder.path(), 1_000).unwrap();
        assert!(tail.len() <= 100 && tail.ends_with("the end\n"), "{tail}");
    }
}
