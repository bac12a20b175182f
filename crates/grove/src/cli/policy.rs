//! `grove policy`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// List the rules that count in a folder, and where each stands
    Show(PolicyFolderArgs),
    /// Say what the rules answer to a shell command, and why
    Check(PolicyCheckArgs),
    /// Trust the present content of the folder's .grove/policy.toml
    Trust(PolicyFolderArgs),
    /// Print the rules of another tool's configuration in Grove's form
    Import(PolicyImportArgs),
    /// Judge the permission requests of past sessions, and list where people answered differently
    Test(PolicyPastArgs),
    /// Propose rules that would have answered the permission requests of past sessions
    Suggest(PolicyPastArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyFolderArgs {
    /// The folder [default: the current one]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyCheckArgs {
    /// The command, as one argument
    #[arg(value_name = "COMMAND")]
    pub(crate) command: String,
    /// The agent that would run it
    #[arg(long, default_value = "claude")]
    pub(crate) agent: String,
    /// The working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyImportArgs {
    /// The tool that the file belongs to
    #[arg(long, value_enum)]
    pub(crate) from: PolicyTool,
    /// The file: settings.json of Claude Code, or managed-settings.json or config.json of the Copilot CLI
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyTool {
    Claude,
    Copilot,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyPastArgs {
    /// How many days to look back, such as 30d
    #[arg(long, value_name = "DAYS", default_value = "30d", value_parser = days)]
    pub(crate) since: u64,
}

fn days(text: &str) -> Result<u64, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    days.ok_or_else(|| format!("{text:?} is no number of days: write, for example, 30d"))
}
