//! The processes of the shims: everything below one belongs to an agent of a session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grove_core::SessionId;
use grove_work::{ProcFolder, ProcessKey};

/// The shim of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShimProcess {
    pub process: ProcessKey,
    pub session: SessionId,
}

/// The shims that a host has started or found.
#[derive(Debug, Default)]
pub(super) struct ShimProcesses(Mutex<HashMap<ProcessKey, ShimProcess>>);

impl ShimProcesses {
    /// Notes a shim, and forgets those that have ended.
    pub(super) fn note(&self, id: Option<u32>, session: &SessionId) {
        let Some(process) = id.and_then(|id| ProcFolder.key(id)) else { return };
        let mut shims = self.shims();
        shims.retain(|known, _| is_running(*known));
        shims.insert(process, ShimProcess { process, session: session.clone() });
    }

    pub(super) fn all(&self) -> Vec<ShimProcess> {
        self.shims().values().cloned().collect()
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn shims(&self) -> MutexGuard<'_, HashMap<ProcessKey, ShimProcess>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_running(process: ProcessKey) -> bool {
    ProcFolder.key(process.id) == Some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_is_known_until_it_has_ended() {
        let shims = ShimProcesses::default();
        let mut ended = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        shims.note(Some(ended.id()), &"a".into());
        shims.note(None, &"b".into());
        assert_eq!(shims.all().len(), 1);
        ended.kill().unwrap();
        ended.wait().unwrap();
        shims.note(Some(std::process::id()), &"c".into());
        assert_eq!(shims.all().iter().map(|shim| shim.session.as_str()).collect::<Vec<_>>(), ["c"]);
    }
}
