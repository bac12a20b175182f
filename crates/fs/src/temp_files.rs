//! Temporary files of a session: registered when they are created, removed at its end.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::workspace::inside;
use crate::{FsError, Removal, SessionFs};

/// The most temporary files of a session. It gets no more until some are removed.
pub const MOST_FILES: usize = 10_000;

/// The temporary files of one session. A clone is another handle on the same ones.
#[derive(Clone, Debug)]
pub struct TempFiles {
    inner: Arc<TempFilesState>,
}

#[derive(Debug)]
struct TempFilesState {
    /// The folder for temporary files.
    store: Arc<dyn SessionFs>,
    /// Their folder in it; empty if they are in it directly.
    folder: String,
    fate: TempFilePolicy,
    names: Mutex<BTreeSet<String>>,
}

/// The treatment of temporary files at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TempFilePolicy {
    Removed,
    /// They stay, for later inspection.
    Kept,
}

/// A temporary file that was registered, and need not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempFile {
    /// Its path in the store's folder for temporary files ([`SessionFs::tmpdir`]).
    pub path: String,
    /// The path in the backend's spelling, for agents and people.
    pub shown: String,
}

impl TempFiles {
    /// The temporary files of the session in `store`, none yet.
    pub fn new(store: &dyn SessionFs, fate: TempFilePolicy) -> Result<Self, FsError> {
        Self::in_folder(store, String::new(), fate)
    }

    /// The temporary files of one of several sessions in `store`, in their own folder, none yet.
    pub fn in_folder(store: &dyn SessionFs, folder: String, fate: TempFilePolicy) -> Result<Self, FsError> {
        let store = store.tmpdir()?;
        Ok(Self { inner: Arc::new(TempFilesState { store, folder, fate, names: Mutex::default() }) })
    }

    pub(crate) fn store(&self) -> &dyn SessionFs {
        &*self.inner.store
    }

    /// Registers a new file. Its name cannot be guessed, since folders for temporary files are shared.
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

    /// Removes the registered files, or only forgets them if they are kept. A file that cannot be removed is reported
    /// and stays registered, so that another call tries again; the others are removed all the same.
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
            // It was never created, or is not empty: both are fine.
            self.inner.store.rm(&self.inner.folder, Removal::One).await.ok();
        }
        failed
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // No step under this lock can panic half way.
        self.inner.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
