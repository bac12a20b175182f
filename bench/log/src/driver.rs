//! Generates the logs, runs the measuring processes, collects their results.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use grove_fs::LocalFs;
use grove_tree::store;
use serde::de::DeserializeOwned;

use crate::Options;
use crate::generate::{self, Until};
use crate::grove;
use crate::job::{Appended, Contestant, Loaded, SESSIONS, Screen};
use crate::peers::{Peer, Peers};
use crate::report::{AppendCell, LoadCell, Log, Report, ScreenCell};

/// The runs of appends for each run of anything else: they take milliseconds, and a disk's times differ by half.
const APPEND_RUNS: usize = 5;

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    ensure!(options.runs > 0, "--runs must be at least 1");
    let peers = Peers::find(options)?;
    let folder = tempfile::tempdir()?;
    let mut report = Report { peers: peers.list.clone(), ..Report::default() };
    append(options, &peers, folder.path(), &mut report)?;
    for entries in &options.entries {
        let log = make(folder.path(), Until::Entries(*entries))?;
        load(options, &peers, folder.path(), &log, &mut report)?;
        report.logs.push(log);
    }
    let log = make(folder.path(), Until::Bytes(options.large))?;
    first_screen(options, folder.path(), &log, &mut report)?;
    fs::remove_file(folder.path().join(&log.name))?;
    report.large = Some(log);
    if options.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(if report.misses_a_goal() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Writes a log and its side index.
fn make(folder: &Path, until: Until) -> Result<Log> {
    let name = match until {
        Until::Entries(entries) => format!("{entries}.jsonl"),
        Until::Bytes(_) => "large.jsonl".to_owned(),
    };
    let entries = generate::log(&folder.join(&name), until)?;
    let side = format!("{name}.idx");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let written = runtime.block_on(async {
        let fs = LocalFs::new(folder);
        let opened = store::open_log(&fs, &name, &mut String::new).await?;
        store::write_side_index(&fs, &name, &side, &opened.index).await
    })?;
    ensure!(written, "{name} has no side index");
    let bytes = fs::metadata(folder.join(&name))?.len();
    let side_bytes = fs::metadata(folder.join(&side))?.len();
    eprintln!("{name}: {entries} entries, {bytes} bytes");
    Ok(Log { name, side, entries, bytes, side_bytes })
}

fn load(options: &Options, peers: &Peers, folder: &Path, log: &Log, report: &mut Report) -> Result<()> {
    let peer = |contestant| peers.list.iter().find(|peer: &&Peer| peer.contestant == contestant);
    let here = Contestant::ALL.into_iter().filter(|who| !Contestant::PEERS.contains(who) || peer(*who).is_some());
    let mut cells: Vec<LoadCell> =
        here.map(|contestant| LoadCell { contestant, entries: log.entries, runs: Vec::new() }).collect();
    for _ in 0..options.runs {
        for cell in &mut cells {
            let command = match cell.contestant {
                Contestant::Grove => own("load", folder, log, None)?,
                Contestant::GroveWithSideIndex => own("load", folder, log, Some(&log.side))?,
                Contestant::Pi15 | Contestant::Pi073 | Contestant::Omp => {
                    let mut command = peers.measure(peer(cell.contestant).context("not installed")?)?;
                    command.arg("load").arg(folder.join(&log.name));
                    command
                }
            };
            match measured::<Loaded>(command) {
                Ok(loaded) => cell.runs.push(loaded),
                // A failing peer loses only its figure.
                Err(error) if Contestant::PEERS.contains(&cell.contestant) => {
                    eprintln!("{}, {} entries: failed: {error:#}", cell.contestant.name(), log.entries);
                }
                Err(error) => return Err(error),
            }
        }
    }
    let found = cells.iter().flat_map(|cell| cell.runs.iter().map(|run| (cell.contestant, &run.found)));
    let found: Vec<_> = found.collect();
    if let Some((_, first)) = found.first() {
        for (who, other) in &found {
            ensure!(other == first, "{} found {other:?}, Grove {first:?}", who.name());
        }
    }
    ensure!(fs::metadata(folder.join(&log.name))?.len() == log.bytes, "{} was changed", log.name);
    report.load.extend(cells);
    Ok(())
}

fn first_screen(options: &Options, folder: &Path, log: &Log, report: &mut Report) -> Result<()> {
    for side in [Some(log.side.as_str()), None] {
        let contestant = if side.is_some() { Contestant::GroveWithSideIndex } else { Contestant::Grove };
        let runs = (0..options.runs).map(|_| measured::<Screen>(own("screen", folder, log, side)?));
        report.screen.push(ScreenCell { contestant, runs: runs.collect::<Result<_>>()? });
    }
    Ok(())
}

fn append(options: &Options, peers: &Peers, folder: &Path, report: &mut Report) -> Result<()> {
    let messages = folder.join("messages.json");
    fs::write(&messages, serde_json::to_vec(&(0..SESSIONS).map(grove::messages).collect::<Vec<_>>())?)?;
    let pi = peers.list.iter().find(|peer| peer.contestant == Contestant::Pi15);
    // Pending writes of the installation would delay the first measured sync.
    Command::new("sync").status().context("cannot run `sync`")?;
    let cell = |contestant| AppendCell { contestant, runs: Vec::new() };
    let (mut grove, mut pi_cell) = (cell(Contestant::Grove), cell(Contestant::Pi15));
    for _ in 0..options.runs * APPEND_RUNS {
        let place = tempfile::tempdir_in(folder)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("sync").arg(place.path());
        report.disk.push(measured::<Appended>(command)?);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("append").arg(place.path().join("journal"));
        grove.runs.push(measured::<Appended>(command)?);
        if let Some(pi) = pi {
            let mut command = peers.measure(pi)?;
            command.arg("append").arg(place.path()).arg(&messages);
            match measured::<Appended>(command) {
                Ok(appended) => pi_cell.runs.push(appended),
                Err(error) => eprintln!("{}, appends: failed: {error:#}", pi.contestant.name()),
            }
        }
    }
    report.append = [grove, pi_cell].into_iter().filter(|cell| !cell.runs.is_empty()).collect();
    Ok(())
}

/// A process of this program.
fn own(what: &str, folder: &Path, log: &Log, side: Option<&str>) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(what).arg(folder).arg(&log.name);
    if let Some(side) = side {
        command.args(["--side", side]);
    }
    Ok(command)
}

/// Runs a measuring process, and parses its output.
fn measured<T: DeserializeOwned>(mut command: Command) -> Result<T> {
    let output = command.stdin(Stdio::null()).output()?;
    let problem = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{}: {}", output.status, problem());
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().with_context(problem)?;
    serde_json::from_str(line).with_context(|| line.to_owned())
}
