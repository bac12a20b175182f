//! The cost of opening a session's log and of appending to one.
//!
//! Without a subcommand this generates logs and drives the contestants, each measurement in its own process, so that
//! none uses another's memory. `load`, `screen`, `append` and `sync` are Grove's processes.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod driver;
mod generate;
mod grove;
mod job;
mod peers;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use serde::Serialize;

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
    /// Open a log, and print the time.
    #[command(hide = true)]
    Load(LogArgs),
    /// Open a log and read its newest entries.
    #[command(hide = true)]
    Screen(LogArgs),
    /// Append entries of several sessions to a journal in a new folder.
    #[command(hide = true)]
    Append { folder: PathBuf },
    /// Write and sync one file in a new folder, batch after batch.
    #[command(hide = true)]
    Sync { folder: PathBuf },
}

#[derive(Args)]
struct LogArgs {
    folder: PathBuf,
    name: String,
    /// The side index, if it may be used.
    #[arg(long)]
    side: Option<String>,
}

#[derive(Args, Clone)]
struct Options {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// The numbers of entries of the loaded logs.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    entries: Vec<usize>,
    /// The size of the log whose first screen is read, in bytes.
    #[arg(long, default_value_t = 500_000_000)]
    large: u64,
    /// New processes for each figure; the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
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
        Some(Command::Load(log)) => print(&grove::load(&log)?),
        Some(Command::Screen(log)) => print(&grove::screen(&log)?),
        Some(Command::Append { folder }) => print(&grove::append(&folder)?),
        Some(Command::Sync { folder }) => print(&grove::sync(&folder)?),
        None => driver::run(&cli.options),
    }
}

fn print(found: &impl Serialize) -> Result<ExitCode> {
    println!("{}", serde_json::to_string(found)?);
    Ok(ExitCode::SUCCESS)
}
