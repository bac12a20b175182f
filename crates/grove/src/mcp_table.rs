//! The tables `[mcp.NAME]` of `grove.toml`: MCP servers that every agent gets.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use grove_agents::setup::{AgentAbilities, AgentSetup, McpAbilities, McpServer, McpTransport, Support};
use grove_core::AgentId;
use serde::Deserialize;

/// An MCP server of the file, and the agents that get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredServer {
    server: McpServer,
    /// `None` means all.
    agents: Option<Vec<String>>,
}

/// One table. It may hold secrets, which nothing prints.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ServerTable {
    command: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    r#type: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    agents: Option<Vec<String>>,
}

pub(crate) fn read(file: &Path, table: Option<&toml::Value>) -> Result<BTreeMap<String, ConfiguredServer>> {
    let Some(table) = table else { return Ok(BTreeMap::new()) };
    let place = || format!("{}: [mcp]", file.display());
    let table =
        table.as_table().with_context(|| format!("{} must have a table [mcp.NAME] for each server", place()))?;
    let mut servers = BTreeMap::new();
    for (name, table) in table {
        // The error would repeat the line, which may hold a secret.
        let parsed =
            table.clone().try_into::<ServerTable>().map_err(|error| anyhow::anyhow!(error.message().to_owned()));
        let parsed = parsed.with_context(|| format!("{}: [mcp.{name}] is not valid", file.display()))?;
        servers.insert(
            name.clone(),
            configured(name, parsed).with_context(|| format!("{}: [mcp.{name}]", file.display()))?,
        );
    }
    check(&servers).with_context(place)?;
    Ok(servers)
}

fn configured(name: &str, table: ServerTable) -> Result<ConfiguredServer> {
    let ServerTable { command, env, url, r#type, headers, agents } = table;
    let transport = match (command, url, r#type.as_deref()) {
        (Some(command), None, None | Some("stdio")) => match command.split_first() {
            Some((command, args)) => McpTransport::Stdio { command: command.clone(), args: args.to_vec(), env },
            None => bail!("command must name a program"),
        },
        (None, Some(url), None | Some("http")) => McpTransport::Http { url, headers },
        (None, Some(url), Some("sse")) => McpTransport::Sse { url, headers },
        (Some(_), Some(_), _) => bail!("give it a command or a url, not both"),
        (None, None, _) => bail!("give it a command, such as [\"my-server\", \"--flag\"], or a url"),
        (_, _, Some(_)) => bail!("type must be \"stdio\" for a command, \"http\" or \"sse\" for a url"),
    };
    Ok(ConfiguredServer { server: McpServer::new(name, transport), agents })
}

/// Checks names and bounds as for the servers of a session.
fn check(servers: &BTreeMap<String, ConfiguredServer>) -> Result<()> {
    let mcp_servers = servers.values().map(|configured| configured.server.clone()).collect();
    let everything = McpAbilities { stdio: Support::Yes, http: Support::Yes, sse: Support::Yes };
    let able = AgentAbilities { mcp: everything, ..AgentAbilities::default() };
    Ok(AgentSetup { mcp_servers, ..AgentSetup::default() }.check("any", &able, &[])?)
}

/// The servers that an agent gets.
pub(crate) fn servers_for(servers: &BTreeMap<String, ConfiguredServer>, agent: &AgentId) -> Vec<McpServer> {
    let is_meant = |configured: &&ConfiguredServer| {
        configured.agents.as_ref().is_none_or(|agents| agents.iter().any(|name| name == agent.as_str()))
    };
    servers.values().filter(is_meant).map(|configured| configured.server.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, ConfiguredServer>> {
        let table: toml::Table = text.parse().unwrap();
        super::read(Path::new("grove.toml"), table.get("mcp"))
    }

    #[test]
    fn an_agent_gets_the_servers_that_are_not_limited_to_others() {
        let servers = read(
            "[mcp.search]\ncommand = ['search', '--fast']\nenv = { KEY = 'hunter2' }\n\
             [mcp.far]\nurl = 'https://example.org/mcp'\nheaders = { Authorization = 'hunter2' }\nagents = ['claude']",
        )
        .unwrap();
        let names = |agent: &str| {
            servers_for(&servers, &agent.into()).into_iter().map(|server| server.name).collect::<Vec<_>>()
        };
        assert_eq!(names("claude"), ["far", "search"]);
        assert_eq!(names("codex"), ["search"]);
        assert!(!format!("{servers:?}").contains("hunter2"), "{servers:?}");
    }

    #[test]
    fn a_wrong_table_is_refused_with_its_place_and_without_its_secrets() {
        for (wrong, why) in [
            ("[mcp]\na = 1", "[mcp.a] is not valid"),
            ("[mcp.a]\nenv = { KEY = 'hunter2' }", "give it a command"),
            ("[mcp.a]\ncommand = []\nenv = { KEY = 'hunter2' }", "command must name a program"),
            ("[mcp.a]\ncommand = ['x']\nurl = 'hunter2'", "not both"),
            ("[mcp.a]\ncommand = ['x']\nevn = { KEY = 'hunter2' }", "[mcp.a] is not valid"),
            ("[mcp.grove]\ncommand = ['x']", "\"grove\""),
        ] {
            let error = format!("{:#}", read(wrong).unwrap_err());
            assert!(error.contains("grove.toml") && error.contains(why), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
