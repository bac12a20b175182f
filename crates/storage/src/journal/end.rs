//! The end of the journal, noted in a file beside it: a journal that lost its end cannot tell.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::record::SegmentEnd;

/// The file beside the journal's folder that names its end.
#[derive(Debug)]
pub(super) struct EndFile(File);

impl EndFile {
    pub(super) fn open(journal: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path_of(journal))?;
        Ok(Self(file))
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Notes an end that is on the disk.
    ///
    /// The note itself is not synced: after a power cut it may name an earlier end, and never a later one.
    pub(super) fn note(&self, end: SegmentEnd) {
        let fields = format!("{:020} {:020}", end.number, end.bytes);
        let line = format!("{fields} {:08x}\n", crc32fast::hash(fields.as_bytes()));
        // Without it a later truncation of the journal goes unnoticed, and nothing else.
        self.0.write_all_at(line.as_bytes(), 0).ok();
    }
}

fn path_of(journal: &Path) -> PathBuf {
    journal.with_extension("end")
}

/// The end that was noted last; `None` if it cannot be read.
pub(super) fn noted(journal: &Path) -> Option<SegmentEnd> {
    let line = std::fs::read_to_string(path_of(journal)).ok()?;
    let (fields, checksum) = line.trim_end().rsplit_once(' ')?;
    if u32::from_str_radix(checksum, 16).ok()? != crc32fast::hash(fields.as_bytes()) {
        return None;
    }
    let (number, bytes) = fields.split_once(' ')?;
    Some(SegmentEnd { number: number.parse().ok()?, bytes: bytes.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_as_it_was_noted_and_a_damaged_note_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        assert_eq!(noted(&journal), None);
        let file = EndFile::open(&journal).unwrap();
        for end in [SegmentEnd { number: 7, bytes: 123 }, SegmentEnd { number: 8, bytes: 0 }] {
            file.note(end);
            assert_eq!(noted(&journal), Some(end));
        }
        let path = path_of(&journal);
        let damaged = std::fs::read_to_string(&path).unwrap().replacen('8', "9", 1);
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(noted(&journal), None);
    }
}
