//! Reads a file line by line, in bounded memory.

use std::io::{self, BufRead};

use crate::files::BYTE_ORDER_MARK;

/// The lines of a file, with their positions.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    source: R,
    longest: usize,
    offset: u64,
    number: u64,
    buffer: Vec<u8>,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileLine<'a> {
    /// The offset.
    pub offset: u64,
    /// From 1.
    pub number: u64,
    /// Without its line end; `None` if it is too long.
    pub bytes: Option<&'a [u8]>,
    /// True if a line feed followed.
    pub ended: bool,
}

impl<R: BufRead> LineReader<R> {
    /// The source begins at `offset` of its file, before line `number`.
    pub(crate) fn new(source: R, longest: usize, offset: u64, number: u64) -> Self {
        Self { source, longest, offset, number, buffer: Vec::new() }
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<FileLine<'_>>> {
        let (offset, number) = (self.offset, self.number);
        self.buffer.clear();
        let mut too_long = false;
        let mut ended = false;
        while !ended {
            let chunk = match self.source.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', chunk);
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            too_long |= self.buffer.len() + piece.len() > self.longest;
            if too_long {
                self.buffer = Vec::new();
            } else {
                self.buffer.extend_from_slice(piece);
            }
            ended = end.is_some();
            let used = piece.len() + usize::from(ended);
            self.source.consume(used);
            self.offset += used as u64;
        }
        if self.offset == offset {
            return Ok(None);
        }
        self.number += 1;
        // Some editors leave a byte order mark.
        let mark = if offset == 0 && self.buffer.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let bytes = (!too_long).then_some(&self.buffer[mark..]);
        Ok(Some(FileLine { offset: offset + mark as u64, number, bytes, ended }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
        let text: &[u8] = b"ab\n\nabcdef\nxy";
        let mut lines = LineReader::new(io::BufReader::with_capacity(2, text), 4, 10, 1);
        let mut found_lines = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found_lines.push((line.offset, line.number, line.bytes.map(<[u8]>::to_vec), line.ended));
        }
        let expected = [
            (10, 1, Some(b"ab".to_vec()), true),
            (13, 2, Some(b"".to_vec()), true),
            (14, 3, None, true),
            (21, 4, Some(b"xy".to_vec()), false),
        ];
        assert_eq!(found_lines, expected);
    }
}
