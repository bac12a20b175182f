//! `grove agents`, `grove agents add` and `grove agents rm`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use futures_util::StreamExt;
use grove_agents::acp::FileScope;
use grove_agents::catalog;
use grove_wire::ahp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Failure, command_runtime, print_line};
use crate::agents::config_table::is_variable;
use crate::agents::{AgentConfig, AgentSource, AgentState, Offer, check_name, file, offers};
use crate::background::find_host;
use crate::cli::{AgentsAddArgs, AgentsArgs, AgentsCommand, AgentsRmArgs, Common, ConnectArgs, Protocol, ServeArgs};
use crate::connect::HostConnector;
use crate::settings::{Settings, environment};
use crate::show::style::{bold, dim, sanitize};
use crate::show::table::lines;

/// How many programs are asked for their versions at a time.
const ASKED_AT_ONCE: usize = 4;

pub(crate) fn run(common: &Common, args: &AgentsArgs) -> Result<(), Failure> {
    match &args.command {
        None => list(common, args),
        Some(AgentsCommand::Add(args)) => add(common, args),
        Some(AgentsCommand::Rm(args)) => rm(common, args),
    }
}

/// A line of the list: an agent, its version and its state at the host.
struct AgentRow {
    id: String,
    display_name: String,
    description: String,
    /// `None` for an agent that only the host knows.
    offer: Option<Offer>,
    version: Option<String>,
    /// The agent in the host's JSON, if a running host has it.
    at_host: Option<Value>,
}

fn list(common: &Common, args: &AgentsArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let offers = offers(&settings.agents.value, &path(), &environment());
    let (at_host, versions) = command_runtime()?
        .block_on(async { tokio::join!(at_host(common, args.protocol, &settings), versions(&offers)) });
    let at_host = at_host.unwrap_or_else(|failure| {
        // The installed agents can be listed without a host.
        anstream::eprintln!("the running host does not answer, so its agents are not shown: {failure:#}");
        None
    });
    let rows = rows(offers, versions, at_host.as_deref());
    if args.json {
        let agents: Vec<Value> = rows.iter().map(|row| row.json(&settings, at_host.is_some())).collect();
        return Ok(print_line(json!({ "agents": agents }))?);
    }
    show(&rows)?;
    advise(&rows, &settings, at_host.is_some());
    Ok(())
}

fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// The agents of the running host, if there is one. It starts none.
async fn at_host(common: &Common, protocol: Protocol, settings: &Settings) -> Result<Option<Vec<Value>>, Failure> {
    if find_host(&settings.data_dir.value).await?.is_none() {
        return Ok(None);
    }
    let connector = HostConnector::new(common, &ConnectArgs { host: None, no_start: true, protocol })?;
    // Both protocols have the same JSON for an agent.
    let agents = match protocol {
        Protocol::Ahp => match connector.ahp(None).await {
            Ok(client) => {
                let root = client.subscribe(ahp::ROOT).await?;
                root.read(|state| serde_json::to_value(state.root().map(|root| &root.agents)))?
            }
            // The host ended at this moment.
            Err(Failure::NoHost(_)) => return Ok(None),
            Err(failure) => return Err(failure),
        },
        Protocol::V1 => match connector.v1(None).await {
            Ok(client) => {
                let root = client.subscribe(grove_wire::v1::ROOT).await?;
                root.read(|state| serde_json::to_value(state.root().map(|root| &root.agents)))?
            }
            Err(Failure::NoHost(_)) => return Ok(None),
            Err(failure) => return Err(failure),
        },
    };
    Ok(match agents {
        Value::Array(agents) => Some(agents),
        _ => Some(Vec::new()),
    })
}

/// The versions of the installed agents, in the order of the offers.
async fn versions(offers: &[Offer]) -> Vec<Option<String>> {
    let programs: Vec<(Option<PathBuf>, Option<&str>)> = offers
        .iter()
        .map(|offer| match &offer.state {
            AgentState::Installed { program, package } => (Some(program.program.clone()), *package),
            AgentState::BuiltIn | AgentState::Missing { .. } | AgentState::Disabled => (None, None),
        })
        .collect();
    let questions = programs.into_iter().map(|(program, package)| async move {
        match program {
            Some(program) => catalog::version(&program, package).await,
            None => None,
        }
    });
    futures_util::stream::iter(questions).buffered(ASKED_AT_ONCE).collect().await
}

fn rows(offers: Vec<Offer>, versions: Vec<Option<String>>, at_host: Option<&[Value]>) -> Vec<AgentRow> {
    let at_host = at_host.unwrap_or_default();
    let find = |provider: &str| at_host.iter().find(|agent| agent["provider"] == provider).cloned();
    let mut rows: Vec<AgentRow> = offers
        .into_iter()
        .zip(versions)
        .map(|(offer, version)| AgentRow {
            id: offer.id.clone(),
            display_name: offer.display_name.clone(),
            description: offer.description.clone(),
            at_host: find(&offer.id),
            offer: Some(offer),
            version,
        })
        .collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for agent in at_host {
        if rows.iter().all(|row| agent["provider"] != row.id.as_str()) {
            rows.push(AgentRow {
                id: text(&agent["provider"]),
                display_name: text(&agent["displayName"]),
                description: text(&agent["description"]),
                offer: None,
                version: None,
                at_host: Some(agent.clone()),
            });
        }
    }
    rows
}

impl AgentRow {
    fn state(&self) -> Option<&AgentState> {
        self.offer.as_ref().map(|offer| &offer.state)
    }

    /// Returns whether a host that starts now could use the agent.
    fn is_usable(&self) -> bool {
        matches!(self.state(), Some(AgentState::BuiltIn | AgentState::Installed { .. }))
    }

    /// The program and its arguments.
    fn command(&self) -> Option<Vec<String>> {
        let program = self.offer.as_ref()?.program()?;
        let mut command = vec![program.program.display().to_string()];
        command.extend(program.args.iter().cloned());
        Some(command)
    }

    fn json(&self, settings: &Settings, host_runs: bool) -> Value {
        let status = match self.state() {
            None => "host-only",
            Some(AgentState::BuiltIn) => "built-in",
            Some(AgentState::Installed { .. }) => "installed",
            Some(AgentState::Missing { .. }) => "missing",
            Some(AgentState::Disabled) => "disabled",
        };
        let known_from = self.offer.as_ref().map(|offer| match offer.known_from {
            AgentSource::Grove => "grove",
            AgentSource::Catalog => "catalog",
            AgentSource::File => "file",
        });
        let mut json = json!({
            "provider": self.id,
            "displayName": self.display_name,
            "description": self.description,
            "status": status,
            "source": known_from,
            "version": self.version,
            "command": self.command(),
            "default": self.id == settings.default_agent.value,
            "atHost": host_runs.then_some(self.at_host.is_some()),
            "models": self.at_host.as_ref().map_or(&Value::Null, |agent| &agent["models"]),
        });
        if let Some(AgentState::Missing { looked_for, advice }) = self.state() {
            json["lookedFor"] = json!(looked_for);
            json["install"] = json!(advice);
        }
        json
    }

    fn status(&self) -> String {
        match self.state() {
            None => "only at the host".to_owned(),
            Some(AgentState::BuiltIn) => "built in".to_owned(),
            Some(AgentState::Installed { .. }) => match &self.version {
                Some(version) => sanitize(version),
                None => "installed".to_owned(),
            },
            Some(AgentState::Missing { .. }) => "missing".to_owned(),
            Some(AgentState::Disabled) => "turned off".to_owned(),
        }
    }
}

fn show(rows: &[AgentRow]) -> Result<(), Failure> {
    let head = ["AGENT", "NAME", "STATUS", "COMMAND"].map(str::to_owned).to_vec();
    let cells = rows.iter().map(|row| {
        let command = row.command().map(|command| command.join(" ")).unwrap_or_default();
        vec![row.id.clone(), sanitize(&row.display_name), row.status(), sanitize(&command)]
    });
    let table = lines(&std::iter::once(head).chain(cells).collect::<Vec<_>>());
    let mut lines = table.iter();
    if let Some(head) = lines.next() {
        print_line(bold(head))?;
    }
    for (line, row) in lines.zip(rows) {
        if row.is_usable() || row.offer.is_none() {
            print_line(line)?;
        } else {
            print_line(dim(line))?;
        }
        if let Some(AgentState::Missing { advice, .. }) = row.state() {
            print_line(dim(format!("  install: {}", sanitize(advice))))?;
        }
        let models = row.at_host.as_ref().and_then(|agent| agent["models"].as_array()).into_iter().flatten();
        let models: Vec<String> = models.map(|model| sanitize(model["id"].as_str().unwrap_or_default())).collect();
        if !models.is_empty() {
            print_line(dim(format!("  models: {}", models.join(", "))))?;
        }
    }
    Ok(())
}

/// Prints suggestions for the user.
fn advise(rows: &[AgentRow], settings: &Settings, host_runs: bool) {
    let default = &settings.default_agent.value;
    let file = settings.config_file.display();
    match rows.iter().find(|row| row.id == *default) {
        Some(row) if row.is_usable() => anstream::eprintln!(
            "{}",
            dim(format!(
                "`grove run` without --agent uses {default}; `default-agent = \"NAME\"` in {file} changes that"
            ))
        ),
        _ => anstream::eprintln!(
            "default-agent is {} (from {}), which cannot be used: the scripted agent is used instead",
            sanitize(default),
            settings.default_agent.source
        ),
    }
    let late: Vec<&str> = rows
        .iter()
        .filter(|row| host_runs && row.is_usable() != row.at_host.is_some())
        .map(|row| row.id.as_str())
        .collect();
    if !late.is_empty() {
        anstream::eprintln!(
            "the host that is running does not know of {} yet: it looks again when a session asks for one \
             (`grove run --agent NAME`)",
            late.join(", ")
        );
    }
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
    let found = offers(&added.agents.value, &path(), &environment());
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
        let known = match catalog::agent_entry(&args.agent) {
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
