//! Grove's process: one home, without a catalog.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use grove_history::catalog::{Catalog, CatalogEntry, CatalogFilter, ScanRequest};
use grove_history::{Platform, StoreEnvironment, TailLimit, newest, reader_of, store_roots};
use serde::{Deserialize, Serialize};

/// The number of lists.
const LISTS: u32 = 100;
/// The number of entries read of a long session.
const WINDOW: usize = 100;
/// The number of times a session is opened; the median counts.
const OPENINGS: usize = 9;
/// The minimum size of opened sessions: the goal is 50 MB, which the generator reaches roughly.
const LONG: u64 = 40_000_000;

/// The results, in milliseconds and bytes.
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
    pub(crate) catalog_bytes: u64,
    /// The results for each long session.
    pub(crate) opened: Vec<Opened>,
}

/// A long session whose end was read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened {
    /// The tool, and the format of its file if it has several.
    pub(crate) tool: String,
    pub(crate) bytes: u64,
    /// The number of turns with enough entries.
    pub(crate) turns: usize,
    /// Milliseconds for the newest entries, and for reading everything.
    pub(crate) newest: f64,
    pub(crate) whole: f64,
}

pub(crate) fn print(home: &Path) -> Result<()> {
    println!("{}", serde_json::to_string(&measure(home)?)?);
    Ok(())
}

fn measure(home: &Path) -> Result<Figures> {
    let folder = tempfile::tempdir()?;
    let environment = StoreEnvironment { home: home.to_string_lossy().into_owned(), ..StoreEnvironment::default() };
    let mut roots = store_roots(Platform::Linux, &environment);
    // Some are outside of any home.
    roots.retain(|root| root.folder.starts_with(home));
    let scan = ScanRequest { roots, keep: None };
    let database = folder.path().join("history.db");
    let catalog = Catalog::open(&database)?;

    let start = Instant::now();
    let report = catalog.scan(&scan, &mut |_| {})?;
    let first = start.elapsed();
    let peak = peak_memory().context("the system does not tell how much memory was used")?;
    let start = Instant::now();
    let again = catalog.scan(&scan, &mut |_| {})?;
    let rescan = start.elapsed();
    ensure!(again.read == 0, "{} files were read again", again.read);
    let start = Instant::now();
    for _ in 0..LISTS {
        catalog.list(&CatalogFilter::default(), None, 100)?;
    }
    let list = start.elapsed() / LISTS;

    let mut long = Vec::new();
    catalog.each(|entry| {
        let size = fs::metadata(&entry.path).map_or(0, |metadata| metadata.len());
        if size >= LONG {
            long.push((size, entry));
        }
    })?;
    long.sort_by(|a, b| a.1.id.cmp(&b.1.id));
    let mut opened = long.iter().map(|(size, entry)| open(&catalog, entry, *size)).collect::<Result<Vec<_>>>()?;
    opened.sort_by(|a, b| a.tool.cmp(&b.tool));
    Ok(Figures {
        sessions: report.sessions,
        recovered: report.recovered,
        problems: report.problems.len() + report.omitted_problems,
        scan: millis(first),
        peak,
        rescan: millis(rescan),
        list: millis(list),
        catalog_bytes: fs::metadata(&database)?.len(),
        opened,
    })
}

/// Opens a session at its end by its name, and then as a whole.
fn open(catalog: &Catalog, entry: &CatalogEntry, bytes: u64) -> Result<Opened> {
    let mut times = Vec::new();
    let mut turns = 0;
    for _ in 0..OPENINGS {
        let start = Instant::now();
        let entry = catalog.named(&entry.id)?.context("it is gone")?;
        let tail_index = catalog.tail_index(&entry)?;
        let newest = newest(&entry.location(), tail_index.as_ref(), TailLimit::Entries(WINDOW))?;
        times.push(start.elapsed());
        turns = newest.turns.len();
    }
    times.sort_unstable();
    let start = Instant::now();
    reader_of(entry.source()).read(&entry.location(), None, &mut |_| {})?;
    let whole = millis(start.elapsed());
    let form = entry.path.extension().map(|extension| extension.to_string_lossy().into_owned()).unwrap_or_default();
    let tool = format!("{} .{form}", entry.source());
    Ok(Opened { tool, bytes, turns, newest: millis(times[OPENINGS / 2]), whole })
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 1e2
}

/// The peak memory of this process, if the system reports it.
fn peak_memory() -> Option<u64> {
    memory(&fs::read_to_string("/proc/self/status").ok()?)
}

/// The peak memory in the system's status of a process.
pub(crate) fn memory(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
