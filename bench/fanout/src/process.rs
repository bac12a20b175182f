//! Processor time, memory and limits of a process.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::job::Memory;

/// The processor time of a process in seconds, in user and kernel mode, of all threads that it ever had.
///
/// The clock of the process counts nanoseconds. `/proc/<pid>/stat` counts hundredths of a second, and a paced run takes only a few.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid)?)).context("the server has ended")?;
    Ok(Duration::from(clock.now().context("the server has ended")?).as_secs_f64())
}

pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the server has ended")?;
    let bytes = |key: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("no {key}"))?;
        let kibibytes = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>()?;
        Ok(kibibytes * 1024)
    };
    Ok(Memory { resident_bytes: bytes("VmRSS")?, peak_bytes: bytes("VmHWM")? })
}

/// Raises the limit of open files of this process and its children, as far as it is allowed.
pub(crate) fn raise_open_files() -> u64 {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: now.maximum, maximum: now.maximum };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => now.maximum,
        Err(_) => now.current,
    };
    allowed.unwrap_or(u64::MAX)
}
