//! The installation of an agent that runs, or ran last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_wire::x_grove::administration::agents::{InstallationState, InstallationStatus};
use tokio::task::AbortHandle;

/// The lines of an installer's output that are kept. Older ones are dropped.
pub(crate) const MAX_LINES: usize = 500;

/// The slot for one installation at a time. Clones share it.
#[derive(Clone, Default)]
pub(super) struct InstallationSlot(Arc<Mutex<Option<Installation>>>);

struct Installation {
    /// Distinguishes it from earlier ones, whose tasks may still be ending.
    number: u64,
    id: String,
    version: String,
    state: InstallationState,
    lines: VecDeque<String>,
    line_count: u64,
    error: Option<String>,
    /// The task that installs, once it has started.
    task: Option<AbortHandle>,
}

impl InstallationSlot {
    /// Reserves the slot, and returns the number of the installation. The error is the agent that is being installed.
    pub(super) fn begin(&self, id: &str, version: &str) -> Result<u64, String> {
        let mut slot = self.slot();
        if let Some(running) = slot.as_ref().filter(|one| one.state == InstallationState::Running) {
            return Err(running.id.clone());
        }
        let number = slot.as_ref().map_or(0, |last| last.number + 1);
        *slot = Some(Installation {
            number,
            id: id.to_owned(),
            version: version.to_owned(),
            state: InstallationState::Running,
            lines: VecDeque::new(),
            line_count: 0,
            error: None,
            task: None,
        });
        Ok(number)
    }

    /// Sets the task that cancelling ends. If the installation was cancelled meanwhile, the task ends now.
    pub(super) fn started(&self, number: u64, task: AbortHandle) {
        match running(&mut self.slot(), number) {
            Some(one) => one.task = Some(task),
            None => task.abort(),
        }
    }

    /// Adds a line of output.
    pub(super) fn push(&self, number: u64, line: &str) {
        if let Some(one) = running(&mut self.slot(), number) {
            if one.lines.len() == MAX_LINES {
                one.lines.pop_front();
            }
            one.lines.push_back(line.to_owned());
            one.line_count += 1;
        }
    }

    /// Ends the installation, unless it was cancelled.
    pub(super) fn end(&self, number: u64, outcome: Result<(), String>) {
        if let Some(one) = running(&mut self.slot(), number) {
            (one.state, one.error) = match outcome {
                Ok(()) => (InstallationState::Done, None),
                Err(error) => (InstallationState::Failed, Some(error)),
            };
            one.task = None;
        }
    }

    /// Stops the installation. Returns whether one was running.
    pub(super) fn cancel(&self) -> bool {
        let mut slot = self.slot();
        let Some(one) = slot.as_mut().filter(|one| one.state == InstallationState::Running) else { return false };
        one.state = InstallationState::Cancelled;
        // Dropping its future ends the installer's processes and removes the new folder.
        if let Some(task) = one.task.take() {
            task.abort();
        }
        true
    }

    /// The status with the lines after so many.
    pub(super) fn status(&self, after: u64) -> Option<InstallationStatus> {
        self.slot().as_ref().map(|one| {
            let new = usize::try_from(one.line_count.saturating_sub(after)).unwrap_or(usize::MAX);
            let first = one.lines.len().saturating_sub(new);
            InstallationStatus {
                id: one.id.clone(),
                version: one.version.clone(),
                state: one.state,
                lines: one.lines.iter().skip(first).cloned().collect(),
                line_count: one.line_count,
                error: one.error.clone(),
            }
        })
    }

    fn slot(&self) -> MutexGuard<'_, Option<Installation>> {
        // Nothing that can panic leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The installation of a number, while it runs.
fn running(slot: &mut Option<Installation>, number: u64) -> Option<&mut Installation> {
    slot.as_mut().filter(|one| one.number == number && one.state == InstallationState::Running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_installation_runs_at_a_time_and_its_output_is_bounded() {
        let slot = InstallationSlot::default();
        assert_eq!(slot.status(0), None);
        let first = slot.begin("a", "1").unwrap();
        assert_eq!(slot.begin("b", "1"), Err("a".to_owned()));
        for line in 0..MAX_LINES + 3 {
            slot.push(first, &line.to_string());
        }
        let all = slot.status(0).unwrap();
        assert_eq!((all.lines.len(), all.lines[0].as_str(), all.line_count), (MAX_LINES, "3", MAX_LINES as u64 + 3));
        let new = slot.status(MAX_LINES as u64 + 1).unwrap();
        assert_eq!(new.lines, [(MAX_LINES + 1).to_string(), (MAX_LINES + 2).to_string()]);
        assert!(slot.status(u64::MAX).unwrap().lines.is_empty());
        slot.end(first, Err("no".to_owned()));
        assert_eq!(slot.status(0).unwrap().error.as_deref(), Some("no"));
        let second = slot.begin("b", "1").unwrap();
        slot.push(first, "late");
        slot.end(first, Ok(()));
        assert_eq!(slot.status(0).unwrap().line_count, 0, "the task of an earlier one changes nothing");
        assert!(slot.cancel() && !slot.cancel());
        slot.end(second, Ok(()));
        assert_eq!(slot.status(0).unwrap().state, InstallationState::Cancelled);
    }
}
