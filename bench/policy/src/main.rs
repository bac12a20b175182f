//! The time of `grove policy test` and `grove policy suggest` over a generated history.
//!
//! Half of the requests are in logs of Grove's sessions, the others in the audit log and in sessions of the Copilot CLI.
//! The whole command counts, from its start to its end: finding and reading the files, judging, printing.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod generate;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use grove_bench_report::{Bound, Goal, Goals, is_any_missed};
use serde_json::{Value, json};

/// The goal of `grove policy test`, in seconds.
const GOAL_S: f64 = 2.0;

#[derive(Parser)]
#[command(about, version)]
struct Cli {
    /// The `grove` program.
    #[arg(long, default_value = "target/release/grove")]
    grove: PathBuf,
    /// The answered permission requests.
    #[arg(long, default_value_t = 10_000)]
    requests: usize,
    /// The runs, of which the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let home = tempfile::tempdir()?;
    generate::history(home.path(), cli.requests)?;
    let test = measure(&cli, home.path(), "test")?;
    let suggest = measure(&cli, home.path(), "suggest")?;
    let goals = [Goal { what: "grove policy test, s".to_owned(), bound: Bound::AtMost(GOAL_S), figure: Some(test) }];
    if cli.json {
        let report = json!({
            "requests": cli.requests, "testSeconds": test, "suggestSeconds": suggest,
            "goals": grove_bench_report::json(&goals),
        });
        println!("{report:#}");
    } else {
        println!("{} requests, median of {} runs", cli.requests, cli.runs);
        println!("  grove policy test     {test:.3} s");
        println!("  grove policy suggest  {suggest:.3} s");
        print!("{}", Goals(&goals));
    }
    Ok(if is_any_missed(&goals) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The median time of a subcommand, in seconds. It must have seen every request.
fn measure(cli: &Cli, home: &Path, command: &str) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..cli.runs.max(1) {
        let start = Instant::now();
        let mut grove = Command::new(&cli.grove);
        grove.args(["policy", command, "--since", "30d", "--json", "--data-dir"]).arg(home.join("data"));
        let ran = grove.env_clear().env("HOME", home).output();
        let ran = ran.with_context(|| format!("{} does not start: build it first", cli.grove.display()))?;
        times.push(start.elapsed().as_secs_f64());
        ensure!(ran.status.success(), "grove policy {command}: {}", String::from_utf8_lossy(&ran.stderr));
        let report: Value = serde_json::from_slice(&ran.stdout)?;
        let counted = report.get("requests").and_then(Value::as_u64);
        ensure!(counted == Some(cli.requests as u64), "{counted:?} of {} requests were found", cli.requests);
    }
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().context("no run")
}
