//! `checkpoints/`: a summary for each compaction, and the index that lists them.
//!
//! A checkpoint that is removed from the index keeps its file: the log still names it, and its branch can be visited
//! again. So numbers are never reused.

use std::fmt;

use jiff::Timestamp;

use super::{CHECKPOINTS, Field, INDEX, LARGEST_TEXT, Value, Workspace, WorkspaceError};
use crate::{FileKind, FsError};

/// Longer titles are cut in the index, longer slugs in file names.
const LONGEST_TITLE: usize = 200;
const LONGEST_SLUG: usize = 60;

const HEAD: &str = "# Checkpoint History\n\n\
    Checkpoints are listed in chronological order. Checkpoint 1 is the oldest, higher numbers are more recent.\n\n\
    | # | Title | File |\n|---|-------|------|\n";

/// A row of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub number: u32,
    pub title: String,
    /// Its file name in `checkpoints/`.
    pub file: String,
}

/// `checkpoints/index.md`: rows, and any other lines, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointIndex {
    lines: Vec<IndexLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum IndexLine {
    Row { raw: String, checkpoint: Checkpoint },
    Other(String),
}

impl Default for CheckpointIndex {
    fn default() -> Self {
        Self::parse(HEAD)
    }
}

impl CheckpointIndex {
    pub fn parse(text: &str) -> Self {
        let line = |raw: &str| match row(raw) {
            Some(checkpoint) => IndexLine::Row { raw: raw.to_owned(), checkpoint },
            None => IndexLine::Other(raw.to_owned()),
        };
        Self { lines: text.split_inclusive('\n').map(line).collect() }
    }

    pub fn checkpoints(&self) -> impl Iterator<Item = &Checkpoint> {
        self.lines.iter().filter_map(|line| match line {
            IndexLine::Row { checkpoint, .. } => Some(checkpoint),
            IndexLine::Other(_) => None,
        })
    }

    /// Adds a row after the last one, or at the end if there is none.
    fn add(&mut self, checkpoint: Checkpoint) {
        let raw = raw(&checkpoint);
        let last = self.lines.iter().rposition(|line| matches!(line, IndexLine::Row { .. }));
        let at = last.map_or(self.lines.len(), |last| last + 1);
        if let Some(IndexLine::Row { raw, .. } | IndexLine::Other(raw)) =
            at.checked_sub(1).and_then(|at| self.lines.get_mut(at))
            && !raw.ends_with('\n')
        {
            raw.push('\n');
        }
        self.lines.insert(at, IndexLine::Row { raw, checkpoint });
    }

    /// Inserts a checkpoint in the order of numbers; `false` if it is listed already.
    fn put(&mut self, checkpoint: Checkpoint) -> bool {
        let number = checkpoint.number;
        if self.checkpoints().any(|listed| listed.number == number) {
            return false;
        }
        let later = self
            .lines
            .iter()
            .position(|line| matches!(line, IndexLine::Row { checkpoint, .. } if checkpoint.number > number));
        match later {
            Some(at) => self.lines.insert(at, IndexLine::Row { raw: raw(&checkpoint), checkpoint }),
            None => self.add(checkpoint),
        }
        true
    }

    /// Removes a row; `false` if it is not listed.
    fn remove(&mut self, number: u32) -> bool {
        let before = self.lines.len();
        self.lines.retain(|line| !matches!(line, IndexLine::Row { checkpoint, .. } if checkpoint.number == number));
        self.lines.len() < before
    }

    /// Removes the rows with higher numbers, and returns them.
    pub fn remove_after(&mut self, number: u32) -> Vec<Checkpoint> {
        let mut removed = Vec::new();
        self.lines.retain(|line| match line {
            IndexLine::Row { checkpoint, .. } if checkpoint.number > number => {
                removed.push(checkpoint.clone());
                false
            }
            IndexLine::Row { .. } | IndexLine::Other(_) => true,
        });
        removed
    }
}

impl fmt::Display for CheckpointIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| match line {
            IndexLine::Row { raw, .. } | IndexLine::Other(raw) => f.write_str(raw),
        })
    }
}

impl Workspace<'_> {
    /// The checkpoints that the index lists, in its order.
    pub async fn checkpoints(&self) -> Result<Vec<Checkpoint>, WorkspaceError> {
        Ok(self.index().await?.checkpoints().cloned().collect())
    }

    /// The summary of a checkpoint, also of one that was removed from the index.
    pub async fn checkpoint(&self, number: u32) -> Result<String, WorkspaceError> {
        let files = self.checkpoint_files().await?;
        let (_, file) = files.into_iter().find(|(n, _)| *n == number).ok_or(WorkspaceError::NoCheckpoint { number })?;
        let text = self.read_text(&format!("{CHECKPOINTS}/{file}"), LARGEST_TEXT).await?;
        text.ok_or(WorkspaceError::NoCheckpoint { number })
    }

    /// Writes a summary and lists it.
    pub async fn add_checkpoint(
        &self,
        title: &str,
        summary: &str,
        at: Timestamp,
    ) -> Result<Checkpoint, WorkspaceError> {
        let mut index = self.index().await?;
        let listed = index.checkpoints().map(|checkpoint| checkpoint.number).max().unwrap_or(0);
        let stored = self.checkpoint_files().await?.into_iter().map(|(number, _)| number).max().unwrap_or(0);
        let no_number = || WorkspaceError::NoNumberLeft { path: self.path(CHECKPOINTS) };
        let number = listed.max(stored).checked_add(1).ok_or_else(no_number)?;
        let title = one_line(title);
        let checkpoint = Checkpoint { number, file: format!("{number:03}-{}.md", slug(&title)), title };
        let path = format!("{CHECKPOINTS}/{}", checkpoint.file);
        if summary.len() > LARGEST_TEXT {
            return Err(WorkspaceError::TooLarge { path: self.path(&path), limit: LARGEST_TEXT });
        }
        // The index is written second: it never names a missing file.
        self.write(&path, summary.as_bytes()).await?;
        index.add(checkpoint.clone());
        self.set_index(&index, at).await?;
        Ok(checkpoint)
    }

    /// Removes the checkpoints with higher numbers from the index, for a truncation, and returns them. Their files
    /// stay, since the log keeps the entries that name them.
    pub async fn remove_checkpoints_after(
        &self,
        number: u32,
        at: Timestamp,
    ) -> Result<Vec<Checkpoint>, WorkspaceError> {
        let mut index = self.index().await?;
        let removed = index.remove_after(number);
        if !removed.is_empty() {
            self.set_index(&index, at).await?;
        }
        Ok(removed)
    }

    /// Makes the index list `listed` and none of `unlisted`, for a move to another branch. Other rows stay. Returns the
    /// number of listed checkpoints.
    pub async fn relist_checkpoints(
        &self,
        listed: Vec<Checkpoint>,
        unlisted: &[u32],
        at: Timestamp,
    ) -> Result<usize, WorkspaceError> {
        let mut index = self.index().await?;
        let mut changed = false;
        for number in unlisted {
            changed |= index.remove(*number);
        }
        for checkpoint in listed {
            changed |= index.put(Checkpoint { title: one_line(&checkpoint.title), ..checkpoint });
        }
        if changed {
            self.set_index(&index, at).await?;
        }
        Ok(index.checkpoints().count())
    }

    pub(crate) async fn index(&self) -> Result<CheckpointIndex, WorkspaceError> {
        let text = self.read_text(INDEX, LARGEST_TEXT).await?;
        Ok(text.map_or_else(CheckpointIndex::default, |text| CheckpointIndex::parse(&text)))
    }

    /// Writes the index, and the number of listed checkpoints into the manifest, if there is one.
    async fn set_index(&self, index: &CheckpointIndex, at: Timestamp) -> Result<(), WorkspaceError> {
        self.write(INDEX, index.to_string().as_bytes()).await?;
        if let Some(mut manifest) = self.manifest().await? {
            manifest.set(Field::SummaryCount, Value::Number(index.checkpoints().count() as u64));
            manifest.set(Field::UpdatedAt, Value::Time(at));
            self.set_manifest(&manifest).await?;
        }
        Ok(())
    }

    /// The existing summaries, by their numbers.
    async fn checkpoint_files(&self) -> Result<Vec<(u32, String)>, WorkspaceError> {
        let entries = match self.store.readdir_with_types(&self.path(CHECKPOINTS)).await {
            Ok(entries) => entries,
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let files = entries.into_iter().filter(|entry| entry.kind == FileKind::File);
        Ok(files.filter_map(|entry| Some((number_of(&entry.name)?, entry.name))).collect())
    }
}

fn raw(checkpoint: &Checkpoint) -> String {
    format!("| {} | {} | {} |\n", checkpoint.number, checkpoint.title, checkpoint.file)
}

/// The number of a summary's file: `NNN-….md`.
pub(crate) fn number_of(file: &str) -> Option<u32> {
    let (number, _) = file.strip_suffix(".md")?.split_once('-')?;
    let digits = number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit());
    if digits { number.parse().ok() } else { None }
}

/// `| 1 | Title | 001-title.md |`
fn row(line: &str) -> Option<Checkpoint> {
    let inner = line.trim_end().strip_prefix('|')?.strip_suffix('|')?;
    let (number, rest) = inner.split_once('|')?;
    // A title may contain a bar, a file name does not.
    let (title, file) = rest.rsplit_once('|')?;
    let title = title.trim().to_owned();
    Some(Checkpoint { number: number.trim().parse().ok()?, title, file: file.trim().to_owned() })
}

/// A title that fits into a row. The Copilot CLI splits rows at every bar, and has no escape for it.
fn one_line(title: &str) -> String {
    let title = title.replace('|', "/");
    let words: Vec<&str> =
        title.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    let title: String = words.join(" ").chars().take(LONGEST_TITLE).collect();
    // A cell is read without the spaces around it, and the cut may leave one.
    let title = title.trim_end();
    if title.is_empty() { "Checkpoint".to_owned() } else { title.to_owned() }
}

fn slug(title: &str) -> String {
    let lower = title.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let slug: String = words.join("-").chars().take(LONGEST_SLUG).collect();
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "checkpoint".to_owned() } else { slug.to_owned() }
}
