//! `grove agents` and `grove logs`.

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
    /// Print one JSON object: {"agents":[…]}
    #[arg(long)]
    pub(crate) json: bool,
    /// The protocol to speak with a running host
    #[arg(long, value_enum, default_value = "ahp", value_name = "PROTOCOL")]
    pub(crate) protocol: Protocol,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Add an agent to grove.toml: any program that speaks the Agent Client Protocol on stdin and stdout
    #[command(after_help = AGENTS_ADD_HELP)]
    Add(Box<AgentsAddArgs>),
    /// Remove an agent from grove.toml
    Rm(AgentsRmArgs),
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
