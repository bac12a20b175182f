//! The command line: every command, flag and help text.

mod acp;
mod agents;
mod audit;
mod chats;
mod copilot;
mod help;
mod history;
mod host;
mod hosts;
mod import_export;
mod log_files;
mod maintenance;
mod policy;
mod requests;
mod sessions;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;
mod turns;
mod workspace;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use acp::ACP_HELP;
pub(crate) use acp::AcpArgs;
use agents::AGENTS_HELP;
pub(crate) use agents::{
    AgentsAddArgs, AgentsArgs, AgentsCommand, AgentsInstallArgs, AgentsListArgs, AgentsLoginArgs, AgentsRmArgs,
    AgentsSessionsArgs, AgentsShowArgs, AgentsUninstallArgs, AgentsUpdateArgs, LogsArgs,
};
use audit::AUDIT_HELP;
pub(crate) use audit::AuditArgs;
use chats::CHATS_HELP;
pub(crate) use chats::{ChatsAction, ChatsArgs, MarkArgs};
use copilot::COPILOT_HELP;
pub(crate) use copilot::CopilotArgs;
use history::{DOCTOR_HELP, LS_HELP};
pub(crate) use history::{HistoryArgs, HistoryCommand};
pub(crate) use host::{BridgeArgs, OpenArgs, ServeArgs, StartArgs, StopArgs};
use hosts::{HOSTS_HELP, MOVE_HELP};
pub(crate) use hosts::{HostsAddArgs, HostsArgs, HostsCommand, HostsRmArgs, MoveArgs};
use import_export::{EXPORT_HELP, IMPORT_HELP, SHOW_HELP};
pub(crate) use import_export::{ExportArgs, ExportFormat, ImportArgs, ShowArgs};
pub(crate) use log_files::{CheckArgs, InspectArgs, RulesName};
pub(crate) use maintenance::{BundleArgs, DebugCommand, DuArgs, GcArgs};
use maintenance::{DU_HELP, GC_HELP};
pub(crate) use policy::{
    PolicyCheckArgs, PolicyCommand, PolicyFolderArgs, PolicyImportArgs, PolicyPastArgs, PolicySubject, PolicyTool,
};
use requests::{ANSWER_HELP, APPROVE_HELP, PERMISSIONS_HELP};
pub(crate) use requests::{AlwaysTarget, AnswerArgs, ApproveArgs, DenyArgs, PermissionArgs, SessionPermissionsArgs};
use sessions::CD_HELP;
pub(crate) use sessions::{CdArgs, LsArgs, RmArgs};
use tokens::TOKEN_HELP;
pub(crate) use tokens::{TokenAddArgs, TokenArgs, TokenCommand, TokenLsArgs, TokenNameArgs};
use tree::{
    BRANCH_HELP, COMPACT_HELP, FORK_HELP, GOTO_HELP, LABEL_HELP, MERGE_HELP, MIGRATE_HELP, RENAME_HELP, TREE_HELP,
};
pub(crate) use tree::{
    BranchArgs, CompactArgs, ForkArgs, GotoArgs, LabelArgs, MergeArgs, MigrateArgs, RenameArgs, TreeArgs, TreeFilter,
    TreeOfArgs,
};
use turns::{ATTACH_HELP, RUN_HELP, SEND_HELP, WAIT_HELP};
pub(crate) use turns::{AttachArgs, CancelArgs, RunArgs, SendArgs, WaitArgs};
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
    /// Show, check, import and suggest the rules that answer permission requests
    #[command(subcommand)]
    Policy(PolicyCommand),
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
    /// Show who did what: log-ins, prompts, approvals, changes, and refused attempts
    ///
    /// Needs no host. Reads the audit log in the data folder, oldest record first.
    #[command(after_help = AUDIT_HELP)]
    Audit(AuditArgs),
    /// Run the host in the foreground until SIGTERM, SIGINT or `grove stop`
    ///
    /// Prints the addresses of the host. The token is only shown with --json, so that no log holds it.
    Serve(Box<ServeArgs>),
    /// Start a host in the background, if none is running, and print its address
    ///
    /// It writes its log to host.log in the data folder. It exits 10 minutes after its last client and turn
    /// (--idle-exit), or at once with `grove stop`.
    Start(StartArgs),
    /// Open the host's web page in the browser, or print its address if there is no browser
    ///
    /// Starts a host in the background if none is running. The address holds a code that is good once, for a minute: the
    /// page exchanges it for a token of its own, which `grove token ls` lists.
    Open(OpenArgs),
    /// Make, list, rotate and revoke tokens: who may connect to the host, and what they may do
    #[command(after_help = TOKEN_HELP)]
    Token(TokenArgs),
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
    /// Serve an editor that speaks the Agent Client Protocol (ACP): its sessions are then Grove's
    ///
    /// Speaks on stdin and stdout, one JSON message per line. Starts a host in the background if none is running. Nothing
    /// but messages goes to stdout.
    #[command(after_help = ACP_HELP)]
    Acp(AcpArgs),
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
    /// Show what the data folder uses on disk: sessions, journal, logs, catalog and caches
    #[command(after_help = DU_HELP)]
    Du(DuArgs),
    /// Remove files of the data folder that nothing needs any more
    #[command(after_help = GC_HELP)]
    Gc(GcArgs),
    /// Gather facts for a report of a problem
    #[command(subcommand)]
    Debug(DebugCommand),
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
    /// Ask the hooks of a session about a tool call on stdin; run by an agent
    #[command(hide = true)]
    AgentHook {
        /// The form of the agent's hooks
        format: String,
        /// `strict` or `best-effort`
        mode: String,
        /// The socket of the session's agent
        socket: PathBuf,
    },
    /// Serve the tools of a session's clients over MCP on stdin and stdout; started by agents
    #[command(hide = true)]
    McpTools,
    /// Start an MCP server in its folder, with some of its tools; started by agents
    #[command(hide = true)]
    McpFilter(McpFilterArgs),
}

#[derive(Debug, Args)]
pub(crate) struct McpFilterArgs {
    /// The working directory of the server
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// Leave out all tools but those of --tool
    #[arg(long)]
    pub(crate) restrict: bool,
    /// A tool that the agent gets
    #[arg(long = "tool", requires = "restrict")]
    pub(crate) tools: Vec<String>,
    /// The server and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
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

/// The session that a command is about.
#[derive(Debug, Args)]
pub(crate) struct SessionArg {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    #[arg(id = "session", value_name = "SESSION")]
    pub(crate) reference: String,
}

/// The chat that a command is about.
#[derive(Debug, Args)]
pub(crate) struct ChatArg {
    /// Use this chat instead of the session's main one: its URI, or its name in the session
    #[arg(id = "chat", long = "chat", value_name = "CHAT")]
    pub(crate) name: Option<String>,
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
