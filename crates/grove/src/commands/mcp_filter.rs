//! `grove mcp-filter`
//!
//! It stands between an agent and an MCP server over stdio: it starts the server in its folder, and lets the agent see
//! and call some of its tools alone.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use grove_agents::acp::client_tools::MESSAGE_BYTES;
use grove_agents::acp::mcp_filter::{AgentLine, from_agent, from_server};

use super::Failure;
use crate::cli::McpFilterArgs;

/// The time that a server has to end by itself after its input has ended.
const ENDING: Duration = Duration::from_secs(5);
/// The pause between two looks at whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: McpFilterArgs) -> Result<(), Failure> {
    let McpFilterArgs { folder, restrict, tools, command } = args;
    let tools = restrict.then(|| Arc::new(tools.into_iter().collect::<BTreeSet<_>>()));
    let [program, rest @ ..] = command.as_slice() else { return Err(anyhow::anyhow!("no server is named").into()) };
    let mut server = Command::new(program);
    server.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(folder) = folder {
        server.current_dir(folder);
    }
    let mut server = server.spawn().with_context(|| format!("cannot start the MCP server {program}"))?;
    let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(anyhow::anyhow!("the MCP server {program} has no pipes").into());
    };
    let server = Arc::new(Mutex::new(server));
    let (of_agent, ending) = (tools.clone(), server.clone());
    thread::spawn(move || {
        if let Err(error) = pass_to_server(input, of_agent.as_deref()) {
            tracing::warn!(%error, "messages do not reach the MCP server any more");
        }
        end(&ending);
    });
    let passed = pass_to_agent(BufReader::new(output), tools.as_deref());
    // Its output has ended, so it is about to end, or is of no use any more.
    end(&server);
    Ok(passed?)
}

/// Passes the agent's lines on, until the agent closes its side.
fn pass_to_server(mut input: ChildStdin, tools: Option<&BTreeSet<String>>) -> anyhow::Result<()> {
    let mut lines = BufReader::new(io::stdin());
    while let Some(line) = next_line(&mut lines)? {
        match tools.map_or(AgentLine::Pass, |tools| from_agent(&line, tools)) {
            AgentLine::Pass => write_line(&mut input, &line)?,
            AgentLine::Answer(answer) => write_line(&mut io::stdout().lock(), &answer)?,
        }
    }
    Ok(())
}

/// Passes the server's lines on, until it closes its side.
fn pass_to_agent(mut output: impl BufRead, tools: Option<&BTreeSet<String>>) -> anyhow::Result<()> {
    while let Some(line) = next_line(&mut output)? {
        let line = match tools {
            Some(tools) => from_server(line, tools),
            None => line,
        };
        write_line(&mut io::stdout().lock(), &line)?;
    }
    Ok(())
}

fn write_line(to: &mut impl Write, line: &str) -> io::Result<()> {
    to.write_all(line.as_bytes())?;
    to.write_all(b"\n")?;
    to.flush()
}

/// The next line, without its end.
fn next_line(from: &mut impl BufRead) -> anyhow::Result<Option<String>> {
    let mut line = Vec::new();
    let limit = u64::try_from(MESSAGE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    if from.take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > MESSAGE_BYTES {
        bail!("a message has more than {MESSAGE_BYTES} bytes");
    }
    Ok(Some(String::from_utf8(line)?))
}

/// Waits until the server has ended, and ends it if it does not.
fn end(server: &Mutex<Child>) {
    // Nothing panics while it is held.
    let lock = || server.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..ENDING.as_millis() / LOOK.as_millis() {
        if !matches!(lock().try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(LOOK);
    }
    let mut server = lock();
    if let Err(error) = server.kill().and_then(|()| server.wait()) {
        tracing::warn!(%error, "an MCP server could not be ended");
    }
}
