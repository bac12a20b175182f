//! Starting and stopping the servers.
//!
//! Each runs under `timeout`, in its own process group, so that none outlives an interrupted benchmark.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use grove_testkit::model::MODEL;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::job::{Contestant, Reached, Wire};
use crate::process;

/// How long a server may take to start, and to stop.
const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(20);
/// The number of output lines kept for an error; further ones are dropped.
const SAID: usize = 1_000;
/// The token of the CLI's clients. It listens on loopback during the measurement.
const TOKEN: &str = "bench";

/// The programs of the servers.
pub(crate) struct Programs {
    pub(crate) grove: PathBuf,
    pub(crate) copilot: PathBuf,
    /// The base address of the CLI's model.
    pub(crate) model: String,
    /// A home for the files that the CLI unpacks.
    pub(crate) home: PathBuf,
}

/// A contestant's folder, before its server is started there.
pub(crate) struct ContestantFolder {
    contestant: Contestant,
    folder: TempDir,
}

impl ContestantFolder {
    pub(crate) fn new(contestant: Contestant) -> Result<Self> {
        let place = Self { contestant, folder: tempfile::tempdir()? };
        std::fs::create_dir_all(place.sessions())?;
        std::fs::create_dir(place.work())?;
        Ok(place)
    }

    /// The folder of its sessions.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.data().join("session-state")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The working directory of its sessions.
    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }
}

/// A running server, or one that the SDK starts.
pub(crate) struct Server {
    pub(crate) reached: Reached,
    /// The SDK's options of sessions here.
    pub(crate) session: Value,
    child: Option<Child>,
    _place: ContestantFolder,
}

/// The first output of Grove.
#[derive(Deserialize)]
struct Hello {
    copilot: String,
    token: String,
}

impl Server {
    pub(crate) async fn start(
        place: ContestantFolder,
        wire: Wire,
        programs: &Programs,
        limit: Duration,
    ) -> Result<Self> {
        let session = session(&place, programs);
        let env = environment(&place, programs)?;
        let stdio = |program: &Path, args: &[&str]| Reached::Stdio {
            program: program.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: env.clone(),
        };
        if (place.contestant, wire) == (Contestant::Copilot, Wire::Stdio) {
            return Ok(Self { reached: stdio(&programs.copilot, &[]), session, child: None, _place: place });
        }
        let mut command = Command::new("timeout");
        command.arg("--kill-after=3").arg((limit + START).as_secs().to_string()).env_clear().envs(&env);
        match place.contestant {
            Contestant::Grove => {
                command.arg(&programs.grove).args(["serve", "--json", "--listen", "127.0.0.1:0"]);
                command.args(["--copilot-listen", "127.0.0.1:0"]);
            }
            Contestant::Copilot => {
                command.arg(&programs.copilot).args(["--headless", "--no-auto-update", "--port", "0"]);
            }
        }
        command.current_dir(place.work());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("starting the server under `timeout`")?;
        let mut lines = lines(&mut child);
        let found = tokio::time::timeout(START, found(place.contestant, &mut lines)).await;
        let (address, token) = match found.unwrap_or_else(|_| bail!("it did not print its address")) {
            Ok(found) => found,
            Err(error) => {
                end(&mut child).await?;
                return Err(error);
            }
        };
        let reached = match wire {
            Wire::Tcp => Reached::Tcp { address, token },
            // The program that the SDK starts finds the host of its data folder.
            Wire::Stdio => stdio(&programs.grove, &["copilot"]),
        };
        Ok(Self { reached, session, child: Some(child), _place: place })
    }

    /// Its peak memory so far, in MiB.
    pub(crate) fn peak(&self) -> Result<f64> {
        let child = self.child.as_ref().context("the SDK starts this server")?;
        process::peak_mebibytes(child.id().context("the server has ended")?)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        match &mut self.child {
            Some(child) => end(child).await,
            None => Ok(()),
        }
    }
}

/// The environment of a server, without anything of the user's.
fn environment(place: &ContestantFolder, programs: &Programs) -> Result<BTreeMap<String, String>> {
    let text = |path: &Path| path.to_str().map(str::to_owned).context("the temporary folder's name is not UTF-8");
    let mut env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())]);
    let more = match place.contestant {
        Contestant::Grove => {
            vec![("HOME", text(place.folder.path())?), ("GROVE_DATA_DIR", text(&place.data())?)]
        }
        Contestant::Copilot => vec![
            ("HOME", text(&programs.home)?),
            ("COPILOT_HOME", text(&place.data())?),
            ("COPILOT_CONNECTION_TOKEN", TOKEN.to_owned()),
            ("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", programs.model)),
            ("COPILOT_PROVIDER_API_KEY", "x".to_owned()),
            ("COPILOT_MODEL", MODEL.to_owned()),
            ("COPILOT_OFFLINE", "true".to_owned()),
            ("COPILOT_AUTO_UPDATE", "false".to_owned()),
        ],
    };
    env.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Ok(env)
}

/// The path of a program that is built together with this one.
pub(crate) fn beside(given: Option<&Path>, name: &str) -> Result<PathBuf> {
    let path = match given {
        Some(path) => std::path::absolute(path)?,
        None => std::env::current_exe()?.with_file_name(name),
    };
    if !path.is_file() {
        bail!("there is no {}: build it with `cargo build --release -p grove`, or give --grove", path.display());
    }
    Ok(path)
}

fn session(place: &ContestantFolder, programs: &Programs) -> Value {
    match place.contestant {
        Contestant::Grove => json!({"model": "scripted", "workingDirectory": place.work()}),
        Contestant::Copilot => json!({
            "model": MODEL,
            "provider": {"type": "openai", "baseUrl": format!("{}/v1", programs.model), "wireApi": "completions"},
            "workingDirectory": place.work(),
        }),
    }
}

/// `timeout` forwards the signal to its whole group, and kills it after a while.
async fn end(child: &mut Child) -> Result<()> {
    let group = child.id();
    if let Some(pid) = group.and_then(|pid| Pid::from_raw(pid as i32)) {
        kill_process(pid, Signal::TERM)?;
    }
    tokio::time::timeout(END, child.wait()).await.context("the server does not end")??;
    match group {
        Some(group) => process::gone(group).await,
        None => Ok(()),
    }
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

/// The address and the token that a server prints.
async fn found(contestant: Contestant, lines: &mut mpsc::Receiver<String>) -> Result<(String, String)> {
    let mut output = Vec::new();
    while let Some(line) = lines.recv().await {
        match contestant {
            Contestant::Grove => {
                if let Ok(Hello { copilot, token }) = serde_json::from_str(&line) {
                    return Ok((copilot, token));
                }
            }
            Contestant::Copilot => {
                if let Some(port) = port(&line) {
                    return Ok((format!("127.0.0.1:{port}"), TOKEN.to_owned()));
                }
            }
        }
        output.push(line);
    }
    bail!("it ended: {}", output.join("\n"))
}

fn port(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("listening on port ")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_in_what_the_cli_says() {
        assert_eq!(port("CLI server listening on port 18100"), Some(18100));
        assert_eq!(port("listening on port 80."), Some(80));
        assert_eq!(port("listening on port none"), None);
        assert_eq!(port("starting"), None);
    }
}
