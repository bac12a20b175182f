//! Generates the log, runs the measuring processes, collects their results.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::Options;
use crate::generate::{self, Until};
use crate::grove::index_of;
use crate::host::{self, Template};
use crate::job::{Contestant, Measured};
use crate::peers::Peers;
use crate::report::{Cell, Forks, Report};

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    ensure!(options.runs > 0, "--runs must be at least 1");
    let template = Template::make(options.entries)?;
    let mut forks = Vec::new();
    for _ in 0..options.runs {
        forks.push(host::measure(&template)?);
    }
    let forks = Forks { entries: template.entries, bytes: template.bytes, runs: forks };
    if options.host_only {
        return print_report(&Report { forks, ..Report::default() }, options);
    }
    let peers = Peers::find(options)?;
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("session.jsonl");
    let entries = generate::log(&log, Until::Entries(options.entries))?;
    let (deepest, depth) = deepest(&fs::read(&log)?)?;
    let bytes = fs::metadata(&log)?.len();
    eprintln!("{entries} entries, {bytes} bytes, {depth} deep");
    let is_here =
        |who: &Contestant| !Contestant::PEERS.contains(who) || peers.list.iter().any(|peer| peer.contestant == *who);
    let here = Contestant::ALL.into_iter().filter(is_here);
    let mut cells: Vec<Cell> = here.map(|contestant| Cell { contestant, runs: Vec::new() }).collect();
    for _ in 0..options.runs {
        for cell in &mut cells {
            // Peers write branches beside the session: each has its own folder.
            let place = tempfile::tempdir_in(folder.path())?;
            let copy = place.path().join("session.jsonl");
            fs::copy(&log, &copy)?;
            let mut command = match cell.contestant {
                Contestant::Pi15 | Contestant::Omp => peers.measure(cell.contestant)?,
                Contestant::Grove | Contestant::GroveFromFile => {
                    let mut command = Command::new(std::env::current_exe()?);
                    command.arg("measure");
                    command
                }
            };
            command.arg(&copy).arg(&deepest).arg(place.path());
            if cell.contestant == Contestant::GroveFromFile {
                command.arg("--from-file");
            }
            match measured(command) {
                Ok(found) => cell.runs.push(found),
                // A failing peer loses only its figure.
                Err(error) if Contestant::PEERS.contains(&cell.contestant) => {
                    eprintln!("{}: failed: {error:#}", cell.contestant.name());
                }
                Err(error) => return Err(error),
            }
        }
    }
    check(&cells)?;
    print_report(&Report { peers: peers.list, entries, bytes, depth, cells, forks }, options)
}

fn print_report(report: &Report, options: &Options) -> Result<ExitCode> {
    if options.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(if report.misses_a_goal() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The id of the entry that is farthest from its root, and its distance.
fn deepest(bytes: &[u8]) -> Result<(String, usize)> {
    let index = index_of(bytes)?;
    let mut depths = vec![0usize; index.len()];
    for entry in index.entries() {
        depths[entry.as_usize()] = index.parent(entry).map_or(1, |parent| depths[parent.as_usize()] + 1);
    }
    let deepest = index.entries().max_by_key(|entry| depths[entry.as_usize()]).context("the log is empty")?;
    Ok((index.id(deepest).into_owned(), depths[deepest.as_usize()]))
}

/// Checks that all have found the same. (The context of a model is compared with pi's, whose rules are used.)
fn check(cells: &[Cell]) -> Result<()> {
    let found: Vec<_> =
        cells.iter().flat_map(|cell| cell.runs.iter().map(|run| (cell.contestant, &run.found))).collect();
    let Some((_, first)) = found.first() else { return Ok(()) };
    for (who, other) in &found {
        let same = (other.rows, other.branch) == (first.rows, first.branch);
        let same = same && (*who == Contestant::Omp || other.messages == first.messages);
        // Headers differ, bodies do not.
        let same = same && other.branched_bytes.abs_diff(first.branched_bytes) < 1_024;
        ensure!(same, "{} found {other:?}, Grove {first:?}", who.name());
    }
    Ok(())
}

/// Runs a measuring process, and parses its output.
fn measured(mut command: Command) -> Result<Measured> {
    let output = command.stdin(Stdio::null()).output()?;
    let problem = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{}: {}", output.status, problem());
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().with_context(problem)?;
    serde_json::from_str(line).with_context(|| line.to_owned())
}

pub(crate) fn print(log: &Path, deepest: &str, folder: &Path, from_file: bool) -> Result<ExitCode> {
    println!("{}", serde_json::to_string(&crate::grove::measure(log, deepest, folder, from_file)?)?);
    Ok(ExitCode::SUCCESS)
}
