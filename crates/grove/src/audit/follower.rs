//! Following the audit log while a host writes it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use grove_host::audit::AuditRecord;

use super::reader::MAX_LINE;
use super::{AuditFilter, FILES, file};

/// The number of bytes per read.
const PIECE: u64 = 64 << 10;

/// The records of the log from its oldest file on, also those that are written later.
///
/// A file stays the same one while the host renames it, so nothing is missed or repeated by a rotation. Records are
/// missed only if the host deletes a file that was not read yet.
#[derive(Debug)]
pub(crate) struct AuditFollower {
    folder: PathBuf,
    filter: AuditFilter,
    /// None before the log exists.
    file: Option<File>,
    /// The bytes after the last whole line.
    rest: Vec<u8>,
}

impl AuditFollower {
    pub(crate) fn new(folder: &Path, filter: AuditFilter) -> Self {
        Self { folder: folder.to_owned(), filter, file: None, rest: Vec::new() }
    }

    /// The next records, oldest first; none if there are no new ones at the moment.
    pub(crate) fn read(&mut self) -> io::Result<Vec<AuditRecord>> {
        loop {
            let records = self.read_piece()?;
            if !records.is_empty() {
                return Ok(records);
            }
            // The host may have written to the file until it began the next one.
            let Some(next) = self.next_file()? else { return Ok(Vec::new()) };
            let last = self.read_piece()?;
            self.file = Some(next);
            self.rest.clear();
            if !last.is_empty() {
                return Ok(last);
            }
        }
    }

    /// Reads the file up to its end, or up to the first records that fit.
    fn read_piece(&mut self) -> io::Result<Vec<AuditRecord>> {
        let Some(file) = &mut self.file else { return Ok(Vec::new()) };
        while file.by_ref().take(PIECE).read_to_end(&mut self.rest)? > 0 {
            let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let lines: Vec<u8> = self.rest.drain(..whole).collect();
            // A line that is too long is none of the host's.
            if self.rest.len() as u64 > MAX_LINE {
                self.rest.clear();
            }
            let parsed = lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
            let records: Vec<AuditRecord> = parsed.filter(|record| self.filter.accepts(record)).collect();
            if !records.is_empty() {
                return Ok(records);
            }
        }
        Ok(Vec::new())
    }

    /// The file after the current one; the oldest if there is none, or if it was deleted.
    fn next_file(&self) -> io::Result<Option<File>> {
        let current = self.file.as_ref().map(identity).transpose()?;
        let mut next = None;
        for age in 0..FILES {
            let found = match File::open(file(&self.folder, age)) {
                Ok(found) => found,
                // A file may be missing for the moment of a rotation.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if current == Some(identity(&found)?) {
                break;
            }
            next = Some(found);
        }
        Ok(next)
    }
}

/// Names a file, whatever its path.
fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use grove_core::Timestamp;
    use grove_host::audit::AuditAction;

    use super::*;

    fn line(number: u64) -> String {
        let record = AuditRecord::new(Timestamp(number), "host", "here".to_owned(), AuditAction::Change, "rename");
        format!("{}\n", serde_json::to_string(&record).unwrap())
    }

    fn all(follower: &mut AuditFollower) -> Vec<u64> {
        let mut numbers = Vec::new();
        loop {
            let records = follower.read().unwrap();
            if records.is_empty() {
                return numbers;
            }
            numbers.extend(records.into_iter().map(|record| record.time.0));
        }
    }

    #[test]
    fn the_log_is_followed_over_rotations_without_gap_and_repetition() {
        let folder = tempfile::tempdir().unwrap();
        let path = |age| file(folder.path(), age);
        let mut follower = AuditFollower::new(folder.path(), AuditFilter::default());
        assert_eq!(all(&mut follower), Vec::<u64>::new(), "there is no log yet");
        fs::write(path(1), line(1)).unwrap();
        fs::write(path(0), line(2)).unwrap();
        assert_eq!(all(&mut follower), [1, 2]);
        let mut newest = fs::OpenOptions::new().append(true).open(path(0)).unwrap();
        let third = line(3);
        newest.write_all(&third.as_bytes()[..10]).unwrap();
        assert_eq!(all(&mut follower), Vec::<u64>::new(), "half a line");
        newest.write_all(&third.as_bytes()[10..]).unwrap();
        // Two rotations between two reads.
        for age in [1, 0] {
            fs::rename(path(age), path(age + 1)).unwrap();
        }
        newest.write_all(line(4).as_bytes()).unwrap();
        fs::write(path(0), line(5)).unwrap();
        for age in [2, 1, 0] {
            fs::rename(path(age), path(age + 1)).unwrap();
        }
        fs::write(path(0), line(6)).unwrap();
        assert_eq!(all(&mut follower), [3, 4, 5, 6]);
        assert_eq!(all(&mut follower), Vec::<u64>::new(), "nothing is said twice");
    }

    #[test]
    fn records_that_do_not_fit_are_passed_over_and_a_deleted_log_begins_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), 0);
        let filter = AuditFilter { since: Some(Timestamp(2)), ..AuditFilter::default() };
        let mut follower = AuditFollower::new(folder.path(), filter);
        fs::write(&path, format!("{}not a record\n{}", line(1), line(2))).unwrap();
        assert_eq!(all(&mut follower), [2]);
        let kept = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(all(&mut follower), Vec::<u64>::new());
        fs::write(&path, line(7)).unwrap();
        assert_eq!(all(&mut follower), [7]);
        drop(kept);
    }
}
