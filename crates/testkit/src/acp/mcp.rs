//! The MCP servers of a session, started for real: programs that speak JSON-RPC on their stdio.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};

use super::peer::lock;

/// The time between two looks for an answer.
const LOOK: Duration = Duration::from_millis(20);

/// The servers of a session, by their names.
#[derive(Default)]
pub(super) struct McpServers(BTreeMap<String, Arc<McpServerProcess>>);

/// A server that runs. Its process ends with its stdin.
struct McpServerProcess {
    child: Mutex<Child>,
    stdin: Mutex<Option<ChildStdin>>,
    next: AtomicU64,
    state: Mutex<ServerState>,
    changed: Condvar,
}

#[derive(Default)]
struct ServerState {
    answers: BTreeMap<u64, Value>,
    /// The request for the list of tools that was sent last.
    listing: u64,
    has_ended: bool,
}

impl McpServers {
    /// Starts the servers over stdio. Others are left out.
    pub(super) fn start(servers: &[acp::McpServer]) -> Self {
        let started = servers.iter().filter_map(|server| match server {
            acp::McpServer::Stdio(server) => Some((server.name.clone(), McpServerProcess::start(server)?)),
            _ => None,
        });
        Self(started.collect())
    }

    /// Asks a server, and waits for the answer for as long as `goes_on` allows.
    pub(super) fn ask<E>(
        &self,
        server: &str,
        method: &str,
        params: &Value,
        goes_on: impl Fn() -> Result<(), E>,
    ) -> Result<Value, E> {
        let Some(server) = self.0.get(server) else {
            return Ok(json!({"error": {"message": "there is no such server"}}));
        };
        let id = server.send(method, Some(params));
        server.wait(id, goes_on)
    }

    /// The names of a server's tools, as it has listed them last.
    pub(super) fn listed<E>(&self, server: &str, goes_on: impl Fn() -> Result<(), E>) -> Result<Vec<String>, E> {
        let Some(server) = self.0.get(server) else { return Ok(vec!["there is no such server".to_owned()]) };
        let listing = lock(&server.state).listing;
        let answer = server.wait(listing, goes_on)?;
        let tools = answer["result"]["tools"].as_array().into_iter().flatten();
        Ok(tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect())
    }
}

/// The text of the answer to a call.
pub(super) fn result_text(answer: &Value) -> String {
    if let Some(error) = answer.get("error") {
        return format!("error: {}", error["message"].as_str().unwrap_or_default());
    }
    let result = &answer["result"];
    let texts = result["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    if result["isError"] == true { format!("failed: {text}") } else { text }
}

impl McpServerProcess {
    fn start(server: &acp::McpServerStdio) -> Option<Arc<Self>> {
        let env = server.env.iter().map(|variable| (variable.name.as_str(), variable.value.as_str()));
        let mut child = Command::new(&server.command)
            .args(&server.args)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .ok()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take()?);
        let process = Arc::new(Self {
            child: Mutex::new(child),
            stdin: Mutex::new(stdin),
            next: AtomicU64::new(1),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let reading = Arc::downgrade(&process);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Some(process) = reading.upgrade() else { return };
                // A server may print other lines.
                if let Ok(message) = serde_json::from_str::<Value>(&line) {
                    process.take(message);
                }
            }
            if let Some(process) = reading.upgrade() {
                lock(&process.state).has_ended = true;
                process.changed.notify_all();
            }
        });
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "acp-agent", "version": "0"}});
        process.send("initialize", Some(&hello));
        process.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        process.list();
        Some(process)
    }

    fn take(&self, message: Value) {
        if message["method"] == "notifications/tools/list_changed" {
            self.list();
        } else if let Some(id) = message["id"].as_u64() {
            lock(&self.state).answers.insert(id, message);
            self.changed.notify_all();
        }
    }

    fn list(&self) {
        // The lock is held, so that nobody takes the list before for the new one.
        let mut state = lock(&self.state);
        state.listing = self.send("tools/list", None);
    }

    fn send(&self, method: &str, params: Option<&Value>) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params.cloned().unwrap_or_else(|| json!({}))}));
        id
    }

    fn write(&self, message: &Value) {
        if let Some(stdin) = &mut *lock(&self.stdin) {
            writeln!(stdin, "{message}").and_then(|()| stdin.flush()).ok();
        }
    }

    fn wait<E>(&self, id: u64, goes_on: impl Fn() -> Result<(), E>) -> Result<Value, E> {
        let mut state = lock(&self.state);
        loop {
            if let Some(answer) = state.answers.get(&id) {
                return Ok(answer.clone());
            }
            if state.has_ended {
                return Ok(json!({"error": {"message": "the server has ended"}}));
            }
            goes_on()?;
            state = match self.changed.wait_timeout(state, LOOK) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

impl Drop for McpServerProcess {
    fn drop(&mut self) {
        lock(&self.stdin).take();
        let mut child = lock(&self.child);
        child.kill().ok();
        child.wait().ok();
    }
}
