//! `grove agents` and its subcommands

mod install;
pub(crate) mod list;
mod login;
mod sessions;
pub(crate) mod update;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, anyhow};
use grove_agents::acp::{AcpProgram, FileScope};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Failure, command_runtime, print_line};
use crate::agents::config_table::is_variable;
use crate::agents::{AgentConfig, AgentState, check_name, file, offers_of};
use crate::background::find_host;
use crate::cli::{AgentsAddArgs, AgentsArgs, AgentsCommand, AgentsRmArgs, Common, ServeArgs};
use crate::settings::{Settings, environment};
use crate::show::style::sanitize;

pub(crate) fn run(common: &Common, args: &AgentsArgs) -> Result<(), Failure> {
    match &args.command {
        None => list::list(common, &args.list),
        Some(AgentsCommand::Ls(args)) => list::list(common, args),
        Some(AgentsCommand::Show(args)) => list::show(common, args),
        Some(AgentsCommand::Install(args)) => install::install(common, args),
        Some(AgentsCommand::Uninstall(args)) => install::uninstall(common, args),
        Some(AgentsCommand::Login(args)) => login::run(common, args),
        Some(AgentsCommand::Sessions(args)) => sessions::run(common, args),
        Some(AgentsCommand::Update(args)) => update::run(common, args),
        Some(AgentsCommand::Add(args)) => add(common, args),
        Some(AgentsCommand::Rm(args)) => rm(common, args),
    }
}

/// The program of an agent that can be started; the error names the next step otherwise.
pub(crate) fn installed_program(settings: &Settings, agent: &str) -> Result<AcpProgram, Failure> {
    let offers = offers_of(settings, &search_path(), &environment());
    let unknown = || Failure::NotFound(format!("there is no agent {agent:?}: `grove agents ls` lists them"));
    let offer = offers.into_iter().find(|offer| offer.id == agent).ok_or_else(unknown)?;
    match offer.state {
        AgentState::Installed { program, .. } => Ok(*program),
        AgentState::Missing { advice, .. } => {
            Err(Failure::NotFound(format!("{} is not installed: `{advice}`", offer.display_name)))
        }
        AgentState::BuiltIn => {
            Err(anyhow!("{agent} is part of Grove, and has neither a login nor sessions of its own").into())
        }
        AgentState::Disabled => Err(Failure::NotFound(format!(
            "{agent} is turned off by `enabled = false` in {}",
            settings.config_file.display()
        ))),
    }
}

fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

fn add(common: &Common, args: &AgentsAddArgs) -> Result<(), Failure> {
    let settings = Settings::load_to_change(common)?;
    check_name(&args.agent)?;
    let config = AgentConfig {
        command: Some(command(&args.command)?),
        env: args.env.iter().map(|variable| assignment(variable)).collect::<Result<BTreeMap<_, _>, _>>()?,
        pass_env: args.pass_env.clone(),
        name: args.name.clone(),
        description: args.description.clone(),
        auth: args.auth.clone(),
        files: FileScope::default(),
        enabled: true,
    };
    file::add(&settings.config_file, &args.agent, &config)?;
    let added = Settings::load(common, &ServeArgs::default());
    let added = match added {
        Ok(settings) => settings,
        Err(error) => {
            // A table that every command fails on must not stay in the file.
            file::remove(&settings.config_file, &args.agent)?;
            return Err(error.into());
        }
    };
    let found = offers_of(&added, &search_path(), &environment());
    let found = found.iter().find(|offer| offer.id == args.agent);
    if let Some(AgentState::Missing { looked_for, .. }) = found.map(|offer| &offer.state) {
        anstream::eprintln!(
            "{} cannot be run yet: it does not exist, or is not in PATH",
            sanitize(&looked_for.join(", "))
        );
    }
    changed(&settings, args.json, &args.agent, "added")
}

fn rm(common: &Common, args: &AgentsRmArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    if !file::remove(&settings.config_file, &args.agent)? {
        let file = settings.config_file.display();
        let known = match settings.catalog.catalog.get(&args.agent) {
            Some(_) => format!("; `enabled = false` in a table [agents.{}] turns it off", args.agent),
            None => String::new(),
        };
        return Err(Failure::NotFound(format!("{file} has no agent {:?}{known}", args.agent)));
    }
    changed(&settings, args.json, &args.agent, "removed")
}

fn changed(settings: &Settings, as_json: bool, agent: &str, what: &str) -> Result<(), Failure> {
    let file = &settings.config_file;
    let is_host_told = tell_host(settings)?;
    if as_json {
        return Ok(print_line(json!({ what: agent, "file": file, "hostTold": is_host_told }))?);
    }
    let from = if what == "added" { "to" } else { "from" };
    print_line(format!("{what} {agent} {from} {}", file.display()))?;
    if is_host_told {
        anstream::eprintln!("the running host has read the new configuration");
    }
    Ok(())
}

/// Makes a running host read its configuration again. Returns `false` if none is running.
fn tell_host(settings: &Settings) -> Result<bool, Failure> {
    // Process ids are reused: only a process that answers with our token is signalled.
    let Ok(Some(host)) = command_runtime()?.block_on(find_host(&settings.data_dir.value)) else { return Ok(false) };
    let pid = i32::try_from(host.health.pid).ok().and_then(Pid::from_raw);
    Ok(pid.is_some_and(|pid| kill_process(pid, Signal::HUP).is_ok()))
}

/// The command as stored in the file, with an absolute path: the host runs in another folder than this command.
fn command(given: &[String]) -> Result<Vec<String>, Failure> {
    let (program, args) = given.split_first().context("the command is missing")?;
    let program = if program.contains('/') {
        let whole =
            std::path::absolute(Path::new(program)).with_context(|| format!("{program} is not a valid path"))?;
        whole.to_str().with_context(|| format!("{} is not UTF-8", whole.display()))?.to_owned()
    } else {
        program.clone()
    };
    Ok(std::iter::once(program).chain(args.iter().cloned()).collect())
}

fn assignment(variable: &str) -> Result<(String, String), Failure> {
    let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
    if !variable.contains('=') || !is_variable(name) {
        return Err(anyhow!("--env requires NAME=VALUE, but got `{variable}`").into());
    }
    Ok((name.to_owned(), value.to_owned()))
}
