//! The editor's open sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_wire::jsonrpc::ErrorObject;

use crate::host::code;
use crate::session::EditorSession;

/// The sessions that an editor may have open; a further one is refused.
pub const OPEN_SESSIONS: usize = 256;

/// The open sessions, by id.
#[derive(Default)]
pub(crate) struct SessionTable(Mutex<HashMap<String, Arc<EditorSession>>>);

impl SessionTable {
    pub(crate) fn get(&self, id: &str) -> Result<Arc<EditorSession>, ErrorObject> {
        let unknown = || {
            let id: String = id.chars().take(100).collect();
            let message = format!("the session {id:?} is not open: send session/new or session/load first");
            ErrorObject::new(code::RESOURCE_NOT_FOUND, message)
        };
        self.table().get(id).cloned().ok_or_else(unknown)
    }

    /// Fails if there is no room for a further session.
    pub(crate) fn require_room(&self) -> Result<(), ErrorObject> {
        match self.table().len() < OPEN_SESSIONS {
            true => Ok(()),
            false => Err(ErrorObject::invalid_request(format!(
                "{OPEN_SESSIONS} sessions are open: close one with session/close"
            ))),
        }
    }

    /// Adds a session. An older one of the same id is closed.
    pub(crate) fn insert(&self, session: &Arc<EditorSession>) {
        let former = self.table().insert(session.id.clone(), session.clone());
        if let Some(former) = former {
            former.close();
        }
    }

    pub(crate) fn remove(&self, id: &str) -> Option<Arc<EditorSession>> {
        self.table().remove(id)
    }

    /// Closes all sessions. Their turns go on in the host.
    pub(crate) fn close_all(&self) {
        for (_, session) in self.table().drain() {
            session.close();
        }
    }

    // Every change is complete before anything can panic, so a poisoned table is still valid.
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<EditorSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
