//! The cost of one streamed delta, counted in instructions.
//!
//! Without a subcommand this drives itself under `valgrind --tool=callgrind`: each case is run twice, with fewer and
//! with more deltas, and the difference divided by the difference of the deltas is the cost of one. So the cost of
//! building the chat does not count. Instruction counts are reproducible on a shared machine, where times are not.

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
    /// The valgrind program.
    #[arg(long, default_value = "valgrind")]
    valgrind: String,
}

#[derive(Subcommand)]
enum Command {
    /// Build one chat and apply deltas to it, under valgrind.
    Run(Case),
}

/// One chat, and the deltas for it.
#[derive(Args, Clone, Copy)]
struct Case {
    /// Finished turns.
    #[arg(long)]
    turns: usize,
    /// Parts of the active turn; deltas go to the last one.
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
            // Printed so that the optimizer cannot remove any of the work.
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
