use clap::CommandFactory;
use unicode_width::UnicodeWidthStr;

use super::{Cli, help};

/// Every command with its subcommands, and the words that call it.
fn all_commands() -> Vec<(String, clap::Command)> {
    let mut root = help::grouped();
    root.build();
    let mut open = vec![("grove".to_owned(), root)];
    let mut found = Vec::new();
    while let Some((name, command)) = open.pop() {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
            open.push((format!("{name} {}", inner.get_name()), inner.clone()));
        }
        found.push((name, command));
    }
    found
}

#[test]
fn help_lists_every_command_once_under_a_heading() {
    let root = Cli::command();
    let mut all: Vec<&str> =
        root.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name).collect();
    let mut listed: Vec<&str> = help::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    all.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, all);
}

#[test]
fn help_fits_80_columns() {
    let commands = all_commands();
    assert!(commands.len() > 40, "{} commands were looked at", commands.len());
    let mut wide = Vec::new();
    for (name, mut command) in commands {
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            wide.extend(help.lines().filter(|line| line.width() > 80).map(|line| format!("{name}: {line}")));
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn every_session_argument_takes_the_last_session() {
    let mut missing = Vec::new();
    for (name, command) in all_commands() {
        for arg in command.get_positionals() {
            let is_session = matches!(arg.get_id().as_str(), "session" | "sessions");
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            if is_session && !help.contains("@last") {
                missing.push(name.clone());
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
