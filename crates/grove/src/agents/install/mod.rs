//! Installing a known agent into the data folder, and removing it.
//!
//! [`InstallPlan`] says which programs run, before anything runs. [`run()`] carries it out in a new folder of
//! `programs/NAME`, so that an installation that fails leaves the earlier one as it was. The record
//! ([`InstalledAgent`]) is written last.

mod plan;
pub(crate) mod prepared;
mod requirements;
pub(crate) mod run;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use grove_agents::catalog::InstalledAgent;
use rustix::process::Pid;

pub(crate) use plan::{InstallPlan, PlanError, obstacle};
pub(crate) use run::run;

/// The lock of an agent's folder: one command at a time changes it.
#[derive(Debug)]
pub(crate) struct AgentFolderLock {
    _file: File,
    folder: PathBuf,
}

/// The reason why the folder of an installed agent cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentFolderError {
    #[error("another command installs or removes {agent}: wait for it, then try again")]
    Busy { agent: String },
    #[error("{} cannot be changed: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl AgentFolderLock {
    /// Locks the folder of an agent, and creates it if it is missing.
    pub(crate) fn take(programs: &Path, agent: &str) -> Result<Self, AgentFolderError> {
        let folder = InstalledAgent::folder(programs, agent);
        let failed = |error| AgentFolderError::Io { path: folder.clone(), error };
        make_private(programs).map_err(failed)?;
        make_private(&folder).map_err(failed)?;
        let file = File::create(folder.join(".lock")).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file, folder }),
            Err(TryLockError::WouldBlock) => Err(AgentFolderError::Busy { agent: agent.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes every version except this one. A version that a process uses stays until the next installation.
    pub(crate) fn remove_other_versions(&self, keep: &Path) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() && path != keep && users_of(&path).is_empty() {
                // What cannot be removed now is tried again with the next installation.
                fs::remove_dir_all(&path).ok();
            }
        }
    }

    /// Removes the agent with all its versions.
    pub(crate) fn remove_agent(self) -> Result<(), AgentFolderError> {
        let failed = |error| AgentFolderError::Io { path: self.folder.clone(), error };
        // Without the record it counts as not installed, whatever happens to the rest.
        match fs::remove_file(self.folder.join("installed.json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        fs::remove_dir_all(&self.folder).map_err(failed)
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The processes whose program or arguments are in a folder. Without `/proc` none are known.
pub(crate) fn users_of(folder: &Path) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let folder = folder.as_os_str().as_encoded_bytes();
    let uses = |process: &Path| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        let program = fs::read_link(process.join("exe")).unwrap_or_default();
        // The shim of an agent names the program of its agent in its arguments, too, and ends with it.
        [arguments.as_slice(), program.as_os_str().as_encoded_bytes()]
            .iter()
            .any(|bytes| bytes.windows(folder.len()).any(|part| part == folder))
    };
    let processes = entries.flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        uses(&entry.path()).then_some(id)
    });
    processes.filter(|id| *id != rustix::process::getpid()).collect()
}
