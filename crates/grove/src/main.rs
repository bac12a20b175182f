//! `grove`: the program around the host.
//!
//! It is a thin layer over the other crates. Modules of the host process:
//!
//! - [`cli`]: the command line; [`settings`]: configuration values and their origins
//! - [`data_folder`]: the files of the process; [`background`]: finding and starting a host
//! - [`agents`], [`hooks`], [`stores`]: the configured agents, tree hooks and session stores
//! - [`administration`]: agents, hosts, rules and settings for the host's clients
//! - [`listeners`]: the addresses that the host listens on; [`open_files`]: the limit of open files
//! - [`disk_usage`], [`garbage`]: the size of the data folder, and the files that nothing needs
//! - [`debug_bundle`]: facts about a host for reports of problems
//! - [`copilot_flags`], [`copilot_table`]: options and model names of the Copilot SDK
//! - [`telemetry`]: export of spans to an OpenTelemetry collector
//! - [`commands`]: one module per command
//!
//! Modules of the commands that are clients of the host:
//!
//! - [`connect`]: reaches a host; [`hosts`]: hosts that are known by name
//! - [`chat_client`]: a chat in either protocol; [`follow`]: follows a chat until its turn ends
//! - [`question_dialog`]: puts an agent's questions to the user; [`input`]: the input line of a terminal
//! - [`show`]: terminal output
//! - [`file_memory`]: the state that the session hub keeps on disk
//! - [`history`]: sessions of other tools on this machine; [`import_export`]: sessions from and for other programs

mod administration;
mod agents;
mod audit;
mod background;
mod chat_client;
mod cli;
mod commands;
mod confirmation;
mod connect;
mod copilot_flags;
mod copilot_table;
mod damage_file;
mod data_folder;
mod debug_bundle;
mod disk_usage;
mod editor_sockets;
mod endpoint;
mod file_memory;
mod follow;
mod garbage;
mod history;
mod hooks;
mod hosts;
mod import_export;
mod input;
mod json_errors;
#[cfg(test)]
mod limits;
mod limits_table;
mod listeners;
mod mcp_table;
mod notify;
mod open_files;
mod page;
mod past_requests;
mod policy_edits;
mod policy_files;
mod question_dialog;
mod secret_files;
mod settings;
mod settings_file;
mod show;
mod stores;
mod telemetry;
mod tokens_file;
mod trust;

use std::process::ExitCode;

use clap::CommandFactory;
use cli::{Cli, Command, ConfigCommand, DebugCommand, HistoryCommand, ServeArgs};
use commands::Failure;
use commands::bridge::CloseNotice;
use commands::marks::SessionFlag;

fn main() -> ExitCode {
    let typed = copilot_flags::as_typed(std::env::args_os(), &mut Cli::command(), |option| {
        anstream::eprintln!("grove: `grove copilot` has no option {}: it is ignored", option.display());
    });
    let wants_json = json_errors::is_asked(&typed);
    let cli = match Cli::parse_grouped(typed) {
        Ok(cli) => cli,
        Err(error) => {
            // Printing help is not an error.
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
                    // Stdout may be closed; the message below is printed all the same.
                    commands::print_line(json_errors::of(&failure)).ok();
                }
                anstream::eprintln!("grove: {failure:#}");
            }
            failure.exit_code()
        }
    }
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
        Command::Policy(command) => commands::policy::run(&common, &command),
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
        Command::Audit(args) => commands::audit::run(&common, &args),
        Command::Serve(args) if args.stdio => commands::bridge::run(&common, &args, CloseNotice::Sent),
        Command::Serve(args) => commands::serve::run(&common, &args),
        Command::Start(args) => commands::start::run(&common, &args),
        Command::Open(args) => commands::open::run(&common, &args),
        Command::Token(args) => commands::token::run(&common, &args),
        Command::Status(args) => commands::status::run(&common, &args),
        Command::Stop(args) => commands::stop::run(&common, &args),
        Command::Copilot(args) => commands::copilot::run(&common, &args),
        Command::Acp(args) => commands::acp::run(&common, &args),
        Command::AhpBridge(_) => commands::bridge::run(&common, &ServeArgs::default(), CloseNotice::Silent),
        Command::Hosts(args) => commands::hosts::run(&common, &args),
        Command::Inspect(args) => commands::inspect::run(&common, &args),
        Command::History(HistoryCommand::Scan(args)) => commands::history::scan(&common, &args),
        Command::Doctor(args) => commands::doctor::run(&common, &args),
        Command::Du(args) => commands::du::run(&common, &args),
        Command::Gc(args) => commands::gc::run(&common, &args),
        Command::Debug(DebugCommand::Bundle(args)) => commands::debug::bundle(&common, &args),
        Command::Check(args) => commands::check::run(&common, &args),
        Command::Config(ConfigCommand::Show(args)) => commands::config::show(&common, &args),
        Command::AgentShim => commands::agent_shim::run(),
        Command::AgentHook { format, mode, socket } => commands::agent_hook::run(&format, &mode, &socket),
        Command::McpFilter(args) => commands::mcp_filter::run(args),
        Command::McpTools => commands::mcp_tools::run(),
        Command::Completions { shell } => commands::completions::run(shell),
    }
}
