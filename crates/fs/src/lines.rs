//! Reading a file line by line, in bounded memory.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::{FsError, Result};

/// A file's bytes, chunk by chunk.
#[async_trait]
pub trait Chunks: Debug + Send {
    /// The next bytes, not empty; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>>;
}

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    /// Without the line feed.
    pub bytes: Vec<u8>,
    /// Set if a line feed followed: the last line of a file may lack it.
    pub ended: bool,
}

/// The lines of a file. It holds no more than one line, of bounded length, and one chunk.
#[derive(Debug)]
pub struct FileLines {
    path: String,
    source: Box<dyn Chunks>,
    longest: usize,
    /// The bytes that were read and not returned yet, from `start` on.
    chunk: Vec<u8>,
    start: usize,
    /// The number of lines returned or skipped.
    count: u64,
    /// The beginning of the next line. It outlives a call that is dropped half way.
    line: Vec<u8>,
    /// Set while the rest of a line that is too long is skipped.
    too_long: bool,
}

impl FileLines {
    pub fn new(path: &str, source: impl Chunks + 'static, longest: usize) -> Self {
        Self {
            path: path.to_owned(),
            source: Box::new(source),
            longest,
            chunk: Vec::new(),
            start: 0,
            count: 0,
            line: Vec::new(),
            too_long: false,
        }
    }

    /// The same lines under another path, for a view of a store.
    #[must_use]
    pub(crate) fn named(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The next line; `None` at the end. A line that is too long gives an error and is skipped; the next call continues
    /// after it.
    pub async fn next(&mut self) -> Result<Option<FileLine>> {
        loop {
            let rest = &self.chunk[self.start..];
            if rest.is_empty() {
                match self.source.next().await.map_err(|error| error.at(&self.path))? {
                    Some(chunk) => (self.chunk, self.start) = (chunk, 0),
                    None if self.line.is_empty() && !self.too_long => return Ok(None),
                    None => return self.take(false).map(Some),
                }
                continue;
            }
            let end = memchr::memchr(b'\n', rest);
            let piece = &rest[..end.unwrap_or(rest.len())];
            if self.line.len() + piece.len() > self.longest {
                self.too_long = true;
            }
            if self.too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            self.start += piece.len();
            if end.is_some() {
                self.start += 1;
                return self.take(true).map(Some);
            }
        }
    }

    fn take(&mut self, ended: bool) -> Result<FileLine> {
        self.count += 1;
        let bytes = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return Err(FsError::LongLine { path: self.path.clone(), line: self.count, limit: self.longest });
        }
        Ok(FileLine { bytes, ended })
    }
}

/// A file that is completely in memory.
#[derive(Debug)]
pub(crate) struct WholeFile(Option<Vec<u8>>);

impl WholeFile {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

#[async_trait]
impl Chunks for WholeFile {
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.0.take())
    }
}
