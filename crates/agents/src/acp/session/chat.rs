//! The data that all processes of one chat's agent share.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_core::SessionId;
use grove_work::local_path;
use tokio::sync::mpsc;

use crate::acp::agent::AgentProfile;
use crate::acp::pool::{FolderUse, ProcessPool};
use crate::acp::program::AcpProgram;
use crate::acp::quirks::{ProgramQuirks, ToolFilterWay};
use crate::acp::random;
use crate::acp::serve::ServiceScope;
use crate::agent::*;
use crate::catalog::HookSupport;
use crate::setup::{AgentSetup, HookAbility, HookMode};
use crate::sink::ChatSink;
use crate::spills::SpillStore;

/// The working folder for a session without folders, inside the shim's folder.
const DEFAULT_FOLDER: &str = "work";
/// The chat id of a one-shot process.
pub(crate) const ONE_SHOT_CHAT: &str = "brief";

/// The session id of a one-shot process, which is unique.
pub(crate) fn one_shot_session(program: &AcpProgram) -> SessionId {
    format!("{}/{}", program.id, random::tag()).into()
}

/// One chat and its agent.
#[derive(Debug)]
pub(crate) struct AcpChat {
    pub(super) program: Arc<AcpProgram>,
    pub(super) pool: Arc<ProcessPool>,
    pub(super) profile: Arc<AgentProfile>,
    pub(super) session: SessionId,
    /// The shim's folder.
    pub(super) folder: PathBuf,
    /// Keeps the shim from being swept.
    _folder_use: FolderUse,
    pub(super) directories: Vec<PathBuf>,
    pub(super) reports: ChatSink,
    pub(super) service_policy: ServicePolicy,
    pub(super) spills: Arc<dyn SpillStore>,
    /// The hooks of the session, if it has any.
    pub(super) hooks: HookMode,
    /// The configuration by the session's creator.
    pub(super) setup: Arc<AgentSetup>,
    pub(super) client_tools: ClientTools,
}

/// The services that an agent gets: files, terminals, answers of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServicePolicy {
    Everything,
    /// It only answers, and gets no services.
    Nothing,
}

/// How a program waits for the hooks of its session.
pub(crate) fn hook_support(program: &AcpProgram) -> HookSupport {
    HookSupport::of(&program.id)
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
        let folder = pool.folder_of(&opening.session, &opening.chat);
        let filter_by_hooks = opening.setup.tool_filter.own_tools
            && ProgramQuirks::of(&program).tool_filter == ToolFilterWay::None
            && hook_support(&program).ability() == HookAbility::EveryCall;
        // A call that the host cannot be asked about is not made.
        let hooks = if filter_by_hooks { HookMode::Strict } else { opening.setup.hooks };
        Ok(Self {
            _folder_use: pool.use_folder(folder.clone()),
            folder,
            program,
            pool,
            profile,
            session: opening.session.clone(),
            directories,
            reports: opening.reports.clone(),
            service_policy: ServicePolicy::Everything,
            spills: Arc::clone(&opening.spills),
            hooks,
            setup: Arc::clone(&opening.setup),
            client_tools: opening.client_tools.clone(),
        })
    }

    /// The same chat without services for the agent.
    pub(crate) fn without_services(self) -> Self {
        Self { service_policy: ServicePolicy::Nothing, hooks: HookMode::None, ..self }
    }

    /// How the agent waits for hooks.
    pub(super) fn hook_support(&self) -> HookSupport {
        hook_support(&self.program)
    }

    /// The party that a permission request of the agent asks: its own hooks have come before.
    pub(super) fn asked_party(&self) -> PromptedParty {
        match self.hook_support() {
            HookSupport::Command(_) if !self.hooks.is_none() => PromptedParty::PersonAfterHooks,
            _ => PromptedParty::Person,
        }
    }

    /// A chat for a one-shot process beside this one.
    pub(super) fn one_shot_chat(&self) -> Self {
        let session = one_shot_session(&self.program);
        // Nobody receives: without an open conversation nothing is reported.
        let (reports, _) = mpsc::channel(1);
        let folder = self.pool.folder_of(&session, &ONE_SHOT_CHAT.into());
        Self {
            program: Arc::clone(&self.program),
            pool: Arc::clone(&self.pool),
            profile: Arc::clone(&self.profile),
            _folder_use: self.pool.use_folder(folder.clone()),
            folder,
            session,
            directories: self.directories.clone(),
            reports: ChatSink::new(ONE_SHOT_CHAT.into(), reports),
            service_policy: ServicePolicy::Nothing,
            spills: Arc::new(()),
            hooks: HookMode::None,
            setup: Arc::default(),
            client_tools: ClientTools::default(),
        }
    }

    /// The agent's working directory.
    pub(super) fn cwd(&self) -> PathBuf {
        self.directories.first().cloned().unwrap_or_else(|| self.folder.join(DEFAULT_FOLDER))
    }

    /// Checks that the working folders exist. A session without folders gets one.
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
        made.map_err(|error| AgentError::Start(format!("cannot create {}: {error}", cwd.display())))
    }

    /// The agent's other working folders.
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
            files: self.program.files,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}
