//! Lines of bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    Text(String),
    /// The line was longer than the limit, and is dropped.
    TooLong,
    NotUtf8,
}

/// Reads lines. A read that is dropped loses nothing.
#[derive(Debug)]
pub(crate) struct BoundedLines<R> {
    input: R,
    limit: usize,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin> BoundedLines<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input, limit, line: Vec::new(), is_too_long: false }
    }

    /// The next line that is not empty; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let piece = self.input.fill_buf().await?;
            let is_end = piece.is_empty();
            let (taken, is_whole) = match piece.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (piece.len(), is_end),
            };
            let text = piece.get(..taken).unwrap_or_default();
            // The line end does not count.
            if self.line.len() + text.len() > self.limit + 2 {
                self.is_too_long = true;
                self.line.clear();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(text);
            }
            self.input.consume(taken);
            if is_whole && let Some(line) = self.take() {
                return Ok(Some(line));
            }
            if is_end {
                return Ok(None);
            }
        }
    }

    fn take(&mut self) -> Option<InputLine> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return Some(InputLine::TooLong);
        }
        line.truncate(line.trim_ascii_end().len());
        if line.is_empty() {
            return None;
        }
        Some(match String::from_utf8(line) {
            Ok(text) if text.len() > self.limit => InputLine::TooLong,
            Ok(text) => InputLine::Text(text),
            Err(_) => InputLine::NotUtf8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<InputLine> {
        // A small buffer cuts the lines into pieces.
        let mut reader = BoundedLines::new(tokio::io::BufReader::with_capacity(2, input), limit);
        let mut lines = Vec::new();
        while let Ok(Some(line)) = reader.next().await {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_dropped_and_the_next_one_is_read() {
        let text = |text: &str| InputLine::Text(text.to_owned());
        let read = lines(b"abc\r\n\n\r\nabcdefghij\nxyz", 3).await;
        assert_eq!(read, [text("abc"), InputLine::TooLong, text("xyz")]);
        assert_eq!(lines(b"\xff\nab\n", 3).await, [InputLine::NotUtf8, text("ab")]);
        assert_eq!(lines(b"abcd\n", 3).await, [InputLine::TooLong]);
    }
}
