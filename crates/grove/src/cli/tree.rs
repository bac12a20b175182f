//! What can be typed about a session's tree.

use clap::{Args, ValueEnum};

use super::ConnectArgs;

pub(super) const TREE_HELP: &str = "\
Examples:
  grove tree 1f0c
  grove tree 1f0c --filter user-only
  grove tree 1f0c --search \"the parser\" --json

Each line is an entry: its id, where one is, who speaks, its label in brackets, and what is said. `*` is the leaf, behind
which the next message goes; `|` is on the way to it. The active branch comes first; what lies behind a fork is indented.

`grove goto SESSION ENTRY` goes elsewhere, and `grove label SESSION ENTRY TEXT` names a place.";

pub(super) const GOTO_HELP: &str = "\
Examples:
  grove goto 1f0c 8a3d
  grove goto 1f0c before-the-rewrite
  grove goto 1f0c 8a3d --label before-the-rewrite
  grove goto 1f0c root

Whoever goes to a message of the user takes it back: one is before it then, and it is printed, ready to be sent again.
Nothing is lost: what was said elsewhere stays in the tree, and one can go back. While a turn runs, nobody can go.

Exit codes: 8 there is no such session or entry; see `grove --help` for the others.";

pub(super) const LABEL_HELP: &str = "\
Examples:
  grove label 1f0c 8a3d before-the-rewrite
  grove label 1f0c before-the-rewrite

The second one takes the label away. `grove tree SESSION --filter labeled-only` lists what has one.

Exit codes: 8 there is no such session or entry; see `grove --help` for the others.";

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
    /// The session's id, the beginning of it, or its URI
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
    /// The session's id, the beginning of it, or its URI
    pub(crate) session: String,
    /// The entry's id, the beginning of it, or its label; `root` is before the first one
    #[arg(value_name = "ENTRY|root")]
    pub(crate) entry: String,
    /// Name the entry, too
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) of: TreeOfArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabelArgs {
    /// The session's id, the beginning of it, or its URI
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
