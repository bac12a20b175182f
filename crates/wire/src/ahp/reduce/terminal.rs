//! A terminal's reducer.

use super::ReduceOutcome;
use super::edit::{append, assign, set};
use crate::ahp::action::{TerminalAction, TerminalCommandExecuted, TerminalCommandFinished};
use crate::ahp::state::{
    TerminalCommandPart, TerminalContentPart, TerminalLifecycle, TerminalState, TerminalUnclassifiedPart,
};

/// Applies an action to a terminal.
pub fn terminal(state: &mut TerminalState, action: &TerminalAction) -> ReduceOutcome {
    match action {
        TerminalAction::Data(action) => data(state, &action.data),
        // Input is for the process. Its output comes back as data.
        TerminalAction::Input(_) => ReduceOutcome::Unchanged,
        TerminalAction::Resized(action) => set(&mut state.cols, &action.cols) | set(&mut state.rows, &action.rows),
        TerminalAction::Claimed(action) => assign(&mut state.claim, &action.claim),
        TerminalAction::TitleChanged(action) => assign(&mut state.title, &action.title),
        TerminalAction::CwdChanged(action) => set(&mut state.cwd, &action.cwd),
        TerminalAction::Exited(action) => {
            assign(&mut state.lifecycle, &TerminalLifecycle::Exited { exit_code: action.exit_code })
        }
        TerminalAction::Cleared(_) => {
            let changed = !state.content.is_empty();
            state.content.clear();
            ReduceOutcome::of(changed)
        }
        TerminalAction::CommandDetectionAvailable(_) => set(&mut state.supports_command_detection, &true),
        TerminalAction::CommandExecuted(action) => executed(state, action),
        TerminalAction::CommandFinished(action) => finished(state, action),
    }
}

/// Appends output to the running command, or to none.
fn data(state: &mut TerminalState, data: &str) -> ReduceOutcome {
    match state.content.last_mut() {
        Some(TerminalContentPart::Command(command)) if !command.is_complete => append(&mut command.output, data),
        Some(TerminalContentPart::Unclassified(part)) => append(&mut part.value, data),
        _ => {
            let part = TerminalUnclassifiedPart { value: data.to_owned() };
            state.content.push(TerminalContentPart::Unclassified(part));
            ReduceOutcome::Changed
        }
    }
}

fn executed(state: &mut TerminalState, action: &TerminalCommandExecuted) -> ReduceOutcome {
    state.content.push(TerminalContentPart::Command(TerminalCommandPart {
        command_id: action.command_id.clone(),
        command_line: action.command_line.clone(),
        timestamp: action.timestamp,
        ..TerminalCommandPart::default()
    }));
    // A command can be reported only with command detection.
    state.supports_command_detection = Some(true);
    ReduceOutcome::Changed
}

fn finished(state: &mut TerminalState, action: &TerminalCommandFinished) -> ReduceOutcome {
    let command = state.content.iter_mut().rev().find_map(|part| match part {
        TerminalContentPart::Command(command) if command.command_id == action.command_id => Some(command),
        _ => None,
    });
    command.map_or(ReduceOutcome::Unchanged, |command| {
        assign(&mut command.is_complete, &true)
            | assign(&mut command.exit_code, &action.exit_code)
            | assign(&mut command.duration_ms, &action.duration_ms)
    })
}
