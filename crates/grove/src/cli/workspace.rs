//! Arguments of the commands about a session's plan, files and checkpoints.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ConnectArgs, SessionArg};

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

A session's own files belong to it and are copied to its forks; pasted text is
among them. Names are relative, their parts separated by `/`. A file that is
put there may have up to 2 MiB.

Exit codes: 8 there is no such session or file; see `grove --help` for the
others.";

pub(super) const CHECKPOINTS_HELP: &str = "\
Examples:
  grove checkpoints 1f0c
  grove checkpoints 1f0c 2
  grove checkpoints 1f0c --json

Each compaction (`grove compact`) creates a checkpoint: its summary, under a
number. The checkpoints of the current branch are listed; the others can still
be read by their numbers.

Exit codes: 8 there is no such session or checkpoint; see `grove --help` for
the others.";

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Open the plan in an editor
    #[arg(long, conflicts_with_all = ["set", "delete"])]
    pub(crate) edit: bool,
    /// Replace the plan by the text of this file; `-` reads it from stdin
    #[arg(long, value_name = "FILE|-", conflicts_with = "delete")]
    pub(crate) set: Option<PathBuf>,
    /// Delete the plan
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
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Use the session's research files instead of its other files
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
    /// List the files (the default)
    Ls,
    /// Print a file
    Get {
        /// The name, as `ls` shows it
        name: String,
    },
    /// Add a file, or replace one
    Put {
        /// The file; `-` reads it from stdin
        file: PathBuf,
        /// The name in the session [default: the file's own]
        name: Option<String>,
    },
    /// Delete a file
    Rm {
        /// The name, as `ls` shows it
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointsArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Print the summary of this checkpoint
    pub(crate) number: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
