//! The configuration of an agent by a program: read from `session.create` and `session.resume`, or refused.

use std::collections::{BTreeMap, BTreeSet};

use grove_checks::Check;
use grove_core::{Scope, ScopeSet, SessionId};
use grove_host::setup::{
    McpRestriction, McpServer, McpTransport, SetupChange, SystemMessage, SystemMessageMode, ToolFilter,
};
use grove_wire::copilot::methods::OpenParams;
use serde::Deserialize;
use serde_json::Value;

use super::custom_agents;
use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// The name of configured MCP servers, in refusals and in the audit log.
const MCP_SERVERS: &str = "mcpServers";

/// An MCP server as the SDK names it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerConfig {
    r#type: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    tools: Option<Vec<String>>,
}

/// A system message as the SDK names it.
#[derive(Deserialize)]
struct MessageConfig {
    mode: Option<String>,
    content: Option<String>,
    #[serde(default)]
    sections: BTreeMap<String, SectionConfig>,
}

/// A change of a section of Copilot's own system message.
#[derive(Deserialize)]
struct SectionConfig {
    action: String,
    content: Option<String>,
}

impl CopilotPeer {
    /// Changes the setup of a session to what a request names.
    pub(super) async fn configure(&self, session: &SessionRef, params: &OpenParams) -> Result<(), CopilotError> {
        let setup = self.named_setup(params, Some(&session.id)).await?;
        if setup.is_empty() {
            return Ok(());
        }
        Ok(self.host().change_setup(&session.uri, setup).await?)
    }

    /// The setup that a request names. Programs that the agent would start are named by clients alone that may approve.
    pub(super) async fn named_setup(
        &self,
        params: &OpenParams,
        session: Option<&SessionId>,
    ) -> Result<SetupChange, CopilotError> {
        refuse_unserved(params)?;
        let setup = SetupChange {
            mcp_servers: params.mcp_servers.as_ref().map(mcp_servers).transpose()?,
            system_message: params.system_message.as_ref().map(system_message).transpose()?.flatten(),
            custom_agents: params.custom_agents.as_ref().map(custom_agents::defined).transpose()?,
            selected_agent: params.agent.clone(),
            skills: self.named_skills(params).await?,
            tool_filter: tool_filter(params)?,
            client_tools: params.tools.iter().flatten().map(|tool| tool.name.clone()).collect(),
            hooks: None,
        };
        if setup.mcp_servers.as_ref().is_some_and(|servers| !servers.is_empty()) && Check::McpServers.is_enforced() {
            let needed = ScopeSet::NONE.with(Scope::Approve);
            let allowed =
                self.principal().authorize(self.host(), needed, MCP_SERVERS, Some(self.client()), session).await;
            allowed.map_err(|forbidden| CopilotError::Failed(forbidden.to_string()))?;
        }
        Ok(setup)
    }
}

fn failed(words: impl Into<String>) -> CopilotError {
    CopilotError::Failed(words.into())
}

/// Returns whether a program names a model server of its own.
pub(super) fn names_provider(params: &OpenParams) -> bool {
    is_set(&params.provider) || is_set(&params.providers)
}

fn is_set(value: &Option<Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    }
}

/// Refuses options that no agent of Grove can honour.
fn refuse_unserved(params: &OpenParams) -> Result<(), CopilotError> {
    let unserved = [
        (
            "pluginDirectories",
            &params.plugin_directories,
            "agents find their plugins themselves: put them where the agent looks",
        ),
        (
            "instructionDirectories",
            &params.instruction_directories,
            "agents find their instructions themselves: put them into `systemMessage`",
        ),
        (
            "enableFileHooks",
            &params.enable_file_hooks,
            "Grove does not run the hooks in a repository's files: leave it out",
        ),
        (
            "disabledMcpServers",
            &params.disabled_mcp_servers,
            "agents read their MCP servers themselves: disable them in the agent's own configuration",
        ),
    ];
    match unserved.into_iter().find(|(_, value, _)| is_set(value)) {
        Some((name, _, advice)) => Err(failed(format!("`{name}` cannot be honoured: {advice}"))),
        None => Ok(()),
    }
}

fn mcp_servers(named: &BTreeMap<String, Value>) -> Result<Vec<McpServer>, CopilotError> {
    named.iter().map(|(name, config)| mcp_server(name, config)).collect()
}

fn mcp_server(name: &str, config: &Value) -> Result<McpServer, CopilotError> {
    let wrong = |problem: &str| failed(format!("the MCP server {name} cannot be used: {problem}"));
    // The words of the error would repeat the value.
    let config =
        ServerConfig::deserialize(config).map_err(|_| wrong("its configuration has members of a wrong type"))?;
    let ServerConfig { command, args, env, cwd, url, headers, .. } = config;
    let tools = config.tools.filter(|tools| !tools.iter().any(|tool| tool == "*"));
    let restriction = McpRestriction { folder: cwd, tools: tools.map(BTreeSet::from_iter) };
    let transport = match (config.r#type.as_deref(), command, url) {
        (None | Some("local" | "stdio"), Some(command), _) => McpTransport::Stdio { command, args, env },
        (None | Some("local" | "stdio"), None, _) => return Err(wrong("it has no `command`")),
        (Some("http"), _, Some(url)) => McpTransport::Http { url, headers },
        (Some("sse"), _, Some(url)) => McpTransport::Sse { url, headers },
        (Some("http" | "sse"), _, None) => return Err(wrong("it has no `url`")),
        (Some(_), ..) => return Err(wrong("its `type` is not one of local, stdio, http and sse")),
    };
    Ok(McpServer { name: name.to_owned(), transport, restriction })
}

fn system_message(named: &Value) -> Result<Option<SystemMessage>, CopilotError> {
    let wrong = |_| failed("`systemMessage` cannot be used: give it `mode` and `content`");
    let MessageConfig { mode, content, sections } = MessageConfig::deserialize(named).map_err(wrong)?;
    let (mode, contents) = match mode.as_deref() {
        None | Some("append") => (SystemMessageMode::Append, vec![content]),
        Some("replace") => (SystemMessageMode::Replace, vec![content]),
        Some("customize") => {
            let sections = sections.into_iter().map(|(name, section)| section_text(&name, section));
            (SystemMessageMode::Append, sections.chain([Ok(content)]).collect::<Result<_, _>>()?)
        }
        Some(_) => return Err(failed("the mode of `systemMessage` is not one of append, replace and customize")),
    };
    let contents: Vec<String> = contents.into_iter().flatten().filter(|text| !text.trim().is_empty()).collect();
    Ok((!contents.is_empty()).then(|| SystemMessage { mode, content: contents.join("\n\n") }))
}

/// The text of a section that goes behind the agent's own system message. The sections are those of Copilot's own
/// message, which no agent of Grove shows: none has one to keep, and what is removed is not there.
fn section_text(name: &str, section: SectionConfig) -> Result<Option<String>, CopilotError> {
    match section.action.as_str() {
        "append" | "prepend" | "replace" => Ok(section.content),
        "remove" | "preserve" => Ok(None),
        other => Err(failed(format!(
            "the action {other:?} of the section {name} of `systemMessage` cannot be honoured: agents do not show their \
             system messages; use append, prepend, replace or remove"
        ))),
    }
}

fn tool_filter(params: &OpenParams) -> Result<Option<ToolFilter>, CopilotError> {
    let of_default = params.default_agent.as_ref().and_then(|agent| agent.excluded_tools.as_ref());
    if params.available_tools.is_none() && params.excluded_tools.is_none() && of_default.is_none() {
        return Ok(None);
    }
    let offered: BTreeSet<String> = params.tools.iter().flatten().map(|tool| tool.name.clone()).collect();
    let has_servers = params.mcp_servers.as_ref().is_some_and(|servers| !servers.is_empty());
    let mut excluded = BTreeSet::new();
    for named in params.excluded_tools.iter().chain(of_default).flatten() {
        excluded.extend(tool_names(named, &offered, has_servers)?);
    }
    let filter = |available: Option<BTreeSet<String>>, excluded: BTreeSet<String>| {
        let own_tools = available.is_some() || excluded.iter().any(|tool| !offered.contains(tool));
        Ok(Some(ToolFilter { available, excluded, own_tools }))
    };
    let Some(list) = &params.available_tools else { return filter(None, excluded) };
    let is_every = |named: &&String| matches!(named.as_str(), "*" | "builtin:*");
    if !list.iter().any(|named| is_every(&named)) {
        return filter(Some(all_names(list.iter(), &offered, has_servers)?), excluded);
    }
    // All of the agent's own. Of the others Grove leaves out those that are not named.
    let has_all = list.iter().any(|named| named == "*");
    if has_servers && !has_all && !list.iter().any(|named| named == "mcp:*") {
        return Err(failed(
            "`availableTools` with \"builtin:*\" and without \"mcp:*\" cannot be honoured: agents get the tools of \
             `mcpServers`; leave out the servers, or name \"mcp:*\"",
        ));
    }
    if !has_all {
        let is_other = |named: &&String| !is_every(named) && *named != "mcp:*";
        let named = all_names(list.iter().filter(is_other), &offered, has_servers)?;
        excluded.extend(offered.difference(&named).cloned());
    }
    filter(None, excluded)
}

fn all_names<'a>(
    list: impl Iterator<Item = &'a String>,
    offered: &BTreeSet<String>,
    has_servers: bool,
) -> Result<BTreeSet<String>, CopilotError> {
    let names = list.map(|named| tool_names(named, offered, has_servers)).collect::<Result<Vec<_>, _>>()?;
    Ok(names.into_iter().flatten().collect())
}

/// The names of tools that an entry of a filter stands for, without their source.
fn tool_names(named: &str, offered: &BTreeSet<String>, has_servers: bool) -> Result<Vec<String>, CopilotError> {
    let source = ["builtin:", "mcp:", "custom:"].into_iter().find(|source| named.starts_with(source));
    match (source, &named[source.map_or(0, str::len)..]) {
        (Some("custom:"), "*") => Ok(offered.iter().cloned().collect()),
        (Some("mcp:"), "*") if !has_servers => Ok(Vec::new()),
        (_, "*") => Err(failed(format!(
            "{named:?} in a list of tools cannot be honoured: agents do not tell which tools they have; name each tool"
        ))),
        (_, name) => Ok(vec![name.to_owned()]),
    }
}
