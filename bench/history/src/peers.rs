//! Other programs that read the same stores: agentsview (an index of sessions) and ccusage (a scan without one).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::measure::memory;

/// The interval of memory readings.
const GLANCE: Duration = Duration::from_millis(5);

/// A peer's task and its result, or the reason why it is not available.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) figures: Result<PeerFigures, String>,
}

/// The cost of a peer, in milliseconds and bytes. Its memory is that of its first process alone.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PeerFigures {
    pub(crate) time: f64,
    pub(crate) peak: u64,
}

/// Installs the peers into a folder if they are missing, and runs each on a home.
///
/// Files that agentsview writes are deleted.
pub(crate) fn measure(folder: &Path, home: &Path) -> Vec<Peer> {
    let index = home.join(".agentsview");
    fs::remove_dir_all(&index).ok();
    let sync = || {
        let mut command = Command::new(install_agentsview(folder)?);
        command.arg("sync").env("AGENTSVIEW_NO_DAEMON", "1");
        run(command, home)
    };
    let daily = || {
        let mut command = Command::new(install_ccusage(folder)?);
        command.args(["daily", "--offline", "--json"]);
        run(command, home)
    };
    let all = vec![
        peer("agentsview", "first index", sync()),
        peer("agentsview", "nothing changed", sync()),
        peer("ccusage", "scan of the files that it knows", daily()),
    ];
    fs::remove_dir_all(&index).ok();
    all
}

fn peer(name: &'static str, what: &'static str, figures: Result<PeerFigures>) -> Peer {
    let figures = figures.map_err(|error| format!("{error:#}").lines().next().unwrap_or_default().to_owned());
    Peer { name, what, figures }
}

fn install_agentsview(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("venv/bin/agentsview");
    if !program.exists() {
        fs::create_dir_all(folder)?;
        must(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
        must(Command::new(folder.join("venv/bin/pip")).args(["install", "--quiet", "agentsview"]))?;
    }
    Ok(program)
}

fn install_ccusage(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("node_modules/.bin/ccusage");
    if !program.exists() {
        fs::create_dir_all(folder)?;
        let mut command = Command::new("npm");
        command.args(["install", "--silent", "--include=optional", "--prefix"]).arg(folder).arg("ccusage");
        // The program itself is an optional dependency of the package, one per platform. Some settings of npm leave
        // those out, so it is named as well.
        let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
        let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        command.arg(format!("@ccusage/ccusage-{system}-{machine}"));
        must(&mut command)?;
    }
    Ok(program)
}

fn must(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last_line = stderr.lines().last().unwrap_or("no output").to_owned();
    ensure!(output.status.success(), "{:?} failed: {last_line}", command.get_program());
    Ok(())
}

fn run(mut command: Command, home: &Path) -> Result<PeerFigures> {
    let start = Instant::now();
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start it")?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        peak = peak.max(fs::read_to_string(&status_file).ok().as_deref().and_then(memory).unwrap_or(0));
        match child.try_wait()? {
            Some(status) => break status,
            None => sleep(GLANCE),
        }
    };
    ensure!(status.success(), "it failed: {status}");
    Ok(PeerFigures { time: (start.elapsed().as_secs_f64() * 1e4).round() / 1e1, peak })
}
