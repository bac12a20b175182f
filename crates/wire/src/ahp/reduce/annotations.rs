//! The reducer of a session's annotations.

use super::ReduceOutcome;
use super::edit::{assign_if_some, remove, set_if_some, upsert};
use crate::ahp::action::AnnotationsAction;
use crate::ahp::state::{Annotation, AnnotationsState};

/// Applies an action to a session's annotations.
pub fn annotations(state: &mut AnnotationsState, action: &AnnotationsAction) -> ReduceOutcome {
    let list = &mut state.annotations;
    match action {
        AnnotationsAction::Set(action) => upsert(list, &action.annotation, |known| known.id == action.annotation.id),
        AnnotationsAction::Removed(action) => remove(list, |known| known.id == action.annotation_id),
        AnnotationsAction::Updated(action) => on(list, &action.annotation_id, |annotation| {
            assign_if_some(&mut annotation.origin, &action.origin)
                | assign_if_some(&mut annotation.resource, &action.resource)
                | set_if_some(&mut annotation.range, &action.range)
                | assign_if_some(&mut annotation.resolved, &action.resolved)
        }),
        AnnotationsAction::EntrySet(action) => on(list, &action.annotation_id, |annotation| {
            upsert(&mut annotation.entries, &action.entry, |known| known.id == action.entry.id)
        }),
        AnnotationsAction::EntryRemoved(action) => on(list, &action.annotation_id, |annotation| {
            remove(&mut annotation.entries, |known| known.id == action.entry_id)
        }),
    }
}

fn on(list: &mut [Annotation], id: &str, change: impl FnOnce(&mut Annotation) -> ReduceOutcome) -> ReduceOutcome {
    list.iter_mut().find(|annotation| annotation.id == id).map_or(ReduceOutcome::Unchanged, change)
}
