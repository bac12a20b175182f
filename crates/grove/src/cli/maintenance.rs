//! Commands about the data folder and about problems: du, gc and debug.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(super) const DU_HELP: &str = "\
Needs no host. Sizes are those of the files; a file system may use more.";

pub(super) const GC_HELP: &str = "\
No session is touched. While a host runs, only temporary files of commands and
old logs are removed: it may use the rest. Stop it first with `grove stop` to
remove everything.";

pub(super) const BUNDLE_HELP: &str = "\
Tokens, values of environment variables and texts of conversations are left
out. Look through the archive before you send it: `tar -xf FILE`.";

#[derive(Debug, Args)]
pub(crate) struct DuArgs {
    /// List all sessions, not only the 20 largest
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// List what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DebugCommand {
    /// Write facts about the host to an archive, for a report of a problem
    #[command(after_help = BUNDLE_HELP)]
    Bundle(BundleArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// The archive to write [default: grove-debug-TIME.tar in this folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Include the titles of sessions, which may repeat parts of prompts
    #[arg(long)]
    pub(crate) with_titles: bool,
}
