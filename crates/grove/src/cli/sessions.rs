//! Commands about whole sessions: ls, rm and cd.

use std::path::PathBuf;

use clap::Args;

use super::history::Since;
use super::{ConnectArgs, SessionArg};

pub(super) const CD_HELP: &str = "\
Examples:
  grove cd 7d3f .
  grove cd lab/7d3f /srv/project

A session that was imported, or that was moved here from another host, works
in no folder until one is set. The agent starts again there with its next
turn, and is told what was said. Refused while a turn runs.";

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// List archived sessions and sessions of other tools, too
    #[arg(long, short)]
    pub(crate) all: bool,
    /// List only sessions with a pending permission request or question
    #[arg(long, short, conflicts_with_all = ["disposed", "all"])]
    pub(crate) waiting: bool,
    /// List sessions that were disposed and are still on disk; `grove rm` deletes them for good
    #[arg(long, conflicts_with_all = ["all", "source", "repo", "since"])]
    pub(crate) disposed: bool,
    /// List only the sessions of one tool: vs-code, copilot-cli, … or grove
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// List only the sessions of one repository (owner/name, a name or a URL), or of one folder
    #[arg(long, value_name = "REPO")]
    pub(crate) repo: Option<String>,
    /// List only sessions modified since then: 2026-01-31, 36h, 7d, 2w
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Since>,
    /// Print one JSON object: {"sessions":[…]}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Sessions, each by its id, the beginning of it, its URI, or @last
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print one JSON object for each session
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CdArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The folder; at another host, a whole path over there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Print one JSON object: {"session":…,"cwd":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
