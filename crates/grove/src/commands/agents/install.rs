//! `grove agents install` and `grove agents uninstall`

use anyhow::{Error, anyhow};
use grove_agents::catalog::InstalledAgent;
use serde_json::json;

use super::tell_host;
use crate::agents::install::prepared::{PrepareError, PreparedInstallation, programs};
use crate::agents::install::{AgentFolderLock, PlanError, users_of};
use crate::cli::{AgentsInstallArgs, AgentsUninstallArgs, Common, ServeArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::confirmation::confirm;
use crate::settings::Settings;
use crate::show::style::{dim, sanitize};

pub(super) fn install(common: &Common, args: &AgentsInstallArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let runtime = command_runtime()?;
    let prepared = runtime.block_on(PreparedInstallation::new(&settings, &args.agent, args.force));
    let prepared = prepared.map_err(|error| match error {
        PrepareError::Unknown(_) | PrepareError::Plan(PlanError::Manual { .. } | PlanError::UnknownKind { .. }) => {
            Failure::NotFound(error.to_string())
        }
        other => Error::from(other).into(),
    })?;
    let (entry, plan) = (prepared.entry.clone(), prepared.plan.clone());
    anstream::eprintln!("{} {} is installed with:", entry.display_name, plan.version);
    for command in plan.commands() {
        anstream::eprintln!("  {}", sanitize(&command));
    }
    if args.dry_run {
        return Ok(());
    }
    if !args.yes {
        confirm("run this?", "nothing was installed")?;
    }
    let progress = |line: &str| anstream::eprintln!("{}", dim(sanitize(line)));
    let (record, probe) = runtime.block_on(prepared.carry_out(&settings, progress))?;
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
