//! What was found, as tables and as JSON, and whether it is good enough.

use std::fmt;

use serde_json::{Value, json};

use crate::Options;
use crate::driver::LAST_OF;
use crate::job::{Contestant, Paced, Throughput};

/// Processor time for a message, as a multiple of the bare server's.
const CPU_GOAL: f64 = 1.25;
/// Throughput, as a multiple of the Node server's.
const NODE_GOAL: f64 = 5.0;
/// Milliseconds until the last of [`LAST_GOAL_CLIENTS`] has an event.
const LAST_GOAL: f64 = 10.0;
const LAST_GOAL_CLIENTS: usize = 200;
const IDLE_GOAL: f64 = 64.0 * 1024.0;
/// Where the goals for throughput are read.
const CROWDS: [usize; 2] = [100, 1_000];

const NOTES: &str = "\
Every contestant streams the same messages; the load client is one process for all of them.
Figures are medians of the runs, in which the contestants take turns.
messages/cpu-s: deltas delivered for one second of the server's processor time.
messages/s: the same for one second of time, from the first delta anywhere to the last everywhere.
p50, p99: fan-out latency at one delta in 5 ms: from a delta's earliest arrival at any subscriber to its
  arrival at each. Deltas carry no time of sending, so this is taken alike for all; with one subscriber it is 0.
RSS, peak: the server's memory at the end of a throughput run, with all subscribers connected.
cpu us, paced: the server's processor time for one message of the paced run, where few deltas share a write.
deltas/s: how many of the 200 deltas a second the paced run really brought; fewer where a server could not keep up.
The Node server streams fewer deltas to large crowds; its figures are rates all the same. What the bare server gives
at full speed is near what one load client can take.";

/// One contestant with one number of subscribers.
pub(crate) struct Cell {
    pub(crate) contestant: Contestant,
    pub(crate) subscribers: usize,
    pub(crate) throughput: Vec<Throughput>,
    pub(crate) paced: Vec<Paced>,
}

impl Cell {
    fn median_of(&self, figure: impl Fn(&Throughput) -> f64) -> Option<f64> {
        median(&self.throughput.iter().map(figure).collect::<Vec<_>>())
    }

    fn per_cpu_second(&self) -> Option<f64> {
        self.median_of(|run| run.messages as f64 / run.cpu_seconds)
    }

    /// Seconds of processor time for a message of the paced stream.
    fn paced_cost(&self) -> Option<f64> {
        self.paced_median(|run| run.cpu_seconds / run.messages as f64)
    }

    fn paced_median(&self, figure: impl Fn(&Paced) -> f64) -> Option<f64> {
        median(&self.paced.iter().map(figure).collect::<Vec<_>>())
    }

    /// A fan-out latency. One subscriber has none: it is the earliest itself.
    fn latency(&self, figure: impl Fn(&Paced) -> f64) -> Option<f64> {
        self.paced_median(figure).filter(|_| self.subscribers > 1)
    }

    fn per_second(&self) -> Option<f64> {
        self.median_of(|run| run.messages as f64 / run.wall_seconds)
    }
}

pub(crate) fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

pub(crate) struct Report {
    pub(crate) cells: Vec<Cell>,
    /// Bytes for each idle connection.
    pub(crate) idle: Vec<(Contestant, f64)>,
    /// Milliseconds until the last of so many clients has an event, each time.
    pub(crate) last: Vec<(Contestant, usize, Vec<f64>)>,
}

/// Something that Grove should reach.
struct Goal {
    what: String,
    bound: Bound,
    /// Without one it was not measured.
    figure: Option<f64>,
}

#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    fn met(&self) -> Option<bool> {
        self.figure.map(|figure| match self.bound {
            Bound::AtMost(most) => figure <= most,
            Bound::AtLeast(least) => figure >= least,
        })
    }
}

impl Report {
    pub(crate) fn new(options: &Options, contestants: &[Contestant]) -> Self {
        let cell =
            |subscribers, contestant| Cell { contestant, subscribers, throughput: Vec::new(), paced: Vec::new() };
        let cells = options.subscribers.iter().flat_map(|&n| contestants.iter().map(move |&who| cell(n, who)));
        Self { cells: cells.collect(), idle: Vec::new(), last: Vec::new() }
    }

    pub(crate) fn misses_a_goal(&self) -> bool {
        self.goals().iter().any(|goal| goal.met() == Some(false))
    }

    fn cell(&self, contestant: Contestant, subscribers: usize) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.contestant == contestant && cell.subscribers == subscribers)
    }

    /// Grove's figure as a multiple of another's, for the same crowd.
    fn ratio(&self, other: Contestant, crowd: usize, figure: impl Fn(&Cell) -> Option<f64>) -> Option<f64> {
        Some(figure(self.cell(Contestant::Grove, crowd)?)? / figure(self.cell(other, crowd)?)?)
    }

    fn goals(&self) -> Vec<Goal> {
        let cpu = CROWDS.map(|crowd| Goal {
            what: format!("processor time for a message, {crowd} subscribers, times the bare server's"),
            bound: Bound::AtMost(CPU_GOAL),
            figure: self.ratio(Contestant::Bare, crowd, Cell::per_cpu_second).map(|ratio| 1.0 / ratio),
        });
        let paced = CROWDS.map(|crowd| Goal {
            what: format!("the same, paced, {crowd} subscribers"),
            bound: Bound::AtMost(CPU_GOAL),
            figure: self.ratio(Contestant::Bare, crowd, Cell::paced_cost),
        });
        let node = CROWDS.map(|crowd| Goal {
            what: format!("messages/s, {crowd} subscribers, times the Node server's"),
            bound: Bound::AtLeast(NODE_GOAL),
            figure: self.ratio(Contestant::Node, crowd, Cell::per_second),
        });
        let last = self.last.iter().find(|(who, n, _)| (*who, *n) == (Contestant::Grove, LAST_GOAL_CLIENTS));
        let idle = self.idle.iter().find(|(who, _)| *who == Contestant::Grove);
        let others = [
            Goal {
                what: format!("milliseconds until the last of {LAST_GOAL_CLIENTS} clients has an event, median"),
                bound: Bound::AtMost(LAST_GOAL),
                figure: last.and_then(|(_, _, milliseconds)| median(milliseconds)),
            },
            Goal {
                what: "bytes for an idle connection".to_owned(),
                bound: Bound::AtMost(IDLE_GOAL),
                figure: idle.map(|(_, bytes)| *bytes),
            },
        ];
        cpu.into_iter().chain(paced).chain(node).chain(others).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let cells = self.cells.iter().map(|cell| {
            json!({
                "contestant": cell.contestant,
                "subscribers": cell.subscribers,
                "messagesPerCpuSecond": cell.per_cpu_second(),
                "messagesPerSecond": cell.per_second(),
                "bytesPerMessage": cell.median_of(|run| run.bytes_per_message),
                "residentBytes": cell.median_of(|run| run.memory.resident_bytes as f64),
                "peakBytes": cell.median_of(|run| run.memory.peak_bytes as f64),
                "fanoutP50Ms": cell.latency(|run| run.p50_ms),
                "fanoutP99Ms": cell.latency(|run| run.p99_ms),
                "pacedCpuSecondsPerMessage": cell.paced_cost(),
                "pacedDeltasPerSecond": cell.paced_median(|run| run.deltas_per_second),
                "runs": cell.throughput,
                "pacedRuns": cell.paced,
            })
        });
        let idle = self.idle.iter().map(|(who, bytes)| json!({ "contestant": who, "bytesPerConnection": bytes }));
        let last = self.last.iter().map(|(who, clients, milliseconds)| {
            json!({
                "contestant": who,
                "clients": clients,
                "medianMs": median(milliseconds),
                "maxMs": milliseconds.iter().copied().reduce(f64::max),
            })
        });
        let goals = self.goals().into_iter().map(|goal| {
            let bound = match goal.bound {
                Bound::AtMost(most) => json!({ "atMost": most }),
                Bound::AtLeast(least) => json!({ "atLeast": least }),
            };
            json!({ "what": goal.what, "bound": bound, "figure": goal.figure, "met": goal.met() })
        });
        json!({
            "cells": cells.collect::<Vec<_>>(),
            "idle": idle.collect::<Vec<_>>(),
            "lastClient": last.collect::<Vec<_>>(),
            "goals": goals.collect::<Vec<_>>(),
        })
    }
}

/// A figure, or a dash where there is none.
fn shown(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.decimals$}"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEBIBYTE: f64 = 1024.0 * 1024.0;
        writeln!(f, "One session's stream to many subscribers\n\n{NOTES}\n")?;
        writeln!(
            f,
            "{:>5} {:<9} {:>14} {:>11} {:>6} {:>8} {:>8} {:>13} {:>8} {:>9} {:>9}",
            "subs",
            "server",
            "messages/cpu-s",
            "messages/s",
            "bytes",
            "p50 ms",
            "p99 ms",
            "cpu us, paced",
            "deltas/s",
            "RSS MiB",
            "peak MiB"
        )?;
        for cell in &self.cells {
            writeln!(
                f,
                "{:>5} {:<9} {:>14} {:>11} {:>6} {:>8} {:>8} {:>13} {:>8} {:>9} {:>9}",
                cell.subscribers,
                cell.contestant.name(),
                shown(cell.per_cpu_second(), 0),
                shown(cell.per_second(), 0),
                shown(cell.median_of(|run| run.bytes_per_message), 0),
                shown(cell.latency(|run| run.p50_ms), 2),
                shown(cell.latency(|run| run.p99_ms), 2),
                shown(cell.paced_cost().map(|seconds| seconds * 1e6), 2),
                shown(cell.paced_median(|run| run.deltas_per_second), 0),
                shown(cell.median_of(|run| run.memory.resident_bytes as f64 / MEBIBYTE), 1),
                shown(cell.median_of(|run| run.memory.peak_bytes as f64 / MEBIBYTE), 1),
            )?;
        }

        writeln!(f, "\nMemory for an idle subscribed connection (1,000 of them)")?;
        for (who, bytes) in &self.idle {
            writeln!(f, "      {:<9} {:>8.1} KiB", who.name(), bytes / 1024.0)?;
        }

        let [few, many] = LAST_OF;
        writeln!(f, "\nMilliseconds until the last of {few} and of {many} clients has one event, median (worst)")?;
        let mut whos: Vec<Contestant> = self.last.iter().map(|(who, _, _)| *who).collect();
        whos.dedup();
        for who in whos {
            write!(f, "      {:<9}", who.name())?;
            for clients in LAST_OF {
                let found = self.last.iter().find(|(w, n, _)| (*w, *n) == (who, clients));
                let milliseconds = found.map(|(_, _, milliseconds)| milliseconds.as_slice()).unwrap_or_default();
                let worst = milliseconds.iter().copied().reduce(f64::max);
                write!(f, " {:>8} ({:>7})", shown(median(milliseconds), 2), shown(worst, 2))?;
            }
            writeln!(f)?;
        }

        writeln!(f, "\nGoals")?;
        for goal in self.goals() {
            let verdict = match goal.met() {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "not measured",
            };
            let bound = match goal.bound {
                Bound::AtMost(most) => format!("at most {most}"),
                Bound::AtLeast(least) => format!("at least {least}"),
            };
            writeln!(f, "      {}: {} ({bound}): {verdict}", goal.what, shown(goal.figure, 2))?;
        }
        Ok(())
    }
}
