//! What holds for all processes of one chat's agent.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_core::SessionId;
use grove_work::local_path;
use tokio::sync::mpsc;

use crate::acp::agent::AgentProfile;
use crate::acp::pool::ProcessPool;
use crate::acp::program::AcpProgram;
use crate::acp::random;
use crate::acp::serve::ServiceScope;
use crate::agent::*;
use crate::spills::SpillStore;

/// Where an agent works whose session names no folder, in the shim's.
const DEFAULT_FOLDER: &str = "work";
/// The chat of a process that does not stay.
pub(crate) const ONE_SHOT_CHAT: &str = "brief";

/// The session of such a process: no other has its name.
pub(crate) fn one_shot_session(program: &AcpProgram) -> SessionId {
    format!("{}/{}", program.provider, random::tag()).into()
}

/// One chat, and whose agent it has.
#[derive(Debug)]
pub(crate) struct AcpChat {
    pub(super) program: Arc<AcpProgram>,
    pub(super) pool: Arc<ProcessPool>,
    pub(super) profile: Arc<AgentProfile>,
    pub(super) session: SessionId,
    /// The shim's folder.
    pub(super) folder: PathBuf,
    pub(super) directories: Vec<PathBuf>,
    pub(super) reports: ChatSink,
    pub(super) service_policy: ServicePolicy,
    pub(super) spills: Arc<dyn SpillStore>,
}

/// What an agent is given that asks for files, terminals or answers of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServicePolicy {
    Everything,
    /// It is to answer, and to do nothing else.
    Nothing,
}

impl AcpChat {
    pub(crate) fn new(
        program: Arc<AcpProgram>,
        pool: Arc<ProcessPool>,
        profile: Arc<AgentProfile>,
        opening: &OpenSession,
    ) -> Result<Self, AgentError> {
        let paths = opening.working_directories.iter().map(|directory| local_path(directory));
        let directories = paths.collect::<Result<_, _>>().map_err(|error| AgentError::Start(error.to_string()))?;
        Ok(Self {
            folder: pool.folder_of(&opening.session, &opening.chat),
            program,
            pool,
            profile,
            session: opening.session.clone(),
            directories,
            reports: opening.reports.clone(),
            service_policy: ServicePolicy::Everything,
            spills: Arc::clone(&opening.spills),
        })
    }

    /// The same, but that nothing is done for the agent.
    pub(crate) fn without_services(self) -> Self {
        Self { service_policy: ServicePolicy::Nothing, ..self }
    }

    /// A chat for a process that is asked one thing beside this one.
    pub(super) fn one_shot_chat(&self) -> Self {
        let session = one_shot_session(&self.program);
        // Nobody listens: nothing is reported where no conversation is open.
        let (reports, _) = mpsc::channel(1);
        Self {
            program: Arc::clone(&self.program),
            pool: Arc::clone(&self.pool),
            profile: Arc::clone(&self.profile),
            folder: self.pool.folder_of(&session, &ONE_SHOT_CHAT.into()),
            session,
            directories: self.directories.clone(),
            reports: ChatSink::new(ONE_SHOT_CHAT.into(), reports),
            service_policy: ServicePolicy::Nothing,
            spills: Arc::new(()),
        }
    }

    /// Where the agent works.
    pub(super) fn cwd(&self) -> PathBuf {
        self.directories.first().cloned().unwrap_or_else(|| self.folder.join(DEFAULT_FOLDER))
    }

    /// Makes sure that there are folders to work in. A session that names none gets one.
    pub(super) fn ensure_folders(&self) -> Result<(), AgentError> {
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
    pub(super) fn additional_folders(&self) -> &[PathBuf] {
        self.directories.get(1..).unwrap_or_default()
    }

    pub(super) fn service_scope(&self) -> ServiceScope {
        let options = self.pool.options();
        let directories = if self.directories.is_empty() { vec![self.cwd()] } else { self.directories.clone() };
        ServiceScope {
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
