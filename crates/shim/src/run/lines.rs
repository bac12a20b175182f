//! Splitting the agent's output into lines.

use bytes::{Buf, BytesMut};

/// The largest buffer that is kept for reuse.
const KEPT_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct LineSplitter {
    pub(super) buffer: BytesMut,
    /// The bytes that were searched and have no line end.
    scanned: usize,
    limit: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl LineSplitter {
    pub(super) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit }
    }

    /// Passes on the complete lines, without their ends.
    pub(super) fn take(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), TooLong> {
        let mut large = false;
        while let Some(end) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
            let end = self.scanned + end;
            if end > self.limit {
                return Err(TooLong);
            }
            each(&self.buffer[..end]);
            self.buffer.advance(end + 1);
            self.scanned = 0;
            large |= end > KEPT_BYTES;
        }
        self.scanned = self.buffer.len();
        if large {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        if self.scanned > self.limit { Err(TooLong) } else { Ok(()) }
    }

    /// The last line, without a line end.
    pub(super) fn rest(&mut self) -> Option<BytesMut> {
        self.scanned = 0;
        let rest = self.buffer.split();
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_in_whatever_pieces_they_come() {
        let output = b"one\n\ntwo\r\n\xff\xfe\nrest";
        for size in 1..output.len() {
            let mut lines = LineSplitter::new(100);
            let mut taken_lines = Vec::new();
            for piece in output.chunks(size) {
                lines.buffer.extend_from_slice(piece);
                lines.take(|line| taken_lines.push(line.to_vec())).unwrap();
            }
            assert_eq!(taken_lines, [&b"one"[..], b"", b"two\r", b"\xff\xfe"]);
            assert_eq!(lines.rest().unwrap(), &b"rest"[..]);
        }
    }

    #[test]
    fn a_line_beyond_the_bound_is_told_as_soon_as_it_is() {
        let mut lines = LineSplitter::new(3);
        lines.buffer.extend_from_slice(b"abc\nabc");
        assert_eq!(lines.take(|_| ()), Ok(()));
        lines.buffer.extend_from_slice(b"d");
        assert_eq!(lines.take(|_| ()), Err(TooLong));
        let mut lines = LineSplitter::new(3);
        lines.buffer.extend_from_slice(b"abcd\n");
        assert_eq!(lines.take(|_| ()), Err(TooLong));
    }
}
