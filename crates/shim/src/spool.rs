//! The spool: the agent's lines that no host has acknowledged.
//!
//! The newest lines are in memory. While a host keeps up, that is all of them; otherwise they are moved to files
//! without names, many lines in one write. Those files are lost with the process, like its memory: they bound the
//! memory, and nothing else.
//!
//! Each line is stored as the frame in which it is sent, so that sending is copying. The files are segments; a segment
//! whose lines are all acknowledged is dropped.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::{Buf, BytesMut};

use crate::folder::unnamed_file;
use crate::wire::{self, HEAD_BYTES};

const SEGMENT_BYTES: (u64, u64) = (4 << 10, 4 << 20);
const CHUNK_BYTES: usize = 64 << 10;
/// The bytes of lines that stay in memory. A host acknowledges them more often.
const RECENT_BYTES: usize = 64 << 10;
/// The largest buffer that is kept for reuse.
const KEPT_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    segment_bytes: u64,
    segments: VecDeque<SpoolSegment>,
    /// The lines after the segments, as frames, and the position of the first.
    recent: BytesMut,
    recent_at: SpoolPosition,
    /// The number of the next line.
    next: u64,
    acknowledged: u64,
}

#[derive(Debug)]
struct SpoolSegment {
    first: SpoolPosition,
    lines: u64,
    bytes: u64,
    file: File,
}

/// The position of a line: its number, and its offset among all frames that ever were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpoolPosition {
    pub(crate) number: u64,
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
            recent: BytesMut::new(),
            recent_at: SpoolPosition { number: 1, offset: 0 },
            next: 1,
            acknowledged: 0,
        }
    }

    pub(crate) fn push(&mut self, line: &[u8]) {
        wire::put_line(&mut self.recent, self.next, line);
        self.next += 1;
    }

    /// Moves the lines in memory to a file. A failed move changes nothing, and can be tried again.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        if self.recent.is_empty() {
            return Ok(());
        }
        if self.segments.back().is_none_or(|segment| segment.bytes >= self.segment_bytes) {
            let file = unnamed_file(&self.folder)?;
            self.segments.push_back(SpoolSegment { first: self.recent_at, lines: 0, bytes: 0, file });
        }
        let (lines, bytes) = (self.next - self.recent_at.number, self.recent.len() as u64);
        if let Some(segment) = self.segments.back_mut() {
            segment.file.write_all_at(&self.recent, segment.bytes)?;
            segment.bytes += bytes;
            segment.lines += lines;
        }
        self.recent_at = SpoolPosition { number: self.next, offset: self.recent_at.offset + bytes };
        self.clear_recent();
        Ok(())
    }

    /// Returns whether memory holds any lines.
    pub(crate) fn has_recent(&self) -> bool {
        !self.recent.is_empty()
    }

    /// Returns whether memory holds more lines than it should.
    pub(crate) fn is_memory_full(&self) -> bool {
        self.recent.len() >= RECENT_BYTES
    }

    /// The number of the next line.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The oldest line that was not acknowledged, or the next one.
    pub(crate) fn oldest(&self) -> u64 {
        self.acknowledged + 1
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum::<u64>() + self.recent.len() as u64
    }

    /// Drops all lines up to this one.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        self.acknowledged = self.acknowledged.max(number.min(self.next - 1));
        while self.segments.front().is_some_and(|segment| segment.after() <= self.oldest()) {
            self.segments.pop_front();
        }
        let mut dropped = 0;
        while self.recent_at.number < self.oldest()
            && let Some(length) = wire::length(&self.recent[dropped..])
        {
            dropped += 4 + length;
            self.recent_at.number += 1;
        }
        self.recent_at.offset += dropped as u64;
        self.recent.advance(dropped);
        if self.recent.is_empty() {
            self.clear_recent();
        }
    }

    fn clear_recent(&mut self) {
        if self.recent.capacity() > KEPT_BYTES {
            self.recent = BytesMut::new();
        }
        self.recent.clear();
    }

    /// The position of a line. Acknowledged lines are gone: reading continues after them.
    pub(crate) fn position(&self, number: u64) -> io::Result<SpoolPosition> {
        let number = number.clamp(self.oldest(), self.next);
        let mut at = match self.segments.iter().find(|segment| number < segment.after()) {
            Some(segment) => segment.first,
            None => self.recent_at,
        };
        while at.number < number {
            at.offset += 4 + self.length_at(at.offset)?;
            at.number += 1;
        }
        Ok(at)
    }

    /// The length that the frame at an offset declares.
    fn length_at(&self, offset: u64) -> io::Result<u64> {
        let mut head = [0; 4];
        match self.segment_at(offset) {
            Some(segment) => segment.file.read_exact_at(&mut head, offset - segment.first.offset)?,
            None => {
                let rest = self.recent_from(offset).and_then(<[u8]>::first_chunk);
                head = *rest.ok_or(io::ErrorKind::InvalidData)?;
            }
        }
        Ok(u64::from(u32::from_be_bytes(head)))
    }

    /// Copies frames of lines to `out`, until there are none or `out` holds `enough`, and advances the position.
    pub(crate) fn read(&self, at: &mut SpoolPosition, out: &mut BytesMut, enough: usize) -> io::Result<()> {
        while out.len() < enough && at.number < self.next {
            if let Some(segment) = self.segment_at(at.offset) {
                segment.read(at, out)?;
            } else if let Some(rest) = self.recent_from(at.offset) {
                out.extend_from_slice(rest);
                at.offset += rest.len() as u64;
                at.number = self.next;
            } else {
                // The line was acknowledged before it was read.
                *at = self.position(at.number)?;
            }
        }
        Ok(())
    }

    fn segment_at(&self, offset: u64) -> Option<&SpoolSegment> {
        let after = self.segments.partition_point(|segment| segment.first.offset <= offset);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (offset < segment.first.offset + segment.bytes).then_some(segment)
    }

    fn recent_from(&self, offset: u64) -> Option<&[u8]> {
        let begin = offset.checked_sub(self.recent_at.offset)?;
        self.recent.get(usize::try_from(begin).ok()?..)
    }
}

impl SpoolSegment {
    /// The number of the line after its last one.
    fn after(&self) -> u64 {
        self.first.number + self.lines
    }

    /// Copies some of its frames to `out`, at least one, and advances the position.
    fn read(&self, at: &mut SpoolPosition, out: &mut BytesMut) -> io::Result<()> {
        let from = at.offset - self.first.offset;
        let left = usize::try_from(self.bytes - from).unwrap_or(usize::MAX);
        let begin = out.len();
        out.resize(begin + left.min(CHUNK_BYTES), 0);
        self.file.read_exact_at(&mut out[begin..], from)?;
        let (mut frames, mut bytes) = whole_frames(&out[begin..]);
        if frames == 0 {
            (frames, bytes) = (1, 4 + wire::length(&out[begin..]).ok_or(io::ErrorKind::InvalidData)?);
            out.resize(begin + bytes, 0);
            self.file.read_exact_at(&mut out[begin..], from)?;
        }
        out.truncate(begin + bytes);
        at.number += frames;
        at.offset += bytes as u64;
        Ok(())
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
        while let Some((kind, body)) = frames.next_frame().unwrap() {
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
        let mut cursor = spool.position(1).unwrap();
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
                    let (mut other, mut out) = (spool.position(from).unwrap(), BytesMut::new());
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
    fn lines_in_memory_are_read_and_acknowledged_like_those_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 0);
        let read_from = |spool: &Spool, from: u64| {
            let (mut at, mut out) = (spool.position(from).unwrap(), BytesMut::new());
            spool.read(&mut at, &mut out, usize::MAX).unwrap();
            lines(out)
        };
        for number in 1..=10_u64 {
            spool.push(&vec![b'x'; length_of(number)]);
        }
        let mut late = spool.position(3).unwrap();
        assert_eq!(read_from(&spool, 1).len(), 10);
        spool.acknowledge(4);
        assert_eq!(read_from(&spool, 1), (5..=10).map(|number| (number, length_of(number))).collect::<Vec<_>>());
        let mut out = BytesMut::new();
        spool.read(&mut late, &mut out, usize::MAX).unwrap();
        assert_eq!(lines(out).first().unwrap().0, 5, "acknowledged lines are not read");
        assert!(spool.segments.is_empty(), "no file is needed");

        spool.write().unwrap();
        assert!(!spool.has_recent());
        spool.push(b"newest");
        let expected: Vec<_> = (7..=10).map(|number| (number, length_of(number))).chain([(11, 6)]).collect();
        assert_eq!(read_from(&spool, 7), expected, "from the file on into memory");
        spool.acknowledge(11);
        assert_eq!((spool.bytes(), spool.oldest(), spool.next()), (0, 12, 12));
        assert!(!spool.is_memory_full());
        spool.push(&vec![b'x'; RECENT_BYTES]);
        assert!(spool.is_memory_full());
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
        assert_eq!(spool.position(1).unwrap().number, 51);
        spool.acknowledge(u64::MAX);
        assert_eq!((spool.bytes(), spool.oldest(), spool.next()), (0, 101, 101));
        let mut cursor = spool.position(101).unwrap();
        spool.push(b"more");
        spool.write().unwrap();
        let mut out = BytesMut::new();
        spool.read(&mut cursor, &mut out, usize::MAX).unwrap();
        assert_eq!(lines(out), [(101, 4)]);
    }
}
