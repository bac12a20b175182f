//! The cost of delivering many agents' streams to a few clients.
//!
//! Without a subcommand this drives the contestants. Each is a separate process, and so is the load client, so that the
//! processor time and memory of a server are measured alone. `relay` and `load` are those processes.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod driver;
mod job;
mod load;
mod process;
mod relay;
mod report;
mod server;

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
    /// Forward the agents' lines to every client and do nothing else.
    #[command(hide = true)]
    Relay {
        /// The number of agents, and their streams, as JSON.
        shape: String,
    },
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
    /// Sessions, each with its own agent.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    agents: u32,
    /// Clients, each of which follows all sessions.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    clients: u32,
    /// Updates per second of each agent.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// The duration of the streams in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Relay { shape }) => relay::run(&shape).map(|()| ExitCode::SUCCESS),
        Some(Command::Load { job }) => Ok(load::run(&job)),
        None => driver::run(&cli.options),
    }
}
