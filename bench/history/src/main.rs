//! The cost of finding other tools' sessions, scanning again, listing them, and opening a large one.
//!
//! Without a subcommand this generates homes (`gen_corpus.py`) and drives the contestants, each in separate processes,
//! so that none uses another's memory. `measure` is Grove's process.

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
    /// Scan a home into a new catalog, and print the times.
    #[command(hide = true)]
    Measure { home: PathBuf },
}

#[derive(Args, Clone)]
struct Options {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// New processes for each figure; the median counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Use 3 GB for the home with 20,000 sessions: generating that takes a quarter of an hour.
    #[arg(long)]
    full: bool,
    /// The folder for the generated homes, which is kept [default: a temporary one]
    #[arg(long)]
    corpora: Option<PathBuf>,
    /// The folder for the peers, which is kept [default: a temporary one]
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
