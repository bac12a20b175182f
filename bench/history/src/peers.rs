//! Other programs that look at the same stores: agentsview (an index of sessions) and ccusage (a scan without one).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::measure::memory;

/// How often it is looked how much memory a program has.
const GLANCE: Duration = Duration::from_millis(5);

/// What a peer took, in milliseconds and bytes. Its memory is that of its first process alone.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) time: f64,
    pub(crate) peak: u64,
}

/// Installs the peers into a folder, where they are not there yet.
pub(crate) fn install(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    if !agentsview(folder).exists() {
        must(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
        must(Command::new(folder.join("venv/bin/pip")).args(["install", "--quiet", "agentsview"]))?;
    }
    if !ccusage(folder).exists() {
        must(
            Command::new("npm")
                .args(["install", "--silent", "--include=optional", "--prefix"])
                .arg(folder)
                .arg("ccusage"),
        )?;
    }
    Ok(())
}

/// Has each look at a home; what cannot be run is said and left out. What agentsview writes there is removed.
pub(crate) fn measure(folder: &Path, home: &Path) -> Vec<Peer> {
    let index = home.join(".agentsview");
    fs::remove_dir_all(&index).ok();
    let sync = || {
        let mut command = Command::new(agentsview(folder));
        command.arg("sync").env("AGENTSVIEW_NO_DAEMON", "1");
        command
    };
    let mut daily = Command::new(ccusage(folder));
    daily.args(["daily", "--offline", "--json"]);
    let all = [
        run("agentsview", "first index", sync(), home),
        run("agentsview", "nothing changed", sync(), home),
        run("ccusage", "scan of Claude Code's files", daily, home),
    ];
    fs::remove_dir_all(&index).ok();
    let told = |peer: Result<Peer>| peer.inspect_err(|error| eprintln!("a peer is left out: {error:#}")).ok();
    all.into_iter().filter_map(told).collect()
}

fn agentsview(folder: &Path) -> PathBuf {
    folder.join("venv/bin/agentsview")
}

fn ccusage(folder: &Path) -> PathBuf {
    folder.join("node_modules/.bin/ccusage")
}

fn must(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

fn run(name: &'static str, what: &'static str, mut command: Command, home: &Path) -> Result<Peer> {
    let begun = Instant::now();
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context(name)?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        peak = peak.max(fs::read_to_string(&status_file).ok().as_deref().and_then(memory).unwrap_or(0));
        match child.try_wait()? {
            Some(status) => break status,
            None => sleep(GLANCE),
        }
    };
    ensure!(status.success(), "{name} failed: {status}");
    Ok(Peer { name, what, time: (begun.elapsed().as_secs_f64() * 1e4).round() / 1e1, peak })
}
