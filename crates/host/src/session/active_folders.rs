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

    /// The warning for a running session: the other sessions that run in its folders. It is one for all of them.
    pub(crate) fn collision(&self, session: &SessionId) -> Option<String> {
        let workers = self.workers();
        let own = workers.get(session)?;
        let others = workers.iter().filter(|(other, _)| *other != session);
        let mut others: Vec<(&str, String)> =
            others.filter_map(|(_, other)| Some((shared(own, other)?, name_of(other)))).collect();
        // The order of the table is not stable, and a warning that changes is told to every client.
        others.sort_unstable();
        let (folder, name) = others.first()?;
        let folder =
            grove_work::local_path(folder).map_or_else(|_| (*folder).to_owned(), |path| path.display().to_string());
        Some(warning::shared_folder(name, others.len() - 1, &folder))
    }
}

fn neighbours(workers: &HashMap<SessionId, FolderUser>, session: &SessionId, worker: &FolderUser) -> Vec<SessionId> {
    let others = workers.iter().filter(|(other, _)| *other != session);
    others.filter(|(_, other)| shared(worker, other).is_some()).map(|(id, _)| id.clone()).collect()
}

fn shared<'a>(one: &FolderUser, other: &'a FolderUser) -> Option<&'a str> {
    other.folders.iter().find(|folder| one.folders.contains(folder)).map(String::as_str)
}

fn name_of(user: &FolderUser) -> String {
    match user.title.as_str() {
        "" | Session::UNTITLED => "another session".to_owned(),
        title => format!("“{title}”"),
    }
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
        assert_eq!(places.collision(&b.id), None, "it does not run");
        assert_eq!(places.enter(&b), std::slice::from_ref(&a.id));
        let warned = |id| places.collision(id).unwrap();
        assert_eq!(warned(&b.id), "“Fix the tests” is running in /x y, too: their changes may collide");
        assert_eq!(warned(&a.id), "another session is running in /x y, too: their changes may collide");
        assert!(warning::is_shared_folder(&warned(&b.id)) && !warned(&b.id).contains(":/"));
        assert_eq!(places.leave(&a.id), std::slice::from_ref(&b.id));
        assert_eq!(places.collision(&b.id), None, "the other one is done");
        assert_eq!(places.leave(&a.id), []);
    }
    #[test]
    fn many_sessions_in_one_folder_are_one_warning() {
        let places = ActiveFolders::default();
        for number in 0..36 {
            places.enter(&session(&format!("s{number}"), "file:///x", &format!("Task {number:02}")));
        }
        let warned = places.collision(&"s7".into()).unwrap();
        assert_eq!(warned, "“Task 00” and 34 others are running in /x, too: their changes may collide");
        assert!(warning::is_shared_folder(&warned));
        for number in 3..36 {
            places.leave(&format!("s{number}").into());
        }
        let warned = places.collision(&"s2".into()).unwrap();
        assert_eq!(warned, "“Task 00” and one other are running in /x, too: their changes may collide");
    }
}
