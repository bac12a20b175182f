//! `grove policy`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Clap would write every alternative into one long line.
const CHECK_USAGE: &str = "grove policy check [OPTIONS] <COMMAND>
       grove policy check [OPTIONS] <--read|--edit|--fetch|--tool> <SUBJECT>";

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// List the rules that count in a folder, and where each stands
    Show(PolicyFolderArgs),
    /// Judge a command, a path, an address or a tool by the rules, and say which rule decides
    #[command(override_usage = CHECK_USAGE)]
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
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyCheckArgs {
    #[command(flatten)]
    pub(crate) subject: PolicySubject,
    /// The agent that asks
    #[arg(long, default_value = "claude")]
    pub(crate) agent: String,
    /// The working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The one thing that is judged.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct PolicySubject {
    /// A shell command, as one argument
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// A file that would be read
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Option<String>,
    /// A file that would be changed
    #[arg(long, value_name = "PATH")]
    pub(crate) edit: Option<String>,
    /// An address that would be fetched
    #[arg(long, value_name = "URL")]
    pub(crate) fetch: Option<String>,
    /// A tool of an MCP server that would be called
    #[arg(long, value_name = "SERVER/TOOL")]
    pub(crate) tool: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyImportArgs {
    /// The tool that the file belongs to
    #[arg(long, value_enum)]
    pub(crate) from: PolicyTool,
    /// The file: settings.json of Claude Code, or managed-settings.json or config.json of the Copilot CLI
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn days(text: &str) -> Result<u64, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    days.ok_or_else(|| format!("{text:?} is no number of days: write, for example, 30d"))
}
