//! All agent processes of a host: their folders, how many there may be, and which may stop.

mod shims;
mod slots;
mod sweep;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use grove_core::{AgentId, ChatId, SessionId};
use grove_shim::{ShimLimits, ShimProgram, ShimStream};
use sha2::{Digest, Sha256};

pub use self::shims::ShimProcess;
use self::shims::ShimProcesses;
pub(crate) use self::slots::{ProcessSlot, ProcessSlots};
pub(crate) use self::sweep::end_processes_in;
use super::capture::{Capture, CaptureTap};
use super::client_tools::RelayProgram;

/// Options that all processes of a host share.
#[derive(Clone, Debug)]
pub struct ProcessPoolOptions {
    /// The folder of the shims' folders, one for each chat's agent.
    pub folder: PathBuf,
    /// The command that runs a shim.
    pub shim: ShimProgram,
    pub shim_limits: ShimLimits,
    /// The number of processes that may run at a time. One more stops the process that was idle longest, or waits for a
    /// turn to end.
    pub processes: usize,
    /// The time that an agent without a turn is kept running.
    pub idle: Duration,
    /// The time limit for steps that need no model, such as opening a session.
    pub patience: Duration,
    /// The time that an agent may take to answer `initialize`.
    pub start: Duration,
    /// The time that an agent may take to stop a cancelled turn. Then its process is ended.
    pub cancel: Duration,
    /// The file that every frame is written to, without secrets.
    pub capture: Option<PathBuf>,
    /// Grove's own files, which agents never read nor write, wherever they are.
    pub private: Vec<PathBuf>,
    /// The documents that editors have open.
    pub documents: Arc<dyn Documents>,
    /// The command that agents start to reach the tools of clients.
    pub relay: RelayProgram,
}

/// The unsaved documents of connected editors.
#[async_trait]
pub trait Documents: Send + Sync + std::fmt::Debug {
    /// The text of a file as an editor that takes part in the session shows it, if one does.
    async fn text(&self, session: &SessionId, path: &Path) -> Option<String>;

    /// Writes a file through the editor that shows it with unsaved changes. Returns whether there was one.
    ///
    /// `on_disk` is the file's text.
    async fn write(&self, session: &SessionId, path: &Path, on_disk: Option<&str>, text: &str) -> bool;
}

/// No editor is connected.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDocuments;

#[async_trait]
impl Documents for NoDocuments {
    async fn text(&self, _session: &SessionId, _path: &Path) -> Option<String> {
        None
    }

    async fn write(&self, _session: &SessionId, _path: &Path, _on_disk: Option<&str>, _text: &str) -> bool {
        false
    }
}

/// All agent processes of a host.
#[derive(Debug)]
pub struct ProcessPool {
    options: ProcessPoolOptions,
    slots: Arc<ProcessSlots>,
    capture: Option<Capture>,
    shims: ShimProcesses,
    folders: Arc<UsedFolders>,
}

/// The shims' folders that a chat of this host uses, or whose turns go on.
#[derive(Debug, Default)]
struct UsedFolders(Mutex<HashMap<PathBuf, usize>>);

/// The use of a shim's folder by a chat, until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderUse {
    folder: PathBuf,
    folders: Arc<UsedFolders>,
}

impl UsedFolders {
    // Every change of the table is complete before anything can panic, so a poisoned one is still sound.
    fn table(&self) -> MutexGuard<'_, HashMap<PathBuf, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contains(&self, folder: &Path) -> bool {
        self.table().contains_key(folder)
    }
}

impl Drop for FolderUse {
    fn drop(&mut self) {
        let mut table = self.folders.table();
        if let Some(uses) = table.get_mut(&self.folder) {
            *uses -= 1;
            if *uses == 0 {
                table.remove(&self.folder);
            }
        }
    }
}

impl ProcessPool {
    /// If the capture file cannot be opened, that is logged, and the agents work without it.
    pub fn new(options: ProcessPoolOptions) -> Arc<Self> {
        let capture = options.capture.as_ref().and_then(|path| {
            let failed = |error: &_| tracing::warn!(path = %path.display(), %error, "cannot open the capture file");
            Capture::append_to(path).inspect_err(failed).ok()
        });
        let slots = ProcessSlots::new(options.processes);
        Arc::new(Self { options, slots, capture, shims: ShimProcesses::default(), folders: Arc::default() })
    }

    /// Ends the agents of an earlier host and removes their folders, except for these chats, whose turns go on.
    pub async fn sweep(&self, keep: &[(SessionId, ChatId)]) {
        for (session, chat) in keep {
            // Its agent is recognized before the host attaches to it.
            self.shims.note(ShimStream::find(&self.folder_of(session, chat)).await, session);
        }
        // Their sessions may be opened much later.
        for (session, chat) in keep {
            *self.folders.table().entry(self.folder_of(session, chat)).or_default() += 1;
        }
        let folders_to_keep = keep.iter().map(|(session, chat)| self.folder_of(session, chat)).collect();
        sweep::sweep(&self.options.folder, folders_to_keep, self.options.shim_limits.grace).await;
    }

    /// Ends the shims that no chat of this host uses, such as one that was left because the host could not store the end
    /// of its turn in time. Their folders stay: people may read the logs in them.
    pub async fn sweep_unused(&self) {
        sweep::end_unused(&self.options.folder, |folder| self.folders.contains(folder), self.options.shim_limits.grace)
            .await;
    }

    /// Ends the shims of a host that ends, except for these chats, whose turns go on: an agent may still have been
    /// starting, or was left because its turn seemed to run.
    pub async fn sweep_left(&self, keep: &[(SessionId, ChatId)]) {
        let folders_to_keep: HashSet<PathBuf> =
            keep.iter().map(|(session, chat)| self.folder_of(session, chat)).collect();
        sweep::end_unused(
            &self.options.folder,
            |folder| folders_to_keep.contains(folder),
            self.options.shim_limits.grace,
        )
        .await;
    }

    /// Marks a shim's folder as used.
    pub(crate) fn use_folder(&self, folder: PathBuf) -> FolderUse {
        *self.folders.table().entry(folder.clone()).or_default() += 1;
        FolderUse { folder, folders: Arc::clone(&self.folders) }
    }

    /// The number of running agent processes.
    pub fn running(&self) -> usize {
        self.slots.taken()
    }

    /// The shims of the running agents, also those that an earlier host has started.
    pub fn shims(&self) -> Vec<ShimProcess> {
        self.shims.all()
    }

    /// Notes the shim of a session's agent.
    pub(crate) fn note_shim(&self, stream: &ShimStream, session: &SessionId) {
        self.shims.note(stream.shim(), session);
    }

    /// Waits until every frame so far is in the capture file, if there is one.
    pub async fn captured(&self) {
        if let Some(capture) = &self.capture {
            capture.written().await;
        }
    }

    /// The folder of a chat's agent. Its stderr is stored there.
    pub fn folder_of(&self, session: &SessionId, chat: &ChatId) -> PathBuf {
        shim_folder(&self.options.folder, session, chat)
    }

    pub(crate) fn options(&self) -> &ProcessPoolOptions {
        &self.options
    }

    pub(crate) fn slots(&self) -> &Arc<ProcessSlots> {
        &self.slots
    }

    pub(crate) fn tap<'a>(
        &self,
        agent: &AgentId,
        session: &SessionId,
        secrets: impl IntoIterator<Item = &'a String>,
    ) -> Option<CaptureTap> {
        Some(self.capture.as_ref()?.tap(agent.clone(), session.clone(), secrets))
    }
}

/// The bytes of the hash that name a folder: enough to distinguish chats, and short enough for a socket's path.
const NAME_BYTES: usize = 12;

/// The folder of a chat's shim. Ids may hold any character, so it is named by their hash.
pub fn shim_folder(folder: &Path, session: &SessionId, chat: &ChatId) -> PathBuf {
    let mut hash = Sha256::new();
    // With their lengths, so that no other pair gives the same bytes.
    for id in [session.as_str(), chat.as_str()] {
        hash.update((id.len() as u64).to_be_bytes());
        hash.update(id);
    }
    folder.join(hex::encode(&hash.finalize()[..NAME_BYTES]))
}

/// Returns whether a folder's name is one that [`shim_folder`] gives.
fn is_shim_name(name: &str) -> bool {
    name.len() == 2 * NAME_BYTES && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shims_folder_has_a_short_and_harmless_name_of_its_own() {
        let name = |session: &str, chat: &str| {
            let path = shim_folder(Path::new("/f"), &session.into(), &chat.into());
            path.strip_prefix("/f").map(|name| name.display().to_string()).unwrap_or_default()
        };
        assert_eq!(name("s", "main"), name("s", "main"));
        let names = [name("s", "main"), name("sm", "ain"), name("../..", "/"), name("", ""), name("s", "")];
        for (at, one) in names.iter().enumerate() {
            assert!(is_shim_name(one), "{one}");
            assert!(!names[..at].contains(one), "{one}");
        }
        assert!(!is_shim_name("notes") && !is_shim_name(&"g".repeat(24)));
    }
}
