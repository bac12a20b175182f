//! What programs that use the Copilot SDK wait for, at Grove and at the real Copilot CLI's server.
//!
//! The SDK is the real one, in a node process of its own (`node/measure.mjs`). Each server is a fresh process with a data
//! folder that was written for it, the contestants taking turns, over TCP on loopback and over pipes. Grove has its
//! scripted agent behind it, the CLI a fake model that says the same. Nothing leaves the machine.

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
    /// The program under test; without it, the one that lies beside this program.
    #[arg(long)]
    grove: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Fresh servers of each contestant.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Pings of each server.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pings: u32,
    /// Sessions made, prompts answered and long sessions resumed at each server.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    times: u32,
    /// Events of a long session, in the SDK's terms.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    events: u32,
    /// How long the log of the huge session is; 0 leaves it out.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=2_000))]
    megabytes: u64,
    /// The folder into which the SDK and the CLI were or will be installed; without it, `peers/sessionfs` in the target
    /// folder that this program lies in.
    #[arg(long)]
    peers_dir: Option<PathBuf>,
    /// Leave the CLI out.
    #[arg(long)]
    no_peers: bool,
}

fn main() -> Result<ExitCode> {
    driver::run(&Options::parse())
}
