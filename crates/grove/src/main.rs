//! `grove`: the program around the host.
//!
//! A thin skin: [`cli`] says what can be typed, [`settings`] where values come from, [`data_folder`] what the process
//! keeps on disk, and each module of [`commands`] does one command.

mod cli;
mod commands;
mod data_folder;
mod endpoint;
mod settings;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, ConfigCommand};
use commands::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprintln!("grove: {failure:#}");
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { common, command } = cli;
    match command {
        Command::Serve(args) => commands::serve::run(&common, &args),
        Command::Status(args) => commands::status::run(&common, &args),
        Command::Stop(args) => commands::stop::run(&common, &args),
        Command::Inspect(args) => commands::inspect::run(&common, &args),
        Command::Check(args) => commands::check::run(&common, &args),
        Command::Config(ConfigCommand::Show(args)) => commands::config::show(&common, &args),
        Command::Completions { shell } => commands::completions::run(shell),
    }
}
