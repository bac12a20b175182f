//! The cost of delivering one session's stream to many subscribers.
//!
//! Without a subcommand this drives the contestants. Each is a separate process, and so is the load client, so that the
//! processor time and memory of a server are measured alone. `bare` and `load` are those processes.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod bare;
mod contestant;
mod dialect;
mod driver;
mod job;
mod load;
mod process;
mod report;
mod shape;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::job::Contestant;

#[derive(Parser)]
#[command(about, version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum Command {
    /// Broadcast frames of the same bytes and do nothing else.
    #[command(hide = true)]
    Bare,
    /// Connect, measure and print the result.
    #[command(hide = true)]
    Load {
        /// The job, as JSON.
        job: String,
    },
}

#[derive(Args, Clone)]
struct Options {
    /// The program under test [default: the one beside this program]
    #[arg(long)]
    grove: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Numbers of subscribers.
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,1000")]
    subscribers: Vec<usize>,
    /// Deltas of 20 bytes in a throughput run.
    #[arg(long, default_value_t = 5_000)]
    deltas: usize,
    /// Throughput and paced runs; the median counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Deltas of a paced run, one in 5 ms.
    #[arg(long, default_value_t = 1_200)]
    paced_deltas: usize,
    /// Only these contestants.
    #[arg(long, value_enum, value_delimiter = ',')]
    contestants: Vec<Contestant>,
    /// Only these measurements.
    #[arg(long, value_enum, value_delimiter = ',')]
    figures: Vec<Figure>,
    /// Also run opencode and codex, installed with npm into a temporary folder.
    #[arg(long)]
    peers: bool,
    /// The folder for opencode and codex, which is kept.
    #[arg(long, requires = "peers")]
    peers_dir: Option<PathBuf>,
}

/// A group of measurements.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
    FullSpeed,
    Paced,
    Idle,
    Last,
}

impl Options {
    /// Says whether a contestant was chosen. Without a choice all are.
    fn runs(&self, contestant: Contestant) -> bool {
        self.contestants.is_empty() || self.contestants.contains(&contestant)
    }

    /// Says whether a group of measurements was chosen, likewise.
    fn measures(&self, figure: Figure) -> bool {
        self.figures.is_empty() || self.figures.contains(&figure)
    }
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Bare) => bare::run().map(|()| ExitCode::SUCCESS),
        Some(Command::Load { job }) => Ok(load::run(&job)),
        None => driver::run(&cli.options),
    }
}
