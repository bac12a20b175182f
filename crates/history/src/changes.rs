//! What a session changed: each file once, put together from the edits that its turns tell.
//!
//! A tool may tell one edit in several ways: as a call, as the text that came of it, and as a sum. Within a turn only one of
//! them counts for a file. Everything is a function of the turns in their order, so a reading that goes on from a bookmark
//! comes to what a reading of the whole comes to.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::normal::{
    CallState, EditKind, FileLocation, Replacement, TextChange, ToolInput, TranscriptEdit, TranscriptPart,
    TranscriptToolCall, TranscriptTurn,
};
use crate::reader::Bookmark;
use crate::tools;

/// How many changed files are told of a session. Further ones are left out, and counted.
pub const MAX_CHANGES: usize = 1_000;
/// How long a file's name may be, in bytes. One that is longer is left out, and counted.
const MAX_NAME: usize = 4_096;

/// The files that a session changed, in the order in which they were first changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionChanges {
    /// By their paths; by their URIs where they have none.
    pub files: IndexMap<String, FileChangeSummary>,
    /// How many changes of further files are missing here.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileChangeSummary {
    pub operation: ChangeOperation,
    /// Lines that came.
    #[serde(skip_serializing_if = "is_zero")]
    pub insertions: u64,
    /// Lines that went.
    #[serde(skip_serializing_if = "is_zero")]
    pub deletions: u64,
    /// Its URI, where it lies on another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Where it lay before the session, where it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What happened to a file, from before the session to its end.
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
    /// What turns that are at hand changed, in their order.
    pub fn of<'a>(turns: impl IntoIterator<Item = &'a TranscriptTurn>) -> Self {
        let mut collector = ChangeCollector::default();
        turns.into_iter().for_each(|turn| collector.take(turn));
        collector.finish().changes
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same with whole paths, where the folder is known that a session worked in.
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

    /// Takes in what a turn did, once all of it is known.
    fn take(&mut self, turn: TurnChanges) {
        for (path, TurnFileChange { moved_from, uri, tally }) in turn.files {
            let (insertions, deletions) = lines(&tally);
            let (became, is_gone) = became(&tally);
            if let Some(before) = &moved_from
                && let Some(mut moved) = self.files.shift_remove(before)
            {
                // A file that moved is another one now. What was new is new under its new name.
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

/// Gathers what a session changed while it is read.
#[derive(Debug, Default)]
pub(crate) struct ChangeCollector {
    /// What all turns but the newest changed.
    before: SessionChanges,
    newest: Option<TurnChanges>,
    turns: u32,
}

/// What was gathered.
#[derive(Debug, Default)]
pub(crate) struct CollectedChanges {
    pub changes: SessionChanges,
    /// What was changed before the newest turn. A reading that goes on tells that one again.
    pub before: SessionChanges,
}

impl ChangeCollector {
    /// Goes on where an earlier reading left its bookmark: `before` is what had been changed before that.
    pub(crate) fn from(bookmark: &Bookmark, before: SessionChanges) -> Self {
        Self { before, newest: None, turns: bookmark.turns }
    }

    pub(crate) fn take(&mut self, turn: &TranscriptTurn) {
        if let Some(settled) = self.newest.replace(TurnChanges::of(turn)) {
            self.before.take(settled);
        }
        self.turns = self.turns.saturating_add(1);
    }

    /// Whether a later reading may go on from a bookmark with what is known before the newest turn.
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

/// The ways in which an edit is told.
#[derive(Clone, Copy, Debug)]
enum EditSource {
    Call,
    Text,
    Sum,
}

const EDIT_SOURCES: usize = 3;

/// What a turn did to files.
#[derive(Debug, Default)]
struct TurnChanges {
    files: IndexMap<String, TurnFileChange>,
    left_out: u64,
}

/// What a turn did to one file, as each way tells it.
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

/// What a file went through in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileTransition {
    Created,
    Modified,
    Deleted,
    /// It came and went.
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

/// What a file became in a turn, and whether it had come in the same turn. Some ways tell less than others: that it was new
/// or went counts, whichever way tells it.
fn became(tally: &[Option<EditTally>; EDIT_SOURCES]) -> (ChangeOperation, bool) {
    let has = |step: FileTransition| tally.iter().flatten().any(|tally| tally.step == step);
    let is_gone = has(FileTransition::Transient) || (has(FileTransition::Deleted) && has(FileTransition::Created));
    match is_gone || has(FileTransition::Deleted) {
        true => (ChangeOperation::Deleted, is_gone),
        false if has(FileTransition::Created) => (ChangeOperation::Created, false),
        false => (ChangeOperation::Modified, false),
    }
}

/// How many lines came and went. Of the text and the sum the one counts that tells more; a call tells what was wanted, and
/// counts where nothing tells what came of it.
fn lines(tally: &[Option<EditTally>; EDIT_SOURCES]) -> (u64, u64) {
    let of = |way: EditSource| tally[way as usize].map_or((0, 0), |tally| (tally.insertions, tally.deletions));
    let (text, sum) = (of(EditSource::Text), of(EditSource::Sum));
    match (text.0.max(sum.0), text.1.max(sum.1)) {
        (0, 0) => of(EditSource::Call),
        counted => counted,
    }
}

impl TurnChanges {
    /// What a turn and the agents that it started did, in order.
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
        // What failed, was refused or was not seen to end is not known to have changed anything.
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
        // What was done to it under its old name in this turn was done to it.
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

/// A path as files are known by it.
fn named(path: &str) -> &str {
    path.trim_start_matches("./")
}

/// Whether a path says by itself where it lies: it begins at a root or a drive, or is a URI.
fn is_whole(path: &str) -> bool {
    path.starts_with(['/', '\\', '~']) || path.get(1..2) == Some(":") || path.contains("://")
}

/// Two texts that have more bytes are not compared: all lines come and go.
const MAX_COMPARED: usize = 1024 * 1024;

/// How many lines come and go where one text takes the place of another: as few as possible, where that can be found out
/// soon, else all between the lines that both begin and end with.
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

/// How often lines are compared at most, for each line of two texts, and beside that.
const COMPARED: usize = 64;
const COMPARED_ANYWAY: usize = 4_096;

/// How many lines come and go at least, by Myers' greedy way; `None` where that takes too long.
fn differing(before: &[&str], after: &[&str]) -> Option<usize> {
    let all = before.len() + after.len();
    let mut left = COMPARED_ANYWAY.saturating_add(COMPARED.saturating_mul(all));
    // How far each diagonal was followed; the one through both beginnings stands in the middle.
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

/// How many lines a change of a stretch brings and takes. What stands around the stretch is not known, so a line of which
/// a piece is changed comes and goes.
fn changed(change: &TextChange) -> (u64, u64) {
    let (start, end) = (change.range.start, change.range.end);
    let gone = end.line.saturating_sub(start.line);
    let breaks = change.text.bytes().filter(|byte| *byte == b'\n').count() as u64;
    let ends_line = change.text.is_empty() || change.text.ends_with('\n');
    match (start == end, start.column <= 1) {
        (true, _) if change.text.is_empty() => (0, 0),
        (true, true) => (breaks + u64::from(!ends_line), 0),
        // What begins with the end of a line stands behind it.
        (true, false) if change.text.starts_with(['\n', '\r']) => (breaks, 0),
        (false, true) if end.column <= 1 && ends_line => (breaks, gone),
        _ => (breaks.saturating_add(1), gone.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests;
