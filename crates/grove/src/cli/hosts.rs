//! Arguments of `grove hosts` and `grove move`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use grove_client::{Fingerprint, HostAddress};

use super::{ConnectArgs, SessionArg};

pub(super) const HOSTS_HELP: &str = "\
Examples:
  grove hosts add dev-box ssh://me@dev-box
  grove hosts
  grove hosts rm dev-box";

pub(super) const HOSTS_ADD_HELP: &str = "\
Examples:
  grove hosts add dev-box ssh://dev-box
  grove hosts add dev-box 'ssh://me@dev-box:2222/srv/grove?grove=/opt/grove'
  grove hosts add lab wss://lab.example:7443 --pin sha256:… --token-file token
  grove hosts add other unix:/home/me/other/host.sock

ssh:// runs the system's ssh, with your keys and your configuration, and
`grove serve --stdio` at the other end; any user who may log in may use it.
ws:// and wss:// need the host's token (`token` in its data folder): it is
read from --token-file, or from stdin. It is never given on the command line,
where other users of this machine could see it.";

pub(super) const MOVE_HELP: &str = "\
Examples:
  grove move 1f0c dev-box
  grove move dev-box/1f0c local
  grove move 1f0c lab --agent claude --cwd /srv/project

Everything goes: what was said, on all branches and in all chats, plan, files,
checkpoints, research and the todo list. The other host compares what arrived
before it is a session there, and only then the old one is archived, with a
pointer to the new one. Run it again if it was cut off: it finishes, or says
what is there. `local` is the host of this data folder. What you allowed the
session here does not go, and neither does its working directory: --cwd names
one over there, else you are asked; `grove cd` sets one later. To move a
session to another store of the same host, use `grove migrate`.

Exit codes: 8 there is no such session or host; see `grove --help` for the
others.";

#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The target host, as `grove hosts` lists it, or `local`
    #[arg(value_name = "HOST")]
    pub(crate) to: String,
    /// The agent that continues the session there [default: the one of the same name]
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The folder that the agent works in there [default: asked for]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Print one JSON object: {"session":…,"host":…,"from":…,"files":…,"bytes":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HostsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<HostsCommand>,
    /// Print one JSON object: {"hosts":[…]}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HostsCommand {
    /// Add a host under a name
    #[command(after_help = HOSTS_ADD_HELP)]
    Add(HostsAddArgs),
    /// Remove a host; its sessions stay there
    Rm(HostsRmArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HostsAddArgs {
    /// The name of the host here: small letters, digits, `.`, `_` and `-`
    pub(crate) name: String,
    /// The address: ssh://user@machine:port/data/folder (the machine is enough), wss://…, ws://… or unix:/path
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: HostAddress,
    /// A file whose first line is the host's token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The fingerprint of the host's certificate, as `grove serve` prints it there
    ///
    /// Without it, on a terminal, the fingerprint of the certificate is shown, and you are asked whether to trust it.
    #[arg(long, value_name = "SHA256")]
    pub(crate) pin: Option<Fingerprint>,
}

#[derive(Debug, Args)]
pub(crate) struct HostsRmArgs {
    pub(crate) name: String,
}
