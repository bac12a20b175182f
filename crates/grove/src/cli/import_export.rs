//! Arguments of the commands that show, export and import sessions.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ChatArg, ConnectArgs};

pub(super) const SHOW_HELP: &str = "\
Examples:
  grove show 1f0c
  grove show 1f0c --turn 3
  grove show copilot-cli:0f18 --json
  grove show ~/.claude/projects/-home-me-site/b881ccf7.jsonl --context

A session is named by its id in the host, or the beginning of it; by the id
that another tool has for it, or the beginning of that, with the tool's name
before it (copilot-cli:0f18, vs-code:b881) or without; or by its file or
folder. Files of other tools are only read. The current branch of the session
is printed, and its running turn so far. For another tool's session,
--branches also prints the turns of abandoned branches.

Exit codes: 8 there is no such session or turn; see `grove --help` for the
others.";

pub(super) const EXPORT_HELP: &str = "\
Examples:
  grove export 1f0c --format html
  grove export vs-code:b881 --format markdown --out -
  grove export 1f0c --format pi --out ~/.pi/agent/sessions/--home-me-code--
  copilot --resume $(grove export 1f0c --format copilot-cli --json \\
    --out ~/.copilot/session-state | jq -r .id)

A session is named as for `grove show`: one of the host, or one that another
tool keeps on this machine. The file is named after the session's id, followed
by the chat's name if --chat is given. An existing file of that name is kept
unless --force replaces it.

markdown, html: to read. The HTML is one file that loads nothing and runs
nothing.
json: everything that is known, as `grove show --json` prints it.
jsonl: the session's log, for `grove import`. pi: the same under the name that
pi gives its files. For sessions of the host they contain all branches; for
sessions of other tools, conversations of subagents are left out.
copilot-chat: a chat of VS Code's (version 3), for `Chat: Import Chat`.
copilot-cli: a session folder of the Copilot CLI, named after the session's
id, with its events, plan, checkpoints and files; only for sessions of the
host. The CLI has no chats beside the main one. The todo list, pictures and
oversized output are left out.

All formats except jsonl and pi contain only the current branch.

Exit codes: 8 there is no such session; see `grove --help` for the others.";

pub(super) const IMPORT_HELP: &str = "\
Examples:
  grove import ~/.copilot/session-state/0f1829d1-3b2e-44e8-a246-7896319d11be
  grove import --agent copilot ~/.copilot/session-state/*
  grove import ~/.pi/agent/sessions/*/*.jsonl
  grove import ~/.claude/projects/*/*.jsonl opencode:ses_ vs-code:b881

Imports session folders of the Copilot CLI and of Grove, and logs of pi and
oh-my-pi, as sessions of the host: messages, tool calls with their results,
compactions, plan, checkpoints, files and todo list. Of VS Code, Claude Code,
Codex, Gemini and OpenCode it imports messages and tool calls, on all
branches; conversations of subagents are left out. A session is named by its
file, or as for `grove show` by its tool and id. The other tool's files do not
change, now or later. A session keeps its id, so it is imported once; --new-id
imports it again. Of a damaged log everything readable is imported, and the
missing parts are named.

Exit codes: 0 all were imported, 1 some were not; see `grove --help` for the
others.";

/// The format of an exported session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A Markdown document
    Markdown,
    /// A standalone web page
    Html,
    /// Everything known about the session, as one JSON object
    Json,
    /// A Grove log
    Jsonl,
    /// A pi session
    Pi,
    /// A VS Code Copilot Chat
    CopilotChat,
    /// A session folder of the Copilot CLI
    CopilotCli,
}

impl ExportFormat {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ExportFormat::Markdown => "markdown",
            ExportFormat::Html => "html",
            ExportFormat::Json => "json",
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Pi => "pi",
            ExportFormat::CopilotChat => "copilot-chat",
            ExportFormat::CopilotCli => "copilot-cli",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The session's id, the beginning of it, its URI, @last, SOURCE:ID, or its file
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) chat: ChatArg,
    /// Print one turn, in full; the first is 1
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<NonZeroU32>,
    /// Print the turns of abandoned branches as well, in the order of the file
    #[arg(long)]
    pub(crate) branches: bool,
    /// Print the context that the tool added for the model, and the workspace that it describes
    #[arg(long)]
    pub(crate) context: bool,
    /// Print one JSON object: {"session":…,"turns":[…]}, with --context {"workspace":…,"turns":[…]}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session's id, the beginning of it, its URI, @last, SOURCE:ID, or its file
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) chat: ChatArg,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// The folder to write to; `-` prints the file instead [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace a file or folder of the same name from an earlier export
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Print one JSON object: {"session":…,"format":…,"id":…,"path":…,"turns":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Folders or files of sessions, or sessions of other tools by SOURCE:ID
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) paths: Vec<PathBuf>,
    /// The agent that continues them [default: their tool's own, or that of new sessions]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The store of the imported sessions [default: that of new sessions]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// The folder that their agent works in [default: of a file, asked for; of SOURCE:ID, the one that the tool noted]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Give them new ids, instead of keeping theirs
    #[arg(long)]
    pub(crate) new_id: bool,
    /// Print one JSON object per line: {"path":…,"session":…,"turns":…,"warnings":…}, or {"path":…,"error":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
