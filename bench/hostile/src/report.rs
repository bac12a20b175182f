//! The results as a table and as JSON, and the goals.

use std::fmt;

use grove_bench_report::{Bound, Goal, Goals, is_any_missed, json as goals_json};
use serde_json::{Value, json};

use crate::Options;
use crate::load::Finding;

/// The highest p99 of good clients, as a multiple of the control's.
const MOST_TIMES_CONTROL: f64 = 1.2;
/// The most memory of the host, in MiB: a client that never reads may have 16 MiB waiting.
const MOST_MEMORY_MIB: f64 = 768.0;

/// A run, and the highest memory of its host.
pub(crate) struct Run {
    pub(crate) found: Finding,
    pub(crate) peak_mib: f64,
}

pub(crate) struct Report {
    pub(crate) options: Options,
    pub(crate) hostile: Vec<Run>,
    pub(crate) control: Vec<Run>,
}

impl Report {
    fn goals(&self) -> Vec<Goal> {
        let lost: u64 = self.hostile.iter().map(|run| run.found.expected.abs_diff(run.found.received)).sum();
        let p99 = |runs: &[Run]| median(runs.iter().map(|run| run.found.p99_ms).collect());
        let times = p99(&self.hostile).zip(p99(&self.control)).map(|(hostile, control)| hostile / control);
        let memory = self.hostile.iter().map(|run| run.peak_mib).fold(0.0, f64::max);
        vec![
            Goal { what: "answers lost".into(), bound: Bound::AtMost(0.0), figure: Some(lost as f64) },
            Goal {
                what: "p99 of good clients, times the control's (medians)".into(),
                bound: Bound::AtMost(MOST_TIMES_CONTROL),
                figure: times.filter(|_| !self.options.short),
            },
            Goal {
                what: "memory of the host, MiB".into(),
                bound: Bound::AtMost(MOST_MEMORY_MIB),
                figure: Some(memory),
            },
        ]
    }

    pub(crate) fn misses_a_goal(&self) -> bool {
        is_any_missed(&self.goals())
    }

    pub(crate) fn to_json(&self) -> Value {
        let rows = |runs: &[Run]| -> Vec<Value> {
            runs.iter().map(|run| json!({"found": run.found, "peakMib": run.peak_mib})).collect()
        };
        json!({
            "connections": self.options.connections, "hostileConnections": self.options.hostile,
            "streams": self.options.streams, "hostile": rows(&self.hostile), "control": rows(&self.control),
            "goals": goals_json(&self.goals()),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { connections, hostile, streams, run_seconds, .. } = &self.options;
        writeln!(
            f,
            "\n{connections} connections, {hostile} of them hostile, {streams} streams, {run_seconds} s a run\n"
        )?;
        writeln!(
            f,
            "{:24} {:>10} {:>10} {:>10} {:>10} {:>12}",
            "", "p50, ms", "p99, ms", "max, ms", "answers", "memory, MiB"
        )?;
        for (name, runs) in [("hostile to the host", &self.hostile), ("hostile to a decoy", &self.control)] {
            for Run { found, peak_mib } in runs {
                let Finding { p50_ms, p99_ms, max_ms, received, .. } = found;
                writeln!(f, "{name:24} {p50_ms:>10.2} {p99_ms:>10.2} {max_ms:>10.1} {received:>10} {peak_mib:>12.0}")?;
            }
        }
        Goals(&self.goals()).fmt(f)
    }
}

fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}
