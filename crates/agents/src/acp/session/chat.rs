//! What holds for all processes of one chat's agent.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_core::SessionId;
use grove_work::local_path;

use crate::acp::agent::Learned;
use crate::acp::fleet::Fleet;
use crate::acp::program::AcpProgram;
use crate::acp::serve::Ground;
use crate::agent::*;

/// Where an agent works whose session names no folder, in the shim's.
const NOWHERE: &str = "work";

/// One chat, and whose agent it has.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(super) program: Arc<AcpProgram>,
    pub(super) fleet: Arc<Fleet>,
    pub(super) learned: Arc<Learned>,
    pub(super) session: SessionId,
    /// The shim's folder.
    pub(super) folder: PathBuf,
    pub(super) directories: Vec<PathBuf>,
    pub(super) reports: ChatSink,
}

impl Chat {
    pub(crate) fn new(
        program: Arc<AcpProgram>,
        fleet: Arc<Fleet>,
        learned: Arc<Learned>,
        opening: &OpenSession,
    ) -> Result<Self, AgentError> {
        let paths = opening.working_directories.iter().map(|directory| local_path(directory));
        let directories = paths.collect::<Result<_, _>>().map_err(|error| AgentError::Start(error.to_string()))?;
        Ok(Self {
            folder: fleet.folder_of(&opening.session, &opening.chat),
            program,
            fleet,
            learned,
            session: opening.session.clone(),
            directories,
            reports: opening.reports.clone(),
        })
    }

    /// Where the agent works.
    pub(super) fn cwd(&self) -> PathBuf {
        self.directories.first().cloned().unwrap_or_else(|| self.folder.join(NOWHERE))
    }

    /// Makes sure that there is a folder to work in, where the session names none.
    pub(super) fn make_room(&self) -> Result<(), AgentError> {
        if !self.directories.is_empty() {
            return Ok(());
        }
        let cwd = self.cwd();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&cwd);
        made.map_err(|error| AgentError::Start(format!("{} cannot be made: {error}", cwd.display())))
    }

    /// The other folders in which the agent works.
    pub(super) fn beside(&self) -> &[PathBuf] {
        self.directories.get(1..).unwrap_or_default()
    }

    pub(super) fn ground(&self) -> Ground {
        let options = self.fleet.options();
        let directories = if self.directories.is_empty() { vec![self.cwd()] } else { self.directories.clone() };
        Ground {
            session: self.session.clone(),
            cwd: self.cwd(),
            directories,
            private: options.private.clone(),
            documents: Arc::clone(&options.documents),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}
