//! Copying logs line by line through a hook.

use super::stream::{PIECE, PartialFile};
use super::{CopyError, FolderCopy};
use crate::workspace::inside;
use crate::{Backend, FsError};

/// The bytes of a longer line that the hook sees: its beginning.
pub const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// Decides for each line of each log what the copy gets. It sees a log from its first line on, in order. A log that an
/// earlier run has finished is not shown again, so nothing may follow from one log for another.
pub trait LogRewriter: Send {
    /// `log` is the path of the log below the session's folder.
    fn line(&mut self, log: &str, line: LogLine<'_>) -> LineAction;
}

/// A line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// The first is 0.
    pub number: u64,
    /// Without the line feed.
    pub bytes: &'a [u8],
    pub extent: LineExtent,
}

/// The visible part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineExtent {
    Whole,
    /// All of it, but the line feed is missing: it is the last line, and may be cut off.
    Unended,
    /// The first [`LONGEST_LINE`] bytes.
    Beginning,
}

/// The action for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineAction {
    /// Copy it byte for byte, even if only its beginning was seen.
    Keep,
    /// Write these bytes, without a line feed, in place of the whole line.
    Replace(Vec<u8>),
    Drop,
}

/// Keeps every line.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepAllLines;

impl LogRewriter for KeepAllLines {
    fn line(&mut self, _: &str, _: LogLine<'_>) -> LineAction {
        LineAction::Keep
    }
}

/// The line that is being read.
enum CurrentLine {
    /// It is collected until it ends or is too long.
    Collected(Vec<u8>),
    /// The hook has already decided: the rest is copied, or not.
    Rest(RestAction),
}

#[derive(Clone, Copy)]
enum RestAction {
    Copied,
    Dropped,
}

struct LogCopy<'a, 'b> {
    log: &'a str,
    hook: &'a mut dyn LogRewriter,
    partial_file: PartialFile<'b>,
    number: u64,
    current: CurrentLine,
}

/// Copies the first `end` bytes of a log.
pub(super) async fn copy(
    copying: &FolderCopy<'_>,
    log: &str,
    end: u64,
    hook: &mut dyn LogRewriter,
) -> Result<(), CopyError> {
    let source = inside(copying.from.folder, log);
    let partial_file = PartialFile::begin(&copying.to, &inside(copying.to.folder, log)).await?;
    let mut copy = LogCopy { log, hook, partial_file, number: 0, current: CurrentLine::Collected(Vec::new()) };
    // Bytes appended during the copy are left out: otherwise it might never end.
    let end = match copying.from.store.stat(&source).await {
        // The sizes of a storage client need not be bytes. Its file ends where nothing more can be read.
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

    /// Takes more of the current line.
    async fn part(&mut self, bytes: &[u8]) -> Result<(), CopyError> {
        let line = match &mut self.current {
            CurrentLine::Rest(RestAction::Copied) => return self.partial_file.push(bytes).await,
            CurrentLine::Rest(RestAction::Dropped) => return Ok(()),
            CurrentLine::Collected(line) => line,
        };
        let room = LONGEST_LINE - line.len();
        if bytes.len() <= room {
            line.extend_from_slice(bytes);
            return Ok(());
        }
        let (fitting, rest) = bytes.split_at(room);
        line.extend_from_slice(fitting);
        let beginning = std::mem::take(line);
        let fate = match self.ask(&beginning, LineExtent::Beginning) {
            LineAction::Keep => {
                self.partial_file.push(&beginning).await?;
                self.partial_file.push(rest).await?;
                RestAction::Copied
            }
            LineAction::Replace(bytes) => {
                self.partial_file.push(&bytes).await?;
                self.partial_file.push(b"\n").await?;
                RestAction::Dropped
            }
            LineAction::Drop => RestAction::Dropped,
        };
        self.current = CurrentLine::Rest(fate);
        Ok(())
    }

    async fn line_ends(&mut self) -> Result<(), CopyError> {
        match std::mem::replace(&mut self.current, CurrentLine::Collected(Vec::new())) {
            CurrentLine::Rest(RestAction::Copied) => self.partial_file.push(b"\n").await?,
            CurrentLine::Rest(RestAction::Dropped) => {}
            CurrentLine::Collected(mut line) => {
                let fate = self.ask(&line, LineExtent::Whole);
                if let Some(kept_line) = line_to_keep(&line, &fate) {
                    self.partial_file.push(kept_line).await?;
                    self.partial_file.push(b"\n").await?;
                }
                // The buffer is reused for the next line, unless this one was unusually long.
                if line.capacity() <= PIECE {
                    line.clear();
                    self.current = CurrentLine::Collected(line);
                }
            }
        }
        self.number += 1;
        Ok(())
    }

    async fn end(mut self) -> Result<(), CopyError> {
        if let CurrentLine::Collected(line) =
            std::mem::replace(&mut self.current, CurrentLine::Rest(RestAction::Dropped))
            && !line.is_empty()
        {
            let fate = self.ask(&line, LineExtent::Unended);
            if let Some(kept_line) = line_to_keep(&line, &fate) {
                self.partial_file.push(kept_line).await?;
            }
        }
        self.partial_file.finish().await
    }

    fn ask(&mut self, bytes: &[u8], extent: LineExtent) -> LineAction {
        self.hook.line(self.log, LogLine { number: self.number, bytes, extent })
    }
}

fn line_to_keep<'a>(line: &'a [u8], fate: &'a LineAction) -> Option<&'a [u8]> {
    match fate {
        LineAction::Keep => Some(line),
        LineAction::Replace(bytes) => Some(bytes),
        LineAction::Drop => None,
    }
}
