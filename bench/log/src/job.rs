//! The output of the measuring processes, Grove's and the peers' alike.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The number of appended entries, and of the sessions that they come from in turn.
pub(crate) const APPENDS: usize = 1_000;
pub(crate) const SESSIONS: usize = 10;

/// The compared programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Contestant {
    #[serde(rename = "grove")]
    Grove,
    #[serde(rename = "grove with side index")]
    GroveWithSideIndex,
    #[serde(rename = "pi 1.5")]
    Pi15,
    #[serde(rename = "pi 0.73.1")]
    Pi073,
    #[serde(rename = "oh-my-pi 18")]
    Omp,
}

impl Contestant {
    pub(crate) const ALL: [Self; 5] = [Self::Grove, Self::GroveWithSideIndex, Self::Pi15, Self::Pi073, Self::Omp];
    pub(crate) const PEERS: [Self; 3] = [Self::Pi15, Self::Pi073, Self::Omp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grove => "grove",
            Self::GroveWithSideIndex => "grove, side index",
            Self::Pi15 => "pi 1.5",
            Self::Pi073 => "pi 0.73.1",
            Self::Omp => "oh-my-pi 18",
        }
    }
}

/// An opened log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Loaded {
    pub(crate) milliseconds: f64,
    pub(crate) peak_bytes: u64,
    /// The content, to detect contestants that leave something out.
    pub(crate) found: LogContent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogContent {
    pub(crate) entries: usize,
    pub(crate) leaf: Option<String>,
    /// Entries from the root to the leaf.
    pub(crate) branch: usize,
}

/// The newest entries of a log's branch, read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Screen {
    pub(crate) milliseconds: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
    /// The id of the newest.
    pub(crate) leaf: String,
}

/// Entries that were appended one by one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Appended {
    pub(crate) total_milliseconds: f64,
    pub(crate) p50_milliseconds: f64,
    pub(crate) p99_milliseconds: f64,
    pub(crate) bytes: u64,
    /// The number of syncs.
    pub(crate) syncs: usize,
}

/// The peak memory of this process so far.
pub(crate) fn peak_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("only Linux reports the peak memory")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

pub(crate) fn percentile(sorted: &[f64], part: f64) -> Option<f64> {
    let at = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied()
}
