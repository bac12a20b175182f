//! A changeset's reducer.

use std::collections::HashSet;

use super::ReduceOutcome;
use super::edit::{assign, clear, remove, set, set_if_some, upsert};
use crate::ahp::action::{
    ChangesetAction, ChangesetFilesReviewChanged, ChangesetOperationStatusChanged, ChangesetStatusChanged,
};
use crate::ahp::state::{ChangesetOperationStatus, ChangesetState, ChangesetStatus};

/// Applies an action to a changeset.
pub fn changeset(state: &mut ChangesetState, action: &ChangesetAction) -> ReduceOutcome {
    match action {
        ChangesetAction::StatusChanged(action) => status(state, action),
        ChangesetAction::FileSet(action) => upsert(&mut state.files, &action.file, |file| file.id == action.file.id),
        ChangesetAction::FileRemoved(action) => remove(&mut state.files, |file| file.id == action.file_id),
        ChangesetAction::FilesReviewChanged(action) => reviewed(state, action),
        ChangesetAction::ContentChanged(action) => {
            assign(&mut state.files, &action.files) | set_if_some(&mut state.operations, &action.operations)
        }
        ChangesetAction::OperationsChanged(action) => assign(&mut state.operations, &action.operations),
        ChangesetAction::OperationStatusChanged(action) => operation(state, action),
        ChangesetAction::Cleared(_) => {
            let changed = !state.files.is_empty();
            state.files.clear();
            ReduceOutcome::of(changed)
        }
    }
}

/// Sets the status. An error stays only as long as the status is an error.
fn status(state: &mut ChangesetState, action: &ChangesetStatusChanged) -> ReduceOutcome {
    let error = match action.status {
        ChangesetStatus::Error => assign(&mut state.error, &action.error),
        _ => clear(&mut state.error),
    };
    assign(&mut state.status, &action.status) | error
}

fn reviewed(state: &mut ChangesetState, action: &ChangesetFilesReviewChanged) -> ReduceOutcome {
    let named: HashSet<&str> = action.files.iter().map(String::as_str).collect();
    let mut outcome = ReduceOutcome::Unchanged;
    for file in state.files.iter_mut().filter(|file| named.contains(file.id.as_str())) {
        outcome |= set(&mut file.reviewed, &action.reviewed);
    }
    outcome
}

/// Sets an operation's status. Here too, an error stays only as long as the status is an error.
fn operation(state: &mut ChangesetState, action: &ChangesetOperationStatusChanged) -> ReduceOutcome {
    let mut operations = state.operations.iter_mut().flatten();
    let Some(operation) = operations.find(|operation| operation.id == action.operation_id) else {
        return ReduceOutcome::Unchanged;
    };
    let error = match action.status {
        ChangesetOperationStatus::Error => assign(&mut operation.error, &action.error),
        _ => clear(&mut operation.error),
    };
    assign(&mut operation.status, &action.status) | error
}
