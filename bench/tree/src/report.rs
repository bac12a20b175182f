//! What was found, as a table and as JSON, and whether it is good enough.

use std::fmt;

use serde_json::{Value, json};

use crate::grove::PAGE;
use crate::job::{Contestant, Measured};
use crate::peers::Peer;

/// How many times as fast as the fastest peer.
const SPEED_GOAL: f64 = 5.0;
/// Milliseconds for the newest messages, and until it is known what a new session holds.
const TAIL_GOAL: f64 = 10.0;
const PLAN_GOAL: f64 = 20.0;

const NOTES: &str = "\
Milliseconds, medians of fresh processes, the contestants taking turns; opening the session is not counted. `grove` has
the log's bytes in memory, as the peers have their parsed entries; `grove, from the file` has the index alone and reads
lines by their places. All find as many rows, a branch of the same length and as many messages.";

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

pub(crate) struct Report {
    pub(crate) peers: Vec<Peer>,
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
    pub(crate) depth: usize,
    pub(crate) cells: Vec<Cell>,
}

/// What is measured: its name, and its figure.
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
    pub(crate) fn misses_a_goal(&self) -> bool {
        self.goals().iter().any(|goal| goal.met() == Some(false))
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
        let goals = self.goals().into_iter().map(|goal| {
            let bound = match goal.bound {
                Bound::AtMost(most) => json!({ "atMost": most }),
                Bound::AtLeast(least) => json!({ "atLeast": least }),
            };
            json!({ "what": goal.what, "bound": bound, "figure": goal.figure, "met": goal.met() })
        });
        json!({
            "peers": self.peers,
            "entries": self.entries,
            "bytes": self.bytes,
            "depth": self.depth,
            "cells": cells.collect::<Vec<_>>(),
            "goals": goals.collect::<Vec<_>>(),
        })
    }
}

/// A figure, or a dash where there is none.
fn shown(figure: Option<f64>) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.2}"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
                write!(f, " {:>20}", shown(cell.median(figure)))?;
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
            writeln!(f, "      {}: {} ({bound}): {verdict}", goal.what, shown(goal.figure))?;
        }
        Ok(())
    }
}
