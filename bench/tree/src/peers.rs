//! The compared programs, installed with npm as in `bench/log`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tempfile::TempDir;

use crate::Options;
use crate::job::Contestant;

/// The available peers.
#[derive(Default)]
pub(crate) struct Peers {
    pub(crate) list: Vec<Peer>,
    /// With the script that measures them, and a home for them.
    folder: Option<TempDir>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Peer {
    pub(crate) contestant: Contestant,
    pub(crate) version: String,
    #[serde(skip)]
    program: PathBuf,
    #[serde(skip)]
    module: PathBuf,
}

impl Peers {
    /// Installs each. Missing ones are reported and left out.
    pub(crate) fn find(options: &Options) -> Result<Self> {
        if options.no_peers {
            return Ok(Self::default());
        }
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("install.sh");
        std::fs::write(&script, include_str!("../../log/peers/install.sh"))?;
        std::fs::write(folder.path().join("measure.mjs"), include_str!("../peers/measure.mjs"))?;
        let into = match &options.peers_dir {
            Some(folder) => std::path::absolute(folder)?,
            None => folder.path().to_owned(),
        };
        eprintln!("installing pi and oh-my-pi");
        let mut list = Vec::new();
        for contestant in Contestant::PEERS {
            match install(contestant, &script, &into) {
                Ok(peer) => {
                    eprintln!("{}: {}", contestant.name(), peer.version);
                    list.push(peer);
                }
                Err(error) => eprintln!("{} is left out: {error:#}", contestant.name()),
            }
        }
        Ok(Self { list, folder: Some(folder) })
    }

    /// A command that measures one of them, with its own home.
    pub(crate) fn measure(&self, contestant: Contestant) -> Result<Command> {
        let folder = self.folder.as_ref().context("no peers")?.path();
        let peer = self.list.iter().find(|peer| peer.contestant == contestant).context("not installed")?;
        let mut command = Command::new("timeout");
        command.args(["--kill-after=3", "120"]).arg(&peer.program).arg(folder.join("measure.mjs")).arg(&peer.module);
        command.env("HOME", folder.join("home")).current_dir(folder);
        Ok(command)
    }
}

fn install(contestant: Contestant, script: &Path, into: &Path) -> Result<Peer> {
    let name = match contestant {
        Contestant::Pi15 => "pi15",
        Contestant::Omp => "omp",
        Contestant::Grove | Contestant::GroveFromFile => bail!("Grove needs no installation"),
    };
    let output = Command::new("sh").arg(script).arg(name).arg(into).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut lines = text.lines();
    let mut line = || lines.next().context("the output of the installation is incomplete");
    Ok(Peer { contestant, program: line()?.into(), module: line()?.into(), version: line()?.to_owned() })
}
