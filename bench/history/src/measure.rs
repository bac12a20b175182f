//! Grove's process: one home, from nothing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use grove_history::catalog::{Catalog, Filter, Scan};
use grove_history::{Environment, Platform, locations, reader_of};
use serde::{Deserialize, Serialize};

/// How often the list is asked for.
const LISTS: u32 = 100;
/// How many turns of the largest session are wanted.
const WINDOW: usize = 100;

/// What was measured, in milliseconds and bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures {
    pub(crate) sessions: usize,
    pub(crate) recovered: usize,
    pub(crate) problems: usize,
    pub(crate) scan: f64,
    pub(crate) peak: u64,
    pub(crate) rescan: f64,
    pub(crate) list: f64,
    pub(crate) open: f64,
    pub(crate) opened_bytes: u64,
    pub(crate) catalog_bytes: u64,
}

pub(crate) fn print(home: &Path) -> Result<()> {
    println!("{}", serde_json::to_string(&measure(home)?)?);
    Ok(())
}

fn measure(home: &Path) -> Result<Figures> {
    let folder = tempfile::tempdir()?;
    let environment = Environment { home: home.to_string_lossy().into_owned(), ..Environment::default() };
    let mut roots = locations(Platform::Linux, &environment);
    // Some lie outside of any home.
    roots.retain(|root| root.folder.starts_with(home));
    let scan = Scan { roots, keep: None };
    let database = folder.path().join("history.db");
    let catalog = Catalog::open(&database)?;

    let begun = Instant::now();
    let report = catalog.scan(&scan, &mut |_| {})?;
    let first = begun.elapsed();
    let peak = peak_memory().context("the system does not tell how much memory was used")?;
    let begun = Instant::now();
    let again = catalog.scan(&scan, &mut |_| {})?;
    let rescan = begun.elapsed();
    ensure!(again.read == 0, "{} files were read again", again.read);
    let begun = Instant::now();
    for _ in 0..LISTS {
        catalog.list(&Filter::default(), None, 100)?;
    }
    let list = begun.elapsed() / LISTS;

    let mut largest: Option<(u64, _)> = None;
    catalog.each(|entry| {
        let size = fs::metadata(&entry.path).map_or(0, |metadata| metadata.len());
        if largest.as_ref().is_none_or(|(most, _)| size > *most) {
            largest = Some((size, entry));
        }
    })?;
    let (opened_bytes, entry) = largest.context("the home has no session")?;
    let begun = Instant::now();
    let mut window = std::collections::VecDeque::new();
    reader_of(entry.source()).read(&entry.located(), None, &mut |turn| {
        window.push_back(turn);
        if window.len() > WINDOW {
            window.pop_front();
        }
    })?;
    let open = begun.elapsed();
    Ok(Figures {
        sessions: report.sessions,
        recovered: report.recovered,
        problems: report.problems.len() + report.untold_problems,
        scan: millis(first),
        peak,
        rescan: millis(rescan),
        list: millis(list),
        open: millis(open),
        opened_bytes,
        catalog_bytes: fs::metadata(&database)?.len(),
    })
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 1e2
}

/// The most memory that this process has had, where the system tells.
fn peak_memory() -> Option<u64> {
    memory(&fs::read_to_string("/proc/self/status").ok()?)
}

/// The most memory that a process has had, by what the system says of it.
pub(crate) fn memory(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
