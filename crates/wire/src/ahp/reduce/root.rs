//! The root's reducer.

use super::ReduceOutcome;
use super::edit::{assign, configure, set};
use crate::ahp::action::RootAction;
use crate::ahp::state::RootState;

/// Applies an action to the root.
pub fn root(state: &mut RootState, action: &RootAction) -> ReduceOutcome {
    match action {
        RootAction::AgentsChanged(action) => assign(&mut state.agents, &action.agents),
        RootAction::ActiveSessionsChanged(action) => set(&mut state.active_sessions, &action.active_sessions),
        RootAction::TerminalsChanged(action) => set(&mut state.terminals, &action.terminals),
        // Values without a schema are meaningless.
        RootAction::ConfigChanged(action) => state
            .config
            .as_mut()
            .map_or(ReduceOutcome::Unchanged, |config| configure(&mut config.values, &action.config, action.replace)),
    }
}
