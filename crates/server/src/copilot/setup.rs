//! The configuration of an agent by a program: read from `session.create` and `session.resume`, or refused.

use std::collections::{BTreeMap, BTreeSet};

use grove_checks::Check;
use grove_core::{Scope, ScopeSet, SessionId};
use grove_host::setup::{McpServer, McpTransport, SetupChange, SystemMessage, SystemMessageMode, ToolFilter};
use grove_wire::copilot::methods::OpenParams;
use serde::Deserialize;
use serde_json::Value;

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
            "customAgents",
            &params.custom_agents,
            "agents of Grove have no agents of their own: put the prompt into `systemMessage`",
        ),
        ("agent", &params.agent, "agents of Grove have no agents of their own: choose the agent by `model`"),
        ("defaultAgent", &params.default_agent, "agents of Grove have no agents of their own: use `excludedTools`"),
        (
            "skillDirectories",
            &params.skill_directories,
            "agents find their skills themselves: put them where the agent looks",
        ),
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
    if config.tools.as_ref().is_some_and(|tools| tools[..] != ["*"]) {
        return Err(wrong("agents get all tools of a server: set `tools` to [\"*\"], or leave it out"));
    }
    if config.cwd.is_some() {
        return Err(wrong("agents start servers in the session's folder: leave out `workingDirectory`"));
    }
    let ServerConfig { command, args, env, url, headers, .. } = config;
    let transport = match (config.r#type.as_deref(), command, url) {
        (None | Some("local" | "stdio"), Some(command), _) => McpTransport::Stdio { command, args, env },
        (None | Some("local" | "stdio"), None, _) => return Err(wrong("it has no `command`")),
        (Some("http"), _, Some(url)) => McpTransport::Http { url, headers },
        (Some("sse"), _, Some(url)) => McpTransport::Sse { url, headers },
        (Some("http" | "sse"), _, None) => return Err(wrong("it has no `url`")),
        (Some(_), ..) => return Err(wrong("its `type` is not one of local, stdio, http and sse")),
    };
    Ok(McpServer { name: name.to_owned(), transport })
}

fn system_message(named: &Value) -> Result<Option<SystemMessage>, CopilotError> {
    let wrong = |_| failed("`systemMessage` cannot be used: give it `mode` and `content`");
    let MessageConfig { mode, content } = MessageConfig::deserialize(named).map_err(wrong)?;
    let mode = match mode.as_deref() {
        None | Some("append") => SystemMessageMode::Append,
        Some("replace") => SystemMessageMode::Replace,
        Some("customize") => {
            return Err(failed(
                "the mode `customize` of `systemMessage` cannot be honoured: the sections are those of Copilot's own \
                 system message, which agents do not show; use `append` or `replace`",
            ));
        }
        Some(_) => return Err(failed("the mode of `systemMessage` is not one of append, replace and customize")),
    };
    let content = content.filter(|content| !content.trim().is_empty());
    Ok(content.map(|content| SystemMessage { mode, content }))
}

fn tool_filter(params: &OpenParams) -> Result<Option<ToolFilter>, CopilotError> {
    if params.available_tools.is_none() && params.excluded_tools.is_none() {
        return Ok(None);
    }
    let names = |list: &[String]| list.iter().map(|name| tool_name(name)).collect::<Result<BTreeSet<_>, _>>();
    let available = params.available_tools.as_deref().map(names).transpose()?;
    let excluded = params.excluded_tools.as_deref().map(names).transpose()?.unwrap_or_default();
    Ok(Some(ToolFilter { available, excluded }))
}

/// The name of a tool in a filter, without its source.
fn tool_name(named: &str) -> Result<String, CopilotError> {
    let name =
        ["builtin:", "mcp:", "custom:"].into_iter().find_map(|source| named.strip_prefix(source)).unwrap_or(named);
    if name == "*" {
        return Err(failed(format!(
            "{named:?} in a list of tools cannot be honoured: agents do not tell which tools they have; name each tool"
        )));
    }
    Ok(name.to_owned())
}
