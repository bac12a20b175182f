//! One save of a session to its storage client.

use std::collections::HashSet;

use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_storage::ClientStorageRegister;
use grove_storage::chat_log::{ChatLogError, LoggedVerdict};
use grove_storage::paths;
use grove_storage::session_file::{self, Disposition};
use grove_tree::LogError;

use crate::session::logs::ChatLogs;
use crate::session::workspace::{ManifestFacts, put_manifest};

/// The parts of a session that must be saved before an event is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SaveRequirement {
    log: bool,
    file: bool,
}

impl SaveRequirement {
    const LOG: Self = Self { log: true, file: false };
    pub(super) const FILE: Self = Self { log: false, file: true };
    pub(super) const ALL: Self = Self { log: true, file: true };

    pub(super) fn is_of_log(self) -> bool {
        self.log
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { log: self.log || other.log, file: self.file || other.file }
    }

    /// The requirement of an event.
    pub(super) fn of(event: &Event) -> Option<Self> {
        match event.change.class().saved {
            SaveTarget::None => None,
            SaveTarget::SessionFile => Some(Self::FILE),
            SaveTarget::Log | SaveTarget::LogLater => Some(Self::LOG),
        }
    }
}

/// A session to be saved by its storage client.
pub(super) struct SaveRequest {
    pub(super) session: Session,
    pub(super) seq: u64,
    pub(super) need: SaveRequirement,
    pub(super) logs: ChatLogs,
    /// Chats whose logs are being copied.
    pub(super) unmade: HashSet<ChatId>,
    pub(super) permissions: Vec<(ChatId, LoggedVerdict)>,
    /// The ended turns that the register does not count yet.
    pub(super) ended: u64,
    /// The last save failed: the storage client may have done it all the same, or may still do it.
    pub(super) is_unsure: bool,
    pub(super) manifest: Option<ManifestUpdate>,
    pub(super) register: ClientStorageRegister,
}

/// The wanted manifest, and the one that was last written.
pub(in crate::session) struct ManifestUpdate {
    pub(in crate::session) facts: ManifestFacts,
    pub(in crate::session) written: Option<ManifestFacts>,
}

/// The result of a save.
pub(in crate::session) struct SaveOutcome {
    pub(super) logs: ChatLogs,
    /// The number of entries outside turns of each chat that the logs have now.
    pub(super) entries: Vec<(ChatId, usize)>,
    /// The manifest that is written now.
    pub(super) manifest: Option<ManifestFacts>,
    pub(super) result: Result<(), SaveError>,
}

/// The reason why a session could not be saved.
#[derive(Debug)]
pub(super) struct SaveError {
    /// For clients.
    pub(super) reason: String,
    /// For this host's own log, which must not contain what the session is about.
    pub(super) code: &'static str,
}

impl From<ChatLogError> for SaveError {
    fn from(error: ChatLogError) -> Self {
        let code = match &error {
            ChatLogError::Fs(error) | ChatLogError::Log(LogError::Fs(error)) => error.code(),
            ChatLogError::Log(_) | ChatLogError::Append(_) => "UNKNOWN",
        };
        Self { reason: error.to_string(), code }
    }
}

impl From<FsError> for SaveError {
    fn from(error: FsError) -> Self {
        Self { reason: error.to_string(), code: error.code() }
    }
}

impl SaveRequest {
    pub(super) async fn run(mut self) -> SaveOutcome {
        let result = self.save().await;
        let manifest = match result.is_ok() {
            true => self.save_manifest().await,
            false => None,
        };
        let entries = self.session.chats.iter().map(|chat| (chat.id.clone(), chat.unlogged.len())).collect();
        SaveOutcome { logs: self.logs, entries, manifest, result }
    }

    async fn save(&mut self) -> Result<(), SaveError> {
        let (session, store) = (&self.session, self.logs.store());
        if self.need.log {
            for chat in session.chats.iter().filter(|chat| !self.unmade.contains(&chat.id)) {
                if self.is_unsure {
                    settled(store.as_ref(), &paths::log(&session.id, &chat.id)).await?;
                }
                let log = self.logs.log(&chat.id);
                let permissions = self.permissions.iter().filter(|(of, _)| *of == chat.id).map(|(_, one)| one);
                log.record(session, permissions).await?;
                log.catch_up(session).await?;
            }
        }
        if self.need.file {
            session_file::write_any(store.as_ref(), session, self.seq, Disposition::Kept).await?;
        }
        let times = (session.created_at, session.modified_at);
        if let Err(error) = self.register.note(&session.store, &session.id, times, self.ended).await {
            tracing::warn!(
                session = %session.id, %error,
                "the register of client-stored sessions could not be written"
            );
        }
        Ok(())
    }

    /// Saves the manifest. A failure costs nothing else: it is retried with the next change.
    async fn save_manifest(&mut self) -> Option<ManifestFacts> {
        let ManifestUpdate { facts, written } = self.manifest.take()?;
        if written.as_ref() == Some(&facts) {
            return written;
        }
        match put_manifest(self.logs.store().as_ref(), &paths::folder(&self.session.id), &facts).await {
            Ok(()) => Some(facts),
            Err(_) => {
                tracing::warn!(
                    session = %self.session.id,
                    "the manifest of a client-stored session could not be written"
                );
                written
            }
        }
    }
}

/// Waits until the storage client has answered earlier calls: a call that seemed lost may still arrive.
async fn settled(store: &dyn SessionFs, path: &str) -> Result<(), FsError> {
    match store.sync(path).await {
        Err(FsError::NotFound { .. }) => Ok(()),
        settled => settled,
    }
}
