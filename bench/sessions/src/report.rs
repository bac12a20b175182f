//! The results as a table and as JSON, and the goals.

use std::fmt;

use grove_bench_report::{Bound, Goal, Goals, is_any_missed, json as json_of, shown};
use serde_json::{Value, json};

use crate::measure::Figures;

const NOTES: &str = "\
Five providers with as many sessions each: this host and two others, which are Grove hosts in processes of their own over
loopback, and two histories, over a catalog of generated files of Claude Code and of the Copilot CLI. The list is in a fresh
process for each run; medians of the runs.";

/// A figure: its name, its unit and its value.
type Figure = (&'static str, &'static str, fn(&Figures) -> f64);

const FIRST_LIST: Figure = ("first list with ready providers", "ms", |run| run.first_list);
const FILTERED_PAGE: Figure = ("first page of a search, as JSON", "ms", |run| run.filtered_page);
const CHANGE: Figure = ("a change on a host, until a subscriber gets it", "ms", |run| run.change);
const MEMORY: Figure = ("memory at most", "MiB", |run| mebibytes(run.peak));

const FIGURES: [Figure; 8] = [
    ("from nothing until all is listed", "ms", |run| run.from_nothing),
    FIRST_LIST,
    FILTERED_PAGE,
    CHANGE,
    ("… the slowest of 100", "ms", |run| run.slowest_of_100_changes),
    ("… by fetching that host's list again", "ms", |run| run.change_by_listing),
    ("memory with everything listed", "MiB", |run| mebibytes(run.memory)),
    MEMORY,
];

pub(crate) struct Report {
    pub(crate) runs: Vec<Figures>,
}

impl Report {
    fn median(&self, (_, _, figure): Figure) -> Option<f64> {
        let mut sorted: Vec<f64> = self.runs.iter().map(figure).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    fn goals(&self) -> Vec<Goal> {
        let goal = |figure: Figure, most| Goal {
            what: format!("{}, {}", figure.0, figure.1),
            bound: Bound::AtMost(most),
            figure: self.median(figure),
        };
        vec![goal(FIRST_LIST, 50.0), goal(FILTERED_PAGE, 50.0), goal(CHANGE, 5.0), goal(MEMORY, 100.0)]
    }

    pub(crate) fn misses_a_goal(&self) -> bool {
        is_any_missed(&self.goals())
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "runs": self.runs, "goals": json_of(&self.goals()) })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = self.runs.first().map_or(0, |run| run.sessions);
        writeln!(f, "{sessions} sessions in one list\n\n{NOTES}\n")?;
        for figure in FIGURES {
            writeln!(f, "{:<48} {:>10} {}", figure.0, shown(self.median(figure), 2), figure.1)?;
        }
        write!(f, "{}", Goals(&self.goals()))
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
