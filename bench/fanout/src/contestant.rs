//! Starting and stopping the servers.
//!
//! Each runs under `timeout`, so that none outlives an interrupted benchmark.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use crate::job::{Contestant, Program, Target};

/// How long a server may live, and how long it may take to start.
const LIFE_SECONDS: &str = "240";
const START: Duration = Duration::from_secs(60);
/// How long installing with npm may take.
const INSTALL: Duration = Duration::from_secs(300);

const OPENCODE: &str = "opencode-ai@1.18";
const CODEX: &str = "@openai/codex@0.166";

/// The available programs.
#[derive(Default)]
pub(crate) struct Programs {
    pub(crate) grove: Option<PathBuf>,
    /// The folder with the Node server and its dependencies.
    pub(crate) node: Option<TempDir>,
    /// The folder with opencode and codex.
    pub(crate) peers: Option<PathBuf>,
    /// Deletes a temporary folder at the end.
    temporary_peers: Option<TempDir>,
    /// The contestants that were chosen; all, if none was.
    chosen: Vec<Contestant>,
}

impl Programs {
    /// Finds or installs each. Missing ones are reported and left out.
    pub(crate) async fn find(options: &crate::Options) -> Result<Self> {
        let mut programs = Self { chosen: options.contestants.clone(), ..Self::default() };
        let grove = match &options.grove {
            Some(grove) => grove.clone(),
            None => std::env::current_exe()?.with_file_name("grove"),
        };
        if grove.is_file() {
            programs.grove = Some(std::path::absolute(grove)?);
        } else {
            eprintln!("no grove: build it first (cargo build --release -p grove), or give its path with --grove");
        }
        if options.runs(Contestant::Node) {
            match node().await {
                Ok(folder) => programs.node = Some(folder),
                Err(error) => eprintln!("no Node server: {error:#}"),
            }
        }
        if options.peers {
            let (folder, temporary) = match &options.peers_dir {
                Some(folder) => (std::path::absolute(folder)?, None),
                None => {
                    let folder = tempfile::tempdir()?;
                    (folder.path().to_owned(), Some(folder))
                }
            };
            match peers(&folder).await {
                Ok(()) => programs.peers = Some(folder),
                Err(error) => eprintln!("no opencode and no codex: {error:#}"),
            }
            programs.temporary_peers = temporary;
        }
        Ok(programs)
    }

    /// The streaming contestants, in the order of the report.
    pub(crate) fn streaming(&self) -> Vec<Contestant> {
        use Contestant::{Bare, BareAhp, Grove, GroveAhp, GroveMixed, Node};
        self.those([Grove, GroveAhp, GroveMixed, Bare, BareAhp, Node])
    }

    /// The contestants whose idle connections are measured.
    pub(crate) fn idle(&self) -> Vec<Contestant> {
        self.those([Contestant::Grove, Contestant::GroveAhp, Contestant::Bare, Contestant::Node])
    }

    /// The contestants that can send a single event.
    pub(crate) fn telling(&self) -> Vec<Contestant> {
        use Contestant::{Bare, Codex, Grove, Node, Opencode};
        self.those([Grove, Bare, Node, Opencode, Codex])
    }

    fn those<const N: usize>(&self, contestants: [Contestant; N]) -> Vec<Contestant> {
        let there = |contestant: &Contestant| match contestant.program() {
            Program::Grove => self.grove.is_some(),
            Program::Bare => true,
            Program::Node => self.node.is_some(),
            Program::Opencode | Program::Codex => self.peers.is_some(),
        };
        let chosen = |contestant: &Contestant| self.chosen.is_empty() || self.chosen.contains(contestant);
        contestants.into_iter().filter(there).filter(chosen).collect()
    }
}

/// Installs the Node server and its one dependency into a new folder.
async fn node() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let files = [
        ("server.mjs", include_str!("../node/server.mjs")),
        ("package.json", include_str!("../node/package.json")),
        ("package-lock.json", include_str!("../node/package-lock.json")),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text)?;
    }
    npm(folder.path(), &["ci"]).await?;
    Ok(folder)
}

async fn peers(folder: &Path) -> Result<()> {
    let program = |name: &str| folder.join("node_modules/.bin").join(name);
    if program("opencode").exists() && program("codex").exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("package.json"), r#"{"private":true}"#)?;
    eprintln!("installing {OPENCODE} and {CODEX}");
    npm(folder, &["install", OPENCODE, CODEX]).await
}

async fn npm(folder: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("npm");
    command.args(arguments).args(["--no-audit", "--no-fund", "--loglevel=error"]);
    let output = command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(INSTALL, output).await.context("npm took too long")?.context("starting npm")?;
    ensure!(output.status.success(), "npm failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A running server.
pub(crate) struct Server {
    pub(crate) target: Target,
    child: Child,
    /// Closing it ends a server that watches its stdin.
    _stdin: Option<ChildStdin>,
    _folder: TempDir,
}

/// The first output of Grove, of the bare and of the Node server.
#[derive(Deserialize)]
struct Hello {
    ws: String,
    pid: u32,
    token: Option<String>,
}

impl Server {
    pub(crate) async fn start(contestant: Contestant, programs: &Programs) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("timeout");
        command.args(["--kill-after=3", LIFE_SECONDS]);
        match contestant.program() {
            Program::Grove => {
                command.arg(programs.grove.as_ref().context("no grove")?);
                command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--data-dir"]).arg(folder.path());
            }
            Program::Bare => {
                command.arg(std::env::current_exe()?).arg("bare");
            }
            Program::Node => {
                let server = programs.node.as_ref().context("no Node server")?;
                command.arg("node").arg(server.path().join("server.mjs"));
            }
            Program::Opencode => {
                let models = folder.path().join("models.json");
                std::fs::write(&models, "{}")?;
                command.arg(programs.peer("opencode")?).args(["serve", "--hostname", "127.0.0.1", "--port", "0"]);
                command.env("OPENCODE_MODELS_PATH", models).env("OPENCODE_DISABLE_MODELS_FETCH", "1");
                command.env("OPENCODE_DISABLE_AUTOUPDATE", "1").env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
                command.env("HOME", folder.path()).current_dir(folder.path());
                for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
                    command.env(name, folder.path().join(name));
                }
            }
            Program::Codex => {
                command.arg(programs.peer("codex")?).args(["app-server", "--listen", "ws://127.0.0.1:0"]);
                command.env("HOME", folder.path()).env("CODEX_HOME", folder.path()).current_dir(folder.path());
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting the server under `timeout`")?;
        let stdin = child.stdin.take();
        let mut lines = lines(&mut child);
        let target = tokio::time::timeout(START, target(contestant, &mut lines));
        let target = target.await.unwrap_or_else(|_| bail!("it did not print its address"));
        let target = match target {
            Ok(target) => target,
            Err(error) => {
                end(&mut child).await?;
                return Err(error);
            }
        };
        Ok(Self { target, child, _stdin: stdin, _folder: folder })
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        end(&mut self.child).await
    }
}

impl Programs {
    fn peer(&self, name: &str) -> Result<PathBuf> {
        Ok(self.peers.as_ref().context("not installed")?.join("node_modules/.bin").join(name))
    }
}

/// `timeout` forwards the signal to its children, and kills them after a while.
async fn end(child: &mut Child) -> Result<()> {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid as i32)) {
        kill_process(pid, Signal::TERM)?;
    }
    tokio::time::timeout(Duration::from_secs(10), child.wait()).await.context("the server does not end")??;
    Ok(())
}

/// The output of the server on both streams, for as long as it runs: a full pipe would block it.
fn lines(child: &mut Child) -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let forward = |stream: Box<dyn AsyncRead + Send + Unpin>| {
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stream).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                // The receiver is dropped once the server is found.
                drop(sender.send(line));
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

async fn target(contestant: Contestant, lines: &mut mpsc::UnboundedReceiver<String>) -> Result<Target> {
    let mut output = Vec::new();
    while let Some(line) = lines.recv().await {
        let found = match contestant.program() {
            Program::Grove | Program::Bare | Program::Node => serde_json::from_str::<Hello>(&line).ok(),
            Program::Opencode => {
                let address = line.split_once("listening on http://").map(|(_, address)| address.trim());
                address.map(|address| Hello { ws: format!("ws://{address}/event"), pid: 0, token: None })
            }
            Program::Codex => {
                let address = line.split_once("listening on: ws://").map(|(_, address)| address.trim());
                address.map(|address| Hello { ws: format!("ws://{address}/"), pid: 0, token: None })
            }
        };
        if let Some(hello) = found {
            return hello.target(contestant);
        }
        output.push(line);
    }
    bail!("it ended: {}", output.join("\n"))
}

impl Hello {
    fn target(self, contestant: Contestant) -> Result<Target> {
        let rest = self.ws.strip_prefix("ws://").with_context(|| format!("{} is not a ws URL", self.ws))?;
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let token = self.token.map(|token| format!("?tkn={token}")).unwrap_or_default();
        Ok(Target { contestant, address: address.parse()?, path: format!("/{path}{token}"), pid: self.pid })
    }
}
