//! Runs the contestants one after the other and collects their results.

use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::Options;
use crate::job::{Contestant, Finding, Job, Shape};
use crate::report::Report;
use crate::server::{Server, beside};

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
    let shape = Shape {
        agents: options.agents as usize,
        clients: options.clients as usize,
        rate: options.rate,
        seconds: options.seconds,
    };
    let grove = beside(options.grove.as_deref(), "grove")?;
    if grove.is_none() {
        eprintln!("no grove: build it first (cargo build --release -p grove), or give its path with --grove");
    }
    // If it is missing it is built now, and not during a measurement.
    grove_testkit::acp::agent_program();
    let mut report = Report { shape, relay: None, grove: None };
    report.relay = say(Contestant::Relay, None, &shape).await;
    if grove.is_some() {
        report.grove = say(Contestant::Grove, grove.as_deref(), &shape).await;
    }
    Ok(report)
}

/// Runs a contestant and reports its result; a failure loses only its figures and goals.
async fn say(contestant: Contestant, grove: Option<&std::path::Path>, shape: &Shape) -> Option<Finding> {
    let name = contestant.name();
    match run_one(contestant, grove, shape).await {
        Ok(found) => {
            let Finding { messages, wall_seconds, p50_ms, p99_ms, .. } = found;
            eprintln!("{name}: {messages} chunks in {wall_seconds:.1} s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms");
            Some(found)
        }
        Err(error) => {
            eprintln!("{name}: failed: {error:#}");
            None
        }
    }
}

async fn run_one(contestant: Contestant, grove: Option<&std::path::Path>, shape: &Shape) -> Result<Finding> {
    let server = Server::start(contestant, grove, shape).await.context("starting it")?;
    let job = Job { target: server.target.clone(), pid: server.pid, shape: *shape };
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
