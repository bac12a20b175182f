//! Output that is too large for a session's agent goes to temporary files, which the agent can search.
//!
//! They are in the store's folder for temporary files, in a folder named after the session, so that a host can tell
//! which ones an earlier host left. Clients do not see them: output for clients is stored as usual.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use grove_agents::{SpillStore, SpillWriter};
use grove_core::{SessionId, ToolResult};
use grove_fs::spill::{Spill, SpillLimits, SpillOutcome};
use grove_fs::temp_files::{TempFilePolicy, TempFiles};
use grove_fs::workspace::FilesFolder;
use grove_fs::{Confined, FileKind, FsError, Removal, SessionFs};
use grove_storage::paths;
use grove_wire::ahp::embedded;

use crate::config::Config;

/// The search tool that agents are told to use. Each has one of this name.
const TOOL: &str = "grep";
/// The prefix of a session's folder whose files are removed at its end.
const TEMPORARY_PREFIX: &str = "session-";
/// The prefix of a session's folder whose files are kept.
const KEPT_PREFIX: &str = "kept-";
/// The folder for temporary files in a session's own store.
const TEMP: &str = "temp";

/// The temporary files of one session. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct SessionSpills(Arc<SpillsInner>);

#[derive(Debug)]
struct SpillsInner {
    session: SessionId,
    store: Arc<dyn SessionFs>,
    fate: TempFilePolicy,
    limits: SpillLimits,
    /// Created when the first file is needed.
    files: OnceLock<TempFiles>,
    left: LeftoverSpills,
}

/// Says whether an earlier host left some of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftoverSpills {
    Some,
    None,
}

impl SessionSpills {
    pub(crate) fn new(
        session: SessionId,
        store: Arc<dyn SessionFs>,
        left: LeftoverSpills,
        fate: TempFilePolicy,
        config: &Config,
    ) -> Self {
        let limits = SpillLimits { inline: config.limits.spill_bytes, ..SpillLimits::default() };
        Self(Arc::new(SpillsInner { session, store, fate, limits, files: OnceLock::new(), left }))
    }

    /// A result in the form that the agent gets.
    pub(crate) async fn fitting(self, mut result: ToolResult) -> ToolResult {
        if let Some(output) = &result.output
            && output.len() > self.0.limits.inline
            && let Some(files) = self.files()
            && let SpillOutcome::Spilled(notice) = Spill::whole(files, self.0.limits, output.as_bytes(), TOOL).await
        {
            result.output = Some(notice.to_string());
            embedded::without_texts(&mut result);
        }
        result
    }

    /// Says whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        self.0.files.get().is_some()
    }

    /// Removes all of them, unless they are kept: no agent needs them any more.
    ///
    /// Files that an earlier host left of this session are removed as well.
    pub(crate) async fn remove(&self) {
        if let Some(files) = self.0.files.get() {
            for error in files.remove().await {
                tracing::warn!(session = %self.0.session, %error, "a temporary file could not be removed");
            }
        }
        for left in self.left().await {
            remove_folder(&*left, &folder(&self.0.session, TempFilePolicy::Removed)).await;
        }
    }

    /// Folders of earlier hosts in which there may be some.
    async fn left(&self) -> Vec<Arc<dyn SessionFs>> {
        match self.0.left {
            LeftoverSpills::Some => left(&*self.0.store).await,
            LeftoverSpills::None => Vec::new(),
        }
    }

    fn files(&self) -> Option<TempFiles> {
        if let Some(files) = self.0.files.get() {
            return Some(files.clone());
        }
        let made = match self.0.store.session_store(self.0.session.as_str()) {
            Some(own) => TempFiles::new(&*own, self.0.fate),
            None => TempFiles::in_folder(&*self.0.store, folder(&self.0.session, self.0.fate), self.0.fate),
        };
        match made {
            Ok(files) => Some(self.0.files.get_or_init(|| files).clone()),
            Err(error) => {
                tracing::warn!(session = %self.0.session, %error, "temporary files cannot be created");
                None
            }
        }
    }
}

#[async_trait]
impl SpillStore for SessionSpills {
    fn begin(&self) -> Box<dyn SpillWriter> {
        match self.files() {
            Some(files) => Box::new(SessionSpillWriter(Spill::new(files, self.0.limits))),
            // The output for agents is bounded then as well, and says so.
            None => ().begin(),
        }
    }

    async fn read(&self, path: &Path, most: usize) -> Option<Result<Vec<u8>, String>> {
        let path = path.to_str()?;
        let pasted = (self.0.store.clone(), paths::files_folder(&self.0.session, FilesFolder::Files));
        if let Some(own) = self.0.store.session_store(self.0.session.as_str()) {
            return read_own(&*own, path, most).await;
        }
        let own = self.0.store.tmpdir().ok().map(|store| (store, folder(&self.0.session, self.0.fate)));
        let left = self.left().await.into_iter().map(|store| (store, folder(&self.0.session, TempFilePolicy::Removed)));
        for (store, folder) in std::iter::once(pasted).chain(own).chain(left) {
            let Ok(root) = store.location(&folder) else { continue };
            let name = path.strip_prefix(&root).and_then(|rest| rest.strip_prefix(['/', '\\']));
            let (Some(name), Ok(files)) = (name, Confined::new(&*store, &folder)) else { continue };
            return Some(files.read_range(name, 0, most).await.map_err(|error| error.to_string()));
        }
        None
    }
}

/// A pasted or temporary file in a session's own store, by the path that an agent was told.
async fn read_own(store: &dyn SessionFs, path: &str, most: usize) -> Option<Result<Vec<u8>, String>> {
    let root = store.location("").ok()?;
    let inside = path.strip_prefix(&root)?.strip_prefix(['/', '\\'])?.replace('\\', "/");
    let (folder, name) =
        inside.split_once('/').filter(|(folder, _)| [FilesFolder::Files.folder(), TEMP].contains(folder))?;
    let files = Confined::new(store, folder).ok()?;
    Some(files.read_range(name, 0, most).await.map_err(|error| error.to_string()))
}

/// The output of one command.
#[derive(Debug)]
struct SessionSpillWriter(Spill);

#[async_trait]
impl SpillWriter for SessionSpillWriter {
    async fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes).await;
    }

    async fn notice(&mut self) -> Option<String> {
        self.0.notice(TOOL).await.map(|notice| notice.to_string())
    }
}

/// Removes files that earlier hosts left in a store, except for sessions with unfinished work.
///
/// The agents of those may need them. Returns the sessions with files left.
pub(crate) async fn sweep(store: &dyn SessionFs, busy: &HashSet<SessionId>) -> HashSet<SessionId> {
    let mut spared = HashSet::new();
    for left in left(store).await {
        let entries = left.readdir_with_types("").await.unwrap_or_default();
        for entry in entries.into_iter().filter(|entry| entry.kind == FileKind::Folder) {
            let Some(session) = entry.name.strip_prefix(TEMPORARY_PREFIX).map(SessionId::from) else { continue };
            if busy.contains(&session) {
                spared.insert(session);
            } else {
                remove_folder(&*left, &entry.name).await;
            }
        }
    }
    spared
}

async fn left(store: &dyn SessionFs) -> Vec<Arc<dyn SessionFs>> {
    store.leftover_tmpdirs().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "temporary files of an earlier host cannot be listed");
        Vec::new()
    })
}

async fn remove_folder(store: &dyn SessionFs, folder: &str) {
    match store.rm(folder, Removal::Everything).await {
        Ok(()) | Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => {}
        Err(error) => tracing::warn!(folder, %error, "temporary files of an earlier host could not be removed"),
    }
}

/// A session's folder among the temporary files.
fn folder(session: &SessionId, fate: TempFilePolicy) -> String {
    match fate {
        TempFilePolicy::Removed => format!("{TEMPORARY_PREFIX}{session}"),
        TempFilePolicy::Kept => format!("{KEPT_PREFIX}{session}"),
    }
}
