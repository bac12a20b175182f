//! Output that is too large to be shown: it goes to a temporary file, and a notice takes its place.
//!
//! The output of a tool, a pseudo-terminal or a process is put into a [`Spill`] as it comes. Up to the limit it stays
//! in memory and is returned as it was; beyond it the exact bytes are in a file, and the caller gets a [`SpillNotice`]:
//! the beginning, the size, the file, and a tool to search it with.

use std::fmt;

use crate::temp_files::{TempFile, TempFiles};
use crate::{FsError, Result};

/// The limits of a spill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillLimits {
    /// Output with more bytes than this goes to a file.
    pub inline: usize,
    /// The bytes of the beginning that a notice shows, at most as many as stay in memory.
    pub beginning: usize,
    /// The largest file, in bytes, without half a character at its end. Later output is counted and dropped, and the
    /// notice says so.
    pub file: u64,
}

impl Default for SpillLimits {
    fn default() -> Self {
        Self { inline: 64 * 1024, beginning: 2 * 1024, file: 1024 * 1024 * 1024 }
    }
}

/// Output as it comes.
#[derive(Debug)]
pub struct Spill {
    files: TempFiles,
    limits: SpillLimits,
    size: u64,
    /// The bytes in memory: all of them, or, once there is a file, those not written to it yet.
    held: Vec<u8>,
    place: SpillTarget,
}

#[derive(Debug)]
enum SpillTarget {
    Memory,
    File {
        file: TempFile,
        beginning: String,
        written: u64,
        /// The bytes that still fit; none once something did not fit.
        room: u64,
    },
    /// It could not be written. Later output is counted and dropped.
    Nowhere {
        beginning: String,
        error: FsError,
    },
}

/// The outcome of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpillOutcome {
    Whole(Vec<u8>),
    Spilled(SpillNotice),
}

/// The notice for agent and model in place of output that is too large. [`fmt::Display`] gives its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillNotice {
    /// The size of the whole output, in bytes.
    pub size: u64,
    /// Cut between two characters; bytes that are not text are shown as replacement characters.
    pub beginning: String,
    pub stored: SpillLocation,
    /// The tool with which to search or read the file.
    pub tool: String,
}

/// The location of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpillLocation {
    /// All of them.
    Whole(TempFile),
    /// The first of them: the output was larger than a file may be.
    Beginning { file: TempFile, bytes: u64 },
    /// They are lost, for this reason.
    Nowhere(FsError),
}

impl Spill {
    pub fn new(files: TempFiles, limits: SpillLimits) -> Self {
        Self { files, limits, size: 0, held: Vec::new(), place: SpillTarget::Memory }
    }

    /// Spills output that is already complete.
    pub async fn whole(files: TempFiles, limits: SpillLimits, bytes: &[u8], tool: &str) -> SpillOutcome {
        let mut spill = Self::new(files, limits);
        spill.write(bytes).await;
        spill.finish(tool).await
    }

    /// Takes more output. This does not fail: the tool has done its work, even if the disk is full.
    pub async fn write(&mut self, mut bytes: &[u8]) {
        self.size = self.size.saturating_add(bytes.len() as u64);
        // In pieces, so that no more than twice the limit is ever held.
        let piece = self.limits.inline.max(1);
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(piece));
            bytes = later;
            if let SpillTarget::Nowhere { .. } = self.place {
                return;
            }
            self.held.extend_from_slice(now);
            if self.held.len() > self.limits.inline {
                // Stores of text alone accept no half characters.
                self.flush(whole_characters(&self.held)).await;
            }
        }
    }

    /// The output, or the notice that names `tool`.
    pub async fn finish(mut self, tool: &str) -> SpillOutcome {
        match self.notice_behind(self.held.len(), tool).await {
            Some(notice) => SpillOutcome::Spilled(notice),
            None => SpillOutcome::Whole(self.held),
        }
    }

    /// The notice so far, while more may come; `None` as long as everything is in memory. All output is in the file,
    /// except for an incomplete character at its end.
    pub async fn notice(&mut self, tool: &str) -> Option<SpillNotice> {
        self.notice_behind(whole_characters(&self.held), tool).await
    }

    /// The notice after this many of the held bytes are written.
    async fn notice_behind(&mut self, length: usize, tool: &str) -> Option<SpillNotice> {
        if length > 0 && !matches!(self.place, SpillTarget::Memory) {
            self.flush(length).await;
        }
        let come = self.size - self.held.len() as u64;
        let (beginning, stored) = match &self.place {
            SpillTarget::Memory => return None,
            SpillTarget::File { file, beginning, written, .. } if *written == come => {
                (beginning, SpillLocation::Whole(file.clone()))
            }
            SpillTarget::File { file, beginning, written, .. } => {
                (beginning, SpillLocation::Beginning { file: file.clone(), bytes: *written })
            }
            SpillTarget::Nowhere { beginning, error } => (beginning, SpillLocation::Nowhere(error.clone())),
        };
        Some(SpillNotice { size: self.size, beginning: beginning.clone(), stored, tool: tool.to_owned() })
    }

    /// Writes the first held bytes to the file, which is created if it is missing.
    async fn flush(&mut self, length: usize) {
        if let Err(error) = self.try_flush(length).await {
            let beginning = match &mut self.place {
                SpillTarget::Memory => self.beginning(),
                SpillTarget::File { beginning, .. } | SpillTarget::Nowhere { beginning, .. } => {
                    std::mem::take(beginning)
                }
            };
            self.place = SpillTarget::Nowhere { beginning, error };
        }
        self.held.drain(..length);
    }

    /// The part of the held bytes that a notice shows. When it is called, more than the limit is held.
    fn beginning(&self) -> String {
        beginning(&self.held, self.limits.beginning.min(self.limits.inline))
    }

    async fn try_flush(&mut self, length: usize) -> Result<()> {
        if let SpillTarget::Memory = self.place {
            let file = self.files.register("txt")?;
            let beginning = self.beginning();
            self.place = SpillTarget::File { file, beginning, written: 0, room: self.limits.file };
        }
        if let SpillTarget::File { file, written, room, .. } = &mut self.place {
            let fitting = match usize::try_from(*room) {
                // The limit may be inside a character. Nothing may follow output that was dropped.
                Ok(most) if most < length => {
                    *room = 0;
                    &self.held[..whole_characters(&self.held[..most])]
                }
                Ok(_) | Err(_) => {
                    *room -= length as u64;
                    &self.held[..length]
                }
            };
            if !fitting.is_empty() {
                self.files.store().append_file(&file.path, fitting).await?;
                *written += fitting.len() as u64;
            }
        }
        Ok(())
    }
}

impl fmt::Display for SpillNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, tool) = (self.size, &self.tool);
        match &self.stored {
            SpillLocation::Whole(file) => {
                let shown = &file.shown;
                write!(f, "The output is too large to show ({size} bytes). All of it is in {shown}")?;
                writeln!(f, "; use {tool} to search it or to read parts of it.")?;
            }
            SpillLocation::Beginning { file, bytes } => {
                let shown = &file.shown;
                write!(f, "The output is too large to show ({size} bytes). Its first {bytes} bytes are in {shown}")?;
                writeln!(f, "; use {tool} to search them or to read parts of them. The rest was dropped.")?;
            }
            SpillLocation::Nowhere(error) => {
                write!(f, "The output is too large to show ({size} bytes), and it could not be stored: {error}. ")?;
                writeln!(f, "If it is needed, run it again and ask for less.")?;
            }
        }
        write!(f, "It begins:\n{}", self.beginning)
    }
}

/// The number of bytes without an incomplete character at their end.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    let end = bytes.len();
    for (back, byte) in bytes.iter().rev().take(3).enumerate() {
        let length = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if length > back + 1 { end - back - 1 } else { end };
    }
    end
}

/// The first bytes as text, cut between two characters.
fn beginning(bytes: &[u8], most: usize) -> String {
    let cut = &bytes[..bytes.len().min(most)];
    let mut text = String::new();
    let mut chunks = cut.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        // An invalid end may come from our own cut.
        let may_be_cut = chunks.peek().is_none() && cut.len() < bytes.len();
        if !chunk.invalid().is_empty() && !may_be_cut {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}
