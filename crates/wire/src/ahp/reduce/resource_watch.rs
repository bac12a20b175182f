//! The reducer of a watch on files.

use super::ReduceOutcome;
use crate::ahp::action::ResourceWatchAction;
use crate::ahp::state::ResourceWatchState;

/// Changes nothing: file events are sent, not kept.
pub fn resource_watch(_state: &mut ResourceWatchState, action: &ResourceWatchAction) -> ReduceOutcome {
    match action {
        ResourceWatchAction::Changed(_) => ReduceOutcome::Unchanged,
    }
}
