//! Memory and groups of processes.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

const MEBIBYTE: f64 = (1 << 20) as f64;

/// How long the processes of a group may take to end after its first one.
const END: Duration = Duration::from_secs(10);

/// The peak memory of the largest process of a group, in MiB.
///
/// The group may include the program that started the server.
pub(crate) fn peak_mebibytes(group: u32) -> Result<f64> {
    let peaks = members(group)?.into_iter().filter_map(peak_of);
    peaks.reduce(f64::max).context("the server has ended")
}

/// Waits for the end of all processes of a group, since they could write into folders that are being deleted.
pub(crate) async fn gone(group: u32) -> Result<()> {
    let waiting = async {
        while !members(group)?.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    tokio::time::timeout(END, waiting).await.context("a server's processes do not end")?
}

fn members(group: u32) -> Result<Vec<u32>> {
    let names = fs::read_dir("/proc")?.flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    // Processes may end in the meantime.
    Ok(pids.filter(|pid| group_of(*pid) == Some(group)).collect())
}

fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the fields after it are plain: state, parent, group.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn peak_of(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kibibytes * 1024.0 / MEBIBYTE)
}
