//! Commands that run turns: run, attach, send, wait and cancel.

use std::path::PathBuf;

use clap::Args;

use super::{ChatArg, ConnectArgs, SessionArg};

pub(super) const RUN_HELP: &str = "\
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

pub(super) const ATTACH_HELP: &str = "\
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

pub(super) const SEND_HELP: &str = "\
Examples:
  grove send 1f0c \"And now the tests\"
  grove send --queue 1f0c \"When you are done: tidy up\"
  grove send --wait --yes 1f0c - < prompt.txt

Exit codes with --wait: 0 complete, 6 the turn failed, 7 it was cancelled, 130
interrupted with Ctrl-C.";

pub(super) const WAIT_HELP: &str = "\
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
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    #[command(flatten)]
    pub(crate) chat: ChatArg,
    /// Print the action envelopes as they arrive, one per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The prompt, quoted or not; `-` reads it from stdin
    #[arg(required = true, value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// The model to use from this turn on, by its id or name [default: the one in use]
    #[arg(long, value_name = "MODEL", conflicts_with = "queue")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) chat: ChatArg,
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
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Stop waiting after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) chat: ChatArg,
    /// Print one JSON object: {"session":…,"state":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    #[command(flatten)]
    pub(crate) chat: ChatArg,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
