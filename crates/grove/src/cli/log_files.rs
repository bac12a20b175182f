//! Commands that read logs from the disk: inspect and check.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A log file, or a session of the data folder: its id, the beginning of it, its URI, or @last
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) log: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The rules that build the context: those of pi 1.5, of oh-my-pi 18.3, or Grove's own
    #[arg(long, value_enum, default_value = "grove")]
    pub(crate) rules: RulesName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesName {
    Pi,
    Omp,
    Grove,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A log file, or a session of the data folder: its id, the beginning of it, its URI, or @last
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) log: Option<String>,
    /// Write a repaired copy beside the log (NAME.repaired.jsonl); the log itself is never changed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
