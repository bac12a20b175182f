//! `grove agents` and `grove logs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Protocol, SessionArg};

pub(super) const AGENTS_HELP: &str = "\
Examples:
  grove agents
  grove agents --json
  grove agents add mine --env LEVEL=high --pass-env MINE_KEY -- mine-agent --acp
  grove agents rm mine

`grove run --agent NAME` uses an agent of this list; without --agent it uses
`default-agent` (`grove config show`), which is `scripted` unless a flag,
GROVE_DEFAULT_AGENT or grove.toml sets another one.";

const AGENTS_INSTALL_HELP: &str = "\
Examples:
  grove agents install claude
  grove agents install claude --dry-run

It runs npm, bun, uv or pip, or downloads a program with its checksum, into the
data folder, and checks that the agent speaks the protocol. An agent installed
so is found before PATH; other versions on the machine stay as they are.";

const AGENTS_LOGIN_HELP: &str = "\
Examples:
  grove agents login claude
  grove agents login gemini oauth-personal
  grove agents login codex --list

Without METHOD it runs the agent's own login in this terminal if it has one, or
its only method. A session that waits for the login can be answered then.";

const AGENTS_UPDATE_HELP: &str = "\
Examples:
  grove agents update agents.toml
  grove agents update https://example.org/agents.toml --sha256 9f86d0…
  grove agents update --built-in

The catalog says which agents there are, and how each is installed, started and
signed in to. The new one is checked first, and its changes are shown; a damaged
catalog, or one for a newer Grove, changes nothing.";

const AGENTS_ADD_HELP: &str = "\
Examples:
  grove agents add mine -- mine-agent --acp
  grove agents add claude-work --pass-env 'ANTHROPIC_*' -- claude-agent-acp

An agent sees a few variables of the host's environment (HOME, PATH, language,
proxies) and those that --pass-env names. A secret is better passed than
written into the file.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,
    #[command(flatten)]
    pub(crate) list: AgentsListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsListArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The protocol to speak with a running host
    #[arg(long, value_enum, default_value = "ahp", value_name = "PROTOCOL")]
    pub(crate) protocol: Protocol,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents: installed, missing, their versions and models
    Ls(AgentsListArgs),
    /// Show everything that is known about an agent
    Show(AgentsShowArgs),
    /// Install a known agent into the data folder, after showing the commands
    #[command(after_help = AGENTS_INSTALL_HELP)]
    Install(AgentsInstallArgs),
    /// Remove an agent that Grove has installed
    Uninstall(AgentsUninstallArgs),
    /// Log in to an agent
    #[command(after_help = AGENTS_LOGIN_HELP)]
    Login(AgentsLoginArgs),
    /// List the sessions that an agent stores itself
    Sessions(AgentsSessionsArgs),
    /// Replace the catalog of known agents by a newer one
    #[command(after_help = AGENTS_UPDATE_HELP)]
    Update(AgentsUpdateArgs),
    /// Add an agent to grove.toml: any program that speaks the Agent Client Protocol on stdin and stdout
    #[command(after_help = AGENTS_ADD_HELP)]
    Add(Box<AgentsAddArgs>),
    /// Remove an agent from grove.toml
    Rm(AgentsRmArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AgentsShowArgs {
    #[arg(value_name = "NAME")]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) list: AgentsListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsInstallArgs {
    #[arg(value_name = "NAME")]
    pub(crate) agent: String,
    /// Show the commands and run none
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Install it again if this version is installed
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask before the commands run
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsUninstallArgs {
    #[arg(value_name = "NAME")]
    pub(crate) agent: String,
    /// Remove it although it is running
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsLoginArgs {
    #[arg(value_name = "NAME")]
    pub(crate) agent: String,
    /// The method, as the agent names it
    #[arg(value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// List the methods of the agent
    #[arg(long, conflicts_with = "method")]
    pub(crate) list: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsSessionsArgs {
    #[arg(value_name = "NAME")]
    pub(crate) agent: String,
    /// List the sessions of this folder alone
    #[arg(long, short = 'C', value_name = "FOLDER")]
    pub(crate) directory: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsUpdateArgs {
    /// A catalog file, or its address (https://…, or http:// on this machine)
    #[arg(value_name = "FILE|URL", required_unless_present = "built_in")]
    pub(crate) from: Option<String>,
    /// Use the catalog that this program includes again
    #[arg(long, conflicts_with = "from")]
    pub(crate) built_in: bool,
    /// Refuse a catalog with another SHA-256 checksum
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Option<String>,
    /// Show the changes and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask before the catalog is replaced
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsAddArgs {
    /// The agent's name: small letters, digits and `-`
    #[arg(value_name = "NAME")]
    pub(crate) agent: String,
    /// Set a variable of the agent's environment; can be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Pass a variable of the host's environment on to the agent; `*` at the end matches anything
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// Show the agent under this name [default: NAME]
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// Describe the agent in a line
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Authenticate with this method, as the agent names it
    #[arg(long, value_name = "METHOD")]
    pub(crate) auth: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsRmArgs {
    #[arg(value_name = "NAME")]
    pub(crate) agent: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Print new output as it arrives, until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only this many of the newest lines
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) lines: Option<usize>,
    /// Use this chat instead of the session's main one
    #[arg(long, value_name = "ID")]
    pub(crate) chat: Option<String>,
}
