//! The effect of hostile clients on good ones, and the growth of a host with time.
//!
//! Without a subcommand this measures the latency of good clients while hostile ones work against the same host, and
//! while they work against a decoy. `soak` measures memory and descriptors of a host over time. Hosts, good clients and
//! hostile clients are processes of their own; `attack` and `load` are those of the clients.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod attack;
mod driver;
mod host;
mod load;
mod report;
mod soak;
mod socket;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

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
    /// Measure how memory and descriptors of a host grow with reconnecting clients and short-lived sessions.
    Soak {
        /// The duration in seconds; the first third is not counted.
        #[arg(long, default_value_t = 1_800, value_parser = clap::value_parser!(u64).range(30..=86_400))]
        seconds: u64,
        /// Clients that connect, read and leave, again and again.
        #[arg(long, default_value_t = 50)]
        clients: usize,
        /// The pause of each client between two connections, in milliseconds.
        #[arg(long, default_value_t = 1_000)]
        pause_ms: u64,
        #[command(flatten)]
        options: Options,
    },
    /// Work against a host until stdin ends.
    #[command(hide = true)]
    Attack { job: String },
    /// Be the good clients, and print what they noticed.
    #[command(hide = true)]
    Load { job: String },
}

#[derive(Args, Clone)]
struct Options {
    /// The program under test [default: the one beside this program]
    #[arg(long)]
    grove: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// All connections.
    #[arg(long, default_value_t = 2_000)]
    connections: usize,
    /// The hostile ones among them.
    #[arg(long, default_value_t = 200)]
    hostile: usize,
    /// Sessions in which good clients work.
    #[arg(long, default_value_t = 20)]
    streams: usize,
    /// Runs against the host, and as many against the decoy.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// The duration of a run in seconds.
    #[arg(long, default_value_t = 15)]
    run_seconds: u64,
    /// A short run that shows whether everything works: fewer connections, and no goal for the latency.
    #[arg(long)]
    short: bool,
}

/// The host that clients connect to, and the size of their work.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    ws: String,
    token: String,
    clients: usize,
    streams: usize,
    seconds: u64,
}

impl Job {
    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// The session of a stream.
fn session(stream: usize) -> String {
    format!("scripted:/stream-{stream}")
}

fn main() -> Result<ExitCode> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let cli = Cli::parse();
    runtime.block_on(async {
        match cli.command {
            Some(Command::Attack { job }) => {
                attack::run(&serde_json::from_str(&job)?).await.map(|()| ExitCode::SUCCESS)
            }
            Some(Command::Load { job }) => load::run(&serde_json::from_str(&job)?).await.map(|()| ExitCode::SUCCESS),
            Some(Command::Soak { seconds, clients, pause_ms, options }) => {
                let pause = Duration::from_millis(pause_ms);
                soak::run(&options, Duration::from_secs(seconds), clients, pause).await
            }
            None => driver::run(&cli.options).await,
        }
    })
}
