//! What can be typed about a session's tree.

use clap::{Args, ValueEnum};

use super::ConnectArgs;

pub(super) const TREE_HELP: &str = "\
Examples:
  grove tree 1f0c
  grove tree 1f0c --filter user-only
  grove tree 1f0c --search \"the parser\" --json

Each line is an entry: its id, a mark, the role, its label in brackets, and
the text. `*` marks the leaf, where the next message goes; `|` marks the
entries that lead to it. The current branch comes first; branches behind a
fork are indented.

`grove goto SESSION ENTRY` goes elsewhere, and `grove label SESSION ENTRY
TEXT` names a place.";

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

With --summarize the agent is told where it goes on what came of the branch
that is left. Its model makes the summary, which may take a while: Ctrl-C
gives it up, and nothing has changed then.

Exit codes: 8 there is no such session or entry, 130 a summary was given up;
see `grove --help` for the others.";

pub(super) const BRANCH_HELP: &str = "\
Examples:
  grove branch 1f0c 8a3d
  grove branch 1f0c before-the-rewrite --json

The entry is a message of the user: `grove tree SESSION --filter user-only`
lists them. The new session has what was said before it, and the message is
printed, ready to be sent there, as it was or changed. The old session stays
as it is; `grove goto` goes back in there instead.

Exit codes: 8 there is no such session or entry; see `grove --help` for the
others.";

pub(super) const MIGRATE_HELP: &str = "\
Examples:
  grove migrate 1f0c --to archive
  grove migrate 1f0c --to local --json

Stores are `local` (the data folder), `memory` (gone with the host), and what
grove.toml names:
  [stores.archive]
  folder = \"/mnt/archive/sessions\"

Exit codes: 8 there is no such session; see `grove --help` for the others.";

pub(super) const FORK_HELP: &str = "\
Examples:
  grove fork 1f0c
  grove fork 1f0c --title \"The other way\"
  grove fork 1f0c --to memory
  grove attach $(grove fork 1f0c --json | jq -r .session)

The new session has everything that the old one has, with all branches and
labels, and is at the same place in it. From there both go their own ways.
`grove branch` makes one that ends before a message of the user.

Exit codes: 8 there is no such session; see `grove --help` for the others.";

pub(super) const MERGE_HELP: &str = "\
Examples:
  grove merge 1f0c 8a3d
  grove merge 1f0c the-rewrite --instructions \"Only what concerns the parser\"

The entry is the end of another branch, or any place on it: `grove tree
SESSION` shows them. What was said from where that branch leaves this one is
summarized, and the agent is told so from its next turn on. Nobody is moved,
and the other branch stays. The agent's model makes the summary, which may
take a while: Ctrl-C gives it up, and nothing has changed then.

Exit codes: 8 there is no such session or entry, 130 the summary was given up;
see `grove --help` for the others.";

pub(super) const COMPACT_HELP: &str = "\
Examples:
  grove compact 1f0c
  grove compact 1f0c --instructions \"Keep the names of all files\"

For a conversation that is getting too long for the model: a summary takes the
place of what is older, and the agent is told the summary and the newest part
from its next turn on. People still see everything, and `grove goto` goes back
to before. Where what was said is short, there is nothing to compact, and it
fails. The agent's model makes the summary, which may take a while: Ctrl-C
gives it up, and nothing has changed then.

Exit codes: 8 there is no such session, 130 the summary was given up; see
`grove --help` for the others.";

pub(super) const LABEL_HELP: &str = "\
Examples:
  grove label 1f0c 8a3d before-the-rewrite
  grove label 1f0c before-the-rewrite

The second one takes the label away. `grove tree SESSION --filter
labeled-only` lists what has one.

Exit codes: 8 there is no such session or entry; see `grove --help` for the
others.";

pub(super) const RENAME_HELP: &str = "\
Examples:
  grove rename 1f0c 'The parser'
  grove rename 1f0c --chat review 'What the reviewer said'

Exit codes: 8 there is no such session or chat; see `grove --help` for the
others.";

/// What is shown of a tree. Where one is, is always shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeFilter {
    /// The conversation
    Default,
    /// The conversation without the results of tools
    NoTools,
    /// What the user said
    UserOnly,
    /// What has a label
    LabeledOnly,
    /// Everything that is in the log
    All,
}

impl TreeFilter {
    /// As the host calls it.
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

/// Beside the session: which of its trees, and how the host is reached.
#[derive(Debug, Args)]
pub(crate) struct TreeOfArgs {
    /// Another chat of the session than its main one: its URI, or its name in there
    #[arg(long, value_name = "CHAT")]
    pub(crate) chat: Option<String>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// What is shown
    #[arg(long, value_enum, default_value = "default", value_name = "WHAT")]
    pub(crate) filter: TreeFilter,
    /// Show only what has all of these words, in any order
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
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// The entry's id, the beginning of it, or its label; `root` is before the first one
    #[arg(value_name = "ENTRY|root")]
    pub(crate) entry: String,
    /// Name the entry, too
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Have what is left summarized where one goes to
    #[arg(long)]
    pub(crate) summarize: bool,
    /// What the summary should look at
    #[arg(long, value_name = "TEXT", requires = "summarize")]
    pub(crate) instructions: Option<String>,
    /// Tell the model nothing but the instructions, instead of what it is usually told about summaries
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
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// The entry's id, the beginning of it, or its label
    pub(crate) entry: String,
    /// The label; without one, the entry has none any more
    pub(crate) text: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// What it is to be called
    pub(crate) title: String,
    /// Print one JSON object: {"session":…,"chat":…,"title":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BranchArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
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
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// What the new one is called [default: as the old one, with "(fork)" behind it]
    #[arg(long, value_name = "TITLE")]
    pub(crate) title: Option<String>,
    /// The store that the new one is to lie in [default: where the old one lies]
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
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// The store that it is to lie in
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
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// The end of the other branch: its id, the beginning of it, or its label
    pub(crate) entry: String,
    /// What the summary should look at
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
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// What the summary should look at
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}
