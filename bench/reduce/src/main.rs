//! What one streamed delta costs, counted in instructions.
//!
//! Without a subcommand this drives itself under `valgrind --tool=callgrind`: each case is run twice, with fewer and
//! with more deltas, and the difference divided by the difference of the deltas is the cost of one. What building the
//! chat costs falls out. Instruction counts repeat on a shared machine, where times do not.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

mod chats;
mod count;
mod report;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use chats::Reducer;

#[derive(Parser)]
#[command(about, version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// The valgrind to run.
    #[arg(long, default_value = "valgrind")]
    valgrind: String,
}

#[derive(Subcommand)]
enum Command {
    /// Builds one chat and applies deltas to it: what valgrind is pointed at.
    Run(Case),
}

/// One chat, and what is done to it.
#[derive(Args, Clone, Copy)]
struct Case {
    /// Finished turns.
    #[arg(long)]
    turns: usize,
    /// Parts of the active turn; the last one is streamed into.
    #[arg(long, default_value_t = 1)]
    parts: usize,
    /// Deltas of 20 bytes.
    #[arg(long)]
    deltas: usize,
    #[arg(long)]
    reducer: Reducer,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Run(case)) => {
            // Printed so that nothing of the work can be left out.
            println!("{}", chats::run(case)?);
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let rows = count::all(&cli.valgrind)?;
            let report = report::Report::new(rows);
            if cli.json {
                println!("{:#}", report.to_json());
            } else {
                print!("{report}");
            }
            Ok(if report.goal_is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}
