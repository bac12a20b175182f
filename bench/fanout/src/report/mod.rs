//! The results as tables and as JSON, and the goals.

mod goal;
mod table;

use serde_json::{Value, json};

use crate::Options;
use crate::job::{Contestant, Paced, Throughput};

/// The numbers of subscribers that the goals for streams use.
const CROWDS: [usize; 2] = [100, 1_000];

/// The pace of a stream.
#[derive(Clone, Copy)]
enum Pace {
    Full,
    Paced,
}

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

    /// Seconds of processor time per message.
    fn cost(&self, pace: Pace) -> Option<f64> {
        match pace {
            Pace::Full => self.per_cpu_second().map(|messages| 1.0 / messages),
            Pace::Paced => self.paced_median(|run| run.cpu_seconds / run.messages as f64),
        }
    }

    fn paced_median(&self, figure: impl Fn(&Paced) -> f64) -> Option<f64> {
        median(&self.paced.iter().map(figure).collect::<Vec<_>>())
    }

    /// A fan-out latency. A single subscriber has none, since it is the earliest itself.
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
    /// Bytes per idle connection.
    pub(crate) idle: Vec<(Contestant, f64)>,
    /// Milliseconds until the last of this many clients has an event, for each repetition.
    pub(crate) last: Vec<(Contestant, usize, Vec<f64>)>,
}

impl Report {
    pub(crate) fn new(options: &Options, contestants: &[Contestant]) -> Self {
        let cell =
            |subscribers, contestant| Cell { contestant, subscribers, throughput: Vec::new(), paced: Vec::new() };
        let cells = options.subscribers.iter().flat_map(|&n| contestants.iter().map(move |&who| cell(n, who)));
        Self { cells: cells.collect(), idle: Vec::new(), last: Vec::new() }
    }

    pub(crate) fn misses_a_goal(&self) -> bool {
        grove_bench_report::is_any_missed(&self.goals())
    }

    fn cell(&self, contestant: Contestant, subscribers: usize) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.contestant == contestant && cell.subscribers == subscribers)
    }

    /// The cost of a message, as a multiple of another contestant's with the same crowd.
    fn times(&self, one: Contestant, other: Contestant, crowd: usize, pace: Pace) -> Option<f64> {
        Some(self.cell(one, crowd)?.cost(pace)? / self.cell(other, crowd)?.cost(pace)?)
    }

    /// The cost of a message with a mixed crowd, as a multiple of that with version 1 alone and with AHP alone.
    fn mixed(&self, crowd: usize, pace: Pace) -> [Option<f64>; 2] {
        [Contestant::Grove, Contestant::GroveAhp].map(|pure| self.times(Contestant::GroveMixed, pure, crowd, pace))
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
                "pacedCpuSecondsPerMessage": cell.cost(Pace::Paced),
                "pacedDeltasPerSecond": cell.paced_median(|run| run.deltas_per_second),
                "runs": cell.throughput,
                "pacedRuns": cell.paced,
            })
        });
        let mixed = CROWDS.map(|crowd| {
            let [v1, ahp] = self.mixed(crowd, Pace::Full);
            let [paced_v1, paced_ahp] = self.mixed(crowd, Pace::Paced);
            json!({
                "subscribers": crowd,
                "timesVersion1": v1,
                "timesAhp": ahp,
                "pacedTimesVersion1": paced_v1,
                "pacedTimesAhp": paced_ahp,
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
        json!({
            "cells": cells.collect::<Vec<_>>(),
            "mixed": mixed,
            "idle": idle.collect::<Vec<_>>(),
            "lastClient": last.collect::<Vec<_>>(),
            "goals": grove_bench_report::json(&self.goals()),
        })
    }
}
