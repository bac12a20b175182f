//! A source with pushback of bytes.

use std::io::{self, BufRead, Read};

/// A source with pushed back bytes before it.
#[derive(Debug)]
pub(super) struct RewindReader<R> {
    back: Vec<u8>,
    at: usize,
    source: R,
}

impl<R: BufRead> RewindReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { back: Vec::new(), at: 0, source }
    }

    /// Pushes bytes back: they are read next.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        let mut back = Vec::with_capacity(bytes.len() + self.back.len() - self.at);
        back.extend_from_slice(bytes);
        back.extend_from_slice(&self.back[self.at..]);
        (self.back, self.at) = (back, 0);
    }
}

impl<R: BufRead> Read for RewindReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for RewindReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.at < self.back.len() {
            true => Ok(&self.back[self.at..]),
            false => self.source.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        if self.at < self.back.len() {
            self.at += amount;
        } else {
            // The pushed back bytes are used up.
            (self.back, self.at) = (Vec::new(), 0);
            self.source.consume(amount);
        }
    }
}
