//! The folders in which sessions' agents are working at this moment.
//!
//! Two agents that change the same files without knowing of each other are a mistake more often than intended, so the
//! user is warned while both run. Nothing is forbidden.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grove_core::{Session, SessionId, warning};

/// The sessions with a running turn, and their folders.
#[derive(Debug, Default)]
pub(crate) struct ActiveFolders(Mutex<HashMap<SessionId, FolderUser>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FolderUser {
    title: String,
    folders: Vec<String>,
}

impl ActiveFolders {
    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn workers(&self) -> MutexGuard<'_, HashMap<SessionId, FolderUser>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session with a running turn. Returns the sessions whose warnings change.
    pub(crate) fn enter(&self, session: &Session) -> Vec<SessionId> {
        let mut workers = self.workers();
        let worker = FolderUser { title: session.title.clone(), folders: session.working_directories.clone() };
        if workers.get(&session.id) == Some(&worker) {
            return Vec::new();
        }
        let neighbours = neighbours(&workers, &session.id, &worker);
        workers.insert(session.id.clone(), worker);
        neighbours
    }

    /// Removes a session without a running turn. Returns the sessions whose warnings change.
    pub(crate) fn leave(&self, session: &SessionId) -> Vec<SessionId> {
        let mut workers = self.workers();
        let left = workers.remove(session);
        left.map(|left| neighbours(&workers, session, &left)).unwrap_or_default()
    }

    /// The warnings for a running session: the other sessions that run in its folders.
    pub(crate) fn collisions(&self, session: &SessionId) -> Vec<String> {
        let workers = self.workers();
        let Some(own) = workers.get(session) else { return Vec::new() };
        let others = workers.iter().filter(|(other, _)| *other != session);
        let mut warnings: Vec<String> = others.filter_map(|(_, other)| collision(own, other)).collect();
        warnings.sort_unstable();
        warnings.dedup();
        warnings
    }
}

fn neighbours(workers: &HashMap<SessionId, FolderUser>, session: &SessionId, worker: &FolderUser) -> Vec<SessionId> {
    let others = workers.iter().filter(|(other, _)| *other != session);
    others.filter(|(_, other)| shared(worker, other).is_some()).map(|(id, _)| id.clone()).collect()
}

fn shared<'a>(one: &FolderUser, other: &'a FolderUser) -> Option<&'a str> {
    other.folders.iter().find(|folder| one.folders.contains(folder)).map(String::as_str)
}

fn collision(own: &FolderUser, other: &FolderUser) -> Option<String> {
    let folder = shared(own, other)?;
    let folder = grove_work::local_path(folder).map_or_else(|_| folder.to_owned(), |path| path.display().to_string());
    let who = match other.title.as_str() {
        "" | Session::UNTITLED => "another session".to_owned(),
        title => format!("“{title}”"),
    };
    Some(warning::shared_folder(&who, &folder))
}

#[cfg(test)]
mod tests {
    use grove_core::{NewSession, StoreName, Timestamp};

    use super::*;

    fn session(id: &str, folder: &str, title: &str) -> Session {
        let new = NewSession {
            id: id.into(),
            uri: format!("agent:/{id}").into(),
            agent: "agent".into(),
            model: None,
            working_directories: vec![folder.to_owned()],
            config: None,
            store: StoreName::default(),
        };
        let mut session = Session::new(&new, Timestamp(0));
        session.title = title.to_owned();
        session
    }

    #[test]
    fn two_sessions_in_one_folder_are_warned_only_while_both_run() {
        let places = ActiveFolders::default();
        let (a, b) = (session("a", "file:///x%20y", "Fix the tests"), session("b", "file:///x%20y", Session::UNTITLED));
        assert_eq!(places.enter(&a), []);
        assert_eq!(places.enter(&a), [], "nobody is in their own way");
        assert_eq!(places.enter(&session("c", "file:///z", "")), []);
        assert_eq!(places.collisions(&b.id), Vec::<String>::new(), "it does not run");
        assert_eq!(places.enter(&b), std::slice::from_ref(&a.id));
        assert_eq!(places.collisions(&b.id), ["“Fix the tests” is running in /x y, too: their changes may collide"]);
        assert_eq!(places.collisions(&a.id), ["another session is running in /x y, too: their changes may collide"]);
        assert!(places.collisions(&b.id).iter().all(|words| warning::is_shared_folder(words) && !words.contains(":/")));
        assert_eq!(places.leave(&a.id), std::slice::from_ref(&b.id));
        assert_eq!(places.collisions(&b.id), Vec::<String>::new(), "the other one is done");
        assert_eq!(places.leave(&a.id), []);
    }
}
