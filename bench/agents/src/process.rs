//! Processor time and memory of processes.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) resident_bytes: u64,
    pub(crate) peak_bytes: u64,
    /// The resident memory that is not backed by a file.
    pub(crate) own_bytes: u64,
}

/// The processes of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    pub(crate) shims: Vec<u32>,
    pub(crate) agents: Vec<u32>,
}

impl Family {
    /// The shims that a server has started, and the agents of the shims or of the server itself.
    pub(crate) fn of(server: u32) -> Result<Self> {
        let mut parents = Vec::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            // Processes may end in the meantime.
            if let Some(parent) = stat(pid).ok().and_then(|fields| fields.get(1)?.parse::<u32>().ok()) {
                parents.push((pid, parent));
            }
        }
        let children = |of: &[u32]| {
            let theirs = parents.iter().filter(|(_, parent)| of.contains(parent));
            theirs.map(|(pid, _)| *pid).collect::<Vec<_>>()
        };
        let direct = children(&[server]);
        let (shims, others): (Vec<u32>, Vec<u32>) = direct.into_iter().partition(|pid| is_shim(*pid));
        let agents = if shims.is_empty() { others } else { children(&shims) };
        Ok(Self { shims, agents })
    }

    /// Ends the remaining shims; their agents end with them.
    pub(crate) fn end(&self) {
        for pid in self.shims.iter().filter(|pid| is_shim(**pid)) {
            if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
                // It may have ended already.
                kill_process(pid, Signal::TERM).ok();
            }
        }
    }
}

/// The processor time of all of these in seconds. Ended processes count as zero.
pub(crate) fn cpu_of_all(pids: &[u32]) -> f64 {
    pids.iter().filter_map(|pid| cpu_seconds(*pid).ok()).sum()
}

/// The processor time of a process in seconds, in user and kernel mode.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    let fields = stat(pid)?;
    let ticks = |n: usize| -> Result<u64> { Ok(fields.get(n).context("too few fields in /proc/<pid>/stat")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the process has ended")?;
    let bytes = |key: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("no {key}"))?;
        let kibibytes = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>()?;
        Ok(kibibytes * 1024)
    };
    Ok(Memory { resident_bytes: bytes("VmRSS")?, peak_bytes: bytes("VmHWM")?, own_bytes: bytes("RssAnon")? })
}

/// The fields after the name in `/proc/<pid>/stat`: state, parent and so on.
fn stat(pid: u32) -> Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the process has ended")?;
    // The name in parentheses may contain anything; the fields after it are plain.
    let (_, fields) = stat.rsplit_once(')').context("an unknown form of /proc/<pid>/stat")?;
    Ok(fields.split_ascii_whitespace().map(ToOwned::to_owned).collect())
}

fn is_shim(pid: u32) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).any(|argument| argument == b"agent-shim")
}
