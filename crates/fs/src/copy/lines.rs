//! Logs, line by line through a hook.

use super::stream::{Growing, PIECE};
use super::{CopyError, Copying};
use crate::workspace::inside;
use crate::{Backend, FsError};

/// Of a longer line the hook sees this much of the beginning.
pub const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// Looks at each line of each log, and says what becomes of it. It sees a log from its first line on, in order; whether
/// it sees a log at all depends on what an earlier run has finished, so nothing may follow from one log for another.
pub trait Lines: Send {
    /// `log` is the path of the log below the session's folder.
    fn line(&mut self, log: &str, line: Line<'_>) -> LineFate;
}

/// A line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The first is 0.
    pub number: u64,
    /// Without the line feed.
    pub bytes: &'a [u8],
    pub extent: Extent,
}

/// How much of a line there is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// All of it, but the line feed is missing: it is the last one, and may be cut off.
    Unended,
    /// The first [`LONGEST_LINE`] bytes.
    Beginning,
}

/// What becomes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFate {
    /// It goes with the copy, byte for byte, also where only its beginning was seen.
    Keep,
    /// These bytes, without a line feed, stand for all of it.
    Replace(Vec<u8>),
    Drop,
}

/// Keeps every line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchanged;

impl Lines for Unchanged {
    fn line(&mut self, _: &str, _: Line<'_>) -> LineFate {
        LineFate::Keep
    }
}

/// The line that is being read.
enum Current {
    /// It is collected until it ends or is too long.
    Collected(Vec<u8>),
    /// The hook has decided already: the rest is copied, or not.
    Rest(RestFate),
}

#[derive(Clone, Copy)]
enum RestFate {
    Copied,
    Dropped,
}

struct LogCopy<'a, 'b> {
    log: &'a str,
    hook: &'a mut dyn Lines,
    growing: Growing<'b>,
    number: u64,
    current: Current,
}

/// Copies the first `end` bytes of a log.
pub(super) async fn copy(copying: &Copying<'_>, log: &str, end: u64, hook: &mut dyn Lines) -> Result<(), CopyError> {
    let source = inside(copying.from.folder, log);
    let growing = Growing::begin(&copying.to, &inside(copying.to.folder, log)).await?;
    let mut copy = LogCopy { log, hook, growing, number: 0, current: Current::Collected(Vec::new()) };
    // What is appended while we read is not ours: the copy would never end.
    let end = match copying.from.store.stat(&source).await {
        // A provider's sizes need not be bytes. Its file ends where nothing more can be read.
        Ok(_) if copying.from.store.backend() == Backend::Rpc => end,
        Ok(stat) => end.min(stat.size),
        Err(FsError::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut offset = 0;
    while offset < end {
        let length = usize::try_from(end - offset).unwrap_or(PIECE).min(PIECE);
        let piece = copying.from.store.read_range(&source, offset, length).await?;
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        copy.take(&piece).await?;
    }
    copy.end().await
}

impl LogCopy<'_, '_> {
    async fn take(&mut self, mut bytes: &[u8]) -> Result<(), CopyError> {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            self.part(&bytes[..at]).await?;
            self.line_ends().await?;
            bytes = &bytes[at + 1..];
        }
        self.part(bytes).await
    }

    /// More of the current line.
    async fn part(&mut self, bytes: &[u8]) -> Result<(), CopyError> {
        let line = match &mut self.current {
            Current::Rest(RestFate::Copied) => return self.growing.push(bytes).await,
            Current::Rest(RestFate::Dropped) => return Ok(()),
            Current::Collected(line) => line,
        };
        let room = LONGEST_LINE - line.len();
        if bytes.len() <= room {
            line.extend_from_slice(bytes);
            return Ok(());
        }
        let (fitting, rest) = bytes.split_at(room);
        line.extend_from_slice(fitting);
        let beginning = std::mem::take(line);
        let fate = match self.ask(&beginning, Extent::Beginning) {
            LineFate::Keep => {
                self.growing.push(&beginning).await?;
                self.growing.push(rest).await?;
                RestFate::Copied
            }
            LineFate::Replace(bytes) => {
                self.growing.push(&bytes).await?;
                self.growing.push(b"\n").await?;
                RestFate::Dropped
            }
            LineFate::Drop => RestFate::Dropped,
        };
        self.current = Current::Rest(fate);
        Ok(())
    }

    async fn line_ends(&mut self) -> Result<(), CopyError> {
        match std::mem::replace(&mut self.current, Current::Collected(Vec::new())) {
            Current::Rest(RestFate::Copied) => self.growing.push(b"\n").await?,
            Current::Rest(RestFate::Dropped) => {}
            Current::Collected(mut line) => {
                let fate = self.ask(&line, Extent::Whole);
                if let Some(kept) = kept(&line, &fate) {
                    self.growing.push(kept).await?;
                    self.growing.push(b"\n").await?;
                }
                // The memory serves the next line, unless this one was unusually long.
                if line.capacity() <= PIECE {
                    line.clear();
                    self.current = Current::Collected(line);
                }
            }
        }
        self.number += 1;
        Ok(())
    }

    async fn end(mut self) -> Result<(), CopyError> {
        if let Current::Collected(line) = std::mem::replace(&mut self.current, Current::Rest(RestFate::Dropped))
            && !line.is_empty()
        {
            let fate = self.ask(&line, Extent::Unended);
            if let Some(kept) = kept(&line, &fate) {
                self.growing.push(kept).await?;
            }
        }
        self.growing.finish().await
    }

    fn ask(&mut self, bytes: &[u8], extent: Extent) -> LineFate {
        self.hook.line(self.log, Line { number: self.number, bytes, extent })
    }
}

fn kept<'a>(line: &'a [u8], fate: &'a LineFate) -> Option<&'a [u8]> {
    match fate {
        LineFate::Keep => Some(line),
        LineFate::Replace(bytes) => Some(bytes),
        LineFate::Drop => None,
    }
}
