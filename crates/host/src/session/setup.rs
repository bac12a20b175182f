//! The setup of a session: what its creator configured for the agent, kept in a file of its own.
//!
//! It may hold secrets, so neither the state nor an event has it. It is read when an agent starts, and stays in memory.

use std::sync::Arc;

use grove_agents::setup::{AgentSetup, SetupChange, SetupRefusal};
use grove_core::{ChatEvent, EventReport, SessionId, StoreName};
use grove_fs::{FsError, SessionFs};
use grove_storage::{Stores, setup_file};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::{Outbox, SessionTask};
use crate::sequencer::HostStopped;

/// The version of the file's format.
const VERSION: u32 = 1;

/// The setup of a session. Clones share what was read.
#[derive(Clone, Debug)]
pub(crate) struct SessionSetup {
    fs: Arc<dyn SessionFs>,
    session: SessionId,
    keeper: SetupKeeper,
    known: Arc<OnceCell<Arc<AgentSetup>>>,
}

/// The keeper of a session's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupKeeper {
    Host,
    /// It keeps the file, but does not decide which programs run on this machine.
    StorageClient,
}

/// The file, `setup.json`.
#[derive(Serialize, Deserialize)]
struct SetupFile {
    version: u32,
    #[serde(flatten)]
    setup: AgentSetup,
}

/// The reason why a setup cannot be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SetupFileError {
    #[error("the setup of the session cannot be used: {0}")]
    Fs(#[from] FsError),
    #[error("setup.json of the session cannot be read: {0}; resume the session with its setup to replace the file")]
    Format(String),
    #[error("setup.json of the session is of version {0}, and this Grove knows version {VERSION}: use a newer Grove")]
    Version(u32),
}

/// The reason why a setup does not change.
#[derive(Debug, thiserror::Error)]
pub enum SetupChangeError {
    #[error(transparent)]
    Refused(#[from] SetupRefusal),
    #[error(transparent)]
    File(#[from] SetupFileError),
}

impl SessionSetup {
    /// The setup of a session that may have a file.
    pub(crate) fn stored(fs: Arc<dyn SessionFs>, session: SessionId, keeper: SetupKeeper) -> Self {
        Self { fs, session, keeper, known: Arc::default() }
    }

    /// The same session with this setup, without writing it.
    pub(crate) fn with(self, setup: Arc<AgentSetup>) -> Self {
        Self { known: Arc::new(OnceCell::new_with(Some(setup))), ..self }
    }

    /// The setup, which is read the first time.
    pub(crate) async fn get(&self) -> Result<Arc<AgentSetup>, SetupFileError> {
        self.known.get_or_try_init(|| self.read()).await.cloned()
    }

    async fn read(&self) -> Result<Arc<AgentSetup>, SetupFileError> {
        let Some(bytes) = setup_file::read(self.fs.as_ref(), &self.session).await? else { return Ok(Arc::default()) };
        let format = |error: serde_json::Error| SetupFileError::Format(without_content(&error));
        let SetupFile { version, mut setup } = serde_json::from_slice(&bytes).map_err(format)?;
        if version > VERSION {
            return Err(SetupFileError::Version(version));
        }
        if self.keeper == SetupKeeper::StorageClient {
            setup.mcp_servers.clear();
        }
        Ok(Arc::new(setup))
    }

    /// Writes the setup that a session is created with.
    pub(crate) async fn write(&self) -> Result<(), SetupFileError> {
        let setup = self.get().await?;
        if setup.is_empty() {
            return Ok(setup_file::remove(self.fs.as_ref(), &self.session).await?);
        }
        let file = SetupFile { version: VERSION, setup: AgentSetup::clone(&setup) };
        let bytes = serde_json::to_vec_pretty(&file).map_err(|error| SetupFileError::Format(error.to_string()))?;
        Ok(setup_file::write(self.fs.as_ref(), &self.session, &bytes).await?)
    }

    /// Removes the file: the session is gone, or was never created.
    pub(crate) async fn remove(&self) {
        let known = self.known.get().cloned();
        let setup = match (known, self.keeper) {
            (Some(setup), _) => Ok(setup),
            (None, SetupKeeper::Host) => self.get().await,
            // It removes the folder itself.
            (None, SetupKeeper::StorageClient) => return,
        };
        if setup.is_ok_and(|setup| setup.is_empty()) {
            return;
        }
        if let Err(error) = setup_file::remove(self.fs.as_ref(), &self.session).await {
            tracing::warn!(session = %self.session, %error, "the setup of a session that is gone could not be removed");
        }
    }

    /// Goes on in another store, where the file was copied.
    pub(crate) fn move_to(&mut self, fs: Arc<dyn SessionFs>) {
        self.fs = fs;
    }
}

/// The parts of a setup that a change has changed.
enum ChangedSetup {
    Nothing,
    /// The system message, and maybe others.
    MessageToo,
    Others,
}

impl SetupKeeper {
    /// The keeper of the files in a store.
    pub(crate) fn of(stores: &Stores, store: &StoreName) -> Self {
        match stores.is_client_stored(store) {
            true => SetupKeeper::StorageClient,
            false => SetupKeeper::Host,
        }
    }
}

/// The place of an error in the file, without words from the file.
fn without_content(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

impl SessionTask {
    /// Changes the setup. Idle agents start again with it before their next turn; a running turn finishes first.
    pub(super) async fn change_setup(
        &mut self,
        change: SetupChange,
    ) -> Result<Result<(), SetupChangeError>, HostStopped> {
        match self.write_setup(change).await {
            Ok(ChangedSetup::MessageToo) => self.forget_conversations().await?,
            Ok(ChangedSetup::Others) => {}
            Ok(ChangedSetup::Nothing) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
        self.agents.setup_changed(self.session_context.env.spawn.as_ref());
        Ok(Ok(()))
    }

    /// Has the agents begin new conversations, which are told the earlier ones: a new system message reaches no old one.
    async fn forget_conversations(&mut self) -> Result<(), HostStopped> {
        let mut out = Outbox::default();
        for chat in self.tip.chats.iter().map(|chat| chat.id.clone()).collect::<Vec<_>>() {
            let event = ChatEvent::AgentSessionChanged(None);
            self.accept(EventReport::Chat { chat, event }, &mut out).ok();
        }
        self.send(out).await
    }

    async fn write_setup(&mut self, change: SetupChange) -> Result<ChangedSetup, SetupChangeError> {
        let before = match self.setup.get().await {
            // The new setup takes the place of a file that says nothing.
            Err(SetupFileError::Format(_)) => Arc::default(),
            before => before?,
        };
        let offered = self.tip.active_clients.iter().flat_map(|client| &client.tools).map(|tool| tool.name.clone());
        let offered: Vec<String> = offered.chain(change.client_tools.iter().cloned()).collect();
        let after = before.changed(change);
        if after == *before {
            return Ok(ChangedSetup::Nothing);
        }
        let agent = self.agents.agent();
        let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
        after.check(self.tip.agent.as_str(), &agent.abilities(), &offered)?;
        let is_message_new = after.instructions() != before.instructions();
        let changed = self.setup.clone().with(Arc::new(after));
        changed.write().await?;
        self.setup = changed;
        Ok(if is_message_new { ChangedSetup::MessageToo } else { ChangedSetup::Others })
    }
}
