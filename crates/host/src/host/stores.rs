//! The stores of sessions, and the files in them.

use std::path::PathBuf;
use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_storage::content;
use grove_storage::{StoreError, Stores};
use grove_work::{FileAccess, FileError, Policy, local_path};

use super::Host;
use crate::config::{FolderReach, Folders};
use crate::sequencer::{HostStopped, PublishedState};

impl Host {
    /// The stores of sessions.
    pub fn stores(&self) -> &Stores {
        &self.0.env.stores
    }

    /// Sets the store of new sessions that name none, and returns the former one.
    ///
    /// Only while no session is active, so that the caller knows the store of each session.
    pub fn set_default_store(&self, name: &StoreName) -> Result<StoreName, StoreError> {
        // Held meanwhile, so that no session is created between the two.
        let sessions = self.sessions();
        match sessions.open.len() {
            0 => self.0.env.stores.set_default(name),
            active => Err(StoreError::SessionsActive(active)),
        }
    }

    /// The current store of a session.
    pub fn store_of(&self, session: &SessionId) -> Option<Arc<dyn SessionFs>> {
        let look = |published: &PublishedState| {
            let evicted = || published.evicted.get(session).map(|evicted| &evicted.session);
            published.state.sessions.get(session).or_else(evicted).map(|session| session.store.clone())
        };
        let store = self.0.sequencer.read(look)?;
        self.0.env.stores.get(&store).ok()
    }

    /// The reason why a session of this id is missing, if there is a particular one.
    pub async fn why_missing(&self, id: &SessionId) -> Option<String> {
        let stores = &self.0.env.stores;
        if !stores.may_hide_sessions() || self.id_is_taken(id) {
            return None;
        }
        stores.why_missing(id).await
    }

    /// The content type, as far as a loaded turn gives it; `None` if there is no such session.
    pub async fn content_type(
        &self,
        session: &SessionId,
        content: &ContentId,
    ) -> Result<Option<Option<String>>, HostStopped> {
        self.load(session).await?;
        Ok(self.0.sequencer.read(|published| mime_type(published, session, content)))
    }

    /// A body that is stored beside a session.
    pub async fn content(&self, session: &SessionId, id: &ContentId) -> Result<Vec<u8>, FsError> {
        let missing = || FsError::NotFound { path: id.to_string() };
        let fs = self.store_of(session).ok_or_else(missing)?;
        match content::get(fs.as_ref(), session, id).await {
            Err(FsError::NotFound { .. }) => {
                // It may still be copied from the session's fork origin, or the session may have moved meanwhile.
                self.0.copies.none_into(session).await;
                let fs = self.store_of(session).ok_or_else(missing)?;
                content::get(fs.as_ref(), session, id).await
            }
            found => found,
        }
    }

    /// The visible part of the file system: the configured roots, and the working directories of sessions.
    ///
    /// Without the right to leave the roots, only those working directories count that are inside them.
    pub async fn policy(&self, reach: FolderReach) -> Result<Policy, HostStopped> {
        let mut folders = self.working_directories();
        if reach == FolderReach::Roots {
            folders.sort_unstable();
            folders.dedup();
            let roots = self.roots_policy();
            let mut inside = Vec::new();
            for folder in folders {
                if roots.allowed(&folder, FileAccess::See).await.is_ok() {
                    inside.push(folder);
                }
            }
            folders = inside;
        }
        Ok(Policy::new(self.0.config.folders.roots.clone(), folders))
    }

    /// Says whether a folder that a client names is inside the configured roots, links followed.
    ///
    /// A missing folder is if the nearest one above it is. One that is not on this machine is not.
    pub async fn is_inside_roots(&self, folder: String) -> bool {
        let Ok(path) = local_path(&self.0.config.folders.expand(folder)) else { return false };
        match self.roots_policy().allowed(&path, FileAccess::See).await {
            Ok(_) | Err(FileError::NotFound { .. }) => true,
            Err(_) => false,
        }
    }

    /// The folders in which sessions may work without the right to leave them: those that may be listed or read, and the
    /// one that is offered first.
    fn roots_policy(&self) -> Policy {
        let Folders { default_directory, roots, .. } = &self.0.config.folders;
        Policy::new(roots.clone(), default_directory.iter().cloned().collect())
    }

    fn working_directories(&self) -> Vec<PathBuf> {
        let stores = &self.0.env.stores;
        self.0.sequencer.read(|published| {
            let evicted = published.evicted.values().map(|evicted| &evicted.session);
            let sessions = published.state.sessions.values().chain(evicted);
            // A storage client's folder need not be one of this machine.
            let is_told =
                |session: &Session, folder: &String| stores.initial_cwd(&session.store).as_ref() != Some(folder);
            let folders = sessions
                .flat_map(|session| session.working_directories.iter().filter(move |folder| is_told(session, folder)));
            folders.filter_map(|folder| local_path(folder).ok()).collect()
        })
    }
}

fn mime_type(published: &PublishedState, session: &SessionId, content: &ContentId) -> Option<Option<String>> {
    let session = published.state.sessions.get(session)?;
    let finished = session.chats.iter().flat_map(|chat| &chat.turns).flat_map(|turn| &turn.parts);
    let active = session.chats.iter().filter_map(|chat| chat.active.as_deref()).flat_map(|turn| turn.parts());
    let named = finished.chain(active).flat_map(content::named_in).find(|named| named.id == *content);
    Some(named.and_then(|named| named.mime_type.clone()))
}
