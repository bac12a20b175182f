//! The SDK that measures, the CLI that Grove is compared with, and a fake model for the CLI.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::Options;
use crate::job::{Job, StepTimes};
use crate::process;

/// How long the installation may take.
const INSTALL: Duration = Duration::from_secs(300);
const LOCK: &str = include_str!("../node/package-lock.json");

/// The folder of the SDK and the CLI.
#[derive(Debug)]
pub(crate) struct Peers {
    folder: PathBuf,
}

impl Peers {
    /// Installs missing packages from the lock file, without running their scripts.
    pub(crate) async fn install(options: &Options) -> Result<Self> {
        let folder = match &options.peers_dir {
            Some(folder) => std::path::absolute(folder)?,
            None => in_target()?,
        };
        std::fs::create_dir_all(&folder)?;
        let is_installed = || std::fs::read_to_string(folder.join("installed")).is_ok_and(|lock| lock == LOCK);
        // The script must be this program's, whatever version was there before.
        std::fs::write(folder.join("measure.mjs"), include_str!("../node/measure.mjs"))?;
        if !is_installed() {
            eprintln!("installing the SDK and the CLI into {}", folder.display());
            std::fs::write(folder.join("package.json"), include_str!("../node/package.json"))?;
            std::fs::write(folder.join("package-lock.json"), LOCK)?;
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
            npm.current_dir(&folder).stdin(Stdio::null()).kill_on_drop(true);
            let output = tokio::time::timeout(INSTALL, npm.output()).await.context("npm took too long")?;
            let output = output.context("starting npm, which the SDK is installed with")?;
            ensure!(output.status.success(), "npm failed: {}", String::from_utf8_lossy(&output.stderr).trim());
            std::fs::write(folder.join("installed"), LOCK)?;
        }
        Ok(Self { folder })
    }

    /// The CLI's program.
    pub(crate) fn copilot(&self) -> PathBuf {
        self.folder.join("node_modules/.bin/copilot")
    }

    /// The installed version of a package.
    pub(crate) fn version(&self, package: &str) -> Result<String> {
        let file = self.folder.join("node_modules").join(package).join("package.json");
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let package: serde_json::Value = serde_json::from_str(&text)?;
        Ok(package["version"].as_str().context("a package has a version")?.to_owned())
    }

    /// Runs a job with the SDK.
    pub(crate) async fn measure(&self, job: &Job, limit: Duration, home: &Path) -> Result<StepTimes> {
        let mut command = Command::new("timeout");
        command.arg("--kill-after=3").arg(limit.as_secs().to_string()).arg("node");
        command.arg(self.folder.join("measure.mjs")).arg(serde_json::to_string(job)?);
        command.current_dir(&self.folder).env("HOME", home).stdin(Stdio::null()).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().context("starting node, which the SDK runs on")?;
        let group = child.id();
        let output = child.wait_with_output().await?;
        if let Some(group) = group {
            process::gone(group).await?;
        }
        let problem = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        ensure!(output.status.success(), "{}: {}", output.status, problem());
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().with_context(problem)?;
        serde_json::from_str(line).with_context(|| line.to_owned())
    }
}

/// This program is in `<target>/<profile>/`.
fn in_target() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).context("this program is not in a target folder: give --peers-dir")?;
    Ok(target.join("peers/sessionfs"))
}
