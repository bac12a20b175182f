//! The results and the goals.

use grove_bench_report::{Bound, Goal, Goals, is_any_missed, json};
use serde::Serialize;
use serde_json::Value;

use crate::measure::{Figures, Opened};
use crate::peers::Peer;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// 2,000 sessions of all tools, 297 MB.
    pub(crate) usual: Figures,
    /// 20,000 sessions.
    pub(crate) many: Figures,
    /// One long session of each tool.
    pub(crate) long: Figures,
    pub(crate) peers: Vec<Peer>,
    #[serde(skip)]
    pub(crate) goals: Vec<Goal>,
}

impl Report {
    pub(crate) fn new(usual: Figures, many: Figures, long: Figures, peers: Vec<Peer>) -> Self {
        let goal =
            |what: &str, most, figure| Goal { what: what.to_owned(), bound: Bound::AtMost(most), figure: Some(figure) };
        let mut goals = vec![
            goal("catalog of 2,000 sessions and 297 MB, ms", 2_000.0, usual.scan),
            goal("its peak of memory, MiB", 150.0, mebibytes(usual.peak)),
            goal("nothing changed, ms", 100.0, usual.rescan),
            goal("newest 100 of 20,000 sessions, ms", 20.0, many.list),
        ];
        let newest =
            |opened: &Opened| goal(&format!("newest 100 entries of 50 MB, {}, ms", opened.tool), 5.0, opened.newest);
        goals.extend(long.opened.iter().map(newest));
        Self { usual, many, long, peers, goals }
    }

    pub(crate) fn is_met(&self) -> bool {
        !is_any_missed(&self.goals)
    }

    pub(crate) fn json(&self) -> serde_json::Result<Value> {
        let mut report = serde_json::to_value(self)?;
        report["goals"] = Value::Array(json(&self.goals));
        Ok(report)
    }

    pub(crate) fn print(&self) {
        println!("| | sessions | scan ms | peak MiB | rescan ms | list 100 ms | catalog MiB |");
        println!("|---|---|---|---|---|---|---|");
        for (name, figures) in [("usual", &self.usual), ("many", &self.many), ("long", &self.long)] {
            let Figures { sessions, scan, peak, rescan, list, catalog_bytes, .. } = figures;
            let (peak, size) = (mebibytes(*peak), mebibytes(*catalog_bytes));
            println!("| {name} | {sessions} | {scan} | {peak:.0} | {rescan} | {list} | {size:.1} |");
        }
        println!("\n| long session | MB | turns | newest 100 entries ms | all of it ms |\n|---|---|---|---|---|");
        for Opened { tool, bytes, turns, newest, whole } in &self.long.opened {
            println!("| {tool} | {:.0} | {turns} | {newest} | {whole} |", *bytes as f64 / 1e6);
        }
        println!("\n| peer | what | ms | peak MiB |\n|---|---|---|---|");
        for Peer { name, what, figures } in &self.peers {
            match figures {
                Ok(figures) => println!("| {name} | {what} | {} | {:.0} |", figures.time, mebibytes(figures.peak)),
                Err(why) => println!("| {name} | {what} | peer not available: {why} | |"),
            }
        }
        print!("{}", Goals(&self.goals));
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
