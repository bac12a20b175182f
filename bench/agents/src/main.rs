//! What it costs to bring many agents' streams to a few clients.
//!
//! Without a subcommand this drives the contestants, each a process of its own, with a load client that is a process
//! of its own too, so that a server's processor time and memory are read alone. `relay` and `load` are those processes.

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
    /// Hands the agents' lines to every client and does nothing else.
    #[command(hide = true)]
    Relay {
        /// How many agents, and how they stream, as JSON.
        shape: String,
    },
    /// Connects, measures, prints what it found.
    #[command(hide = true)]
    Load {
        /// The job, as JSON.
        job: String,
    },
}

#[derive(Args, Clone)]
struct Options {
    /// The program under test; without it, the one that lies beside this program.
    #[arg(long)]
    grove: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Sessions, each with an agent of its own.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    agents: u32,
    /// Clients, each of which follows all sessions.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    clients: u32,
    /// Updates a second of each agent.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// How long they stream.
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
