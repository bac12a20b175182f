//! `grove`: the program around the host.
//!
//! A thin skin: [`cli`] says what can be typed, [`settings`] where values come from, [`data_folder`] what the process
//! keeps on disk, [`background`] how a host is found or started, [`agents`] which agents there are, [`hooks`] who
//! is asked before sessions' trees change, [`stores`] where sessions lie, [`listeners`] where
//! clients find the host, [`open_files`] how many files it may have open, and each module of [`commands`] does one command.
//!
//! Commands that are clients of the host: [`connect`] reaches it, [`chat_client`] is a conversation in whichever protocol,
//! [`follow`] stays with one until it is over, [`question_dialog`] puts an agent's questions to the person, and [`show`] is how all
//! of it looks. [`input`] is the input line of a terminal. [`hosts`] are others that are known by name, [`file_memory`] what the layer of all sessions keeps on disk. [`history`] is what other tools left on this machine. [`import_export`] is how sessions look that come from other programs, or go to them.

mod agents;
mod background;
mod chat_client;
mod cli;
mod commands;
mod connect;
mod damage_file;
mod data_folder;
mod endpoint;
mod file_memory;
mod follow;
mod history;
mod hooks;
mod hosts;
mod import_export;
mod input;
mod json_errors;
mod listeners;
mod open_files;
mod page;
mod question_dialog;
mod secret_files;
mod settings;
mod show;
mod stores;
mod trust;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, ConfigCommand, HistoryCommand, ServeArgs};
use commands::Failure;
use commands::bridge::CloseNotice;
use commands::marks::SessionFlag;

fn main() -> ExitCode {
    let typed = as_typed(std::env::args_os());
    let wants_json = json_errors::is_asked(&typed);
    let cli = match Cli::try_parse_from(typed) {
        Ok(cli) => cli,
        Err(error) => {
            // Help is no error.
            if wants_json && error.use_stderr() {
                commands::print_line(json_errors::of_usage(&error)).ok();
            }
            error.exit();
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_printed() {
                if wants_json && !failure.is_reported() {
                    // Nobody may be reading, and the words below are said all the same.
                    commands::print_line(json_errors::of(&failure)).ok();
                }
                anstream::eprintln!("grove: {failure:#}");
            }
            failure.exit_code()
        }
    }
}

/// What was typed. The Copilot SDK runs a program that it was given as its CLI with its own words alone.
fn as_typed(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    if args.get(1).is_some_and(|first| first == "--headless") {
        args.insert(1, "copilot".into());
    }
    args
}

fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { common, command } = cli;
    match command {
        Command::Run(args) => commands::run::run(&common, &args),
        Command::Ls(args) => commands::ls::run(&common, &args),
        Command::Attach(args) => commands::attach::run(&common, &args),
        Command::Send(args) => commands::send::run(&common, &args),
        Command::Wait(args) => commands::wait::run(&common, &args),
        Command::Cancel(args) => commands::send::cancel(&common, &args),
        Command::Approve(args) => commands::answer::approve(&common, &args),
        Command::Deny(args) => commands::answer::deny(&common, &args),
        Command::Answer(args) => commands::answer::answer(&common, &args),
        Command::Permissions(args) => commands::permissions::run(&common, &args),
        Command::Cd(args) => commands::cd::run(&common, &args),
        Command::Tree(args) => commands::tree::run(&common, &args),
        Command::Goto(args) => commands::tree::goto(&common, &args),
        Command::Label(args) => commands::tree::label(&common, &args),
        Command::Rename(args) => commands::tree::rename(&common, &args),
        Command::Branch(args) => commands::tree::branch(&common, &args),
        Command::Fork(args) => commands::tree::fork(&common, &args),
        Command::Migrate(args) => commands::tree::migrate(&common, &args),
        Command::Move(args) => commands::move_session::run(&common, &args),
        Command::Merge(args) => commands::tree::merge(&common, &args),
        Command::Compact(args) => commands::tree::compact(&common, &args),
        Command::Plan(args) => commands::workspace::plan(&common, &args),
        Command::Files(args) => commands::workspace::files(&common, &args),
        Command::Checkpoints(args) => commands::workspace::checkpoints(&common, &args),
        Command::Show(args) => commands::show::run(&common, &args),
        Command::Export(args) => commands::export::run(&common, &args),
        Command::Import(args) => commands::import::run(&common, &args),
        Command::Chats(args) => commands::chats::run(&common, &args),
        Command::Archive(args) => commands::marks::run(&common, &args, SessionFlag::Archived),
        Command::Read(args) => commands::marks::run(&common, &args, SessionFlag::Read),
        Command::Rm(args) => commands::rm::run(&common, &args),
        Command::Agents(args) => commands::agents::run(&common, &args),
        Command::Logs(args) => commands::logs::run(&common, &args),
        Command::Serve(args) if args.stdio => commands::bridge::run(&common, &args, CloseNotice::Sent),
        Command::Serve(args) => commands::serve::run(&common, &args),
        Command::Start(args) => commands::start::run(&common, &args),
        Command::Open(args) => commands::open::run(&common, &args),
        Command::Status(args) => commands::status::run(&common, &args),
        Command::Stop(args) => commands::stop::run(&common, &args),
        Command::Copilot(args) => commands::copilot::run(&common, &args),
        Command::AhpBridge(_) => commands::bridge::run(&common, &ServeArgs::default(), CloseNotice::Silent),
        Command::Hosts(args) => commands::hosts::run(&common, &args),
        Command::Inspect(args) => commands::inspect::run(&common, &args),
        Command::History(HistoryCommand::Scan(args)) => commands::history::scan(&common, &args),
        Command::Doctor(args) => commands::doctor::run(&common, &args),
        Command::Check(args) => commands::check::run(&common, &args),
        Command::Config(ConfigCommand::Show(args)) => commands::config::show(&common, &args),
        Command::AgentShim => commands::agent_shim::run(),
        Command::Completions { shell } => commands::completions::run(shell),
    }
}
