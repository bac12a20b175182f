//! What can be typed about what a session has beside its conversation.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ConnectArgs;

pub(super) const PLAN_HELP: &str = "\
Examples:
  grove plan 1f0c
  grove plan 1f0c --edit
  grove plan 1f0c --set plan.md
  echo \"First the tests\" | grove plan 1f0c --set -
  grove plan 1f0c --delete

The plan is a file of the session, plan.md, which people and agents write.
--edit opens it in $VISUAL or $EDITOR. It can be changed while a turn runs,
and clients that have the session open are told.

Exit codes: 8 there is no such session, or it has no plan; see `grove --help`
for the others.";

pub(super) const FILES_HELP: &str = "\
Examples:
  grove files 1f0c
  grove files 1f0c put notes.md
  grove files 1f0c put report.pdf 2026/report.pdf
  grove files 1f0c get notes.md > notes.md
  grove files 1f0c rm notes.md
  grove files 1f0c --research ls

A session's own files go with it, also into its forks; what was pasted is
there as well. Names are relative, their parts separated by `/`. A file that
is put there may have 2 MiB.

Exit codes: 8 there is no such session or file; see `grove --help` for the
others.";

pub(super) const CHECKPOINTS_HELP: &str = "\
Examples:
  grove checkpoints 1f0c
  grove checkpoints 1f0c 2
  grove checkpoints 1f0c --json

Each compaction (`grove compact`) leaves a checkpoint: its summary, under a
number. Those of the branch that one is on are listed; the others can still be
read by their numbers.

Exit codes: 8 there is no such session or checkpoint; see `grove --help` for
the others.";

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// Open the plan in an editor
    #[arg(long, conflicts_with_all = ["set", "delete"])]
    pub(crate) edit: bool,
    /// Make this file's text the plan; `-` reads it from stdin
    #[arg(long, value_name = "FILE|-", conflicts_with = "delete")]
    pub(crate) set: Option<PathBuf>,
    /// Take the plan away
    #[arg(long)]
    pub(crate) delete: bool,
    /// Print one JSON object: {"session":…,"text":…}, or {"session":…,"changed":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// The files of its research, instead of the others
    #[arg(long, global = true)]
    pub(crate) research: bool,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(subcommand)]
    pub(crate) action: Option<FilesAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FilesAction {
    /// List the files: what happens where nothing else is said
    Ls,
    /// Print a file
    Get {
        /// Its name, as `ls` shows it
        name: String,
    },
    /// Put a file there, or replace one
    Put {
        /// The file; `-` reads it from stdin
        file: PathBuf,
        /// What it is called there [default: as it is called here]
        name: Option<String>,
    },
    /// Take a file away
    Rm {
        /// Its name, as `ls` shows it
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointsArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host
    pub(crate) session: String,
    /// Print the summary of this one
    pub(crate) number: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
