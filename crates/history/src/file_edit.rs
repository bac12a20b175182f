//! Edits of a file between two moments, derived from its contents at each of them.

use grove_transcript::{EditKind, FileLocation, TextChange, TextPosition, TextRange, TranscriptEdit};

use crate::changes::replaced;

/// The known content of a file at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSnapshot {
    Text(String),
    /// The file did not exist.
    Absent,
    /// Unknown to the store: the file was never touched, the moment is not known, or a content is missing.
    Unknown,
}

impl FileSnapshot {
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Absent | Self::Unknown => 0,
        }
    }

    /// The same without its text.
    pub(crate) fn unread(self) -> Self {
        match self {
            Self::Text(_) | Self::Unknown => Self::Unknown,
            Self::Absent => Self::Absent,
        }
    }
}

/// The edit that turned one content of a file into another; `None` if they are equal. `from` is the earlier path.
pub(crate) fn edit_between(
    place: &FileLocation,
    from: Option<&FileLocation>,
    held: FileSnapshot,
    holds: FileSnapshot,
) -> Option<TranscriptEdit> {
    let kind = match (&held, &holds) {
        (FileSnapshot::Absent, FileSnapshot::Absent) => return None,
        _ if held == holds && from.is_none() && held != FileSnapshot::Unknown => return None,
        _ if from.is_some() => EditKind::Rename,
        (FileSnapshot::Absent, _) => EditKind::Create,
        (_, FileSnapshot::Absent) => EditKind::Delete,
        (FileSnapshot::Text(_) | FileSnapshot::Unknown, FileSnapshot::Text(_) | FileSnapshot::Unknown) => {
            EditKind::Edit
        }
    };
    let mut edit = TranscriptEdit { kind, place: place.clone(), from: from.cloned(), ..TranscriptEdit::default() };
    let text = |file: FileSnapshot| match file {
        FileSnapshot::Text(text) => Some(text),
        FileSnapshot::Absent => Some(String::new()),
        FileSnapshot::Unknown => None,
    };
    if let (Some(before), Some(after)) = (text(held), text(holds)) {
        let (added, removed) = replaced(&before, &after);
        (edit.added, edit.removed) = (Some(added), Some(removed));
        edit.changes = change(&before, &after).into_iter().collect();
    }
    Some(edit)
}

/// The one range of lines in which two texts differ.
fn change(before: &str, after: &str) -> Option<TextChange> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let alike = |(one, other): &(&&str, &&str)| one == other;
    let head = before.iter().zip(&after).take_while(alike).count();
    let tail = before[head..].iter().rev().zip(after[head..].iter().rev()).take_while(alike).count();
    let line = |count: usize| TextPosition { line: count as u64 + 1, column: 1 };
    let range = TextRange { start: line(head), end: line(before.len() - tail) };
    let text = after[head..after.len() - tail].concat();
    (range.start != range.end || !text.is_empty()).then_some(TextChange { range, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stretch_that_differs_is_told_in_lines() {
        let changed_lines = |before: &str, after: &str| {
            change(before, after).map(|it| (it.range.start.line, it.range.end.line, it.text))
        };
        assert_eq!(changed_lines("a\nb\nc\n", "a\nx\ny\nc\n"), Some((2, 3, "x\ny\n".into())));
        assert_eq!(changed_lines("a\nb\n", "a\n"), Some((2, 3, String::new())));
        assert_eq!(changed_lines("", "new"), Some((1, 1, "new".into())));
        assert_eq!(changed_lines("same", "same"), None);
    }
}
