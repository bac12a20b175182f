//! What came of it, and whether the goals are met.

use serde::Serialize;

use crate::measure::Figures;
use crate::peers::Peer;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// 2,000 sessions, 297 MB.
    pub(crate) usual: Figures,
    /// 20,000 sessions.
    pub(crate) many: Figures,
    pub(crate) peers: Vec<Peer>,
    pub(crate) goals: Vec<Goal>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Goal {
    what: &'static str,
    wanted: f64,
    measured: f64,
    met: bool,
}

impl Report {
    pub(crate) fn new(usual: Figures, many: Figures, peers: Vec<Peer>) -> Self {
        let goal = |what, wanted, measured| Goal { what, wanted, measured, met: measured <= wanted };
        let goals = vec![
            goal("catalog of 2,000 sessions and 297 MB, ms", 2_000.0, usual.scan),
            goal("its peak of memory, MiB", 150.0, mebibytes(usual.peak)),
            goal("nothing changed, ms", 100.0, usual.rescan),
            goal("newest 100 of 20,000 sessions, ms", 20.0, many.list),
            goal("newest turns of a session of 50 MB, ms", 5.0, usual.open),
        ];
        Self { usual, many, peers, goals }
    }

    pub(crate) fn is_met(&self) -> bool {
        self.goals.iter().all(|goal| goal.met)
    }

    pub(crate) fn print(&self) {
        println!("| | sessions | scan ms | peak MiB | rescan ms | list 100 ms | open largest ms | catalog MiB |");
        println!("|---|---|---|---|---|---|---|---|");
        for (name, figures) in [("usual", &self.usual), ("many", &self.many)] {
            let Figures { sessions, scan, peak, rescan, list, open, catalog_bytes, .. } = figures;
            let (peak, size) = (mebibytes(*peak), mebibytes(*catalog_bytes));
            println!("| {name} | {sessions} | {scan} | {peak:.0} | {rescan} | {list} | {open} | {size:.1} |");
        }
        println!("\n| peer | what | ms | peak MiB |\n|---|---|---|---|");
        for Peer { name, what, time, peak } in &self.peers {
            println!("| {name} | {what} | {time} | {:.0} |", mebibytes(*peak));
        }
        println!("\n| goal | at most | measured | |\n|---|---|---|---|");
        for Goal { what, wanted, measured, met } in &self.goals {
            println!("| {what} | {wanted} | {measured:.2} | {} |", if *met { "met" } else { "MISSED" });
        }
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
