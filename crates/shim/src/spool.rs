//! The spool: the agent's lines that no host has acknowledged, in files without names.
//!
//! Each line is stored as the frame in which it is sent, so that sending is copying. Lines are stored in segments; a
//! segment whose lines are all acknowledged is dropped.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::BytesMut;

use crate::folder::unnamed_file;
use crate::wire::{self, HEAD_BYTES};

const SEGMENT_BYTES: (u64, u64) = (4 << 10, 4 << 20);
const CHUNK_BYTES: usize = 64 << 10;
/// The largest buffer that is kept for reuse.
const KEPT_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    segment_bytes: u64,
    segments: VecDeque<SpoolSegment>,
    /// The number of the next line that is written.
    next: u64,
    acknowledged: u64,
    /// Lines that are not written yet, as frames, and how many there are.
    unwritten: BytesMut,
    unwritten_lines: u64,
}

#[derive(Debug)]
struct SpoolSegment {
    first: u64,
    lines: u64,
    bytes: u64,
    file: File,
}

/// A reader's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpoolCursor {
    /// The number of the next line to read.
    pub(crate) number: u64,
    /// Its place: the segment that begins with this line, and the offset in it.
    segment: u64,
    offset: u64,
}

impl Spool {
    /// `most_bytes` is the limit that the caller enforces; segments are small beside it.
    pub(crate) fn new(folder: &Path, most_bytes: u64) -> Self {
        let (least, most) = SEGMENT_BYTES;
        Self {
            folder: folder.to_owned(),
            segment_bytes: (most_bytes / 64).clamp(least, most),
            segments: VecDeque::new(),
            next: 1,
            acknowledged: 0,
            unwritten: BytesMut::new(),
            unwritten_lines: 0,
        }
    }

    /// Queues a line. It is readable after [`write`](Self::write).
    pub(crate) fn push(&mut self, line: &[u8]) {
        wire::put_line(&mut self.unwritten, self.next + self.unwritten_lines, line);
        self.unwritten_lines += 1;
    }

    /// Writes the queued lines. A failed write can be tried again.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        if self.unwritten_lines == 0 {
            return Ok(());
        }
        if self.segments.back().is_none_or(|segment| segment.bytes >= self.segment_bytes) {
            let file = unnamed_file(&self.folder)?;
            self.segments.push_back(SpoolSegment { first: self.next, lines: 0, bytes: 0, file });
        }
        if let Some(segment) = self.segments.back_mut() {
            segment.file.write_all_at(&self.unwritten, segment.bytes)?;
            segment.bytes += self.unwritten.len() as u64;
            segment.lines += self.unwritten_lines;
        }
        self.next += self.unwritten_lines;
        self.unwritten_lines = 0;
        if self.unwritten.capacity() > KEPT_BYTES {
            self.unwritten = BytesMut::new();
        }
        self.unwritten.clear();
        Ok(())
    }

    /// Returns whether lines wait to be written.
    pub(crate) fn is_behind(&self) -> bool {
        self.unwritten_lines > 0
    }

    /// The number of the next line that becomes readable.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The oldest line that was not acknowledged, or the next one.
    pub(crate) fn oldest(&self) -> u64 {
        self.acknowledged + 1
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum::<u64>() + self.unwritten.len() as u64
    }

    /// Drops all lines up to this one.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        self.acknowledged = self.acknowledged.max(number.min(self.next - 1));
        while self.segments.front().is_some_and(|segment| segment.first + segment.lines - 1 <= self.acknowledged) {
            self.segments.pop_front();
        }
    }

    /// The position of a line. Acknowledged lines are gone: reading continues after them.
    pub(crate) fn cursor(&self, number: u64) -> io::Result<SpoolCursor> {
        let number = number.clamp(self.oldest(), self.next.max(self.oldest()));
        let Some(segment) = self.segment_of(number) else {
            return Ok(SpoolCursor { number, segment: number, offset: 0 });
        };
        let mut offset = 0;
        for _ in segment.first..number {
            let mut length = [0; 4];
            segment.file.read_exact_at(&mut length, offset)?;
            offset += 4 + u64::from(u32::from_be_bytes(length));
        }
        Ok(SpoolCursor { number, segment: segment.first, offset })
    }

    /// Copies frames of lines to `out`, until there are none or `out` holds `enough`, and advances the position.
    pub(crate) fn read(&self, cursor: &mut SpoolCursor, out: &mut BytesMut, enough: usize) -> io::Result<()> {
        while out.len() < enough && cursor.number < self.next {
            let Some(segment) = self.segment_of(cursor.number).filter(|segment| segment.first == cursor.segment) else {
                *cursor = self.cursor(cursor.number)?;
                continue;
            };
            let left = usize::try_from(segment.bytes - cursor.offset).unwrap_or(usize::MAX);
            let begin = out.len();
            out.resize(begin + left.min(CHUNK_BYTES), 0);
            segment.file.read_exact_at(&mut out[begin..], cursor.offset)?;
            let (frames, bytes) = whole_frames(&out[begin..]);
            if frames == 0 {
                let whole = 4 + wire::length(&out[begin..]).ok_or(io::ErrorKind::InvalidData)?;
                out.resize(begin + whole, 0);
                segment.file.read_exact_at(&mut out[begin..], cursor.offset)?;
                cursor.number += 1;
                cursor.offset += whole as u64;
            } else {
                out.truncate(begin + bytes);
                cursor.number += frames;
                cursor.offset += bytes as u64;
            }
        }
        Ok(())
    }

    fn segment_of(&self, number: u64) -> Option<&SpoolSegment> {
        let after = self.segments.partition_point(|segment| segment.first <= number);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (number < segment.first + segment.lines).then_some(segment)
    }
}

/// The number of complete frames, and their bytes.
fn whole_frames(bytes: &[u8]) -> (u64, usize) {
    let (mut frames, mut end) = (0, 0);
    while bytes.len() - end >= HEAD_BYTES
        && let Some(length) = wire::length(&bytes[end..])
        && bytes.len() - end >= 4 + length
    {
        frames += 1;
        end += 4 + length;
    }
    (frames, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{FrameBuffer, FromShim};

    fn lines(bytes: BytesMut) -> Vec<(u64, usize)> {
        let mut frames = FrameBuffer::new(usize::MAX);
        frames.buffer = bytes;
        let mut found = Vec::new();
        while let Some((kind, body)) = frames.next().unwrap() {
            match FromShim::decode(kind, body).unwrap() {
                Some(FromShim::Line { number, line }) => found.push((number, line.len())),
                other => panic!("{other:?}"),
            }
        }
        assert!(frames.buffer.is_empty(), "half a frame");
        found
    }

    fn length_of(number: u64) -> usize {
        usize::try_from(number * 7919 % 300).unwrap() + if number.is_multiple_of(97) { 100_000 } else { 0 }
    }

    #[test]
    fn what_is_written_is_read_from_any_line_on_while_more_is_written_and_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 0);
        let mut cursor = spool.cursor(1).unwrap();
        let mut read = Vec::new();
        for number in 1..=1_000_u64 {
            spool.push(&vec![b'x'; length_of(number)]);
            if number.is_multiple_of(3) {
                spool.write().unwrap();
            }
            if number.is_multiple_of(10) {
                let mut out = BytesMut::new();
                spool.read(&mut cursor, &mut out, 2_000).unwrap();
                read.extend(lines(out));
            }
            if number.is_multiple_of(50) && cursor.number > 20 {
                spool.acknowledge(cursor.number - 20);
                // From any remaining line, also in the middle of a segment.
                for from in [spool.oldest(), cursor.number - 10, cursor.number, spool.next()] {
                    let (mut other, mut out) = (spool.cursor(from).unwrap(), BytesMut::new());
                    spool.read(&mut other, &mut out, usize::MAX).unwrap();
                    let expected: Vec<_> = (from..spool.next()).map(|number| (number, length_of(number))).collect();
                    assert_eq!(lines(out), expected);
                }
            }
        }
        spool.write().unwrap();
        let mut out = BytesMut::new();
        spool.read(&mut cursor, &mut out, usize::MAX).unwrap();
        read.extend(lines(out));
        assert_eq!(read, (1..=1_000).map(|number| (number, length_of(number))).collect::<Vec<_>>());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its files have no names");
    }

    #[test]
    fn what_is_acknowledged_takes_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 0);
        for _ in 0..100 {
            spool.push(&[b'x'; 1_000]);
            spool.write().unwrap();
        }
        let all = spool.bytes();
        assert!(all > 100_000);
        spool.acknowledge(50);
        assert!(spool.bytes() < all * 6 / 10, "{}", spool.bytes());
        assert_eq!(spool.cursor(1).unwrap().number, 51);
        spool.acknowledge(u64::MAX);
        assert_eq!((spool.bytes(), spool.oldest(), spool.next()), (0, 101, 101));
        let mut cursor = spool.cursor(101).unwrap();
        spool.push(b"more");
        spool.write().unwrap();
        let mut out = BytesMut::new();
        spool.read(&mut cursor, &mut out, usize::MAX).unwrap();
        assert_eq!(lines(out), [(101, 4)]);
    }
}
