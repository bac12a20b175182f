//! Starting and stopping the servers.
//!
//! Each runs under `timeout`, so that none outlives an interrupted benchmark.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use crate::job::{Contestant, PROVIDER, Shape, Target};
use crate::process::Family;

/// How long a server may take to start, and to stop.
const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(20);
/// The number of output lines kept for an error; further ones are dropped.
const SAID: usize = 1_000;

/// A running server.
pub(crate) struct Server {
    pub(crate) target: Target,
    pub(crate) pid: u32,
    child: Child,
    /// Closing it ends the relay.
    _stdin: Option<ChildStdin>,
    _folder: TempDir,
}

/// The first output of a server.
#[derive(Deserialize)]
#[serde(untagged)]
enum Hello {
    Grove { ws: String, pid: u32, token: String },
    Relay { address: SocketAddr, pid: u32 },
}

impl Server {
    pub(crate) async fn start(contestant: Contestant, grove: Option<&Path>, shape: &Shape) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("timeout");
        command.arg("--kill-after=3").arg((shape.limit() + START).as_secs().to_string());
        match contestant {
            Contestant::Grove => {
                let config = folder.path().join("grove.toml");
                std::fs::write(&config, settings(shape)?)?;
                command.arg(grove.context("no grove")?).args(["serve", "--listen", "127.0.0.1:0", "--json"]);
                command.arg("--config").arg(config).arg("--data-dir").arg(folder.path().join("data"));
            }
            Contestant::Relay => {
                command.arg(std::env::current_exe()?).arg("relay").arg(serde_json::to_string(shape)?);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("starting the server under `timeout`")?;
        let stdin = child.stdin.take();
        let mut lines = lines(&mut child);
        let hello = tokio::time::timeout(START, hello(&mut lines));
        let hello = match hello.await.unwrap_or_else(|_| bail!("it did not print its address")) {
            Ok(hello) => hello,
            Err(error) => {
                end(&mut child).await?;
                return Err(error);
            }
        };
        let (target, pid) = match hello {
            Hello::Grove { ws, pid, token } => (Target::Grove { ws, token, folder: folder.path().join("work") }, pid),
            Hello::Relay { address, pid } => (Target::Relay { address }, pid),
        };
        Ok(Self { target, pid, child, _stdin: stdin, _folder: folder })
    }

    /// Stops it with all of its processes.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let family = Family::of(self.pid)?;
        let ended = end(&mut self.child).await;
        // A shim outlives its host, and no other host will take these over.
        family.end();
        ended
    }
}

/// The path of a program that is built together with this one.
pub(crate) fn beside(given: Option<&Path>, name: &str) -> Result<Option<PathBuf>> {
    let path = match given {
        Some(path) => std::path::absolute(path)?,
        None => std::env::current_exe()?.with_file_name(name),
    };
    Ok(path.is_file().then_some(path))
}

fn settings(shape: &Shape) -> Result<String> {
    let program = grove_testkit::acp::agent_program();
    let agent = toml::Table::from_iter([("command".to_owned(), vec![program.to_string_lossy().into_owned()].into())]);
    let agents = toml::Table::from_iter([(PROVIDER.to_owned(), agent.into())]);
    let settings = toml::Table::from_iter([
        ("max-agents".to_owned(), i64::try_from(shape.agents)?.into()),
        ("agents".to_owned(), agents.into()),
    ]);
    Ok(toml::to_string(&settings)?)
}

/// `timeout` forwards the signal to the server, and kills it after a while.
async fn end(child: &mut Child) -> Result<()> {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid as i32)) {
        kill_process(pid, Signal::TERM)?;
    }
    tokio::time::timeout(END, child.wait()).await.context("the server does not end")??;
    Ok(())
}

/// The output of the server on both streams, for as long as it runs: a full pipe would block it.
fn lines(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(SAID);
    let forward = |stream: Box<dyn AsyncRead + Send + Unpin>| {
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stream).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                // The receiver is dropped once the server is found.
                drop(sender.try_send(line));
            }
        });
    };
    if let Some(stdout) = child.stdout.take() {
        forward(Box::new(stdout));
    }
    if let Some(stderr) = child.stderr.take() {
        forward(Box::new(stderr));
    }
    receiver
}

async fn hello(lines: &mut mpsc::Receiver<String>) -> Result<Hello> {
    let mut output = Vec::new();
    while let Some(line) = lines.recv().await {
        match serde_json::from_str(&line) {
            Ok(hello) => return Ok(hello),
            Err(_) => output.push(line),
        }
    }
    bail!("it ended: {}", output.join("\n"))
}
