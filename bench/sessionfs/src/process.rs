//! What the system says of processes.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

const MEBIBYTE: f64 = (1 << 20) as f64;

/// How long the processes of a group may take to end after the one that began it.
const END: Duration = Duration::from_secs(10);

/// What the largest process of a group had at most, in MiB. A server may have been started by another program, that is
/// still there.
pub(crate) fn peak_mebibytes(group: u32) -> Result<f64> {
    let peaks = members(group)?.into_iter().filter_map(peak_of);
    peaks.reduce(f64::max).context("the server has ended")
}

/// Waits until nothing of a group is left: what still runs would write into folders that are being removed.
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
    // Processes end while one looks.
    Ok(pids.filter(|pid| group_of(*pid) == Some(group)).collect())
}

fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; what follows it is plain: state, parent, group.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn peak_of(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kibibytes * 1024.0 / MEBIBYTE)
}
