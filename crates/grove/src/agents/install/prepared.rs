//! An installation that is planned and locked, and has not begun: a person sees its commands first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, anyhow};
use grove_agents::acp::{AcpAgent, AcpProgram, AgentProbe};
use grove_agents::catalog::{AgentEntry, InstalledAgent};

use super::{AgentFolderError, AgentFolderLock, InstallPlan, PlanError, run as carry_out};
use crate::agents::one_shot::OneShotPool;
use crate::data_folder;
use crate::settings::{Settings, environment};

/// A planned installation. Dropping it leaves nothing behind.
pub(crate) struct PreparedInstallation {
    pub(crate) entry: Arc<AgentEntry>,
    pub(crate) plan: InstallPlan,
    programs: PathBuf,
    /// `None` once the agent is installed.
    lock: Option<AgentFolderLock>,
}

/// The reason why an agent cannot be installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error("the catalog has no agent {0:?}: `grove agents ls` lists the known ones")]
    Unknown(String),
    #[error("{name} {version} is installed ({}): --force installs it again", .program.display())]
    Installed { name: String, version: String, program: PathBuf },
    #[error(transparent)]
    Folder(#[from] AgentFolderError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("{0:#}")]
    Other(#[from] Error),
}

impl PreparedInstallation {
    /// Plans the installation of an agent of the catalog. With `again`, the same version may be installed already.
    pub(crate) async fn new(settings: &Settings, agent: &str, again: bool) -> Result<Self, PrepareError> {
        let entry = settings.catalog.catalog.get(agent).cloned();
        let entry = entry.ok_or_else(|| PrepareError::Unknown(agent.chars().take(80).collect()))?;
        let programs = programs(settings)?;
        let version = entry.package.version().unwrap_or_default().to_owned();
        let before = InstalledAgent::read(&programs, &entry.id);
        if let Some(before) = before.filter(|before| before.version == version && before.program.is_file() && !again) {
            let name = entry.display_name.clone();
            return Err(PrepareError::Installed { name, version, program: before.program });
        }
        data_folder::make(&settings.data_dir.value)?;
        let lock = AgentFolderLock::take(&programs, &entry.id)?;
        let folder = lock.folder().join(format!("{version}-{}", suffix()?));
        let path = std::env::var_os("PATH").unwrap_or_default();
        match InstallPlan::new(&entry, folder, &path).await {
            Ok(plan) => Ok(Self { entry, plan, programs, lock: Some(lock) }),
            Err(error) => {
                remove_if_empty(lock, &programs, &entry.id);
                Err(error.into())
            }
        }
    }

    /// Runs the installer, asks the installed program for `initialize`, and records the installation.
    pub(crate) async fn carry_out(
        mut self,
        settings: &Settings,
        progress: impl FnMut(&str),
    ) -> Result<(InstalledAgent, AgentProbe), Error> {
        let (program, probe) = self.install_and_try(settings, progress).await?;
        let plan = &self.plan;
        let record = InstalledAgent { program, kind: plan.kind.to_owned(), version: plan.version.clone() };
        record.write(&self.programs, &self.entry.id).context("the installation cannot be recorded")?;
        if let Some(lock) = self.lock.take() {
            lock.remove_other_versions(&plan.folder);
        }
        Ok((record, probe))
    }

    async fn install_and_try(
        &self,
        settings: &Settings,
        progress: impl FnMut(&str),
    ) -> Result<(PathBuf, AgentProbe), Error> {
        let program = carry_out(&self.plan, progress).await?;
        let agent: AcpProgram = self.entry.program(program.clone(), &environment());
        let pool = OneShotPool::new(settings)?;
        let folder = UntriedFolder(Some(&self.plan.folder));
        match AcpAgent::new(agent, pool.pool()).probe().await {
            Ok(probe) => {
                folder.keep();
                Ok((program, probe))
            }
            Err(error) => {
                Err(anyhow!("the installed program does not speak the Agent Client Protocol, and was removed: {error}"))
            }
        }
    }
}

impl Drop for PreparedInstallation {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            remove_if_empty(lock, &self.programs, &self.entry.id);
        }
    }
}

/// The folder of a program that nobody has tried yet. Dropping this removes it.
struct UntriedFolder<'a>(Option<&'a Path>);

impl UntriedFolder<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for UntriedFolder<'_> {
    fn drop(&mut self) {
        if let Some(folder) = self.0 {
            // A rest is removed by the next installation.
            std::fs::remove_dir_all(folder).ok();
        }
    }
}

/// The folder of installed agents, as a full path.
pub(crate) fn programs(settings: &Settings) -> Result<PathBuf, Error> {
    let data_dir = &settings.data_dir.value;
    let data_dir =
        std::path::absolute(data_dir).with_context(|| format!("{} is not a valid path", data_dir.display()))?;
    Ok(data_folder::programs_path(&data_dir))
}

/// Removes the folder of an agent that is not installed after all.
fn remove_if_empty(lock: AgentFolderLock, programs: &Path, agent: &str) {
    if InstalledAgent::read(programs, agent).is_none() {
        // A rest does no harm.
        lock.remove_agent().ok();
    }
}

/// Makes the name of a version's folder unique.
fn suffix() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("the system has no randomness: {error}"))?;
    Ok(hex::encode(bytes))
}
