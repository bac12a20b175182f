//! The waiting times of programs that use the Copilot SDK, at Grove and at the real Copilot CLI's server.
//!
//! The SDK is the real one, in its own node process (`node/measure.mjs`). Each server is a new process with a data
//! folder that was written for it; the contestants alternate, over TCP on loopback and over pipes. Grove uses its
//! scripted agent, the CLI a fake model with the same answers. Nothing leaves the machine.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod disk;
mod driver;
mod job;
mod peer;
mod process;
mod report;
mod server;
mod session;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

#[derive(Parser, Clone)]
#[command(about, version)]
struct Options {
    /// The program under test [default: the one beside this program]
    #[arg(long)]
    grove: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// New servers of each contestant.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Pings of each server.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pings: u32,
    /// Created sessions, answered prompts and resumed long sessions at each server.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    times: u32,
    /// Events of a long session, in the SDK's terms.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    events: u32,
    /// The size of the huge session's log in megabytes; 0 leaves it out.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=2_000))]
    megabytes: u64,
    /// The folder for the SDK and the CLI [default: `peers/sessionfs` in this program's target folder]
    #[arg(long)]
    peers_dir: Option<PathBuf>,
    /// Leave the CLI out.
    #[arg(long)]
    no_peers: bool,
}

fn main() -> Result<ExitCode> {
    driver::run(&Options::parse())
}
