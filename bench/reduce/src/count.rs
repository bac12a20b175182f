//! Runs this program under callgrind and reads its counts.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::chats::Reducer;
use crate::report::Row;

/// The finished turns of the short and of the long chat.
pub(crate) const TURNS: [usize; 2] = [10, 10_000];
/// The numbers of parts of the active turn. The goal uses the first of them.
pub(crate) const PARTS: [usize; 3] = [1, 100, 1_000];
/// The smaller and the larger number of deltas.
const DELTAS: [usize; 2] = [1_000, 3_000];

/// The number of repetitions of a case.
///
/// Grove's tables hash with a random seed, so that now and then a collision costs more: the median counts. The peer's
/// reducer has no tables and always counts the same.
fn repeats(reducer: Reducer) -> usize {
    match reducer {
        Reducer::Grove => 5,
        Reducer::Ahp => 1,
    }
}

/// Every case for every reducer.
pub(crate) fn all(valgrind: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for parts in PARTS {
        for reducer in Reducer::ALL {
            let mut per_delta = [0.0; TURNS.len()];
            for (cost, turns) in per_delta.iter_mut().zip(TURNS) {
                let [few, many] = DELTAS.map(|deltas| median(valgrind, reducer, turns, parts, deltas));
                let more = (DELTAS[1] - DELTAS[0]) as f64;
                *cost = (many? as f64 - few? as f64) / more;
                eprintln!("{}: {turns} turns, {parts} parts: {cost:.0} instructions a delta", reducer.name());
            }
            rows.push(Row { reducer, parts, per_delta });
        }
    }
    Ok(rows)
}

fn median(valgrind: &str, reducer: Reducer, turns: usize, parts: usize, deltas: usize) -> Result<u64> {
    let counted = (0..repeats(reducer)).map(|_| instructions(valgrind, reducer, turns, parts, deltas));
    let mut counted = counted.collect::<Result<Vec<_>>>()?;
    counted.sort_unstable();
    counted.get(counted.len() / 2).copied().context("nothing was counted")
}

fn instructions(valgrind: &str, reducer: Reducer, turns: usize, parts: usize, deltas: usize) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let counts = folder.path().join("counts");
    let this = std::env::current_exe().context("finding this program")?;
    let output = Command::new(valgrind)
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(this)
        .arg("run")
        .args(["--reducer", reducer.name()])
        .args(["--turns", &turns.to_string()])
        .args(["--parts", &parts.to_string()])
        .args(["--deltas", &deltas.to_string()])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {valgrind}: is it installed (Debian: valgrind)?"))?;
    ensure!(output.status.success(), "{valgrind} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    read_total(&counts)
}

/// The total at the end of callgrind's file.
fn read_total(counts: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(counts).context("reading callgrind's counts")?;
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals:")).context("callgrind gave no total")?;
    Ok(total.trim().parse()?)
}
