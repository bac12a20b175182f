//! What holds for all processes of one chat's agent.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_core::SessionId;
use grove_work::local_path;
use tokio::sync::mpsc;

use crate::acp::agent::Learned;
use crate::acp::fleet::Fleet;
use crate::acp::program::AcpProgram;
use crate::acp::random;
use crate::acp::serve::Ground;
use crate::agent::*;
use crate::spills::Spills;

/// Where an agent works whose session names no folder, in the shim's.
const NOWHERE: &str = "work";
/// The chat of a process that does not stay.
pub(crate) const BRIEF: &str = "brief";

/// The session of such a process: no other has its name.
pub(crate) fn brief_session(program: &AcpProgram) -> SessionId {
    format!("{}/{}", program.provider, random::tag()).into()
}

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
    pub(super) serves: Serves,
    pub(super) spills: Arc<dyn Spills>,
}

/// What an agent is given that asks for files, terminals or answers of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serves {
    Everything,
    /// It is to answer, and to do nothing else.
    Nothing,
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
            serves: Serves::Everything,
            spills: Arc::clone(&opening.spills),
        })
    }

    /// The same, but that nothing is done for the agent.
    pub(crate) fn serving_nothing(self) -> Self {
        Self { serves: Serves::Nothing, ..self }
    }

    /// A chat for a process that is asked one thing beside this one.
    pub(super) fn aside(&self) -> Self {
        let session = brief_session(&self.program);
        // Nobody listens: nothing is reported where no conversation is open.
        let (reports, _) = mpsc::channel(1);
        Self {
            program: Arc::clone(&self.program),
            fleet: Arc::clone(&self.fleet),
            learned: Arc::clone(&self.learned),
            folder: self.fleet.folder_of(&session, &BRIEF.into()),
            session,
            directories: self.directories.clone(),
            reports: ChatSink::new(BRIEF.into(), reports),
            serves: Serves::Nothing,
            spills: Arc::new(()),
        }
    }

    /// Where the agent works.
    pub(super) fn cwd(&self) -> PathBuf {
        self.directories.first().cloned().unwrap_or_else(|| self.folder.join(NOWHERE))
    }

    /// Makes sure that there are folders to work in. A session that names none gets one.
    pub(super) fn make_room(&self) -> Result<(), AgentError> {
        if let Some(missing) = self.directories.iter().find(|folder| !folder.is_dir()) {
            let what = if missing.exists() { "is not a folder" } else { "does not exist" };
            return Err(AgentError::Start(format!(
                "its working directory {} {what}: create it, or create a session in another folder",
                missing.display()
            )));
        }
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
            spills: Arc::clone(&self.spills),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}
