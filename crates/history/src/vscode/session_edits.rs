//! Adds the file changes of a session's editing session to its turns.

use grove_transcript::uri::same_uri;
use grove_transcript::{EditKind, ToolInput, TranscriptEdit, TranscriptPart, TranscriptTurn};

use super::editing::{self, EditingSession};
use super::find::editing_folder;
use crate::error::HistoryError;
use crate::reader::SessionLocation;

/// The editing session of a session, if it has one.
pub(super) fn editing_of(location: &SessionLocation) -> Result<Option<EditingSession>, HistoryError> {
    match editing_folder(location).filter(|folder| folder.join("state.json").is_file()) {
        Some(folder) => editing::read(&folder).map(Some),
        None => Ok(None),
    }
}

/// Adds the file changes of a turn's request. An edit that the turn has already is not repeated; it gets the numbers of
/// lines.
pub(super) fn add_edits(turn: &mut TranscriptTurn, editing: &EditingSession) {
    for edit in editing.edits(&turn.id) {
        let uri = same_uri(&edit.place.uri);
        let is_by_call = is_told_by_call(turn, &edit);
        let known_edit = turn.parts.iter_mut().find_map(|part| match part {
            TranscriptPart::Edit(known_edit) if same_uri(&known_edit.place.uri) == uri => Some(known_edit),
            _ => None,
        });
        match known_edit {
            Some(known_edit) => {
                known_edit.added = known_edit.added.or(edit.added);
                known_edit.removed = known_edit.removed.or(edit.removed);
                if edit.kind != EditKind::Edit {
                    known_edit.kind = edit.kind;
                    known_edit.from = known_edit.from.take().or(edit.from);
                }
            }
            // The call shows the text that it wrote.
            None if is_by_call => {
                let edit = TranscriptEdit { changes: Vec::new(), ..edit };
                turn.parts.push(TranscriptPart::Edit(Box::new(edit)));
            }
            None => turn.parts.push(TranscriptPart::Edit(Box::new(edit))),
        }
    }
}

fn is_told_by_call(turn: &TranscriptTurn, edit: &TranscriptEdit) -> bool {
    let path = edit.place.shown();
    turn.tool_calls().any(|call| match &call.input {
        ToolInput::Edits(edits) => edits.iter().any(|edit| edit.path == path),
        _ => false,
    })
}
