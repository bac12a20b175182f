//! The command line: every command, flag and help text.

mod chats;
mod copilot;
mod help;
mod history;
mod hosts;
mod import_export;
#[cfg(test)]
mod tests;
mod tree;
mod workspace;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::settings::Durability;
use chats::CHATS_HELP;
pub(crate) use chats::{ChatsAction, ChatsArgs, MarkArgs};
use copilot::COPILOT_HELP;
pub(crate) use copilot::CopilotArgs;
use history::{DOCTOR_HELP, LS_HELP};
pub(crate) use history::{HistoryArgs, HistoryCommand, Since};
use hosts::{HOSTS_HELP, MOVE_HELP};
pub(crate) use hosts::{HostsAddArgs, HostsArgs, HostsCommand, HostsRmArgs, MoveArgs};
use import_export::{EXPORT_HELP, IMPORT_HELP, SHOW_HELP};
pub(crate) use import_export::{ExportArgs, ExportFormat, ImportArgs, ShowArgs};
use tree::{
    BRANCH_HELP, COMPACT_HELP, FORK_HELP, GOTO_HELP, LABEL_HELP, MERGE_HELP, MIGRATE_HELP, RENAME_HELP, TREE_HELP,
};
pub(crate) use tree::{
    BranchArgs, CompactArgs, ForkArgs, GotoArgs, LabelArgs, MergeArgs, MigrateArgs, RenameArgs, TreeArgs, TreeFilter,
    TreeOfArgs,
};
use workspace::{CHECKPOINTS_HELP, FILES_HELP, PLAN_HELP};
pub(crate) use workspace::{CheckpointsArgs, FilesAction, FilesArgs, PlanArgs};

/// A host for coding-agent sessions: one process owns them, any number of clients see them live and act on them.
///
/// Begin with `grove run "say hello"`: it starts a host in the background, creates a session there, and shows what the
/// agent does. `grove ls` lists sessions, `grove attach` continues one, `grove open` shows them all in the browser; any
/// number of these can be used at once. `grove status` shows the state of the host, `grove stop` stops it.
#[derive(Debug, Parser)]
#[command(name = "grove", version, max_term_width = 80, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Every setting can be given as a flag, as an environment variable
(GROVE_DATA_DIR for --data-dir) or in grove.toml; `grove config show` prints
the value in use and where it came from.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no host is running, 4 the data
folder is in use by another host, 5 a session's log is damaged, 6 the turn
failed, 7 the turn was cancelled, 8 there is no such session, entry, agent,
question or running turn, 9 `grove wait` found a session that needs an answer,
124 its timeout expired, 130 interrupted with Ctrl-C: the turn goes on, or
the summary was discarded.";

const RUN_HELP: &str = "\
Examples:
  grove run fix the tests
  grove run --agent claude --model opus --mode plan \"How does login work?\"
  grove run --yes --cwd ~/project \"Run the tests and fix what fails\"
  git diff | grove run - > review.md
  grove run --json \"Say hello\" | tail -1

The answer goes to stdout, everything about it to stderr. If stdin is not a
terminal and --yes is not given, a permission request waits for an answer from
`grove approve SESSION`, another `grove attach SESSION`, or the web page.

Ctrl-C cancels the turn; a second one leaves without waiting for its end.

Exit codes: 0 complete, 6 the turn failed, 7 it was cancelled, 130 interrupted
with Ctrl-C; see `grove --help` for the others.";

const ATTACH_HELP: &str = "\
Examples:
  grove attach @last
  grove attach 1f0c
  grove attach --json scripted:/my-session

Type a prompt on the input line and press Enter; while a turn runs, prompts
are queued. Pasted text is one prompt, whatever its line ends; Alt-Enter adds
a line end. If the agent asks something, the next line is the answer, and `?`
shows all details of a permission request. Ctrl-C cancels a running turn;
Ctrl-D leaves, and so does Ctrl-C if nothing runs. Actions of other clients
are shown, too. If stdin is not a terminal, nothing is read, and the session
is shown until it is removed.";

const SEND_HELP: &str = "\
Examples:
  grove send 1f0c \"And now the tests\"
  grove send --queue 1f0c \"When you are done: tidy up\"
  grove send --wait --yes 1f0c - < prompt.txt

Exit codes with --wait: 0 complete, 6 the turn failed, 7 it was cancelled, 130
interrupted with Ctrl-C.";

const ANSWER_HELP: &str = "\
Examples:
  grove answer 1f0c \"the second one\"
  grove answer \"the second one\"
  grove answer --decline

Without a session, the only question that waits in any session is meant. Name
the session where a request has several questions.";

const PERMISSIONS_HELP: &str = "\
Examples:
  grove permissions 7d3f           list rules and remembered answers
  grove permissions 7d3f --revoke  ask a person about everything again";
const CD_HELP: &str = "\
Examples:
  grove cd 7d3f .
  grove cd lab/7d3f /srv/project

A session that was imported, or that was moved here from another host, works
in no folder until one is set. The agent starts again there with its next
turn, and is told what was said. Refused while a turn runs.";

const APPROVE_HELP: &str = "\
Examples:
  grove approve
  grove approve 1f0c
  grove approve 1f0c --option always

Without a session, the command answers the only pending permission request of
all sessions; `grove ls --waiting` lists the sessions with pending requests.

If a session has several pending requests, they are listed: name one after the
session.";

const WAIT_HELP: &str = "\
Examples:
  grove wait @last
  grove wait 1f0c --timeout 600 && notify-send done
  grove wait 1f0c --json

The session is done when no turn runs and no prompt is queued. The exit code
tells how the last turn ended.

Exit codes: 0 complete or nothing to do, 6 the turn failed, 7 it was
cancelled, 9 a permission request or a question waits for an answer, 124 the
timeout expired, 130 interrupted with Ctrl-C; see `grove --help` for the
others.";

const AGENTS_HELP: &str = "\
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

/// Flags that every command takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Common {
    /// The data folder of the host [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file [default: grove.toml in the platform's config folder]
    #[arg(long, global = true, value_name = "FILE", env = "GROVE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a session with a prompt, and show what the agent does until the turn ends
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// List the sessions of all hosts, the most recently used first
    #[command(after_help = LS_HELP)]
    Ls(LsArgs),
    /// Show a session live: the last turns and everything that happens; type prompts and answers
    #[command(after_help = ATTACH_HELP)]
    Attach(AttachArgs),
    /// Send a prompt to a session
    #[command(after_help = SEND_HELP)]
    Send(SendArgs),
    /// Wait until a session is done, or needs an answer
    #[command(after_help = WAIT_HELP)]
    Wait(WaitArgs),
    /// Cancel the running turn of a session
    Cancel(CancelArgs),
    /// Approve the pending permission request of a session
    #[command(after_help = APPROVE_HELP)]
    Approve(ApproveArgs),
    /// Deny the pending permission request of a session
    Deny(DenyArgs),
    /// Answer what the agent of a session asks: one TEXT for each question
    #[command(after_help = ANSWER_HELP)]
    Answer(AnswerArgs),
    /// List the permission rules and remembered answers of a session, or revoke them
    #[command(after_help = PERMISSIONS_HELP)]
    Permissions(SessionPermissionsArgs),
    /// Set the folder in which the agents of a session work
    #[command(after_help = CD_HELP)]
    Cd(CdArgs),
    /// Show everything that was said in a session, with the branches that were left
    #[command(after_help = TREE_HELP)]
    Tree(TreeArgs),
    /// Go to another entry of a session: the next message continues from there
    #[command(after_help = GOTO_HELP)]
    Goto(GotoArgs),
    /// Label an entry of a session, or delete its label
    #[command(after_help = LABEL_HELP)]
    Label(LabelArgs),
    /// Rename a session, or one of its chats
    #[command(after_help = RENAME_HELP)]
    Rename(RenameArgs),
    /// Create a session from the conversation before a user message, to rephrase that message
    #[command(after_help = BRANCH_HELP)]
    Branch(BranchArgs),
    /// Create a copy of a session, with all of its branches
    #[command(after_help = FORK_HELP)]
    Fork(ForkArgs),
    /// Move a session to another store of the same host, under the same id
    ///
    /// Everything is copied and compared byte for byte before the old folder is removed. Refused while a turn runs.
    /// `grove config show` lists the stores.
    #[command(after_help = MIGRATE_HELP)]
    Migrate(MigrateArgs),
    /// Move a session to another host, with everything that belongs to it
    #[command(after_help = MOVE_HELP)]
    Move(MoveArgs),
    /// Merge another branch of a session into the current one, as a summary
    #[command(after_help = MERGE_HELP)]
    Merge(MergeArgs),
    /// Compact a conversation: replace its older part by a summary, to make room for more
    #[command(after_help = COMPACT_HELP)]
    Compact(CompactArgs),
    /// Print the plan of a session, or change it
    #[command(after_help = PLAN_HELP)]
    Plan(PlanArgs),
    /// List the files of a session, print one, or change them
    #[command(after_help = FILES_HELP)]
    Files(FilesArgs),
    /// List the checkpoints of a session, or print one
    #[command(after_help = CHECKPOINTS_HELP)]
    Checkpoints(CheckpointsArgs),
    /// Print the conversation of a session: of the host, or of another tool on this machine
    #[command(after_help = SHOW_HELP)]
    Show(ShowArgs),
    /// Export a session to a file: to read, to keep, or for another program to continue
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArgs),
    /// Import sessions of other programs, or of another host
    #[command(after_help = IMPORT_HELP)]
    Import(ImportArgs),
    /// List the chats of a session, create one, or delete one
    #[command(after_help = CHATS_HELP)]
    Chats(ChatsArgs),
    /// Archive sessions: `grove ls` lists them only with --all
    Archive(MarkArgs),
    /// Mark sessions as read
    Read(MarkArgs),
    /// Delete sessions for good
    Rm(RmArgs),
    /// List the agents: which are installed, how to install the others, and their models
    ///
    /// Needs no host. A running host is asked for the models of its agents.
    #[command(after_help = AGENTS_HELP)]
    Agents(AgentsArgs),
    /// Print the stderr output of a session's agent
    ///
    /// Needs no host. The newest megabyte is kept, also after the agent has ended.
    Logs(LogsArgs),
    /// Run the host in the foreground until SIGTERM, SIGINT or `grove stop`
    ///
    /// Prints the addresses of the host. The token is only shown on a terminal, or with --json, so that no log holds
    /// it.
    Serve(Box<ServeArgs>),
    /// Start a host in the background, if none is running, and print its address
    ///
    /// It writes its log to host.log in the data folder. It exits 10 minutes after its last client and turn
    /// (--idle-exit), or at once with `grove stop`.
    Start(StartArgs),
    /// Open the host's web page in the browser, or print its address if there is no browser
    ///
    /// Starts a host in the background if none is running. The address holds the token: anybody who has it can do
    /// everything that you can.
    Open(OpenArgs),
    /// Show whether a host is running, its address, and its current work
    Status(OutputArgs),
    /// Stop the running host; running turns get 5 seconds
    ///
    /// Turns of agents that are separate programs go on without the host, and the next host continues them; --turns
    /// cancels them, too.
    Stop(StopArgs),
    /// Serve the GitHub Copilot SDK in place of the Copilot CLI: its sessions are then Grove's
    ///
    /// Relays messages between the SDK and the host, and starts a host in the background if none is running.
    #[command(after_help = COPILOT_HELP)]
    Copilot(CopilotArgs),
    /// List other hosts: whether they are reachable, their versions, and how many sessions they have
    #[command(after_help = HOSTS_HELP)]
    Hosts(HostsArgs),
    /// Connect stdin and stdout of an AHP client to the host
    ///
    /// Relays one JSON message per line in both directions, unchanged. Starts a host in the background if none is
    /// running; ends when either side does. Nothing but messages goes to stdout.
    AhpBridge(BridgeArgs),
    /// Print the contents of a session's log, without changing it
    ///
    /// Reads logs of Grove, of pi and of oh-my-pi, of versions 1 to 3.
    Inspect(InspectArgs),
    /// Read the sessions of other tools on this machine
    #[command(subcommand)]
    History(HistoryCommand),
    /// Check the session files of other tools on this machine; exit code 5 if one is damaged, lost or unknown
    #[command(after_help = DOCTOR_HELP)]
    Doctor(HistoryArgs),
    /// Check the log of a session, or the whole data folder; exit code 5 if anything is damaged or missing
    ///
    /// Without FILE or SESSION, compares the journal with every session, and lists the damage that hosts found when
    /// they started (`damage.jsonl` in the data folder).
    Check(CheckArgs),
    /// Inspect the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    ///
    /// For bash: `grove completions bash > ~/.local/share/bash-completion/completions/grove`
    Completions { shell: clap_complete::Shell },
    /// Hold an agent's stdio, so that its turn outlives the host; started by the host, with options on stdin
    #[command(hide = true)]
    AgentShim,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value, and the origin of the value
    Show(OutputArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags for reaching a host.
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// The host, as `grove hosts` lists it; `local` is the host of this data folder
    ///
    /// Without it a session is looked for at all hosts. NAME/ID names a session of one host, too.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Fail if no host is running, instead of starting one in the background
    #[arg(long)]
    pub(crate) no_start: bool,
    /// The protocol to speak with the host
    #[arg(long, value_enum, default_value = "ahp", value_name = "PROTOCOL")]
    pub(crate) protocol: Protocol,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// The Agent Host Protocol 1.0
    Ahp,
    /// Version 1, which has no queue, no questions and no permission options
    V1,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The prompt, quoted or not; `-` reads it from stdin
    #[arg(required = true, value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// The agent to start the session with; `grove agents` lists them [default: `default-agent`]
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The model to use, by its id or name; `grove agents` lists them [default: the agent's own]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The mode to work in, such as `plan` or `code`, if the agent has modes [default: the agent's own]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// The folder that the agent works in [default: the current folder; at another host, the host's default]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The store of the session; `memory` does not outlive the host [default: `store`]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Approve every permission request without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print the action envelopes, one per line, and the finished turn as the last: {"session":…,"turn":{…}}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

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
pub(crate) struct AttachArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// Use this chat instead of the session's main one: its URI, or its name in the session
    #[arg(long, value_name = "CHAT")]
    pub(crate) chat: Option<String>,
    /// Print the action envelopes as they arrive, one per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// The prompt, quoted or not; `-` reads it from stdin
    #[arg(required = true, value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// The model to use from this turn on, by its id or name [default: the one in use]
    #[arg(long, value_name = "MODEL", conflicts_with = "queue")]
    pub(crate) model: Option<String>,
    /// Use this chat instead of the session's main one: its URI, or its name in the session
    #[arg(long, value_name = "CHAT")]
    pub(crate) chat: Option<String>,
    /// Queue the prompt while a turn runs, instead of failing
    #[arg(long)]
    pub(crate) queue: bool,
    /// Show what the agent does until the turn ends
    #[arg(long)]
    pub(crate) wait: bool,
    /// Approve every permission request without asking
    #[arg(long, short, requires = "wait")]
    pub(crate) yes: bool,
    /// Print one JSON object; with --wait, the action envelopes and the finished turn as `grove run` does
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// Stop waiting after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Use this chat instead of the session's main one: its URI, or its name in the session
    #[arg(long, value_name = "CHAT")]
    pub(crate) chat: Option<String>,
    /// Print one JSON object: {"session":…,"state":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// Use this chat instead of the session's main one: its URI, or its name in the session
    #[arg(long, value_name = "CHAT")]
    pub(crate) chat: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionPermissionsArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// Revoke everything that is allowed, so that a person is asked again; denials stay
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CdArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// The folder; at another host, a whole path over there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Print one JSON object: {"session":…,"cwd":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// The permission request.
#[derive(Debug, Args)]
pub(crate) struct PermissionArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host [default: the only one
    /// waiting]
    pub(crate) session: Option<String>,
    /// The permission request, if several are pending
    pub(crate) request: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) permission: PermissionArgs,
    /// Choose one of the other answers that the agent offers
    #[arg(long, value_name = "ID")]
    pub(crate) option: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    pub(crate) permission: PermissionArgs,
    /// Choose one of the other answers that the agent offers
    #[arg(long, value_name = "ID")]
    pub(crate) option: Option<String>,
    /// Tell the agent why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host [default: the only one with a question]
    #[arg(required_unless_present = "decline")]
    pub(crate) session: Option<String>,
    /// The answers, in the order of the questions: a text, a number, y or n, an option's number or name
    pub(crate) text: Vec<String>,
    /// Answer this request, if several are pending
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,
    /// Decline to answer; the agent goes on without
    #[arg(long, conflicts_with = "text")]
    pub(crate) decline: bool,
    /// Print one JSON object
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
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
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

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Cancel running turns, also those that would go on without the host
    #[arg(long)]
    pub(crate) turns: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Exit after this many seconds without client and turn; 0 for never [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle_exit: Option<u64>,
    /// Print one JSON object, with the page's address and so the token
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Print the address, even if there is a browser
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    /// Speak on stdin and stdout
    #[arg(long, required = true)]
    pub(crate) stdio: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A log file, or a session of the data folder: its id, the beginning of it, its URI, or @last
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) log: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The rules that build the context: those of pi 1.5, of oh-my-pi 18.3, or Grove's own
    #[arg(long, value_enum, default_value = "grove")]
    pub(crate) rules: RulesName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesName {
    Pi,
    Omp,
    Grove,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A log file, or a session of the data folder: its id, the beginning of it, its URI, or @last
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) log: Option<String>,
    /// Write a repaired copy beside the log (NAME.repaired.jsonl); the log itself is never changed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 takes a free one [default: 127.0.0.1:4747]
    ///
    /// Without it the host listens on the port of its last start, or 4747, or a free one if other programs use these.
    ///
    /// An address that other machines reach needs --tls-cert and --tls-key, or --insecure.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The certificate shown to clients, in PEM; page and clients then use https:// and wss://
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen without TLS on an address that other machines reach: the network can read everything, the token too
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Connect stdin and stdout to the running host: one message per line, in either protocol
    ///
    /// ssh:// addresses run this at the other end. Starts a host in the background if none is running, and ends with
    /// its client. No token is needed: a user who may run this may read it.
    #[arg(long, conflicts_with_all = [
        "listen", "tls_cert", "tls_key", "insecure", "copilot_listen", "json", "replay_actions", "replay_bytes", "turn_silence",
        "durability", "log_frames", "log_agent_frames", "detached", "default_directory", "browse_roots", "read_roots",
        "default_agent", "max_agents", "agent_idle", "session_idle", "spill_bytes", "compact_at", "compact_keep", "store", "log_dir",
    ])]
    pub(crate) stdio: bool,
    /// Serve the GitHub Copilot SDK on this loopback address; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) copilot_listen: Option<SocketAddr>,
    /// Print the addresses and the token as one JSON object on the first line of stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep this many actions for clients that reconnect [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) replay_actions: Option<usize>,
    /// Keep this many bytes of actions for clients that reconnect [default: 33554432]
    #[arg(long, value_name = "BYTES")]
    pub(crate) replay_bytes: Option<usize>,
    /// Fail a running turn after this many seconds without a sign of its agent [default: 1800]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) turn_silence: Option<u64>,
    /// Let confirmed actions survive a power cut (waits for the disk), or only the process's end [default: power]
    #[arg(long, value_name = "WHAT")]
    pub(crate) durability: Option<Durability>,
    /// Exit after this many seconds without client and turn [default: never; 600 for a host in the background]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle_exit: Option<u64>,
    /// Append every message to this file, a JSON object per line, for protocol inspectors; secrets are left out
    ///
    /// The file holds the conversations of all sessions, so only its owner can read it. If the disk is too slow,
    /// messages are left out and counted.
    #[arg(long, value_name = "FILE")]
    pub(crate) log_frames: Option<PathBuf>,
    /// Append every message to and from agents to this file, a JSON object per line; secrets are left out
    ///
    /// The file holds the conversations of all sessions, so only its owner can read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) log_agent_frames: Option<PathBuf>,
    /// Leave the terminal for a new process session, and apply idle-exit; used by `grove start`
    #[arg(long, conflicts_with = "json")]
    pub(crate) detached: bool,
    /// The folder that is offered to clients first [default: the home folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) default_directory: Option<PathBuf>,
    /// A folder that clients may browse; can be given several times [default: the home folder and the default one]
    #[arg(long = "browse-root", value_name = "DIR")]
    pub(crate) browse_roots: Vec<PathBuf>,
    /// A folder whose files clients may read, beside sessions' working directories; can be given several times
    #[arg(long = "read-root", value_name = "DIR")]
    pub(crate) read_roots: Vec<PathBuf>,
    /// The agent of sessions that name none [default: scripted]
    #[arg(long, value_name = "AGENT")]
    pub(crate) default_agent: Option<String>,
    /// Run at most this many agent processes at a time; further ones wait [default: 16]
    #[arg(long, value_name = "N")]
    pub(crate) max_agents: Option<NonZeroUsize>,
    /// Stop an agent's process after this many seconds without a turn; it is started again when needed [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) agent_idle: Option<u64>,
    /// Evict an idle session without subscribers from memory after this many seconds; 0 for never [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) session_idle: Option<u64>,
    /// Write tool output, pasted and attached text above this many bytes to files [default: 65536]
    #[arg(long, value_name = "BYTES")]
    pub(crate) spill_bytes: Option<NonZeroUsize>,
    /// Compact a conversation when it fills this much of the model's window, in percent; 0 for never [default: 85]
    ///
    /// Agents that manage their window themselves, as ACP agents do, are left alone.
    #[arg(long, value_name = "PERCENT")]
    pub(crate) compact_at: Option<u8>,
    /// Keep this many tokens of a conversation when compacting it [default: 20000]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) compact_keep: Option<u64>,
    /// The store of new sessions: local, memory, or a [stores.NAME] of grove.toml [default: local]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// The folder for the logs of new sessions, each in a folder of its own there; overrides --store
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
}
