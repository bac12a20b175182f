//! Temporary files of a session: registered when they are made, removed at its end.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::workspace::inside;
use crate::{FsError, Removal, SessionFs};

/// No more of them at once. A session that has them all gets no other until some are removed.
const MOST_FILES: usize = 10_000;

/// The temporary files of one session. A clone is another handle on the same ones.
#[derive(Clone, Debug)]
pub struct TempFiles {
    inner: Arc<TempFilesState>,
}

#[derive(Debug)]
struct TempFilesState {
    /// The folder for temporary files.
    store: Arc<dyn SessionFs>,
    /// Theirs in it; empty where they lie in it directly.
    folder: String,
    fate: TempFilePolicy,
    names: Mutex<BTreeSet<String>>,
}

/// What becomes of temporary files at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TempFilePolicy {
    Removed,
    /// For whoever wants to look at them afterwards.
    Kept,
}

/// A temporary file that was registered, and need not be there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempFile {
    /// Its path in the store's folder for temporary files ([`SessionFs::tmpdir`]).
    pub path: String,
    /// As the backend spells it: what whoever is told of the file has to use.
    pub shown: String,
}

impl TempFiles {
    /// None yet, for the session that `store` keeps.
    pub fn new(store: &dyn SessionFs, fate: TempFilePolicy) -> Result<Self, FsError> {
        Self::in_folder(store, String::new(), fate)
    }

    /// None yet, in a folder of their own: for one of the sessions that `store` keeps.
    pub fn in_folder(store: &dyn SessionFs, folder: String, fate: TempFilePolicy) -> Result<Self, FsError> {
        let store = store.tmpdir()?;
        Ok(Self { inner: Arc::new(TempFilesState { store, folder, fate, names: Mutex::default() }) })
    }

    pub(crate) fn store(&self) -> &dyn SessionFs {
        &*self.inner.store
    }

    /// Registers a new file. Its name is one that nobody can guess, since folders for temporary files are shared.
    pub fn register(&self, extension: &str) -> Result<TempFile, FsError> {
        let failed = |reason: String| FsError::Other { path: "the folder for temporary files".to_owned(), reason };
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| failed(error.to_string()))?;
        let random = u128::from_le_bytes(random);
        let name = format!("{}-grove-output-{random:032x}.{extension}", Timestamp::now().as_millisecond());
        let name = inside(&self.inner.folder, &name);
        let shown = self.inner.store.location(&name)?;
        let mut names = self.names();
        if names.len() >= MOST_FILES {
            return Err(failed(format!("the session has {MOST_FILES} temporary files already: end it to remove them")));
        }
        names.insert(name.clone());
        Ok(TempFile { path: name, shown })
    }

    /// Removes what was registered, or leaves it and forgets it where it is to be kept. What cannot be removed stays
    /// registered, so that another call tries again, and is told; the rest goes all the same.
    pub async fn remove(&self) -> Vec<FsError> {
        let names = std::mem::take(&mut *self.names());
        if self.inner.fate == TempFilePolicy::Kept {
            return Vec::new();
        }
        let mut failed = Vec::new();
        let some = !names.is_empty();
        for name in names {
            match self.inner.store.rm(&name, Removal::One).await {
                Ok(()) | Err(FsError::NotFound { .. }) => {}
                Err(error) => {
                    self.names().insert(name);
                    failed.push(error);
                }
            }
        }
        if some && !self.inner.folder.is_empty() {
            // It was never made, or something is left in it: both are fine.
            self.inner.store.rm(&self.inner.folder, Removal::One).await.ok();
        }
        failed
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // No step under this lock can panic half way.
        self.inner.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
