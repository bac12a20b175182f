//! The session hub's state on disk: the chosen provider, the last open session, and the trust of folders.
//!
//! Trusted folders of this host are in the host's own list ([`FolderTrust`]); only distrusted ones are stored here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use grove_host::FolderTrust;
use grove_sessions::providers::hosts::THIS_HOST;
use grove_sessions::{PersistentState, ProviderId, StateChange, StateStore, StateStoreError, Trust, Uri};
use grove_work::local_path;

use crate::data_folder::write_private;

/// The file in the data folder.
const FILE: &str = "sessions-layer.json";
/// The maximum size of the file. The limits of its contents are far below.
const MAX_BYTES: u64 = 16 << 20;

/// Stores the state in a file that only its owner can read.
///
/// The trust of a folder is written before it takes effect, everything else in the background.
pub(crate) struct FileMemory {
    file: Arc<MemoryFile>,
    trust: Arc<dyn FolderTrust>,
}

struct MemoryFile {
    path: PathBuf,
    remembered: Mutex<PersistentState>,
    /// Held while the file is written, so that newer state is written later.
    writing: Mutex<()>,
    /// A write is pending.
    due: AtomicBool,
}

impl FileMemory {
    /// Reads the state of a data folder. An unreadable file is logged and treated as missing.
    pub(crate) fn open(data_dir: &Path, trust: Arc<dyn FolderTrust>) -> Self {
        let path = data_dir.join(FILE);
        let remembered = read(&path).unwrap_or_else(|error| {
            tracing::warn!("cannot read the state of the session list: {error:#}");
            PersistentState::default()
        });
        let file = MemoryFile {
            path,
            remembered: Mutex::new(remembered),
            writing: Mutex::default(),
            due: AtomicBool::new(false),
        };
        Self { file: Arc::new(file), trust }
    }

    /// Returns whether a folder is in the trust list of this host.
    fn is_listed(&self, provider: &ProviderId, folder: &Uri) -> bool {
        provider.as_str() == THIS_HOST && local_path(folder.as_str()).is_ok_and(|path| self.trust.is_trusted(&path))
    }

    /// Removes a folder from the host's trust list. If a parent is trusted, the entry here takes precedence.
    fn unlist(&self, folder: &Uri) -> Result<(), StateStoreError> {
        // Only folders of this machine are in the list.
        let Ok(path) = local_path(folder.as_str()) else { return Ok(()) };
        self.trust.distrust(&path).map_err(|error| StateStoreError::Failed(error.into()))
    }

    /// Adds a folder to the host's trust list.
    fn list(&self, provider: &ProviderId, folder: &Uri) -> Result<(), StateStoreError> {
        if self.is_listed(provider, folder) {
            return Ok(());
        }
        let path = local_path(folder.as_str()).map_err(|error| StateStoreError::Failed(error.into()))?;
        self.trust.trust(&path).map_err(|error| StateStoreError::Failed(error.into()))
    }
}

impl MemoryFile {
    fn remembered(&self) -> MutexGuard<'_, PersistentState> {
        // No panic leaves the state half changed.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state. Returns whether it differs.
    fn apply(
        &self,
        change: impl FnOnce(&mut PersistentState) -> Result<(), StateStoreError>,
    ) -> Result<bool, StateStoreError> {
        let mut remembered = self.remembered();
        let before = remembered.clone();
        change(&mut remembered)?;
        Ok(*remembered != before)
    }

    fn write(&self) -> anyhow::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_string(&*self.remembered())?;
        write_private(&self.path, &text)
    }

    /// Writes in the background. A pending write covers later changes, too.
    fn write_behind(self: &Arc<Self>) {
        if self.due.swap(true, Ordering::AcqRel) {
            return;
        }
        let file = self.clone();
        let write = move || {
            file.due.store(false, Ordering::Release);
            if let Err(error) = file.write() {
                tracing::warn!("cannot write the state of the session list: {error:#}");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(write)),
            Err(_) => write(),
        }
    }
}

impl StateStore for FileMemory {
    fn recall(&self) -> Result<PersistentState, StateStoreError> {
        Ok(self.file.remembered().clone())
    }

    fn remember(&self, thing: StateChange) -> Result<(), StateStoreError> {
        let is_answer = matches!(thing, StateChange::Trust { .. });
        let is_new = match thing {
            StateChange::Trust { provider, folder, answer: Trust::Trusted } if provider.as_str() == THIS_HOST => {
                self.list(&provider, &folder)?;
                // Earlier answers about the folder are removed.
                self.file.apply(|remembered| {
                    remembered.trust.get_mut(&provider).map(|answers| answers.remove(&folder));
                    Ok(())
                })?
            }
            thing => {
                if let StateChange::Trust { provider, folder, answer: Trust::Refused } = &thing
                    && provider.as_str() == THIS_HOST
                {
                    self.unlist(folder)?;
                }
                self.file.apply(|remembered| remembered.apply(thing))?
            }
        };
        match (is_new, is_answer) {
            (false, _) => Ok(()),
            (true, true) => self.file.write().map_err(|error| StateStoreError::Failed(error.into())),
            (true, false) => {
                self.file.write_behind();
                Ok(())
            }
        }
    }
}

impl fmt::Debug for FileMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileMemory").field("path", &self.file.path).finish_non_exhaustive()
    }
}

fn read(path: &Path) -> anyhow::Result<PersistentState> {
    let size = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(PersistentState::default()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    anyhow::ensure!(size <= MAX_BYTES, "{} is larger than {MAX_BYTES} bytes: remove it", path.display());
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged: remove it", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::trust::TrustedFolders;

    fn open(data_dir: &Path) -> FileMemory {
        FileMemory::open(data_dir, Arc::new(TrustedFolders::of(data_dir)))
    }

    fn trust_change(provider: &str, folder: &str, answer: Trust) -> StateChange {
        StateChange::Trust { provider: ProviderId::new(provider).unwrap(), folder: folder.into(), answer }
    }

    #[test]
    fn trusted_folders_of_this_host_are_in_the_hosts_one_list() {
        let data = tempfile::tempdir().unwrap();
        let memory = open(data.path());
        memory.remember(trust_change(THIS_HOST, "file:///w/a", Trust::Refused)).unwrap();
        memory.remember(trust_change(THIS_HOST, "file:///w/a", Trust::Trusted)).unwrap();
        memory.remember(trust_change("agenthost-box", "file:///w/b", Trust::Trusted)).unwrap();
        let listed = TrustedFolders::of(data.path());
        assert!(listed.is_trusted(Path::new("/w/a")) && !listed.is_trusted(Path::new("/w/b")));
        let later = open(data.path());
        let (this, other) = (ProviderId::new(THIS_HOST).unwrap(), ProviderId::new("agenthost-box").unwrap());
        let remembered = later.recall().unwrap();
        assert_eq!(remembered.trust(&this, &"file:///w/a".into()), None);
        assert_eq!(remembered.trust(&other, &"file:///w/b".into()), Some(Trust::Trusted));
        assert!(later.is_listed(&this, &"file:///w/a/below".into()));
        assert!(!later.is_listed(&other, &"file:///w/a".into()));
    }

    #[test]
    fn trust_that_is_taken_back_is_gone_from_the_hosts_list_and_does_not_come_back() {
        let data = tempfile::tempdir().unwrap();
        let memory = open(data.path());
        let this = ProviderId::new(THIS_HOST).unwrap();
        memory.remember(trust_change(THIS_HOST, "file:///w/a", Trust::Trusted)).unwrap();
        memory.remember(trust_change(THIS_HOST, "file:///w/a", Trust::Refused)).unwrap();
        assert!(!TrustedFolders::of(data.path()).is_trusted(Path::new("/w/a")));
        assert!(!memory.is_listed(&this, &"file:///w/a".into()));
        assert_eq!(open(data.path()).recall().unwrap().trust(&this, &"file:///w/a".into()), Some(Trust::Refused));
    }

    #[test]
    fn what_is_remembered_is_its_owners_alone_and_damage_costs_only_it() {
        let data = tempfile::tempdir().unwrap();
        let chosen = ProviderId::new("p").unwrap();
        open(data.path()).remember(StateChange::ActiveProvider(chosen.clone())).unwrap();
        let path = data.path().join(FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(open(data.path()).recall().unwrap().active_provider, Some(chosen));
        std::fs::write(&path, "{").unwrap();
        assert_eq!(open(data.path()).recall().unwrap(), PersistentState::default());
    }
}
