//! The setup of a chat's session, as its agent's program takes it.

use std::borrow::Cow;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Map, Value, json};

use super::chat::{AcpChat, ServicePolicy};
use super::open::ConversationError;
use crate::acp::client_tools::{FOLDER_VARIABLE, SECRET_VARIABLE, ToolCalls};
use crate::acp::mcp_filter;
use crate::acp::quirks::{ProgramQuirks, StdioServers, SystemMessageWay, ToolFilterWay};
use crate::setup::{CLIENT_TOOLS_SERVER, McpServer, McpTransport, SystemMessage, SystemMessageMode};

/// The file that a program reads MCP servers from, in the shim's folder.
const CONFIG_FILE: &str = "mcp.json";
/// The tags around a system message before the first prompt.
const OPENING: &str =
    "<system-message>\nThe program that created this session gives these instructions for all of it:\n\n";
const CLOSING: &str = "\n</system-message>";

impl AcpChat {
    fn quirks(&self) -> ProgramQuirks {
        ProgramQuirks::of(&self.program)
    }

    /// The MCP servers of the session, of the configuration, and that of clients' tools.
    fn mcp_servers(&self, tools: Option<&ToolCalls>) -> Vec<McpServer> {
        if self.service_policy == ServicePolicy::Nothing {
            return Vec::new();
        }
        let of_session = &self.setup.mcp_servers;
        let restricted = |server: McpServer| mcp_filter::restricted(server, &self.pool.options().relay);
        let is_configured_alone = |server: &&McpServer| !of_session.iter().any(|mine| mine.name == server.name);
        let configured = self.program.mcp_servers.iter().filter(is_configured_alone);
        let servers = of_session.iter().chain(configured).cloned().map(restricted);
        servers.chain(tools.map(|tools| self.tool_server(tools))).collect()
    }

    /// The MCP server of clients' tools.
    fn tool_server(&self, tools: &ToolCalls) -> McpServer {
        let relay = &self.pool.options().relay;
        let env = [
            (FOLDER_VARIABLE.to_owned(), self.folder.display().to_string()),
            (SECRET_VARIABLE.to_owned(), tools.secret()),
        ];
        let transport = McpTransport::Stdio {
            command: relay.program.display().to_string(),
            args: relay.args.clone(),
            env: env.into(),
        };
        McpServer::new(CLIENT_TOOLS_SERVER, transport)
    }

    /// The MCP servers for the request that opens the session.
    pub(super) fn requested_servers(
        &self,
        able: &acp::AgentCapabilities,
        tools: Option<&ToolCalls>,
    ) -> Result<Vec<acp::McpServer>, ConversationError> {
        let in_file = self.quirks().stdio_servers == StdioServers::ConfigFile;
        let mut requested = Vec::new();
        for server in self.mcp_servers(tools) {
            let reaches = match &server.transport {
                McpTransport::Stdio { .. } if in_file => continue,
                McpTransport::Stdio { .. } => true,
                McpTransport::Http { .. } => able.mcp_capabilities.http,
                McpTransport::Sse { .. } => able.mcp_capabilities.sse,
            };
            if !reaches {
                let transport = server.transport.name();
                return Err(ConversationError::McpTransport { server: server.name, transport });
            }
            requested.push(requested_server(server));
        }
        Ok(requested)
    }

    /// The arguments of the program beside its own. They name a file that only its owner can read.
    pub(super) fn setup_arguments(&self, tools: Option<&ToolCalls>) -> io::Result<Vec<String>> {
        let mut args = Vec::new();
        let quirks = self.quirks();
        if quirks.stdio_servers == StdioServers::ConfigFile {
            let servers: Map<String, Value> =
                self.mcp_servers(tools).into_iter().filter_map(configured_server).collect();
            if !servers.is_empty() {
                self.make_folder()?;
                let path = self.folder.join(CONFIG_FILE);
                write_private(&path, &json!({"mcpServers": servers}))?;
                args.extend(["--additional-mcp-config".to_owned(), format!("@{}", path.display())]);
            }
        }
        if quirks.tool_filter == ToolFilterWay::Arguments {
            let filter = &self.setup.tool_filter;
            args.extend(filter.excluded.iter().map(|tool| format!("--excluded-tools={tool}")));
            if let Some(available) = &filter.available {
                args.extend(available.iter().map(|tool| format!("--available-tools={tool}")));
                let offered = tools.iter().flat_map(|tools| tools.names());
                args.extend(offered.map(|tool| format!("--available-tools={CLIENT_TOOLS_SERVER}-{tool}")));
            }
        }
        Ok(args)
    }

    /// Creates the shim's folder, which the shim itself creates otherwise. Nobody else can enter it.
    pub(super) fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    /// The system message for the request that opens the session, if the agent takes it there.
    pub(super) fn requested_system_prompt(&self, able: &acp::AgentCapabilities) -> Option<acp::SystemPrompt> {
        let message = self.system_message()?;
        able.session_capabilities.system_prompt.as_ref()?;
        let mode = match message.mode {
            SystemMessageMode::Append => acp::SystemPromptMode::Append,
            SystemMessageMode::Replace => acp::SystemPromptMode::Override,
        };
        Some(acp::SystemPrompt::new(vec![message.content.as_str().into()]).mode(mode))
    }

    /// The metadata of the request that opens the session.
    pub(super) fn setup_metadata(&self, able: &acp::AgentCapabilities) -> Option<acp::Meta> {
        let quirks = self.quirks();
        let mut meta = acp::Meta::new();
        if quirks.system_message == SystemMessageWay::Metadata
            && able.session_capabilities.system_prompt.is_none()
            && let Some(message) = self.system_message()
        {
            let prompt = match message.mode {
                SystemMessageMode::Append => json!({"append": message.content}),
                SystemMessageMode::Replace => json!(message.content),
            };
            meta.insert("systemPrompt".to_owned(), prompt);
        }
        let filter = &self.setup.tool_filter;
        if quirks.tool_filter == ToolFilterWay::Metadata && !filter.is_none() {
            let mut options = json!({"disallowedTools": filter.excluded});
            if let Some(available) = &filter.available {
                options["tools"] = json!(available);
            }
            meta.insert("claudeCode".to_owned(), json!({"options": options}));
        }
        Some(meta).filter(|meta| !meta.is_empty())
    }

    /// The text that goes before the first prompt, if the agent takes its system message nowhere else.
    pub(super) fn message_before_prompt(&self, able: &acp::AgentCapabilities) -> Option<String> {
        let message = self.system_message()?;
        let is_requested = able.session_capabilities.system_prompt.is_some()
            || self.quirks().system_message == SystemMessageWay::Metadata;
        (!is_requested).then(|| [OPENING, &message.content, CLOSING].concat())
    }

    /// The instructions for the model, for a process that works on the session.
    pub(super) fn system_message(&self) -> Option<Cow<'_, SystemMessage>> {
        self.setup.instructions().filter(|_| self.service_policy == ServicePolicy::Everything)
    }

    /// The values that must not be in the log of frames.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &String> {
        let configured = self.program.mcp_servers.iter().flat_map(McpServer::secrets);
        self.program.env.values().chain(configured).chain(self.setup.secrets())
    }
}

fn requested_server(server: McpServer) -> acp::McpServer {
    let McpServer { name, transport, restriction: _ } = server;
    let http_headers = |headers: std::collections::BTreeMap<String, String>| {
        headers.into_iter().map(|(name, value)| acp::HttpHeader::new(name, value)).collect()
    };
    match transport {
        McpTransport::Stdio { command, args, env } => {
            let env = env.into_iter().map(|(name, value)| acp::EnvVariable::new(name, value)).collect();
            acp::McpServer::Stdio(acp::McpServerStdio::new(name, command).args(args).env(env))
        }
        McpTransport::Http { url, headers } => {
            acp::McpServer::Http(acp::McpServerHttp::new(name, url).headers(http_headers(headers)))
        }
        McpTransport::Sse { url, headers } => {
            acp::McpServer::Sse(acp::McpServerSse::new(name, url).headers(http_headers(headers)))
        }
    }
}

/// A server over stdio as a program's file names it.
fn configured_server(server: McpServer) -> Option<(String, Value)> {
    let McpTransport::Stdio { command, args, env } = server.transport else { return None };
    let entry = json!({"type": "local", "command": command, "args": args, "env": env, "tools": ["*"]});
    Some((server.name, entry))
}

fn write_private(path: &Path, content: &Value) -> io::Result<()> {
    // A file with other permissions does not keep them.
    std::fs::remove_file(path).ok();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.to_string().as_bytes())
}
