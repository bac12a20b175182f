//! Handover of a session to another host: its files, and the record that it has left.
//!
//! The mover reads its folder through the session's task, which writes nothing while it answers. Between two answers
//! the session continues as usual, so a stamp of all files shows if they are still those that were read: only then does
//! it leave.

use grove_core::*;
use grove_fs::copy::{self, Inventory, SessionFolder};
use grove_fs::names::RelativeName;
use grove_fs::{Confined, FsError, SessionFs};
use grove_storage::paths;
use grove_storage::session_file;
use grove_storage::store_move::MoveError;

use super::outbox::Outbox;
use super::{MigrateError, SessionTask};
use crate::sequencer::HostStopped;

/// The file that is handed over without the data of this host alone.
const SESSION_FILE: &str = "session.json";

/// A request of a session's mover.
#[derive(Clone, Debug)]
pub enum HandoverRequest {
    Files,
    Read {
        path: String,
        offset: u64,
        length: usize,
    },
    /// The session is at the other host from now on, if its files still match the stamp and the seal, if one is given.
    Leave(RemoteSession, Option<String>),
}

/// The answer to a request for a handover.
#[derive(Clone, Debug)]
pub enum HandoverAnswer {
    Files(Box<HandoverManifest>),
    Piece(Vec<u8>),
    Left,
}

/// The files that a session hands over.
#[derive(Clone, Debug)]
pub struct HandoverManifest {
    pub agent: AgentId,
    pub inventory: Inventory,
    pub moved_to: Option<RemoteSession>,
    pub moved_from: Option<RemoteSession>,
    /// The folder that its agent works in, for the user who is asked for one at the other host.
    pub working_directory: Option<String>,
}

impl SessionTask {
    pub(super) async fn hand_over(
        &mut self,
        request: HandoverRequest,
    ) -> Result<Result<HandoverAnswer, MigrateError>, HostStopped> {
        if !self.persistence.features().may_move {
            return Ok(Err(MigrateError::OfClient));
        }
        match request {
            HandoverRequest::Files => Ok(self.inventory().await.map(|inventory| {
                HandoverAnswer::Files(Box::new(HandoverManifest {
                    agent: self.tip.agent.clone(),
                    inventory,
                    moved_to: self.tip.details.moved_to.clone(),
                    moved_from: self.tip.details.moved_from.clone(),
                    working_directory: self.tip.working_directories.first().cloned(),
                }))
            })),
            HandoverRequest::Read { path, offset, length } => {
                Ok(self.piece(&path, offset, length).await.map(HandoverAnswer::Piece))
            }
            HandoverRequest::Leave(to, seal) => {
                self.leave_host(to, seal).await.map(|left| left.map(|()| HandoverAnswer::Left))
            }
        }
    }

    async fn inventory(&mut self) -> Result<Inventory, MigrateError> {
        self.flush_for_reading().await?;
        let folder = paths::folder(&self.tip.id);
        let found =
            copy::inventory(&SessionFolder { store: self.logs.store().as_ref(), folder: &folder, database: None })
                .await?;
        if !found.not_files.is_empty() {
            return Err(MoveError::NotFiles(found.not_files).into());
        }
        let portable = self.portable().await?;
        Ok(found.with_session_file(&portable))
    }

    /// `session.json` for another host.
    async fn portable(&mut self) -> Result<Vec<u8>, MigrateError> {
        let file = session_file::read_portable(self.logs.store().as_ref(), &self.tip.id).await;
        file.map_err(|error| MigrateError::SessionFile(error.to_string()))
    }

    async fn piece(&mut self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>, MigrateError> {
        let no_file = |_| MigrateError::NoFile(path.to_owned());
        RelativeName::parse(path).map_err(no_file)?;
        if path == SESSION_FILE {
            let file = self.portable().await?;
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
            return Ok(file[start..].iter().copied().take(length).collect());
        }
        let store = self.logs.store();
        let folder = Confined::new(store.as_ref(), &paths::folder(&self.tip.id))?.without_links();
        match folder.read_range(path, offset, length).await {
            Err(error @ FsError::NotFound { .. }) => Err(no_file(error)),
            read => Ok(read?),
        }
    }

    /// Records the new location of the session. It stays here as it was, archived.
    async fn leave_host(
        &mut self,
        to: RemoteSession,
        seal: Option<String>,
    ) -> Result<Result<(), MigrateError>, HostStopped> {
        match self.inventory().await {
            Ok(found) if found.stamp() == to.stamp && seal.is_none_or(|seal| seal == found.seal()) => {}
            Ok(_) => return Ok(Err(MigrateError::Changed)),
            Err(error) => return Ok(Err(error)),
        }
        let mut details = self.tip.details.clone();
        let words = warning::moved(&to);
        if !details.warnings.contains(&words) {
            details.warnings.push(words);
        }
        details.moved_to = Some(to);
        // In one piece: nobody finds it archived without its new location.
        let mut out = Outbox::default();
        let moved = EventReport::Session(SessionEvent::DetailsChanged(Box::new(details)));
        let archived = EventReport::Session(SessionEvent::ArchivedChanged(true));
        for command in [moved, archived] {
            if let Err(reason) = self.accept(command, &mut out) {
                self.send(out).await?;
                return Ok(Err(MigrateError::Refused(reason.into())));
            }
        }
        self.send(out).await?;
        self.finish_publication().await;
        self.save_folder().await;
        Ok(Ok(()))
    }
}
