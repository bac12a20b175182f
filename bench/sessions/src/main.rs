//! The cost of ten thousand sessions of five providers in one list, and of a change in one.
//!
//! Without a subcommand this starts three hosts on loopback, generates the sessions of two other tools, and drives the
//! contestants in separate processes, so that none uses another's memory. `host` is a host's process, `measure` that of
//! the list.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod driver;
mod histories;
mod host;
mod measure;
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
    /// Serve a host with this many sessions until stdin is closed.
    #[command(hide = true)]
    Host { sessions: usize },
    /// List everything, make changes, and print the times.
    #[command(hide = true)]
    Measure {
        catalog: PathBuf,
        /// `ws://…` and the token of each host, separated by a space.
        hosts: Vec<String>,
    },
}

#[derive(Args, Clone)]
struct Options {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Sessions of each of the five providers.
    #[arg(long, default_value_t = 2_000)]
    sessions: usize,
    /// New processes; the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match cli.command {
        Some(Command::Host { sessions }) => runtime.block_on(host::run(sessions)).map(|()| ExitCode::SUCCESS),
        Some(Command::Measure { catalog, hosts }) => {
            runtime.block_on(measure::print(&catalog, &hosts)).map(|()| ExitCode::SUCCESS)
        }
        None => runtime.block_on(driver::run(&cli.options)),
    }
}
