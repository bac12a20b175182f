//! The files that a session changed: each once, merged from the edits of its turns.
//!
//! A tool may report one edit in several ways: as a call, as its resulting text, and as line counts. Within a turn only
//! one of them counts for a file. The result is a function of the turns in order, so reading on from a bookmark gives
//! the same as a full read.

use grove_transcript::{
    CallState, EditKind, FileLocation, Replacement, TextChange, ToolInput, TranscriptEdit, TranscriptPart,
    TranscriptToolCall, TranscriptTurn, tools,
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::reader::Bookmark;

/// The maximum number of changed files of a session. Further ones are left out, and counted.
pub const MAX_CHANGES: usize = 1_000;
/// The maximum length of a file's name, in bytes. Longer ones are left out, and counted.
const MAX_NAME: usize = 4_096;

/// The files that a session changed, in the order of their first change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionChanges {
    /// By path; by URI for files without one.
    pub files: IndexMap<String, FileChangeSummary>,
    /// The number of omitted changes of further files.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// The change of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileChangeSummary {
    pub operation: ChangeOperation,
    /// The number of added lines.
    #[serde(skip_serializing_if = "is_zero")]
    pub insertions: u64,
    /// The number of removed lines.
    #[serde(skip_serializing_if = "is_zero")]
    pub deletions: u64,
    /// Its URI, if it is on another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Its path before the session, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// The operation on a file, from before the session to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeOperation {
    Created,
    #[default]
    Modified,
    Deleted,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl SessionChanges {
    /// The changes of turns in memory, in order.
    pub fn of<'a>(turns: impl IntoIterator<Item = &'a TranscriptTurn>) -> Self {
        let mut collector = ChangeCollector::default();
        turns.into_iter().for_each(|turn| collector.take(turn));
        collector.finish().changes
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Makes paths absolute, if the session's working directory is known.
    pub(crate) fn below(self, folder: Option<&str>) -> Self {
        let Some(folder) = folder.filter(|_| self.files.keys().any(|path| !is_whole(path))) else { return self };
        let separator = if folder.starts_with('/') { '/' } else { '\\' };
        let folder = folder.trim_end_matches(separator);
        let whole = |path: String| match is_whole(&path) {
            true => path,
            false => format!("{folder}{separator}{path}"),
        };
        let mut all = Self { left_out: self.left_out, ..Self::default() };
        for (path, change) in self.files {
            // Two spellings of one file are one file from here on.
            all.add(whole(path), FileChangeSummary { from: change.from.map(whole), ..change });
        }
        all
    }

    /// Adds a complete turn.
    fn take(&mut self, turn: TurnChanges) {
        for (path, TurnFileChange { moved_from, uri, tally }) in turn.files {
            let (insertions, deletions) = lines(&tally);
            let (became, is_gone) = became(&tally);
            if let Some(before) = &moved_from
                && let Some(mut moved) = self.files.shift_remove(before)
            {
                // A moved file gets a new name. A new file stays new under that name.
                if moved.operation != ChangeOperation::Created {
                    moved.from.get_or_insert_with(|| before.clone());
                }
                self.add(path.clone(), moved);
            }
            let was_new = self.files.get(&path).is_some_and(|known| known.operation == ChangeOperation::Created);
            let is_known = self.files.contains_key(&path);
            if (is_gone && !is_known) || (was_new && became == ChangeOperation::Deleted) {
                self.files.shift_remove(&path);
                continue;
            }
            let from = moved_from.filter(|_| !is_known);
            self.add(path, FileChangeSummary { operation: became, insertions, deletions, uri, from });
        }
        self.left_out = self.left_out.saturating_add(turn.left_out);
    }

    fn add(&mut self, path: String, change: FileChangeSummary) {
        if let Some(known) = self.files.get_mut(&path) {
            known.operation = match (known.operation, change.operation) {
                (ChangeOperation::Created, ChangeOperation::Deleted) => ChangeOperation::Deleted,
                (ChangeOperation::Created, _) => ChangeOperation::Created,
                (ChangeOperation::Modified | ChangeOperation::Deleted, ChangeOperation::Deleted) => {
                    ChangeOperation::Deleted
                }
                (ChangeOperation::Modified | ChangeOperation::Deleted, _) => ChangeOperation::Modified,
            };
            known.insertions = known.insertions.saturating_add(change.insertions);
            known.deletions = known.deletions.saturating_add(change.deletions);
            known.from = known.from.take().or(change.from);
        } else if self.files.len() < MAX_CHANGES {
            self.files.insert(path, change);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }
}

/// Collects a session's changes while it is read.
#[derive(Debug, Default)]
pub(crate) struct ChangeCollector {
    /// The changes of all turns but the newest.
    before: SessionChanges,
    newest: Option<TurnChanges>,
    turns: u32,
}

/// The collected changes.
#[derive(Debug, Default)]
pub(crate) struct CollectedChanges {
    pub changes: SessionChanges,
    /// The changes before the newest turn. A later read returns that turn again.
    pub before: SessionChanges,
}

impl ChangeCollector {
    /// Continues from an earlier read's bookmark: `before` are the changes before it.
    pub(crate) fn from(bookmark: &Bookmark, before: SessionChanges) -> Self {
        Self { before, newest: None, turns: bookmark.turns }
    }

    pub(crate) fn take(&mut self, turn: &TranscriptTurn) {
        if let Some(settled) = self.newest.replace(TurnChanges::of(turn)) {
            self.before.take(settled);
        }
        self.turns = self.turns.saturating_add(1);
    }

    /// True if a later read may continue from a bookmark with the changes before the newest turn.
    pub(crate) fn fits(&self, bookmark: &Bookmark) -> bool {
        bookmark.turns == self.turns.saturating_sub(u32::from(self.newest.is_some()))
    }

    pub(crate) fn finish(self) -> CollectedChanges {
        let mut changes = self.before.clone();
        if let Some(newest) = self.newest {
            changes.take(newest);
        }
        CollectedChanges { changes, before: self.before }
    }
}

/// The ways in which an edit is reported.
#[derive(Clone, Copy, Debug)]
enum EditSource {
    Call,
    Text,
    Sum,
}

const EDIT_SOURCES: usize = 3;

/// The file changes of a turn.
#[derive(Debug, Default)]
struct TurnChanges {
    files: IndexMap<String, TurnFileChange>,
    left_out: u64,
}

/// The changes of one file in a turn, by source.
#[derive(Debug, Default)]
struct TurnFileChange {
    moved_from: Option<String>,
    uri: Option<String>,
    tally: [Option<EditTally>; EDIT_SOURCES],
}

#[derive(Clone, Copy, Debug)]
struct EditTally {
    step: FileTransition,
    insertions: u64,
    deletions: u64,
}

/// The transition of a file in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileTransition {
    Created,
    Modified,
    Deleted,
    /// Created and deleted in the turn.
    Transient,
}

impl FileTransition {
    fn of(kind: EditKind) -> Self {
        match kind {
            EditKind::Create => Self::Created,
            EditKind::Delete => Self::Deleted,
            EditKind::Rename | EditKind::Edit => Self::Modified,
        }
    }

    fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Created | Self::Transient, Self::Deleted | Self::Transient) => Self::Transient,
            (Self::Created | Self::Transient, Self::Created | Self::Modified) => Self::Created,
            (Self::Modified | Self::Deleted, Self::Deleted | Self::Transient) => Self::Deleted,
            (Self::Modified | Self::Deleted, Self::Created | Self::Modified) => Self::Modified,
        }
    }
}

/// The operation on a file in a turn, and true if it was created in the same turn. Some sources know less than others:
/// a creation or deletion counts, whichever source reports it.
fn became(tally: &[Option<EditTally>; EDIT_SOURCES]) -> (ChangeOperation, bool) {
    let has = |step: FileTransition| tally.iter().flatten().any(|tally| tally.step == step);
    let is_gone = has(FileTransition::Transient) || (has(FileTransition::Deleted) && has(FileTransition::Created));
    match is_gone || has(FileTransition::Deleted) {
        true => (ChangeOperation::Deleted, is_gone),
        false if has(FileTransition::Created) => (ChangeOperation::Created, false),
        false => (ChangeOperation::Modified, false),
    }
}

/// The added and removed lines. Of the text and the counts the larger one counts; a call has only the intended change,
/// and counts if no source has the actual one.
fn lines(tally: &[Option<EditTally>; EDIT_SOURCES]) -> (u64, u64) {
    let of = |way: EditSource| tally[way as usize].map_or((0, 0), |tally| (tally.insertions, tally.deletions));
    let (text, sum) = (of(EditSource::Text), of(EditSource::Sum));
    match (text.0.max(sum.0), text.1.max(sum.1)) {
        (0, 0) => of(EditSource::Call),
        counted => counted,
    }
}

impl TurnChanges {
    /// The changes of a turn and its subagents, in order.
    fn of(turn: &TranscriptTurn) -> Self {
        let mut all = Self::default();
        let mut open = vec![turn.parts.iter()];
        while let Some(parts) = open.last_mut() {
            match parts.next() {
                Some(TranscriptPart::Edit(edit)) => all.edit(edit),
                Some(TranscriptPart::ToolCall(call)) => {
                    all.call(call);
                    let turns = call.subagent.iter().flat_map(|chat| chat.turns.iter().rev());
                    open.extend(turns.map(|turn| turn.parts.iter()));
                }
                Some(
                    TranscriptPart::Text(_)
                    | TranscriptPart::Reasoning { .. }
                    | TranscriptPart::Question(_)
                    | TranscriptPart::Notice(_)
                    | TranscriptPart::Raw(_),
                ) => {}
                None => {
                    open.pop();
                }
            }
        }
        all
    }

    fn call(&mut self, call: &TranscriptToolCall) {
        // A call that failed, was refused or has no known end counts as no change.
        if call.state != CallState::Complete || call.exit_code.is_some_and(|code| code != 0) {
            return;
        }
        match &call.input {
            ToolInput::Edits(edits) => edits.iter().for_each(|edit| self.replacement(edit)),
            ToolInput::Command { command, .. } => {
                tools::patch_in(command).iter().for_each(|edit| self.replacement(edit));
            }
            ToolInput::ShellOutput { .. }
            | ToolInput::File { .. }
            | ToolInput::Folder { .. }
            | ToolInput::Todos(_)
            | ToolInput::Subagent { .. }
            | ToolInput::Generic => {}
        }
    }

    fn replacement(&mut self, edit: &Replacement) {
        let (added, removed) = replaced(edit.before.as_deref().unwrap_or_default(), &edit.after);
        let (insertions, deletions) = (edit.added.unwrap_or(added), edit.removed.unwrap_or(removed));
        let tally = EditTally { step: FileTransition::of(edit.kind), insertions, deletions };
        let place = FileLocation::local(edit.path.as_str());
        self.add(&place, edit.from.as_deref(), EditSource::Call, tally);
    }

    fn edit(&mut self, edit: &TranscriptEdit) {
        let step = FileTransition::of(edit.kind);
        let from = edit.from.as_ref().filter(|from| **from != edit.place).map(FileLocation::shown);
        if edit.added.is_some() || edit.removed.is_some() {
            let (insertions, deletions) = (edit.added.unwrap_or_default(), edit.removed.unwrap_or_default());
            return self.add(&edit.place, from, EditSource::Sum, EditTally { step, insertions, deletions });
        }
        let (mut insertions, mut deletions) = (0_u64, 0_u64);
        for (added, removed) in edit.changes.iter().map(changed) {
            insertions = insertions.saturating_add(added);
            deletions = deletions.saturating_add(removed);
        }
        self.add(&edit.place, from, EditSource::Text, EditTally { step, insertions, deletions });
    }

    fn add(&mut self, place: &FileLocation, from: Option<&str>, way: EditSource, tally: EditTally) {
        let path = named(place.shown());
        let from = from.map(named).filter(|from| *from != path);
        if path.is_empty() || [path, from.unwrap_or_default()].iter().any(|name| name.len() > MAX_NAME) {
            self.left_out = self.left_out.saturating_add(u64::from(!path.is_empty()));
            return;
        }
        // Its changes under the old name in this turn belong to it.
        let before = from.and_then(|from| self.files.shift_remove(from));
        let file = self.files.entry(path.to_owned()).or_default();
        if let Some(before) = before {
            *file = before;
        }
        file.moved_from = file.moved_from.take().or_else(|| from.map(str::to_owned));
        file.uri = file.uri.take().or_else(|| place.host.as_ref().map(|_| place.uri.clone()));
        let known = &mut file.tally[way as usize];
        *known = Some(match *known {
            None => tally,
            Some(known) => EditTally {
                step: known.step.then(tally.step),
                insertions: known.insertions.saturating_add(tally.insertions),
                deletions: known.deletions.saturating_add(tally.deletions),
            },
        });
    }
}

/// A path as the key of a file.
fn named(path: &str) -> &str {
    path.trim_start_matches("./")
}

/// True if a path is absolute: it begins at a root or a drive, or is a URI.
fn is_whole(path: &str) -> bool {
    path.starts_with(['/', '\\', '~']) || path.get(1..2) == Some(":") || path.contains("://")
}

/// The maximum size of compared texts. Of larger ones all lines count as changed.
const MAX_COMPARED: usize = 1024 * 1024;

/// The added and removed lines between two texts: the minimum if it can be computed quickly, else all lines between the
/// common beginning and end.
pub(crate) fn replaced(before: &str, after: &str) -> (u64, u64) {
    if before.is_empty() || before.len() + after.len() > MAX_COMPARED {
        return (after.lines().count() as u64, before.lines().count() as u64);
    }
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let alike = |(one, other): &(&&str, &&str)| one == other;
    let head = before.iter().zip(&after).take_while(alike).count();
    let (before, after) = (&before[head..], &after[head..]);
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(alike).count();
    let (before, after) = (&before[..before.len() - tail], &after[..after.len() - tail]);
    let common = differing(before, after).map_or(0, |lines| (before.len() + after.len() - lines) / 2);
    ((after.len() - common) as u64, (before.len() - common) as u64)
}

/// The maximum number of line comparisons per line of two texts, and in addition.
const COMPARED: usize = 64;
const COMPARED_ANYWAY: usize = 4_096;

/// The minimum number of differing lines, by Myers' greedy algorithm; `None` if that takes too long.
fn differing(before: &[&str], after: &[&str]) -> Option<usize> {
    let all = before.len() + after.len();
    let mut left = COMPARED_ANYWAY.saturating_add(COMPARED.saturating_mul(all));
    // The furthest point of each diagonal; the one through both beginnings is in the middle.
    let middle = all + 1;
    let mut furthest = vec![0_usize; 2 * all + 3];
    for lines in 0..=all {
        for diagonal in (0..=lines).map(|step| middle + 2 * step - lines) {
            let (lower, upper) = (furthest[diagonal - 1], furthest[diagonal + 1]);
            let goes_down = diagonal == middle - lines || (diagonal != middle + lines && lower < upper);
            let mut x = if goes_down { upper } else { lower + 1 };
            let mut y = (x + middle).checked_sub(diagonal)?;
            while x < before.len() && y < after.len() && before[x] == after[y] {
                (x, y, left) = (x + 1, y + 1, left.checked_sub(1)?);
            }
            if x >= before.len() && y >= after.len() {
                return Some(lines);
            }
            furthest[diagonal] = x;
            left = left.checked_sub(1)?;
        }
    }
    None
}

/// The added and removed lines of a changed range. The text around the range is not known, so a partly changed line
/// counts as removed and added.
fn changed(change: &TextChange) -> (u64, u64) {
    let (start, end) = (change.range.start, change.range.end);
    let gone = end.line.saturating_sub(start.line);
    let breaks = change.text.bytes().filter(|byte| *byte == b'\n').count() as u64;
    let ends_line = change.text.is_empty() || change.text.ends_with('\n');
    match (start == end, start.column <= 1) {
        (true, _) if change.text.is_empty() => (0, 0),
        (true, true) => (breaks + u64::from(!ends_line), 0),
        // A text that begins with a line end comes after that line.
        (true, false) if change.text.starts_with(['\n', '\r']) => (breaks, 0),
        (false, true) if end.column <= 1 && ends_line => (breaks, gone),
        _ => (breaks.saturating_add(1), gone.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests;
