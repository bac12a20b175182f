//! Calls of the session's MCP servers over stdio. A server is started for one call: no model asks for its tools before.

use std::path::PathBuf;
use std::time::Duration;

use grove_work::{Process, Program, local_path};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt, BufReader};

use crate::acp::client_tools::{MESSAGE_BYTES, next_line};
use crate::setup::{AgentSetup, McpServer, McpTransport};

/// The version of MCP that is asked for.
const VERSION: &str = "2025-06-18";
/// The time that a server has for a call, its start included.
const CALL: Duration = Duration::from_secs(30);
/// The time that it has to end by itself.
const ENDING: Duration = Duration::from_secs(2);

/// A call of a tool of an MCP server.
pub(super) struct McpCall {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) arguments: Option<Value>,
}

/// Calls a tool. Returns whether it succeeded, and its text; an error says why it did not run.
pub(super) async fn call(
    setup: &AgentSetup,
    folder: Option<&String>,
    call: &McpCall,
) -> Result<(bool, String), String> {
    let server = setup.mcp_servers.iter().find(|server| server.name == call.server);
    let server = server.ok_or_else(|| format!("the session has no MCP server {}", call.server))?;
    if server.restriction.tools.as_ref().is_some_and(|tools| !tools.contains(&call.tool)) {
        return Err(format!("the session may not use the tool {} of the MCP server {}", call.tool, call.server));
    }
    let mut process = Process::start(&program(server, folder)?).map_err(|error| error.to_string())?;
    let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(format!("the MCP server {} has no pipes", call.server));
    };
    let mut connection = McpConnection { input, output: BufReader::new(output), requests: 0 };
    let outcome = tokio::time::timeout(CALL, connection.run(call)).await;
    drop(connection);
    process.end(ENDING).await.map_err(|error| error.to_string())?;
    outcome.map_err(|_| format!("the MCP server {} gave no answer within {CALL:?}", call.server))?
}

fn program(server: &McpServer, folder: Option<&String>) -> Result<Program, String> {
    let McpTransport::Stdio { command, args, env } = &server.transport else {
        return Err(format!("the scripted agent reaches the MCP server {} over stdio alone", server.name));
    };
    let own = || folder.and_then(|folder| local_path(folder).ok()).unwrap_or_else(|| PathBuf::from("/"));
    let folder = server.restriction.folder.as_ref().map_or_else(own, PathBuf::from);
    let program = Program::new(command.clone(), folder).args(args.iter().cloned());
    Ok(env.iter().fold(program, |program, (name, value)| program.env(name.clone(), value.clone())))
}

struct McpConnection<I, O> {
    input: I,
    output: O,
    requests: u64,
}

impl<I: AsyncWrite + Unpin, O: AsyncBufRead + Unpin> McpConnection<I, O> {
    async fn run(&mut self, call: &McpCall) -> Result<(bool, String), String> {
        let client = json!({"name": "grove-scripted", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
        self.ask("initialize", hello).await?;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        let arguments = call.arguments.clone().unwrap_or_else(|| json!({}));
        let result = self.ask("tools/call", json!({"name": call.tool, "arguments": arguments})).await?;
        let pieces = result.get("content").and_then(Value::as_array);
        let texts = pieces.into_iter().flatten().filter_map(|piece| piece.get("text")?.as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        Ok((result.get("isError") != Some(&Value::Bool(true)), text))
    }

    async fn send(&mut self, message: Value) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the MCP server takes no messages: {error}");
        self.input.write_all(format!("{message}\n").as_bytes()).await.map_err(failed)?;
        self.input.flush().await.map_err(failed)
    }

    /// Sends a request, and waits for its answer. Other messages of the server are passed over.
    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.requests += 1;
        let id = self.requests;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        loop {
            let line = next_line(&mut self.output, MESSAGE_BYTES).await;
            let line = line.map_err(|error| format!("the MCP server cannot be read: {error}"))?;
            let line = line.ok_or("the MCP server has ended without an answer")?;
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else { continue };
            if message.get("id").and_then(Value::as_u64) != Some(id) {
                continue;
            }
            if let Some(error) = message.get("error") {
                return Err(format!("the MCP server refused {method}: {error}"));
            }
            return Ok(message["result"].take());
        }
    }
}
