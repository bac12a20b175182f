//! What can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::settings::Durability;

/// A host for coding-agent sessions: one process owns them, any number of clients see them live and act on them.
///
/// Start it with `grove serve`; see what it does with `grove status`; end it with `grove stop`.
#[derive(Debug, Parser)]
#[command(name = "grove", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Every setting can be given as a flag, as an environment variable (GROVE_DATA_DIR for --data-dir) or in grove.toml;
`grove config show` says which value holds and where it came from.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no host is running, 4 the data folder is in use by another host,
5 a session's log is damaged.";

/// Flags that every command takes.
#[derive(Debug, Default, Args)]
pub(crate) struct Common {
    /// The folder in which the host keeps everything [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file [default: grove.toml in the platform's config folder]
    #[arg(long, global = true, value_name = "FILE", env = "GROVE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the host in the foreground until SIGTERM, SIGINT or `grove stop`
    Serve(Box<ServeArgs>),
    /// Say whether a host is running, where, and what it is doing
    Status(OutputArgs),
    /// Stop the running host: running turns get 5 seconds
    Stop(OutputArgs),
    /// Print what a session's log holds, without changing it
    ///
    /// Reads logs of Grove, of pi and of oh-my-pi, of versions 1 to 3.
    Inspect(InspectArgs),
    /// Say what is wrong with a session's log; exit code 5 where anything is
    Check(CheckArgs),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    ///
    /// For bash: `grove completions bash > ~/.local/share/bash-completion/completions/grove`
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value, and where the value came from
    Show(OutputArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A log, or the id of a session in the data folder
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) log: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Whose rules build the context: those of pi 1.5, of oh-my-pi 18.3, or Grove's own
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
    /// A log, or the id of a session in the data folder
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) log: String,
    /// Write a mended copy beside the log (NAME.repaired.jsonl); the log itself is never touched
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// The loopback address to listen on; port 0 takes a free one [default: 127.0.0.1:0]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Print the addresses and the token as one JSON object on the first line of stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// How many actions are kept for clients that reconnect [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) replay_actions: Option<usize>,
    /// How many bytes of actions are kept for clients that reconnect [default: 33554432]
    #[arg(long, value_name = "BYTES")]
    pub(crate) replay_bytes: Option<usize>,
    /// How long a running turn may be silent before it ends in error, in seconds [default: 1800]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) turn_silence: Option<u64>,
    /// What a confirmation survives: a power cut (it waits for the disk), or the end of the process [default: power]
    #[arg(long, value_name = "WHAT")]
    pub(crate) durability: Option<Durability>,
    /// The folder that clients are offered first [default: the home folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) default_directory: Option<PathBuf>,
    /// A folder that clients may browse; can be given several times [default: the home folder and the default one]
    #[arg(long = "browse-root", value_name = "DIR")]
    pub(crate) browse_roots: Vec<PathBuf>,
    /// A folder whose files clients may read, beside sessions' working directories; can be given several times
    #[arg(long = "read-root", value_name = "DIR")]
    pub(crate) read_roots: Vec<PathBuf>,
}
