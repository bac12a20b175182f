//! Grove's measurements, each in its own process.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use grove_fs::LocalFs;
use grove_storage::{JournalStorage, SegmentFiles, SyncMode};
use grove_tree::store::{self, IndexOrigin, OpenedLog};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::LogArgs;
use crate::generate::{Chance, message};
use crate::job::{APPENDS, Appended, Loaded, LogContent, SESSIONS, Screen, peak_bytes, percentile};

/// The number of entries of the branch on a first screen.
pub(crate) const SCREEN: usize = 100;
/// The maximum number of entries per batch of the host.
const BATCH: usize = 256;

/// The same as the host's: its tasks run on half of the processors.
fn runtime() -> Result<Runtime> {
    let workers = (std::thread::available_parallelism().map_or(1, usize::from) / 2).max(1);
    tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().context("no runtime")
}

async fn open(fs: &LocalFs, log: &LogArgs) -> Result<OpenedLog> {
    // Only version 1 needs ids.
    let new_id = &mut String::new;
    Ok(match &log.side {
        Some(side) => store::open_log_with_side_index(fs, &log.name, side, new_id).await?,
        None => store::open_log(fs, &log.name, new_id).await?,
    })
}

/// Checks that a given side index was used, since the figure would belong to another case.
fn check_origin(log: &LogArgs, origin: IndexOrigin) -> Result<()> {
    let wanted = if log.side.is_some() { IndexOrigin::SideIndex { read: 0 } } else { IndexOrigin::Log };
    ensure!(origin == wanted, "the index came from {origin:?}, not from {wanted:?}");
    Ok(())
}

pub(crate) fn load(log: &LogArgs) -> Result<Loaded> {
    runtime()?.block_on(async {
        let fs = LocalFs::new(&log.folder);
        let began = Instant::now();
        let opened = open(&fs, log).await?;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        let peak_bytes = peak_bytes()?;
        check_origin(log, opened.origin)?;
        let index = &opened.index;
        ensure!(index.damage().is_empty(), "the log is damaged");
        let found = LogContent {
            entries: index.len(),
            leaf: index.leaf().map(|leaf| index.id(leaf).into_owned()),
            branch: index.leaf().map_or(0, |leaf| index.branch(leaf).len()),
        };
        Ok(Loaded { milliseconds, peak_bytes, found })
    })
}

pub(crate) fn screen(log: &LogArgs) -> Result<Screen> {
    runtime()?.block_on(async {
        let fs = LocalFs::new(&log.folder);
        let began = Instant::now();
        let opened = open(&fs, log).await?;
        let lines = store::read_tail(&fs, &log.name, &opened.index, SCREEN).await?;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        let peak_bytes = peak_bytes()?;
        check_origin(log, opened.origin)?;
        let (newest, line) = lines.last().context("nothing was read")?;
        let leaf = opened.index.id(*newest).into_owned();
        let entry: serde_json::Value = serde_json::from_slice(line)?;
        ensure!(entry["id"] == leaf.as_str(), "the line is another entry's");
        Ok(Screen {
            milliseconds,
            peak_bytes,
            entries: lines.len(),
            bytes: lines.iter().map(|(_, line)| line.len()).sum(),
            leaf,
        })
    })
}

/// An entry for the journal.
struct Arrival {
    line: Vec<u8>,
    confirmed: oneshot::Sender<()>,
}

/// Appends entries of several sessions through one writer, which batches them.
///
/// Each session waits for the confirmation of its entry; entries that arrive meanwhile are in the next batch. The
/// host's sessions and its sequencer work in the same way.
pub(crate) fn append(folder: &Path) -> Result<Appended> {
    let (journal, _) = SegmentFiles::open(folder)?;
    runtime()?.block_on(async {
        let (arrivals, inbox) = mpsc::channel(1_024);
        let messages: Vec<Vec<serde_json::Value>> = (0..SESSIONS).map(messages).collect();
        let began = Instant::now();
        let writer = tokio::spawn(write(journal, inbox));
        let mut sessions = JoinSet::new();
        for (session, messages) in messages.into_iter().enumerate() {
            sessions.spawn(send(session, messages, arrivals.clone()));
        }
        drop(arrivals);
        let mut waits = Vec::with_capacity(APPENDS);
        while let Some(sent) = sessions.join_next().await {
            waits.extend(sent??);
        }
        let total_milliseconds = began.elapsed().as_secs_f64() * 1e3;
        let (syncs, bytes) = writer.await??;
        appended(total_milliseconds, waits, syncs, bytes)
    })
}

/// The entries that a session appends.
pub(crate) fn messages(session: usize) -> Vec<serde_json::Value> {
    let mut chance = Chance(session as u64);
    (0..APPENDS / SESSIONS).map(|number| message(number, &mut chance)).collect()
}

async fn send(session: usize, messages: Vec<serde_json::Value>, arrivals: mpsc::Sender<Arrival>) -> Result<Vec<f64>> {
    let mut waits = Vec::with_capacity(messages.len());
    for (number, message) in messages.into_iter().enumerate() {
        let began = Instant::now();
        let mut line = serde_json::to_vec(&json!({"seq": number, "session": session, "message": message}))?;
        line.push(b'\n');
        let (confirmed, confirmation) = oneshot::channel();
        arrivals.send(Arrival { line, confirmed }).await.map_err(|_| anyhow!("the writer has ended"))?;
        confirmation.await.context("an entry was not written")?;
        waits.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(waits)
}

/// Returns the number of batches and bytes.
async fn write(mut journal: SegmentFiles, mut inbox: mpsc::Receiver<Arrival>) -> Result<(usize, u64)> {
    let mut batch = Vec::with_capacity(BATCH);
    let (mut syncs, mut bytes) = (0, 0);
    while inbox.recv_many(&mut batch, BATCH).await > 0 {
        let mut lines = Vec::new();
        batch.iter().for_each(|arrival: &Arrival| lines.extend_from_slice(&arrival.line));
        syncs += 1;
        bytes += lines.len() as u64;
        journal.append(lines, SyncMode::Now, 0).await?;
        for arrival in batch.drain(..) {
            // A session waits for its entry for as long as it lives.
            arrival.confirmed.send(()).ok();
        }
        // As the sequencer does, so that sessions that were just confirmed are in the next batch.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
    }
    Ok((syncs, bytes))
}

/// The disk alone: batches of ten such entries, written and synced by one thread.
pub(crate) fn sync(folder: &Path) -> Result<Appended> {
    let mut file = OpenOptions::new().create_new(true).append(true).open(folder.join("batches"))?;
    let batches = APPENDS / SESSIONS;
    let batch = serde_json::to_vec(&messages(0)[..SESSIONS])?;
    let mut waits = Vec::with_capacity(batches);
    let began = Instant::now();
    for _ in 0..batches {
        let began = Instant::now();
        file.write_all(&batch)?;
        file.sync_data()?;
        waits.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let total = began.elapsed().as_secs_f64() * 1e3;
    appended(total, waits, batches, (batch.len() * batches) as u64)
}

fn appended(total_milliseconds: f64, mut waits: Vec<f64>, syncs: usize, bytes: u64) -> Result<Appended> {
    waits.sort_unstable_by(f64::total_cmp);
    let percentile = |part| percentile(&waits, part).context("nothing was appended");
    let (p50_milliseconds, p99_milliseconds) = (percentile(0.5)?, percentile(0.99)?);
    Ok(Appended { total_milliseconds, p50_milliseconds, p99_milliseconds, bytes, syncs })
}
