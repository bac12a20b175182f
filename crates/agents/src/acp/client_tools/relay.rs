//! The program that an agent starts as its MCP server: it passes messages on to the host, and outlives it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fmt, io};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;

use super::{FOLDER_VARIABLE, MESSAGE_BYTES, OPEN_REQUESTS, SECRET_VARIABLE, ToolGreeting, address, next_line};
use crate::acp::random;

/// The pauses between attempts to connect, the first and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// The lines that are read ahead.
const LINES: usize = 16;

/// The socket to connect to. `Debug` leaves out the secret.
pub struct RelayOptions {
    pub folder: PathBuf,
    pub secret: String,
}

impl fmt::Debug for RelayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayOptions").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The reason why the program ends.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("{0} is not set: agents start this program, with the tools of a session's clients")]
    Variable(&'static str),
    #[error("the agent's connection failed: {0}")]
    Agent(#[source] io::Error),
}

impl RelayOptions {
    /// The options that the host gives the agent.
    pub fn from_env() -> Result<Self, RelayError> {
        let folder = env::var_os(FOLDER_VARIABLE).ok_or(RelayError::Variable(FOLDER_VARIABLE))?;
        let secret = env::var(SECRET_VARIABLE).map_err(|_| RelayError::Variable(SECRET_VARIABLE))?;
        Ok(Self { folder: folder.into(), secret })
    }
}

/// A connection to the host.
struct RelayConnection {
    writer: OwnedWriteHalf,
    lines: mpsc::Receiver<String>,
}

/// Passes messages between an agent and the host, until the agent closes its side.
pub async fn run(
    options: RelayOptions,
    from_agent: impl AsyncRead + Send + Unpin + 'static,
    mut to_agent: impl AsyncWrite + Unpin,
) -> Result<(), RelayError> {
    let hello = ToolGreeting { secret: options.secret, process: random::tag() };
    let hello = json!(hello).to_string() + "\n";
    let mut requests = lines(BufReader::new(from_agent));
    // Requests without an answer, oldest first: they are repeated when the host is back.
    let mut open: VecDeque<(Value, String)> = VecDeque::new();
    let mut host: Option<RelayConnection> = None;
    let (mut pause, longest) = PAUSES;
    loop {
        if host.is_none()
            && let Some(connected) = connect(&options.folder, &hello, &open).await
        {
            (host, pause) = (Some(connected), PAUSES.0);
        }
        let from_host = async {
            match &mut host {
                Some(host) => host.lines.recv().await,
                None => {
                    tokio::time::sleep(pause).await;
                    None
                }
            }
        };
        tokio::select! {
            line = requests.recv() => {
                let Some(line) = line else { return Ok(()) };
                if let Some(id) = request_id(&line) {
                    if open.len() >= OPEN_REQUESTS {
                        let refusal = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "too many calls wait for an answer: wait for one"}});
                        write(&mut to_agent, refusal.to_string()).await?;
                        continue;
                    }
                    open.push_back((id, line.clone()));
                }
                if let Some(connected) = &mut host && connected.writer.write_all((line + "\n").as_bytes()).await.is_err() {
                    host = None;
                }
            }
            line = from_host => match line {
                Some(line) => {
                    if let Some(id) = answer_id(&line) {
                        open.retain(|(open, _)| *open != id);
                    }
                    write(&mut to_agent, line).await?;
                }
                None if host.is_some() => host = None,
                None => pause = (pause * 2).min(longest),
            },
        }
    }
}

async fn write(to_agent: &mut (impl AsyncWrite + Unpin), line: String) -> Result<(), RelayError> {
    to_agent.write_all((line + "\n").as_bytes()).await.map_err(RelayError::Agent)?;
    to_agent.flush().await.map_err(RelayError::Agent)
}

/// Connects, and repeats the open requests. `None` if the host is away.
async fn connect(folder: &std::path::Path, hello: &str, open: &VecDeque<(Value, String)>) -> Option<RelayConnection> {
    let address = address(folder).ok()?;
    let stream = UnixStream::connect(address.path()).await.ok()?;
    let (reader, mut writer) = stream.into_split();
    writer.write_all(hello.as_bytes()).await.ok()?;
    for (_, line) in open {
        writer.write_all(line.as_bytes()).await.ok()?;
        writer.write_all(b"\n").await.ok()?;
    }
    Some(RelayConnection { writer, lines: lines(BufReader::new(reader)) })
}

/// Reads lines in a task of their own. They end with the stream, or at a line that is too long.
fn lines(mut from: BufReader<impl AsyncRead + Send + Unpin + 'static>) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(LINES);
    tokio::spawn(async move {
        while let Ok(Some(line)) = next_line(&mut from, MESSAGE_BYTES).await {
            if sender.send(line).await.is_err() {
                return;
            }
        }
    });
    lines
}

/// The id of a request that waits for an answer.
fn request_id(line: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(line).ok()?;
    message.get("method")?;
    message.get("id").filter(|id| !id.is_null()).cloned()
}

/// The id of a request that a message answers.
fn answer_id(line: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message.get("method").is_some() { None } else { message.get("id").cloned() }
}
