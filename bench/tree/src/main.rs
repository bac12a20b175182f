//! The cost of walking a session's tree, building a context, and branching a session; and of forking one on a host.
//!
//! Without a subcommand this generates a log and drives the contestants, each in separate processes, so that none uses
//! another's memory. `measure` is Grove's process, `host` a host's.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod driver;
#[path = "../../log/src/generate.rs"]
#[allow(dead_code, reason = "shared with bench/log, which uses more of it")]
mod generate;
mod grove;
mod host;
mod job;
mod peers;
mod report;
mod session;

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
    /// Open a log, and print the times of everything else.
    #[command(hide = true)]
    Measure {
        log: PathBuf,
        deepest: String,
        folder: PathBuf,
        /// Read lines from the file, by ranges, instead of keeping it in memory.
        #[arg(long)]
        from_file: bool,
    },
    /// Serve a host on a data folder until stdin is closed.
    #[command(hide = true)]
    Host { data: PathBuf },
}

#[derive(Args, Clone)]
struct Options {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Entries of the log.
    #[arg(long, default_value_t = 100_000)]
    entries: usize,
    /// New processes for each figure; the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// The folder for the peers, which is kept [default: a temporary one]
    #[arg(long)]
    peers_dir: Option<PathBuf>,
    /// Measure only forking a session on a host.
    #[arg(long)]
    host_only: bool,
    /// Leave the peers out.
    #[arg(long, conflicts_with = "peers_dir")]
    no_peers: bool,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Measure { log, deepest, folder, from_file }) => driver::print(&log, &deepest, &folder, from_file),
        Some(Command::Host { data }) => host::run(&data).map(|()| ExitCode::SUCCESS),
        None => driver::run(&cli.options),
    }
}
