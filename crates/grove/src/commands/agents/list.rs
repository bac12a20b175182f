//! `grove agents`, `grove agents ls` and `grove agents show`

use grove_agents::catalog::AgentEntry;
use grove_wire::ahp;
use serde_json::{Value, json};

use super::search_path;
use crate::agents::versions::{is_older, versions};
use crate::agents::{AgentSource, AgentState, InstalledBy, Offer, install_advice, offers_of};
use crate::background::find_host;
use crate::cli::{AgentsListArgs, AgentsShowArgs, Common, ConnectArgs, Protocol, ServeArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::connect::HostConnector;
use crate::settings::{Settings, environment};
use crate::show::style::{bold, dim, sanitize};
use crate::show::table::lines;

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

/// The rows of all agents, and whether a host runs.
struct AgentRows {
    rows: Vec<AgentRow>,
    host_runs: bool,
}

fn read_rows(common: &Common, protocol: Protocol, settings: &Settings) -> Result<AgentRows, Failure> {
    if let Some(problem) = &settings.catalog.problem {
        anstream::eprintln!("{}", sanitize(problem));
    }
    let offers = offers_of(settings, &search_path(), &environment());
    let (at_host, versions) =
        command_runtime()?.block_on(async { tokio::join!(at_host(common, protocol, settings), versions(&offers)) });
    let at_host = at_host.unwrap_or_else(|failure| {
        // The installed agents can be listed without a host.
        anstream::eprintln!("the running host does not answer, so its agents are not shown: {failure:#}");
        None
    });
    Ok(AgentRows { rows: rows(offers, versions, at_host.as_deref()), host_runs: at_host.is_some() })
}

pub(super) fn list(common: &Common, args: &AgentsListArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let AgentRows { rows, host_runs } = read_rows(common, args.protocol, &settings)?;
    if args.json {
        let agents: Vec<Value> = rows.iter().map(|row| row.json(&settings, host_runs)).collect();
        return Ok(print_line(json!({ "agents": agents }))?);
    }
    print_table(&rows)?;
    advise(&rows, &settings, host_runs);
    Ok(())
}

/// An installed agent, for a report on the state of everything.
pub(crate) struct AgentHealth {
    pub(crate) id: String,
    /// `None`: it does not tell.
    pub(crate) version: Option<String>,
    /// The version that the catalog knows, and the next step to install it, if that is newer.
    pub(crate) newer: Option<(String, String)>,
}

/// The installed agents.
pub(crate) async fn installed_agents(settings: &Settings) -> Vec<AgentHealth> {
    let offers = offers_of(settings, &search_path(), &environment());
    let versions = versions(&offers).await;
    let installed = rows(offers, versions, None).into_iter();
    let installed = installed.filter(|row| matches!(row.state(), Some(AgentState::Installed { .. })));
    installed
        .map(|row| {
            let entry = row.entry().filter(|_| row.is_outdated());
            let newer = entry.and_then(|entry| Some((entry.package.version()?.to_owned(), install_advice(entry))));
            AgentHealth { newer, id: row.id, version: row.version }
        })
        .collect()
}

pub(super) fn show(common: &Common, args: &AgentsShowArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let AgentRows { rows, host_runs } = read_rows(common, args.list.protocol, &settings)?;
    let unknown = || Failure::NotFound(format!("there is no agent {:?}: `grove agents` lists them", args.agent));
    let row = rows.iter().find(|row| row.id == args.agent).ok_or_else(unknown)?;
    if args.list.json {
        return Ok(print_line(row.json(&settings, host_runs))?);
    }
    for (name, value) in row.facts() {
        print_line(format!("{}  {}", bold(format!("{name:<12}")), sanitize(&value)))?;
    }
    Ok(())
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
        if let Some(AgentState::Installed { by, .. }) = self.state() {
            json["installedBy"] = json!(installer(by));
        }
        if let Some(entry) = self.entry() {
            let package = &entry.package;
            json["package"] = json!({
                "kind": package.kind(), "name": package_name(entry), "version": package.version(),
            });
            json["outdated"] = json!(self.is_outdated());
            json["logIn"] = json!(entry.log_in);
            json["registryId"] = json!(entry.registry_id);
            json["website"] = json!(entry.website);
            json["notes"] = json!(entry.notes);
        }
        json
    }

    fn entry(&self) -> Option<&AgentEntry> {
        self.offer.as_ref()?.entry.as_deref()
    }

    /// Returns whether the catalog knows a newer version than the installed one.
    fn is_outdated(&self) -> bool {
        let known = self.entry().and_then(|entry| entry.package.version());
        let installed = self.version.as_deref();
        installed.zip(known).is_some_and(|(installed, known)| is_older(installed, known))
    }

    /// The facts for a person, each with its name.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("agent", self.id.clone()),
            ("name", self.display_name.clone()),
            ("description", self.description.clone()),
            ("status", self.status()),
        ];
        let mut fact = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
        fact("command", self.command().map(|command| command.join(" ")));
        if let Some(AgentState::Installed { by, .. }) = self.state() {
            let installer = match by {
                InstalledBy::Grove { .. } => format!("Grove (`grove agents uninstall {}` removes it)", self.id),
                InstalledBy::Path => "found in PATH".to_owned(),
                InstalledBy::Command => "`command` in grove.toml".to_owned(),
            };
            fact("installed by", Some(installer));
        }
        if let Some(entry) = self.entry() {
            let package = [Some(entry.package.kind()), package_name(entry), entry.package.version()];
            fact("package", Some(package.into_iter().flatten().collect::<Vec<_>>().join(" ")));
            fact("install", self.is_installable().then(|| install_advice(entry)));
            fact("log in", Some(entry.log_in.clone()));
            fact("website", entry.website.clone());
            entry.notes.iter().for_each(|note| fact("note", Some(note.clone())));
        }
        facts
    }

    /// Returns whether installing it would bring something new.
    fn is_installable(&self) -> bool {
        self.is_outdated() || matches!(self.state(), Some(AgentState::Missing { .. }))
    }

    fn status(&self) -> String {
        match self.state() {
            None => "only at the host".to_owned(),
            Some(AgentState::BuiltIn) => "built in".to_owned(),
            Some(AgentState::Installed { .. }) => match &self.version {
                Some(version) if self.is_outdated() => format!("{} (old)", sanitize(version)),
                Some(version) => sanitize(version),
                None => "installed".to_owned(),
            },
            Some(AgentState::Missing { .. }) => "missing".to_owned(),
            Some(AgentState::Disabled) => "turned off".to_owned(),
        }
    }
}

fn print_table(rows: &[AgentRow]) -> Result<(), Failure> {
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
        } else if let Some((entry, version)) = row.entry().zip(row.entry().and_then(|entry| entry.package.version()))
            && row.is_outdated()
        {
            print_line(dim(format!("  {version} is known: {}", sanitize(&install_advice(entry)))))?;
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

/// The name of an installer for programs.
pub(crate) fn installer(by: &InstalledBy) -> &'static str {
    match by {
        InstalledBy::Grove { .. } => "grove",
        InstalledBy::Path => "path",
        InstalledBy::Command => "command",
    }
}

/// The name of a package, or the address of its download for this machine.
fn package_name(entry: &AgentEntry) -> Option<&str> {
    use grove_agents::catalog::AgentPackage;
    match &entry.package {
        AgentPackage::Npm { name, .. } | AgentPackage::Bun { name, .. } | AgentPackage::Pypi { name, .. } => Some(name),
        AgentPackage::Binary { .. } => entry.package.target().map(|target| target.url.as_str()),
        AgentPackage::Manual { .. } | AgentPackage::Unknown => None,
    }
}
