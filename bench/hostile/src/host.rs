//! Hosts in processes of their own, with their memory and descriptors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(30);

/// A running host. It runs under `timeout`, so that it does not outlive an interrupted benchmark.
pub(crate) struct Host {
    pub(crate) ws: String,
    pub(crate) token: String,
    pub(crate) pid: u32,
    child: Child,
    _folder: TempDir,
}

#[derive(Deserialize)]
struct Hello {
    ws: String,
    pid: u32,
    token: String,
}

impl Host {
    /// Starts a host that ends after `limit` at the latest.
    pub(crate) async fn start(grove: &Path, limit: Duration, args: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("timeout");
        command.arg("--kill-after=3").arg((limit + START).as_secs().to_string());
        command.arg(grove).args(["serve", "--listen", "127.0.0.1:0", "--json"]).args(args);
        command.arg("--data-dir").arg(folder.path().join("data")).env("HOME", folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().context("starting the host under `timeout`")?;
        let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let line = timeout(START, lines.next_line()).await.context("the host does not start")??;
        let Some(Hello { ws, pid, token }) = line.and_then(|line| serde_json::from_str(&line).ok()) else {
            bail!("the host did not print its address")
        };
        Ok(Self { ws, token, pid, child, _folder: folder })
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, Signal::TERM)?;
        }
        timeout(END, self.child.wait()).await.context("the host does not end")??;
        Ok(())
    }

    /// The resident memory that is not backed by a file, and its highest value, in MiB.
    pub(crate) fn memory(&self) -> Result<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).context("the host has ended")?;
        let mebibytes = |key: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("no {key}"))?;
            Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
        };
        Ok((mebibytes("RssAnon")?, mebibytes("VmHWM")?))
    }

    pub(crate) fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.pid)).context("the host has ended")?.count())
    }
}

/// The program under test.
pub(crate) fn program(given: Option<&Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => std::path::absolute(path)?,
        None => std::env::current_exe()?.with_file_name("grove"),
    };
    if !path.is_file() {
        bail!("no grove: build it first (cargo build --release -p grove), or give its path with --grove");
    }
    Ok(path)
}
