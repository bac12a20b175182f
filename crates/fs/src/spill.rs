//! Output that is too large to be shown: it goes to a temporary file, and a notice takes its place.
//!
//! What a tool, a pseudo-terminal or a process says is put into a [`Spill`] as it comes. Up to the limit it stays in
//! memory and comes back as it was; beyond it the exact bytes are in a file, and whoever asked gets a [`SpillNotice`]: how
//! it begins, how large it is, where it lies, and what to search it with.

use std::fmt;

use crate::temp_files::{TempFile, TempFiles};
use crate::{FsError, Result};

/// How much is kept where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillLimits {
    /// Output with more bytes than this goes to a file.
    pub inline: usize,
    /// How many bytes of its beginning a notice shows, at most as many as stay in memory.
    pub beginning: usize,
    /// A file has no more bytes than this, and no half of a character at its end. What comes after is counted and
    /// dropped, and the notice says so.
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
    /// What is in memory: all of it, or, once there is a file, what was not written to it yet.
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
        /// How many more bytes it takes; none once something did not fit.
        room: u64,
    },
    /// It could not be written. What comes is counted and dropped.
    Nowhere {
        beginning: String,
        error: FsError,
    },
}

/// What became of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpillOutcome {
    Whole(Vec<u8>),
    Spilled(SpillNotice),
}

/// What agent and model see of output that is too large. [`fmt::Display`] gives the text for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillNotice {
    /// Of all that came, in bytes.
    pub size: u64,
    /// Cut between two characters; bytes that are no text are shown as replacement characters.
    pub beginning: String,
    pub stored: SpillLocation,
    /// The tool with which to search or read the file.
    pub tool: String,
}

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpillLocation {
    /// All of them.
    Whole(TempFile),
    /// The first of them: there were more than a file may have.
    Beginning { file: TempFile, bytes: u64 },
    /// They are lost, for this reason.
    Nowhere(FsError),
}

impl Spill {
    pub fn new(files: TempFiles, limits: SpillLimits) -> Self {
        Self { files, limits, size: 0, held: Vec::new(), place: SpillTarget::Memory }
    }

    /// Output that is there as a whole already.
    pub async fn whole(files: TempFiles, limits: SpillLimits, bytes: &[u8], tool: &str) -> SpillOutcome {
        let mut spill = Self::new(files, limits);
        spill.write(bytes).await;
        spill.finish(tool).await
    }

    /// Takes more output. This does not fail: a tool that has done its work has done it, also where the disk is full.
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
                // Stores that take text alone take no half of a character.
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

    /// The notice as it is now, while more may come; `None` as long as everything is in memory. What came is in the file,
    /// but for a character of which only the beginning has come.
    pub async fn notice(&mut self, tool: &str) -> Option<SpillNotice> {
        self.notice_behind(whole_characters(&self.held), tool).await
    }

    /// The notice when so many of the bytes that are held are written.
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

    /// Writes the first bytes of what is held to the file, which is made where it is missing.
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

    /// As much of what is held as a notice shows. More than the limit is held when it is asked for, however it came.
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
                // The bound may lie inside a character. Nothing may follow what was left out.
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

/// How many bytes there are without the beginning of a character at their end.
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
        // What is broken at the very end may be so because we cut it there.
        let may_be_cut = chunks.peek().is_none() && cut.len() < bytes.len();
        if !chunk.invalid().is_empty() && !may_be_cut {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}
