//! Copying files from one store to another, a piece at a time.

use super::{CopyError, SessionFolder, progress};
use crate::spill::whole_characters;
use crate::{Backend, FsError, Removal, SessionFs};

/// The bytes of a file that are in memory at once.
pub(super) const PIECE: usize = 1024 * 1024;
/// The number of attempts to read a file that changes meanwhile.
const TRIES: usize = 3;

/// A file that is being written. It gets its name when it is complete.
#[derive(Debug)]
pub(super) struct PartialFile<'a> {
    to: &'a SessionFolder<'a>,
    /// Its final name.
    target: String,
    held: Vec<u8>,
    /// Set once some of it was written.
    has_begun: bool,
}

/// Copies a file as it is. A file that is gone is not part of the copy.
pub(super) async fn copy(
    from: &dyn SessionFs,
    source: &str,
    to: &SessionFolder<'_>,
    target: &str,
) -> Result<(), CopyError> {
    for _ in 0..TRIES {
        let before = match from.stat(source).await {
            Ok(stat) => stat,
            Err(FsError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut partial_file = PartialFile::begin(to, target).await?;
        let mut offset = 0;
        let lost = loop {
            match from.read_range(source, offset, PIECE).await {
                Ok(piece) if piece.is_empty() => break false,
                Ok(piece) => {
                    offset += piece.len() as u64;
                    partial_file.push(&piece).await?;
                }
                Err(FsError::NotFound { .. }) => break true,
                Err(error) => return Err(error.into()),
            }
        };
        // Pieces of two versions would make a file that never existed.
        let after = from.stat(source).await;
        // The sizes of a storage client need not be bytes.
        let read = if from.backend() == Backend::Rpc { before.size } else { offset };
        if !lost && after.is_ok_and(|after| (after.size, after.modified) == (read, before.modified)) {
            return partial_file.finish().await;
        }
    }
    Err(CopyError::Changing { path: source.to_owned() })
}

impl<'a> PartialFile<'a> {
    pub(super) async fn begin(to: &'a SessionFolder<'a>, target: &str) -> Result<Self, CopyError> {
        match to.store.rm(&progress::part(to), Removal::One).await {
            Ok(()) | Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { to, target: target.to_owned(), held: Vec::new(), has_begun: false })
    }

    pub(super) async fn push(&mut self, bytes: &[u8]) -> Result<(), CopyError> {
        if self.held.len() + bytes.len() > PIECE {
            // Stores of text alone accept no half characters.
            self.flush(whole_characters(&self.held)).await?;
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) async fn finish(mut self) -> Result<(), CopyError> {
        if !self.has_begun {
            return Ok(self.to.store.write_file(&self.target, &self.held).await?);
        }
        self.flush(self.held.len()).await?;
        let part = progress::part(self.to);
        self.to.store.sync(&part).await?;
        if let Some((folder, _)) = self.target.rsplit_once('/') {
            self.to.store.mkdir(folder).await?;
        }
        Ok(self.to.store.rename(&part, &self.target).await?)
    }

    async fn flush(&mut self, length: usize) -> Result<(), CopyError> {
        if length > 0 {
            let appended = self.to.store.append_file(&progress::part(self.to), &self.held[..length]).await;
            // Callers know the file's name, and not the temporary one.
            appended.map_err(|error| error.at(&self.target))?;
            self.held.drain(..length);
            self.has_begun = true;
        }
        Ok(())
    }
}
