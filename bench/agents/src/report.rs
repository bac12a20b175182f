//! The results as tables and as JSON, and the goals.

use std::fmt;

use serde_json::{Value, json};

use crate::job::{Contestant, Finding, Shape};

/// The maximum growth of a host between the first memory reading and the end.
const MOST_GROWTH: f64 = 32.0 * MEBIBYTE;
/// The maximum 99th percentile of the latency from an agent to a client.
const MOST_P99_MS: f64 = 100.0;
/// The maximum processor time of the host and its shims, as a multiple of the relay's.
const MOST_TIMES_RELAY: f64 = 2.5;
const MEBIBYTE: f64 = (1 << 20) as f64;

pub(crate) struct Report {
    pub(crate) shape: Shape,
    pub(crate) relay: Option<Finding>,
    pub(crate) grove: Option<Finding>,
}

struct Goal {
    what: String,
    at_most: f64,
    figure: Option<f64>,
}

impl Goal {
    /// A missing figure counts as missed: that is what a failed run has.
    fn met(&self) -> bool {
        self.figure.is_some_and(|figure| figure <= self.at_most)
    }
}

impl Report {
    fn found(&self) -> impl Iterator<Item = (Contestant, &Finding)> {
        let found = [(Contestant::Grove, &self.grove), (Contestant::Relay, &self.relay)];
        found.into_iter().filter_map(|(who, found)| Some((who, found.as_ref()?)))
    }

    fn goals(&self) -> [Goal; 5] {
        let of = |figure: &dyn Fn(&Finding) -> f64| self.grove.as_ref().map(figure);
        let all = self.shape.messages() as f64;
        [
            Goal {
                what: "chunks lost, doubled or reordered".to_owned(),
                at_most: 0.0,
                figure: of(&|it| it.faults as f64),
            },
            Goal { what: "chunks missing".to_owned(), at_most: 0.0, figure: of(&|it| all - it.messages as f64) },
            Goal {
                what: "growth of the host once settled, MiB".to_owned(),
                at_most: MOST_GROWTH / MEBIBYTE,
                figure: of(&|it| growth(it) / MEBIBYTE),
            },
            Goal { what: "p99 from agent to client, ms".to_owned(), at_most: MOST_P99_MS, figure: of(&|it| it.p99_ms) },
            Goal {
                what: "processor time of host and shims, times the relay's".to_owned(),
                at_most: MOST_TIMES_RELAY,
                figure: self.times_relay(),
            },
        ]
    }

    pub(crate) fn misses_a_goal(&self) -> bool {
        self.goals().iter().any(|goal| !goal.met())
    }

    /// Grove's processor time, shims included, as a multiple of the relay's.
    fn times_relay(&self) -> Option<f64> {
        let [grove, relay] = [self.grove.as_ref()?, self.relay.as_ref()?];
        Some((grove.cpu.server + grove.cpu.shims) / relay.cpu.server)
    }

    pub(crate) fn to_json(&self) -> Value {
        let goals = self.goals().map(|goal| {
            json!({ "what": goal.what, "bound": { "atMost": goal.at_most }, "figure": goal.figure, "met": goal.met() })
        });
        json!({
            "shape": self.shape,
            "grove": self.grove,
            "relay": self.relay,
            "cpuTimesRelay": self.times_relay(),
            "goals": goals,
        })
    }
}

fn growth(found: &Finding) -> f64 {
    found.end_bytes as f64 - found.settled_bytes as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { agents, clients, rate, seconds } = self.shape;
        writeln!(
            f,
            "\n{agents} agents, {rate} chunks a second each, for {seconds} s, to {clients} clients that follow all\n"
        )?;
        writeln!(f, "{:36} {:>12} {:>12}", "", "grove", "relay")?;
        let mut row = |what: &str, figure: &dyn Fn(&Finding) -> Option<f64>, places: usize| {
            let cell = |found: &Option<Finding>| match found.as_ref().and_then(figure) {
                Some(figure) => format!("{figure:.places$}"),
                None => "–".to_owned(),
            };
            writeln!(f, "{what:36} {:>12} {:>12}", cell(&self.grove), cell(&self.relay))
        };
        row("agents started, s", &|it| it.start_seconds, 2)?;
        row("wall, s", &|it| Some(it.wall_seconds), 1)?;
        row("chunks that arrived", &|it| Some(it.messages as f64), 0)?;
        row("lost, doubled or reordered", &|it| Some(it.faults as f64), 0)?;
        row("agent to client, p50, ms", &|it| Some(it.p50_ms), 2)?;
        row("agent to client, p99, ms", &|it| Some(it.p99_ms), 2)?;
        row("agent to client, max, ms", &|it| Some(it.max_ms), 1)?;
        row("processor, server, s", &|it| Some(it.cpu.server), 2)?;
        row("processor, shims, s", &|it| Some(it.cpu.shims), 2)?;
        row("processor, agents, s", &|it| Some(it.cpu.agents), 2)?;
        row("processor, load client, s", &|it| Some(it.cpu.load), 2)?;
        row("server's processor, µs a chunk", &|it| Some(it.cpu.server * 1e6 / it.messages as f64), 1)?;
        row("memory, settled, MiB", &|it| Some(it.settled_bytes as f64 / MEBIBYTE), 1)?;
        row("memory, end, MiB", &|it| Some(it.end_bytes as f64 / MEBIBYTE), 1)?;
        row("memory, growth between, MiB", &|it| Some(growth(it) / MEBIBYTE), 1)?;
        row("memory, peak, MiB", &|it| Some(it.peak_bytes as f64 / MEBIBYTE), 1)?;
        row("memory of all shims, MiB", &|it| Some(it.shim_bytes as f64 / MEBIBYTE), 1)?;
        if let Some(times) = self.times_relay() {
            writeln!(f, "\nGrove and its shims take {times:.2} times the relay's processor time.")?;
        }
        for (who, found) in self.found().filter(|(_, found)| !found.described.is_empty()) {
            writeln!(f, "\n{}: {}", who.name(), found.described.join("; "))?;
        }
        writeln!(f, "\ngoals:")?;
        for goal in self.goals() {
            let met = if goal.met() { "met" } else { "MISSED" };
            let figure = goal.figure.map_or_else(|| "not measured".to_owned(), |figure| format!("{figure:.2}"));
            writeln!(f, "  {met:6}  {}: {figure} (at most {})", goal.what, goal.at_most)?;
        }
        Ok(())
    }
}
