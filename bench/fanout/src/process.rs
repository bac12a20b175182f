//! Processor time, memory and limits of a process.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::job::Memory;

/// The processor time of a process in seconds, in user and kernel mode.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the server has ended")?;
    // The name in parentheses may contain anything; the fields after it are plain.
    let (_, fields) = stat.rsplit_once(')').context("an unknown form of /proc/<pid>/stat")?;
    let mut times = fields.split_ascii_whitespace().skip(11).take(2);
    let mut ticks = || -> Result<u64> { Ok(times.next().context("too few fields in /proc/<pid>/stat")?.parse()?) };
    let ticks = ticks()? + ticks()?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
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
