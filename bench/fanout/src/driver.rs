//! Runs the contestants one after the other and collects their results.

use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::contestant::{Programs, Server};
use crate::job::{Contestant, Finding, Job, Measure, Paced, Program, Throughput};
use crate::process;
use crate::report::{Cell, Report};
use crate::{Figure, Options};

/// The number of idle connections for the memory measurement.
const IDLE: usize = 1_000;
/// The numbers of clients for the last-client latency, and of its repetitions.
pub(crate) const LAST_OF: [usize; 2] = [50, 200];
const EVENTS: usize = 30;
const PACE_MS: u64 = 5;
/// Deltas of a throughput run in all rounds together, while the messages stay below [`MESSAGES`].
///
/// There must be many, since the clock of processor time has a resolution of 10 ms.
const DELTAS: usize = 100_000;
const MESSAGES: usize = 4_000_000;
/// The same for the Node server, which needs a minute for that many.
const NODE_MESSAGES: usize = 500_000;
const LIMIT_SECONDS: u64 = 150;

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(measure(options))?;
    if options.json {
        println!("{:#}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(if report.misses_a_goal() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn measure(options: &Options) -> Result<Report> {
    let most = options.subscribers.iter().copied().max().unwrap_or_default().max(IDLE) as u64;
    let allowed = process::raise_open_files();
    ensure!(allowed > most + 100, "only {allowed} files may be open, {most} subscribers need more (ulimit -n)");

    let programs = Programs::find(options).await?;
    let mut report = Report::new(options, &programs.streaming());
    for run in 1..=options.runs {
        let label = format!("run {run}");
        for cell in report.cells.iter_mut().filter(|_| options.measures(Figure::FullSpeed)) {
            let found = say(&label, &programs, cell.contestant, cell.subscribers, throughput(options, cell)).await;
            if let Some(Finding::Throughput(found)) = found {
                cell.throughput.push(found);
            }
        }
        let label = format!("paced run {run}");
        for cell in report.cells.iter_mut().filter(|_| options.measures(Figure::Paced)) {
            let measure = Measure::Paced { deltas: options.paced_deltas, delay_ms: PACE_MS };
            let found = say(&label, &programs, cell.contestant, cell.subscribers, measure).await;
            if let Some(Finding::Paced(found)) = found {
                cell.paced.push(found);
            }
        }
    }
    for contestant in programs.idle().into_iter().filter(|_| options.measures(Figure::Idle)) {
        if let Some(Finding::Idle { bytes_per_connection }) =
            say("idle", &programs, contestant, IDLE, Measure::Idle).await
        {
            report.idle.push((contestant, bytes_per_connection));
        }
    }
    for contestant in programs.telling().into_iter().filter(|_| options.measures(Figure::Last)) {
        for clients in LAST_OF {
            let measure = Measure::Last { events: EVENTS };
            if let Some(Finding::Last { milliseconds }) = say("last of", &programs, contestant, clients, measure).await
            {
                report.last.push((contestant, clients, milliseconds));
            }
        }
    }
    Ok(report)
}

fn throughput(options: &Options, cell: &Cell) -> Measure {
    let most = match cell.contestant.program() {
        Program::Node => NODE_MESSAGES,
        Program::Grove | Program::Bare | Program::Opencode | Program::Codex => MESSAGES,
    };
    let wanted = (most / cell.subscribers).clamp(1, DELTAS);
    // Fewer deltas than requested if they would be too many for Node.
    let deltas = match cell.contestant.program() {
        Program::Node => options.deltas.min(wanted),
        Program::Grove | Program::Bare | Program::Opencode | Program::Codex => options.deltas,
    };
    Measure::Throughput { deltas, rounds: wanted.div_ceil(deltas) }
}

/// Runs one job and reports its result; a failure loses only this figure.
async fn say(
    label: &str,
    programs: &Programs,
    contestant: Contestant,
    subscribers: usize,
    measure: Measure,
) -> Option<Finding> {
    let name = contestant.name();
    match job(programs, contestant, subscribers, measure).await {
        Ok(found) => {
            eprintln!("{label}: {name}, {subscribers} subscribers: {}", brief(&found));
            Some(found)
        }
        Err(error) => {
            eprintln!("{label}: {name}, {subscribers} subscribers: failed: {error:#}");
            None
        }
    }
}

fn brief(found: &Finding) -> String {
    match found {
        Finding::Throughput(Throughput { messages, wall_seconds, cpu_seconds, .. }) => {
            format!("{messages} messages in {wall_seconds:.2} s, {cpu_seconds:.2} s of processor time")
        }
        Finding::Paced(paced) => {
            let Paced { p50_ms, p99_ms, cpu_seconds, .. } = paced;
            format!("p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms, {cpu_seconds:.2} s of processor time")
        }
        Finding::Last { milliseconds } => format!("{:.2} ms", crate::report::median(milliseconds).unwrap_or(f64::NAN)),
        Finding::Idle { bytes_per_connection } => format!("{:.1} KiB a connection", bytes_per_connection / 1024.0),
    }
}

/// Each job has a new server, without the state of another.
async fn job(programs: &Programs, contestant: Contestant, subscribers: usize, measure: Measure) -> Result<Finding> {
    let server = Server::start(contestant, programs).await.context("starting it")?;
    let job = Job { target: server.target.clone(), subscribers, measure, limit_seconds: LIMIT_SECONDS };
    let found = load(&job).await;
    server.stop().await?;
    found
}

async fn load(job: &Job) -> Result<Finding> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("load").arg(serde_json::to_string(job)?);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}
