//! What it costs to find other tools' sessions, to look again, to list them, and to open a large one.
//!
//! Without a subcommand this generates homes (`gen_corpus.py`) and drives the contestants, each in processes of their own,
//! so that none finds another's memory. `measure` is Grove's process.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod driver;
mod measure;
mod peers;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

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
    /// Scans a home into a new catalog, and prints how long everything took.
    #[command(hide = true)]
    Measure { home: PathBuf },
}

#[derive(Args, Clone)]
struct Options {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Fresh processes for each figure, of which the median is taken.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Let the home with 20,000 sessions have 3 GB: generating that takes a quarter of an hour.
    #[arg(long)]
    full: bool,
    /// A folder for the generated homes, to be kept; without it, a temporary one.
    #[arg(long)]
    corpora: Option<PathBuf>,
    /// A folder into which the peers were or will be installed, to be kept; without it, a temporary one.
    #[arg(long)]
    peers_dir: Option<PathBuf>,
    /// Leave the peers out.
    #[arg(long, conflicts_with = "peers_dir")]
    no_peers: bool,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Measure { home }) => measure::print(&home).map(|()| ExitCode::SUCCESS),
        None => driver::run(&cli.options),
    }
}
