//! The results as tables and as JSON, and the goals.

use std::fmt;

use grove_bench_report::{Bound, Goal, Goals, is_any_missed, json as json_of, shown};
use serde::Serialize;
use serde_json::{Value, json};

use crate::grove::SCREEN;
use crate::job::{APPENDS, Appended, Contestant, Loaded, SESSIONS, Screen};
use crate::peers::Peer;

const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// The log with goals for loading: the speed relative to the fastest peer, and the memory in MiB.
const LOAD_ENTRIES: usize = 100_000;
const LOAD_GOAL: f64 = 6.0;
const SIDE_LOAD_GOAL: f64 = 50.0;
const LOAD_MEMORY_GOAL: f64 = 100.0;
/// The first screen of the large log, in milliseconds and MiB.
const SCREEN_GOAL: f64 = 2_000.0;
const SIDE_SCREEN_GOAL: f64 = 100.0;
const SCREEN_MEMORY_GOAL: f64 = 64.0;
/// The time until an entry is on disk, in milliseconds.
const APPEND_GOAL: f64 = 10.0;
/// The time of all appends, as a multiple of the time that the disk alone takes.
const DISK_GOAL: f64 = 1.5;

const NOTES: &str = "\
Figures are medians of fresh processes, the contestants taking turns; starting the program is not counted. The files
are in the system's cache. load: until the session can be worked with. peak: the process's memory by then, at most.
All find the same number of entries, the same leaf and a branch of the same length.";

const APPEND_NOTES: &str = "\
Grove: sessions that each wait until their last entry is on the disk; what arrives meanwhile is written together.
pi: one call after the other, without waiting for the disk. disk: batches of 10 entries, written and synced, no more.";

/// A generated log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    #[serde(skip)]
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) side: String,
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
    pub(crate) side_bytes: u64,
}

pub(crate) struct LoadCell {
    pub(crate) contestant: Contestant,
    pub(crate) entries: usize,
    pub(crate) runs: Vec<Loaded>,
}

impl LoadCell {
    fn milliseconds(&self) -> Option<f64> {
        median(self.runs.iter().map(|run| run.milliseconds))
    }

    fn best(&self) -> Option<f64> {
        self.runs.iter().map(|run| run.milliseconds).reduce(f64::min)
    }

    fn peak_mebibytes(&self) -> Option<f64> {
        median(self.runs.iter().map(|run| run.peak_bytes as f64 / MEBIBYTE))
    }
}

pub(crate) struct ScreenCell {
    pub(crate) contestant: Contestant,
    pub(crate) runs: Vec<Screen>,
}

impl ScreenCell {
    fn milliseconds(&self) -> Option<f64> {
        median(self.runs.iter().map(|run| run.milliseconds))
    }

    fn peak_mebibytes(&self) -> Option<f64> {
        median(self.runs.iter().map(|run| run.peak_bytes as f64 / MEBIBYTE))
    }
}

pub(crate) struct AppendCell {
    pub(crate) contestant: Contestant,
    pub(crate) runs: Vec<Appended>,
}

fn of(runs: &[Appended], figure: impl Fn(&Appended) -> f64) -> Option<f64> {
    median(runs.iter().map(figure))
}

fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) peers: Vec<Peer>,
    pub(crate) logs: Vec<Log>,
    pub(crate) large: Option<Log>,
    pub(crate) load: Vec<LoadCell>,
    pub(crate) screen: Vec<ScreenCell>,
    pub(crate) append: Vec<AppendCell>,
    pub(crate) disk: Vec<Appended>,
}

impl Report {
    pub(crate) fn misses_a_goal(&self) -> bool {
        is_any_missed(&self.goals())
    }

    fn load_cell(&self, contestant: Contestant, entries: usize) -> Option<&LoadCell> {
        self.load.iter().find(|cell| cell.contestant == contestant && cell.entries == entries)
    }

    /// The speed relative to the fastest peer.
    fn speed(&self, contestant: Contestant, entries: usize) -> Option<f64> {
        let peers = Contestant::PEERS.into_iter().filter_map(|peer| self.load_cell(peer, entries)?.milliseconds());
        Some(peers.reduce(f64::min)? / self.load_cell(contestant, entries)?.milliseconds()?)
    }

    fn goals(&self) -> Vec<Goal> {
        let at_most = |what: String, most: f64, figure| Goal { what, bound: Bound::AtMost(most), figure };
        let kinds = [
            (Contestant::Grove, "without side index", LOAD_GOAL, SCREEN_GOAL),
            (Contestant::GroveWithSideIndex, "with side index", SIDE_LOAD_GOAL, SIDE_SCREEN_GOAL),
        ];
        let mut goals = Vec::new();
        for (who, how, times, milliseconds) in kinds {
            goals.push(Goal {
                what: format!("loading {LOAD_ENTRIES} entries {how}, times as fast as the fastest peer"),
                bound: Bound::AtLeast(times),
                figure: self.speed(who, LOAD_ENTRIES),
            });
            let memory = self.load_cell(who, LOAD_ENTRIES).and_then(LoadCell::peak_mebibytes);
            goals.push(at_most(format!("MiB for it {how}"), LOAD_MEMORY_GOAL, memory));
            let cell = self.screen.iter().find(|cell| cell.contestant == who);
            goals.push(at_most(
                format!("first screen of the large log {how}, milliseconds"),
                milliseconds,
                cell.and_then(ScreenCell::milliseconds),
            ));
            let memory = cell.and_then(ScreenCell::peak_mebibytes);
            goals.push(at_most(format!("MiB for it {how}"), SCREEN_MEMORY_GOAL, memory));
        }
        let runs = |who| self.append.iter().find(|cell| cell.contestant == who).map(|cell| cell.runs.as_slice());
        let total = |runs: &[Appended]| of(runs, |run| run.total_milliseconds);
        let p99 = runs(Contestant::Grove).and_then(|runs| of(runs, |run| run.p99_milliseconds));
        goals.push(at_most("an append until it is on the disk, p99 in milliseconds".to_owned(), APPEND_GOAL, p99));
        let ratio = runs(Contestant::Grove).and_then(total).zip(total(&self.disk)).map(|(grove, disk)| grove / disk);
        goals.push(at_most(format!("{APPENDS} appends, times what the disk alone takes"), DISK_GOAL, ratio));
        goals
    }

    pub(crate) fn to_json(&self) -> Value {
        let load = self.load.iter().map(|cell| {
            json!({
                "contestant": cell.contestant,
                "entries": cell.entries,
                "milliseconds": cell.milliseconds(),
                "peakMebibytes": cell.peak_mebibytes(),
                "runs": cell.runs,
            })
        });
        let screen = self.screen.iter().map(|cell| {
            json!({
                "contestant": cell.contestant,
                "milliseconds": cell.milliseconds(),
                "peakMebibytes": cell.peak_mebibytes(),
                "runs": cell.runs,
            })
        });
        let append = self.append.iter().map(|cell| {
            json!({
                "contestant": cell.contestant,
                "totalMilliseconds": of(&cell.runs, |run| run.total_milliseconds),
                "p99Milliseconds": of(&cell.runs, |run| run.p99_milliseconds),
                "runs": cell.runs,
            })
        });
        json!({
            "peers": self.peers,
            "logs": self.logs,
            "largeLog": self.large,
            "load": load.collect::<Vec<_>>(),
            "firstScreen": screen.collect::<Vec<_>>(),
            "append": append.collect::<Vec<_>>(),
            "disk": self.disk,
            "goals": json_of(&self.goals()),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Opening a session's log, and appending\n\n{NOTES}\n")?;
        for peer in &self.peers {
            writeln!(f, "      {:<18} {}", peer.contestant.name(), peer.version)?;
        }
        writeln!(
            f,
            "\n{:>8} {:>8} {:<18} {:>10} {:>10} {:>9} {:>14}",
            "entries", "MiB", "program", "load ms", "best ms", "peak MiB", "times as fast"
        )?;
        for cell in &self.load {
            let log = self.logs.iter().find(|log| log.entries == cell.entries);
            let own = !Contestant::PEERS.contains(&cell.contestant);
            let speed = self.speed(cell.contestant, cell.entries).filter(|_| own);
            writeln!(
                f,
                "{:>8} {:>8} {:<18} {:>10} {:>10} {:>9} {:>14}",
                cell.entries,
                shown(log.map(|log| log.bytes as f64 / MEBIBYTE), 1),
                cell.contestant.name(),
                shown(cell.milliseconds(), 2),
                shown(cell.best(), 2),
                shown(cell.peak_mebibytes(), 1),
                shown(speed, 1),
            )?;
        }

        if let Some(log) = &self.large {
            let (megabytes, side) = (log.bytes as f64 / 1e6, log.side_bytes as f64 / MEBIBYTE);
            writeln!(
                f,
                "\nThe newest {SCREEN} entries of the branch: {megabytes:.0} MB, {} entries, side index {side:.1} MiB",
                log.entries
            )?;
        }
        for cell in &self.screen {
            let (milliseconds, peak) = (shown(cell.milliseconds(), 2), shown(cell.peak_mebibytes(), 1));
            writeln!(f, "      {:<18} {milliseconds:>9} ms {peak:>9} MiB", cell.contestant.name())?;
        }

        writeln!(f, "\n{APPENDS} entries, arriving singly from {SESSIONS} sessions\n{APPEND_NOTES}\n")?;
        writeln!(
            f,
            "      {:<18} {:>9} {:>8} {:>8} {:>7} {:>12}",
            "program", "total ms", "p50 ms", "p99 ms", "syncs", "bytes/entry"
        )?;
        let cells = self.append.iter().map(|cell| (cell.contestant.name(), cell.runs.as_slice()));
        for (name, runs) in cells.chain([("disk", self.disk.as_slice())]) {
            writeln!(
                f,
                "      {name:<18} {:>9} {:>8} {:>8} {:>7} {:>12}",
                shown(of(runs, |run| run.total_milliseconds), 1),
                shown(of(runs, |run| run.p50_milliseconds), 3),
                shown(of(runs, |run| run.p99_milliseconds), 3),
                shown(of(runs, |run| run.syncs as f64), 0),
                shown(of(runs, |run| run.bytes as f64 / APPENDS as f64), 0),
            )?;
        }

        write!(f, "{}", Goals(&self.goals()))
    }
}
