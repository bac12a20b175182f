//! Fingerprints that distinguish a log that grew from one that another program rewrote in place: both keep their inode,
//! and only the bytes differ.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files;

/// The number of bytes read at each place.
const BLOCK: u64 = 4_096;
/// The number of places, from the first byte to the last.
const BLOCKS: u64 = 16;

/// A hash of a bounded number of blocks, spread evenly over the first bytes of a file. The file is not read completely,
/// so a change of a few bytes between two blocks that moves nothing is not detected.
///
/// A later version of the standard library may have another hash: then the file is read from its beginning once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    length: u64,
    hash: u64,
}

impl Fingerprint {
    /// The fingerprint of the first `length` bytes; `None` if the file has fewer or cannot be read.
    pub(crate) fn of(path: &Path, length: u64) -> Option<Self> {
        let (file, metadata) = files::open(path).ok()?;
        let hash = (metadata.len() >= length).then(|| hash(file, length))?.ok()?;
        Some(Self { length, hash })
    }

    /// Checks that a file still begins with the same bytes.
    pub(crate) fn fits(&self, path: &Path) -> bool {
        Self::of(path, self.length) == Some(*self)
    }
}

fn hash(mut file: File, length: u64) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut block = Vec::new();
    let places = length.div_ceil(BLOCK).clamp(1, BLOCKS);
    for place in 0..places {
        let last = length.saturating_sub(BLOCK);
        let at = last * place / (places - 1).max(1);
        block.clear();
        file.seek(SeekFrom::Start(at))?;
        (&mut file).take(BLOCK.min(length - at)).read_to_end(&mut block)?;
        hasher.write(&block);
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grew_fits_and_one_that_was_written_over_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for length in [0_usize, 1, 4_096, 5_000, 40_000, 1_000_000] {
            let whole: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            std::fs::write(&path, &whole).unwrap();
            let print = Fingerprint::of(&path, length as u64).unwrap();
            std::fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
            assert!(print.fits(&path), "{length}");
            if length > 0 {
                std::fs::write(&path, [&b"x"[..], &whole[..]].concat()).unwrap();
                assert!(!print.fits(&path), "{length}");
                std::fs::write(&path, &whole[1..]).unwrap();
                assert!(!print.fits(&path), "{length}");
            }
        }
    }
}
