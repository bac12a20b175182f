//! Arguments of the commands about a session's tree.

use clap::{Args, ValueEnum};

use super::{ChatArg, ConnectArgs, SessionArg};

pub(super) const TREE_HELP: &str = "\
Examples:
  grove tree 1f0c
  grove tree 1f0c --filter user-only
  grove tree 1f0c --search \"the parser\" --json

Each line is an entry: its id, a mark, the role, its label in brackets, and
the text. `*` marks the leaf, where the next message goes; `|` marks the
entries that lead to it. The current branch comes first; branches behind a
fork are indented.

`grove goto SESSION ENTRY` moves to another entry, and `grove label SESSION
ENTRY TEXT` labels one.";

pub(super) const GOTO_HELP: &str = "\
Examples:
  grove goto 1f0c 8a3d
  grove goto 1f0c before-the-rewrite
  grove goto 1f0c 8a3d --label before-the-rewrite
  grove goto 1f0c 8a3d --summarize --instructions \"What did we learn?\"
  grove goto 1f0c root

Going to a user message moves to the entry before it, and prints its text for
editing. Nothing is lost: the other branches stay in the tree. It is refused
while a turn runs.

With --summarize the agent gets a summary of the abandoned branch, attached at
the target. Its model writes the summary, which may take a while: Ctrl-C
discards it, and nothing changes.

Exit codes: 8 there is no such session or entry, 130 the summary was
discarded; see `grove --help` for the others.";

pub(super) const BRANCH_HELP: &str = "\
Examples:
  grove branch 1f0c 8a3d
  grove branch 1f0c before-the-rewrite --json

The entry is a user message: `grove tree SESSION --filter user-only` lists
them. The new session has the conversation before it, and the message is
printed, ready to be edited and sent there. The old session does not change;
`grove goto` goes back within it instead.

Exit codes: 8 there is no such session or entry; see `grove --help` for the
others.";

pub(super) const MIGRATE_HELP: &str = "\
Examples:
  grove migrate 1f0c --to archive
  grove migrate 1f0c --to local --json

Stores are `local` (the data folder), `memory` (does not outlive the host), and
those of grove.toml:
  [stores.archive]
  folder = \"/mnt/archive/sessions\"

Exit codes: 8 there is no such session; see `grove --help` for the others.";

pub(super) const FORK_HELP: &str = "\
Examples:
  grove fork 1f0c
  grove fork 1f0c --title \"The other way\"
  grove fork 1f0c --to memory
  grove attach $(grove fork 1f0c --json | jq -r .session)

The new session is a copy of the old one, with all branches and labels, at the
same entry. From there the two are independent. `grove branch` creates one that
ends before a user message.

Exit codes: 8 there is no such session; see `grove --help` for the others.";

pub(super) const MERGE_HELP: &str = "\
Examples:
  grove merge 1f0c 8a3d
  grove merge 1f0c the-rewrite --instructions \"Only what concerns the parser\"

The entry is the end of another branch, or any entry on it: `grove tree
SESSION` shows them. The part of that branch that the current one does not
have is summarized, and the agent gets the summary with its next turn. The
current position and the other branch stay as they are. The agent's model
writes the summary, which may take a while: Ctrl-C discards it, and nothing
changes.

Exit codes: 8 there is no such session or entry, 130 the summary was
discarded; see `grove --help` for the others.";

pub(super) const COMPACT_HELP: &str = "\
Examples:
  grove compact 1f0c
  grove compact 1f0c --instructions \"Keep the names of all files\"

For a conversation that gets too long for the model: a summary replaces its
older part, and the agent gets the summary and the newest part with its next
turn. People still see everything, and `grove goto` goes back to earlier
entries. A short conversation cannot be compacted: the command fails. The
agent's model writes the summary, which may take a while: Ctrl-C discards it,
and nothing changes.

Exit codes: 8 there is no such session, 130 the summary was discarded; see
`grove --help` for the others.";

pub(super) const LABEL_HELP: &str = "\
Examples:
  grove label 1f0c 8a3d before-the-rewrite
  grove label 1f0c before-the-rewrite

The second command deletes the label. `grove tree SESSION --filter
labeled-only` lists the labeled entries.

Exit codes: 8 there is no such session or entry; see `grove --help` for the
others.";

pub(super) const RENAME_HELP: &str = "\
Examples:
  grove rename 1f0c 'The parser'
  grove rename 1f0c --chat review 'What the reviewer said'

Exit codes: 8 there is no such session or chat; see `grove --help` for the
others.";

/// A selection of a tree's entries. The current position is always shown, whatever the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeFilter {
    /// The conversation
    Default,
    /// The conversation without the results of tools
    NoTools,
    /// The user messages
    UserOnly,
    /// The entries with a label
    LabeledOnly,
    /// Every entry of the log
    All,
}

impl TreeFilter {
    /// The filter's name in the host's protocol.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            TreeFilter::Default => "default",
            TreeFilter::NoTools => "no-tools",
            TreeFilter::UserOnly => "user-only",
            TreeFilter::LabeledOnly => "labeled-only",
            TreeFilter::All => "all",
        }
    }
}

/// The chat whose tree is meant, and the flags for reaching the host.
#[derive(Debug, Args)]
pub(crate) struct TreeOfArgs {
    #[command(flatten)]
    pub(crate) chat: ChatArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The entries to show
    #[arg(long, value_enum, default_value = "default", value_name = "WHAT")]
    pub(crate) filter: TreeFilter,
    /// Show only entries that contain all of these words, in any order
    #[arg(long, value_name = "WORDS")]
    pub(crate) search: Option<String>,
    /// Print one JSON object: {"session":…,"rows":[…]}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GotoArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The entry's id, the beginning of it, or its label; `root` is before the first entry
    #[arg(value_name = "ENTRY|root")]
    pub(crate) entry: String,
    /// Label the entry, too
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Summarize the abandoned branch and attach the summary at the target
    #[arg(long)]
    pub(crate) summarize: bool,
    /// Instructions for the summary
    #[arg(long, value_name = "TEXT", requires = "summarize")]
    pub(crate) instructions: Option<String>,
    /// Replace the usual instructions for summaries instead of adding to them
    #[arg(long, requires = "instructions")]
    pub(crate) replace_instructions: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabelArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The entry's id, the beginning of it, or its label
    pub(crate) entry: String,
    /// The new label; without it, the label is deleted
    pub(crate) text: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The new title
    pub(crate) title: String,
    /// Print one JSON object: {"session":…,"chat":…,"title":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BranchArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The message's id, the beginning of it, or its label
    pub(crate) entry: String,
    /// Print one JSON object: {"session":…,"text":…,"attachments":[…]}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The title of the new session [default: the old title with "(fork)" appended]
    #[arg(long, value_name = "TITLE")]
    pub(crate) title: Option<String>,
    /// The store of the new session [default: the store of the old one]
    #[arg(long, value_name = "STORE")]
    pub(crate) to: Option<String>,
    /// Print one JSON object: {"session":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The target store
    #[arg(long, value_name = "STORE")]
    pub(crate) to: String,
    /// Print one JSON object: {"session":…,"store":…,"files":…,"bytes":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The end of the other branch: its id, the beginning of it, or its label
    pub(crate) entry: String,
    /// Instructions for the summary
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Instructions for the summary
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}
