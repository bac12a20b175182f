//! Arguments of the commands about chats and marks of sessions.

use clap::{Args, Subcommand};

use super::{ConnectArgs, SessionArg};

pub(super) const CHATS_HELP: &str = "\
Examples:
  grove chats 1f0c
  grove chats 1f0c new --title Review \"Review the last commit\"
  grove attach 1f0c --chat 8a3d
  grove chats 1f0c rm 8a3d

A session begins with one chat, its main one. Further chats work on the same
task side by side, each with a conversation of its own. `grove show`, `attach`,
`send`, `export`, `tree` and others take --chat: the name that this list shows,
the beginning of it, or the title.

Exit codes: 8 there is no such session or chat; see `grove --help` for the
others.";

#[derive(Debug, Args)]
pub(crate) struct ChatsArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(subcommand)]
    pub(crate) action: Option<ChatsAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChatsAction {
    /// List the chats (the default)
    Ls,
    /// Create a chat, optionally with a first prompt
    New {
        /// The prompt, quoted or not; `-` reads it from stdin
        #[arg(value_name = "PROMPT")]
        prompt: Vec<String>,
        /// The title of the chat
        #[arg(long, value_name = "TITLE")]
        title: Option<String>,
    },
    /// Delete a chat with its conversation
    Rm {
        /// The chat's name, the beginning of it, its title, or its URI
        chat: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct MarkArgs {
    /// Sessions, each by its id, the beginning of it, its URI, or @last
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// Remove the mark
    #[arg(long)]
    pub(crate) undo: bool,
    /// Print one JSON object for each session
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
