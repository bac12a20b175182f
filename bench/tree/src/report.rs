//! The results as a table and as JSON, and the goals.

use std::fmt;

use grove_bench_report::{Bound, Goal, Goals, is_any_missed, json as json_of, shown};
use serde_json::{Value, json};

use crate::grove::PAGE;
use crate::host::{Forked, median};
use crate::job::{Contestant, Measured};
use crate::peers::Peer;

/// The speed relative to the fastest peer.
const SPEED_GOAL: f64 = 5.0;
/// Milliseconds for the newest messages, and until the content of a new session is planned.
const TAIL_GOAL: f64 = 10.0;
const PLAN_GOAL: f64 = 20.0;
/// Milliseconds until a fork is answered, and its first prompt; the host's additional memory in MiB.
const FORK_GOAL: f64 = 20.0;
const PROMPT_GOAL: f64 = 300.0;
const MEMORY_GOAL: f64 = 16.0;

const NOTES: &str = "\
Milliseconds, medians of fresh processes, the contestants taking turns; opening the session is not counted. `grove` has
the log's bytes in memory, as the peers have their parsed entries; `grove, from the file` has the index alone and reads
lines by their places. All find as many rows, a branch of the same length and as many messages.";

const FORK_NOTES: &str = "\
A host in a process of its own, with its journal synced and its sessions in files; a client on its socket asks for
x-grove/fork. The record in the journal is the confirmation, and the log is copied behind it. Of others it is known that
such a fork takes opencode 508 s, and codex 1.3 s and 380 MB.";

pub(crate) struct Cell {
    pub(crate) contestant: Contestant,
    pub(crate) runs: Vec<Measured>,
}

impl Cell {
    fn median(&self, figure: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
        let mut sorted: Vec<f64> = self.runs.iter().filter_map(figure).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) peers: Vec<Peer>,
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
    pub(crate) depth: usize,
    pub(crate) cells: Vec<Cell>,
    pub(crate) forks: Forks,
}

/// Forks of a long session on hosts, each in its own process.
#[derive(Default)]
pub(crate) struct Forks {
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
    pub(crate) runs: Vec<Forked>,
}

impl Forks {
    fn median(&self, figure: fn(&Forked) -> f64) -> Option<f64> {
        (!self.runs.is_empty()).then(|| median(self.runs.iter().map(figure).collect()))
    }
}

/// A figure: its name, and its value.
type Figure = (&'static str, fn(&Measured) -> Option<f64>);

const FIGURES: [Figure; 9] = [
    ("rows of the tree", |run| Some(run.rows)),
    ("a page of rows, with text", |run| run.page),
    ("all rows, with text", |run| run.rows_with_text),
    ("branch of the deepest", |run| Some(run.branch)),
    ("context, pi's rules", |run| Some(run.context)),
    ("context, Grove's rules", |run| run.context_by_own_rules),
    ("context, newest messages", |run| run.tail),
    ("branched session", |run| Some(run.branched)),
    ("… until it is planned", |run| run.planned),
];

/// A figure of a fork: its name, its unit and its value.
type ForkFigure = (&'static str, &'static str, fn(&Forked) -> f64);

const FORK_FIGURES: [ForkFigure; 5] = [
    ("answered", "ms", |run| run.answered),
    ("answered, not loaded", "ms", |run| run.cold),
    ("its first prompt", "ms", |run| run.prompted),
    ("until all is in its folder", "ms", |run| run.copied),
    ("memory at most", "MiB", |run| run.memory),
];

impl Report {
    pub(crate) fn misses_a_goal(&self) -> bool {
        is_any_missed(&self.goals())
    }

    fn median(&self, who: Contestant, figure: fn(&Measured) -> Option<f64>) -> Option<f64> {
        self.cells.iter().find(|cell| cell.contestant == who)?.median(figure)
    }

    fn goals(&self) -> Vec<Goal> {
        let speed = |what: &str, who: Contestant, figure: fn(&Measured) -> Option<f64>| {
            let peers = Contestant::PEERS.into_iter().filter_map(|peer| self.median(peer, figure));
            let ratio = peers.reduce(f64::min).zip(self.median(who, figure)).map(|(peer, own)| peer / own);
            let what = format!("{what}, times as fast as the fastest peer");
            Goal { what, bound: Bound::AtLeast(SPEED_GOAL), figure: ratio }
        };
        let at_most = |what: String, most: f64, figure| Goal { what, bound: Bound::AtMost(most), figure };
        let context = self.median(Contestant::Grove, |run| Some(run.context));
        let pis = self.median(Contestant::Pi15, |run| Some(run.context));
        let file = Contestant::GroveFromFile;
        vec![
            speed("rows of the tree", Contestant::Grove, |run| Some(run.rows)),
            speed("branch of the deepest entry", Contestant::Grove, |run| Some(run.branch)),
            speed("branched session, from the file", file, |run| Some(run.branched)),
            at_most(
                format!("the newest {PAGE} messages of a context, from the file, milliseconds"),
                TAIL_GOAL,
                self.median(file, |run| run.tail),
            ),
            at_most("the whole context, times what pi 1.5 takes".to_owned(), 1.0, context.zip(pis).map(|(a, b)| a / b)),
            at_most(
                "until a branched session is planned, from the file, milliseconds".to_owned(),
                PLAN_GOAL,
                self.median(file, |run| run.planned),
            ),
            at_most("a fork is answered, milliseconds".to_owned(), FORK_GOAL, self.forks.median(|run| run.answered)),
            at_most(
                "the first prompt in it, milliseconds".to_owned(),
                PROMPT_GOAL,
                self.forks.median(|run| run.prompted),
            ),
            at_most("what it costs the host, MiB".to_owned(), MEMORY_GOAL, self.forks.median(|run| run.memory)),
        ]
    }

    pub(crate) fn to_json(&self) -> Value {
        let cells = self.cells.iter().map(|cell| {
            let figures = FIGURES.iter().map(|(name, figure)| ((*name).to_owned(), json!(cell.median(figure))));
            json!({
                "contestant": cell.contestant,
                "milliseconds": figures.collect::<serde_json::Map<_, _>>(),
                "runs": cell.runs,
            })
        });
        json!({
            "peers": self.peers,
            "entries": self.entries,
            "bytes": self.bytes,
            "depth": self.depth,
            "cells": cells.collect::<Vec<_>>(),
            "forks": { "entries": self.forks.entries, "bytes": self.forks.bytes, "runs": self.forks.runs },
            "goals": json_of(&self.goals()),
        })
    }
}

impl Report {
    fn show_walks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Walking a session's tree\n\n{NOTES}\n")?;
        for peer in &self.peers {
            writeln!(f, "      {:<18} {}", peer.contestant.name(), peer.version)?;
        }
        let megabytes = self.bytes as f64 / 1e6;
        writeln!(f, "\n{} entries, {megabytes:.0} MB, {} deep\n", self.entries, self.depth)?;
        write!(f, "{:<28}", "")?;
        for cell in &self.cells {
            write!(f, " {:>20}", cell.contestant.name())?;
        }
        writeln!(f)?;
        for (name, figure) in FIGURES {
            write!(f, "{name:<28}")?;
            for cell in &self.cells {
                write!(f, " {:>20}", shown(cell.median(figure), 2))?;
            }
            writeln!(f)?;
        }
        writeln!(f)
    }

    fn show_forks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.forks.bytes as f64 / 1e6;
        writeln!(f, "Forking a session on a host\n\n{FORK_NOTES}\n")?;
        writeln!(f, "{} entries, {megabytes:.0} MB\n", self.forks.entries)?;
        for (name, unit, figure) in FORK_FIGURES {
            writeln!(f, "{name:<28} {:>20} {unit}", shown(self.forks.median(figure), 2))?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cells.is_empty() {
            self.show_walks(f)?;
        }
        self.show_forks(f)?;
        write!(f, "{}", Goals(&self.goals()))
    }
}
