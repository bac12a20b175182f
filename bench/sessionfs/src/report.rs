//! The results as tables and as JSON, and the goals.

use std::fmt;

use grove_bench_report::{Bound, Goal, Goals, json as json_of, shown};
use serde::Serialize;
use serde_json::{Value, json};

use crate::job::{Contestant, StepTimes, Wire};
use crate::session::Stored;

/// The speed relative to the CLI: for pings, created sessions and prompts; and for resumed long sessions.
const SPEED_GOAL: f64 = 5.0;
const RESUME_GOAL: f64 = 3.0;
/// The maximum memory of Grove's process with a huge session, in MiB.
const MEMORY_GOAL: f64 = 200.0;

const NOTES: &str = "\
Milliseconds in which the SDK's promises are kept. Fresh servers, the contestants taking turns; what each does for the
first time is not counted. A prompt is answered when the SDK hears that the session is idle: both have stored it by then,
Grove on the disk. Grove's agent is the scripted one, which answers at once; the CLI asks a fake model on loopback, which
does so too. Both have the same events stored, each in its own format. A session that is resumed is new to its server;
`resumed and read` has the SDK ask for all of its events then. Over TCP the CLI waits about 40 ms for the body of each
message, since the SDK writes head and body apart; over pipes nobody does.";

/// The results of one contestant.
pub(crate) struct Cell {
    pub(crate) contestant: Contestant,
    pub(crate) wire: Wire,
    pub(crate) found: StepTimes,
    /// One of the long sessions.
    pub(crate) long: Option<Stored>,
    pub(crate) huge: Option<Huge>,
}

impl Cell {
    pub(crate) fn new(contestant: Contestant, wire: Wire) -> Self {
        Self { contestant, wire, found: StepTimes::default(), long: None, huge: None }
    }
}

/// A session with a huge log.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Huge {
    pub(crate) bytes: u64,
    pub(crate) events: usize,
    /// The time until it is resumed.
    pub(crate) milliseconds: f64,
    /// The peak memory of the server, in MiB.
    pub(crate) peak: f64,
}

pub(crate) struct Report {
    /// Versions.
    pub(crate) sdk: String,
    pub(crate) copilot: String,
    pub(crate) runs: u32,
    /// The times of single syncs in milliseconds, between the servers.
    pub(crate) disk: Vec<f64>,
    pub(crate) cells: Vec<Cell>,
}

/// A figure: its name, its values, and its goal relative to the CLI.
struct Figure {
    name: &'static str,
    of: fn(&StepTimes) -> Vec<f64>,
    goal: f64,
}

const FIGURES: [Figure; 5] = [
    Figure { name: "ping", of: |found| found.ping.clone(), goal: SPEED_GOAL },
    Figure { name: "session made", of: |found| found.create.clone(), goal: SPEED_GOAL },
    Figure { name: "prompt answered", of: |found| found.send.clone(), goal: SPEED_GOAL },
    Figure { name: "long session resumed", of: |found| found.resume.clone(), goal: RESUME_GOAL },
    Figure { name: "long session resumed and read", of: resumed_and_read, goal: RESUME_GOAL },
];

fn resumed_and_read(found: &StepTimes) -> Vec<f64> {
    found.resume.iter().zip(&found.read).map(|(resumed, read)| resumed + read).collect()
}

/// The value below which this share of all values is.
fn percentile(mut figures: Vec<f64>, part: f64) -> Option<f64> {
    figures.sort_unstable_by(f64::total_cmp);
    let at = (figures.len() as f64 * part).ceil() as usize;
    figures.get(at.saturating_sub(1)).copied()
}

impl Report {
    fn cell(&self, who: Contestant, wire: Wire) -> Option<&Cell> {
        self.cells.iter().find(|cell| (cell.contestant, cell.wire) == (who, wire))
    }

    fn figure(&self, who: Contestant, wire: Wire, figure: &Figure, part: f64) -> Option<f64> {
        percentile((figure.of)(&self.cell(who, wire)?.found), part)
    }

    /// The speed of Grove relative to the CLI, by the medians.
    fn ratio(&self, wire: Wire, figure: &Figure) -> Option<f64> {
        let median = |who| self.figure(who, wire, figure, 0.5);
        Some(median(Contestant::Copilot)? / median(Contestant::Grove)?)
    }

    fn huge(&self, who: Contestant) -> Option<&Huge> {
        self.cell(who, Wire::Tcp)?.huge.as_ref()
    }

    fn sync(&self, part: f64) -> Option<f64> {
        percentile(self.disk.clone(), part)
    }

    fn goals(&self) -> Vec<Goal> {
        let speed = |figure: &Figure| Goal {
            what: format!("{}, TCP, times as fast as the CLI", figure.name),
            bound: Bound::AtLeast(figure.goal),
            figure: self.ratio(Wire::Tcp, figure),
        };
        let memory = Goal {
            what: "peak of Grove that resumed the huge session, MiB".to_owned(),
            bound: Bound::AtMost(MEMORY_GOAL),
            figure: self.huge(Contestant::Grove).map(|huge| huge.peak),
        };
        FIGURES.iter().map(speed).chain([memory]).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let cells = self.cells.iter().map(|cell| {
            let figures = FIGURES.iter().map(|figure| {
                let [median, p95] = [0.5, 0.95].map(|part| percentile((figure.of)(&cell.found), part));
                (figure.name.to_owned(), json!({ "median": median, "p95": p95 }))
            });
            json!({
                "contestant": cell.contestant,
                "wire": cell.wire,
                "milliseconds": figures.collect::<serde_json::Map<_, _>>(),
                "each": cell.found,
                "long": cell.long.as_ref().map(|long| json!({ "events": long.events, "bytes": long.bytes })),
                "huge": cell.huge,
            })
        });
        json!({
            "sdk": self.sdk,
            "copilot": self.copilot,
            "runs": self.runs,
            "disk": { "median": self.sync(0.5), "p95": self.sync(0.95), "each": self.disk },
            "cells": cells.collect::<Vec<_>>(),
            "goals": json_of(&self.goals()),
        })
    }

    fn show_usual(&self, f: &mut fmt::Formatter<'_>, wire: Wire) -> fmt::Result {
        let [grove, copilot] = [Contestant::Grove, Contestant::Copilot];
        writeln!(f, "{:<30} {:>21} {:>21} {:>8}", wire.name(), grove.name(), copilot.name(), "")?;
        writeln!(f, "{:<30} {:>10} {:>10} {:>10} {:>10} {:>8}", "", "median", "p95", "median", "p95", "times")?;
        for figure in &FIGURES {
            let cell = |who, part| shown(self.figure(who, wire, figure, part), 2);
            writeln!(
                f,
                "{:<30} {:>10} {:>10} {:>10} {:>10} {:>8}",
                figure.name,
                cell(grove, 0.5),
                cell(grove, 0.95),
                cell(copilot, 0.5),
                cell(copilot, 0.95),
                shown(self.ratio(wire, figure), 2),
            )?;
        }
        Ok(())
    }

    fn show_huge(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shows = |cell: &Cell| Some((cell.contestant, cell.huge.clone()?));
        for (who, huge) in self.cells.iter().filter_map(shows) {
            let Huge { bytes, events, milliseconds, peak } = huge;
            let megabytes = bytes as f64 / 1e6;
            let name = who.name();
            writeln!(
                f,
                "{name:<10} {megabytes:>6.0} MB, {events} events: {milliseconds:.1} ms, {peak:.1} MiB at most"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sdk, copilot, runs, .. } = self;
        writeln!(f, "What programs that use the Copilot SDK wait for\n\n{NOTES}\n")?;
        writeln!(f, "      SDK {sdk}, CLI {copilot}, {runs} servers of each")?;
        for cell in self.cells.iter().filter(|cell| cell.wire == Wire::Tcp) {
            if let Some(Stored { events, bytes, .. }) = &cell.long {
                let megabytes = *bytes as f64 / 1e6;
                writeln!(f, "      a long session of {}: {events} events, {megabytes:.1} MB", cell.contestant.name())?;
            }
        }
        let [median, p95] = [0.5, 0.95].map(|part| shown(self.sync(part), 2));
        writeln!(f, "      the disk alone, a few bytes synced: median {median}, p95 {p95}")?;
        for wire in Wire::ALL {
            writeln!(f)?;
            self.show_usual(f, wire)?;
        }
        if self.cells.iter().any(|cell| cell.huge.is_some()) {
            writeln!(f, "\nA session with a huge log, resumed at a server that has done nothing else\n")?;
            self.show_huge(f)?;
        }
        write!(f, "{}", Goals(&self.goals()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(contestant: Contestant, factor: f64) -> Cell {
        let figures = |of: f64| (1..=20).map(|n| f64::from(n) * of * factor).collect::<Vec<_>>();
        let found = StepTimes {
            ping: figures(1.0),
            create: figures(2.0),
            send: figures(3.0),
            resume: figures(4.0),
            read: figures(5.0),
        };
        Cell { found, ..Cell::new(contestant, Wire::Tcp) }
    }

    #[test]
    fn a_goal_is_met_by_medians_and_missed_below_it() {
        let report = |factor| Report {
            sdk: "1".to_owned(),
            copilot: "1".to_owned(),
            runs: 1,
            disk: Vec::new(),
            cells: vec![cell(Contestant::Grove, 1.0), cell(Contestant::Copilot, factor)],
        };
        let met = |factor| report(factor).goals().iter().map(Goal::met).collect::<Vec<_>>();
        assert_eq!(met(5.0), [Some(true), Some(true), Some(true), Some(true), Some(true), None]);
        assert_eq!(met(4.0), [Some(false), Some(false), Some(false), Some(true), Some(true), None]);
        assert_eq!(met(2.0), [Some(false), Some(false), Some(false), Some(false), Some(false), None]);
    }

    #[test]
    fn nothing_measured_is_no_goal_met() {
        let report =
            Report { sdk: String::new(), copilot: String::new(), runs: 1, disk: Vec::new(), cells: Vec::new() };
        assert!(report.goals().iter().all(|goal| goal.met().is_none()));
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let figures: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(percentile(figures.clone(), 0.5), Some(10.0));
        assert_eq!(percentile(figures, 0.95), Some(19.0));
        assert_eq!(percentile(vec![7.0], 0.95), Some(7.0));
        assert_eq!(percentile(Vec::new(), 0.5), None);
    }
}
