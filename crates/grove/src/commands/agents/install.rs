//! `grove agents install` and `grove agents uninstall`

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Error, anyhow};
use grove_agents::acp::{AcpAgent, AcpProgram, AgentProbe};
use grove_agents::catalog::{AgentEntry, InstalledAgent};
use serde_json::json;

use super::{search_path, tell_host};
use crate::agents::install::{AgentFolderLock, InstallPlan, PlanError, run as carry_out, users_of};
use crate::agents::one_shot::OneShotPool;
use crate::cli::{AgentsInstallArgs, AgentsUninstallArgs, Common, ServeArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::confirmation::confirm;
use crate::data_folder;
use crate::settings::{Settings, environment};
use crate::show::style::{dim, sanitize};

pub(super) fn install(common: &Common, args: &AgentsInstallArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let entry = known(&settings, &args.agent)?;
    let programs = programs(&settings)?;
    let before = InstalledAgent::read(&programs, &entry.id);
    let wanted = entry.package.version().unwrap_or_default();
    if let Some(before) = before.filter(|before| before.version == wanted && before.program.is_file() && !args.force) {
        let program = before.program.display();
        return Err(
            anyhow!("{} {wanted} is installed ({program}): --force installs it again", entry.display_name).into()
        );
    }
    data_folder::make(&settings.data_dir.value)?;
    let lock = AgentFolderLock::take(&programs, &entry.id).map_err(Error::from)?;
    let runtime = command_runtime()?;
    let folder = lock.folder().join(format!("{wanted}-{}", suffix()?));
    let plan = runtime.block_on(InstallPlan::new(&entry, folder, &search_path()));
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            remove_if_empty(lock, &programs, &entry.id);
            return Err(match error {
                PlanError::Manual { .. } | PlanError::UnknownKind { .. } => Failure::NotFound(error.to_string()),
                other => Error::from(other).into(),
            });
        }
    };
    anstream::eprintln!("{} {} is installed with:", entry.display_name, plan.version);
    for command in plan.commands() {
        anstream::eprintln!("  {}", sanitize(&command));
    }
    if args.dry_run {
        remove_if_empty(lock, &programs, &entry.id);
        return Ok(());
    }
    if !args.yes
        && let Err(refused) = confirm("run this?", "nothing was installed")
    {
        remove_if_empty(lock, &programs, &entry.id);
        return Err(refused);
    }
    let installed = runtime.block_on(install_and_try(&entry, &plan, &settings));
    let (program, probe) = match installed {
        Ok(installed) => installed,
        Err(error) => {
            remove_if_empty(lock, &programs, &entry.id);
            return Err(error.into());
        }
    };
    let record = InstalledAgent { program, kind: plan.kind.to_owned(), version: plan.version.clone() };
    record.write(&programs, &entry.id).context("the installation cannot be recorded")?;
    lock.remove_other_versions(&plan.folder);
    let host_told = tell_host(&settings)?;
    if args.json {
        return Ok(print_line(json!({
            "installed": entry.id, "version": plan.version, "program": record.program, "agentVersion": probe.version,
            "loginMethods": probe.login_methods.iter().map(|way| &way.id).collect::<Vec<_>>(), "hostTold": host_told,
        }))?);
    }
    print_line(format!("installed {} {}: {}", entry.id, plan.version, record.program.display()))?;
    anstream::eprintln!(
        "it speaks the Agent Client Protocol; `grove run --agent {}` uses it, `grove agents login {}` logs in",
        entry.id,
        entry.id
    );
    Ok(())
}

/// Runs the installer, and asks the installed program for `initialize`.
async fn install_and_try(
    entry: &Arc<AgentEntry>,
    plan: &InstallPlan,
    settings: &Settings,
) -> Result<(PathBuf, AgentProbe), Error> {
    let program = carry_out(plan, |line| anstream::eprintln!("{}", dim(sanitize(line)))).await?;
    let agent: AcpProgram = entry.program(program.clone(), &environment());
    let pool = OneShotPool::new(settings)?;
    match AcpAgent::new(agent, pool.pool()).probe().await {
        Ok(probe) => Ok((program, probe)),
        Err(error) => {
            std::fs::remove_dir_all(&plan.folder).ok();
            Err(anyhow!("the installed program does not speak the Agent Client Protocol, and was removed: {error}"))
        }
    }
}

pub(super) fn uninstall(common: &Common, args: &AgentsUninstallArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let programs = programs(&settings)?;
    let agent = &args.agent;
    let installed = InstalledAgent::read(&programs, agent).ok_or_else(|| {
        Failure::NotFound(format!(
            "Grove has not installed an agent {agent:?}: `grove agents show {agent}` tells where it is from"
        ))
    })?;
    let lock = AgentFolderLock::take(&programs, agent).map_err(Error::from)?;
    let users = users_of(lock.folder());
    if !users.is_empty() && !args.force {
        return Err(anyhow!(
            "{agent} is running ({} processes): end its turns with `grove stop --turns`, or add --force",
            users.len()
        )
        .into());
    }
    if !args.yes {
        anstream::eprintln!("{} {} in {}", agent, installed.version, lock.folder().display());
        confirm("remove it?", "nothing was removed")?;
    }
    lock.remove_agent().map_err(Error::from)?;
    let host_told = tell_host(&settings)?;
    if args.json {
        return Ok(print_line(json!({ "uninstalled": agent, "version": installed.version, "hostTold": host_told }))?);
    }
    Ok(print_line(format!("uninstalled {agent} {}", installed.version))?)
}

/// The agent of the catalog with this name.
pub(super) fn known(settings: &Settings, agent: &str) -> Result<Arc<AgentEntry>, Failure> {
    let entry = settings.catalog.catalog.get(agent).cloned();
    entry.ok_or_else(|| {
        Failure::NotFound(format!("the catalog has no agent {agent:?}: `grove agents ls` lists the known ones"))
    })
}

/// The folder of installed agents, as a full path.
fn programs(settings: &Settings) -> Result<PathBuf, Failure> {
    let data_dir = &settings.data_dir.value;
    let data_dir =
        std::path::absolute(data_dir).with_context(|| format!("{} is not a valid path", data_dir.display()))?;
    Ok(data_folder::programs_path(&data_dir))
}

/// Removes the folder of an agent that is not installed after all.
fn remove_if_empty(lock: AgentFolderLock, programs: &std::path::Path, agent: &str) {
    if InstalledAgent::read(programs, agent).is_none() {
        // A rest does no harm.
        lock.remove_agent().ok();
    }
}

/// Makes the name of a version's folder unique.
fn suffix() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("the system has no randomness: {error}"))?;
    Ok(hex::encode(bytes))
}
