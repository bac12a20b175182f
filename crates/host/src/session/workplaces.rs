//! Which folders sessions' agents work in.
//!
//! Two agents that change the same files without knowing of one another are a mistake more often than a wish, so a person
//! is told. Nothing is forbidden.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grove_core::{SessionId, SessionUri, Timestamp};

/// How long after its last turn an agent still counts as working in its folder.
const LINGER_MS: u64 = 60 * 60 * 1_000;

/// The folders, and who works there.
#[derive(Debug, Default)]
pub(crate) struct Workplaces(Mutex<HashMap<SessionId, Worker>>);

#[derive(Debug)]
struct Worker {
    uri: SessionUri,
    folders: Vec<String>,
    seen: Timestamp,
}

impl Workplaces {
    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards whole data.
    fn workers(&self) -> MutexGuard<'_, HashMap<SessionId, Worker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session's agent begins a turn in these folders. Gives what a person should know about it.
    pub(crate) fn enter(
        &self,
        session: &SessionId,
        uri: &SessionUri,
        folders: &[String],
        now: Timestamp,
    ) -> Vec<String> {
        let mut workers = self.workers();
        workers.retain(|_, worker| now.0.saturating_sub(worker.seen.0) < LINGER_MS);
        let worker = Worker { uri: uri.clone(), folders: folders.to_vec(), seen: now };
        workers.insert(session.clone(), worker);
        let mut warnings: Vec<String> = workers
            .iter()
            .filter(|(other, _)| *other != session)
            .filter_map(|(_, worker)| {
                let shared = worker.folders.iter().find(|folder| folders.contains(folder))?;
                Some(format!("session {} works in {shared} as well: their changes may collide", worker.uri))
            })
            .collect();
        warnings.sort_unstable();
        warnings
    }

    /// A session is gone.
    pub(crate) fn leave(&self, session: &SessionId) {
        self.workers().remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(places: &Workplaces, session: &str, folder: &str, now: u64) -> usize {
        let uri = SessionUri::from(format!("agent:/{session}"));
        places.enter(&session.into(), &uri, &[folder.to_owned()], Timestamp(now)).len()
    }

    #[test]
    fn whoever_comes_second_into_a_folder_is_told() {
        let places = Workplaces::default();
        assert_eq!(enter(&places, "a", "/x", 0), 0);
        assert_eq!(enter(&places, "a", "/x", 1), 0, "nobody is in their own way");
        assert_eq!(enter(&places, "b", "/y", 2), 0);
        assert_eq!(enter(&places, "c", "/x", 3), 1);
        places.leave(&"a".into());
        places.leave(&"c".into());
        assert_eq!(enter(&places, "d", "/x", 4), 0);
        assert_eq!(enter(&places, "e", "/x", 5 + LINGER_MS), 0, "that was long ago");
    }
}
