//! Commands about the host: serve, start, open, stop and ahp-bridge.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::settings::Durability;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 takes a free one [default: 127.0.0.1:4747]
    ///
    /// Without it the host listens on the port of its last start, or 4747, or a free one if other programs use these.
    ///
    /// An address that other machines reach needs --tls-cert and --tls-key, or --insecure.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The certificate shown to clients, in PEM; page and clients then use https:// and wss://
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen without TLS on an address that other machines reach: the network can read everything, the token too
    #[arg(long)]
    pub(crate) insecure: bool,
    /// A name under which other machines reach the host; can be given several times [default: those of the certificate]
    ///
    /// Requests under another name are refused, so that a page elsewhere cannot reach the host by a name of its own.
    /// Addresses are always accepted.
    #[arg(long = "host-name", value_name = "NAME")]
    pub(crate) host_names: Vec<String>,
    /// Connect stdin and stdout to the running host: one message per line, in either protocol
    ///
    /// ssh:// addresses run this at the other end. Starts a host in the background if none is running, and ends with
    /// its client. No token is needed: a user who may run this may read it.
    #[arg(long, conflicts_with_all = [
        "listen", "tls_cert", "tls_key", "insecure", "host_names", "copilot_listen", "json", "replay_actions", "replay_bytes", "turn_silence",
        "durability", "log_frames", "log_agent_frames", "detached", "default_directory", "browse_roots", "read_roots",
        "default_agent", "max_agents", "agent_idle", "session_idle", "spill_bytes", "slow_ms", "compact_at", "compact_keep", "store", "log_dir",
    ])]
    pub(crate) stdio: bool,
    /// Serve the GitHub Copilot SDK on this loopback address; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) copilot_listen: Option<SocketAddr>,
    /// Print the addresses and the token as one JSON object on the first line of stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep this many actions for clients that reconnect [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) replay_actions: Option<usize>,
    /// Keep this many bytes of actions for clients that reconnect [default: 33554432]
    #[arg(long, value_name = "BYTES")]
    pub(crate) replay_bytes: Option<usize>,
    /// Fail a running turn after this many seconds without a sign of its agent [default: 1800]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) turn_silence: Option<u64>,
    /// Let confirmed actions survive a power cut (waits for the disk), or only the process's end [default: power]
    #[arg(long, value_name = "WHAT")]
    pub(crate) durability: Option<Durability>,
    /// Exit after this many seconds without client and turn [default: never; 600 for a host in the background]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle_exit: Option<u64>,
    /// Append every message to this file, a JSON object per line, for protocol inspectors; secrets are left out
    ///
    /// The file holds the conversations of all sessions, so only its owner can read it. If the disk is too slow,
    /// messages are left out and counted.
    #[arg(long, value_name = "FILE")]
    pub(crate) log_frames: Option<PathBuf>,
    /// Append every message to and from agents to this file, a JSON object per line; secrets are left out
    ///
    /// The file holds the conversations of all sessions, so only its owner can read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) log_agent_frames: Option<PathBuf>,
    /// Leave the terminal for a new process session, and apply idle-exit; used by `grove start`
    #[arg(long, conflicts_with = "json")]
    pub(crate) detached: bool,
    /// The folder that is offered to clients first [default: the home folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) default_directory: Option<PathBuf>,
    /// A folder that clients may browse; can be given several times [default: the home folder and the default one]
    #[arg(long = "browse-root", value_name = "DIR")]
    pub(crate) browse_roots: Vec<PathBuf>,
    /// A folder whose files clients may read, beside sessions' working directories; can be given several times
    #[arg(long = "read-root", value_name = "DIR")]
    pub(crate) read_roots: Vec<PathBuf>,
    /// The agent of sessions that name none [default: scripted]
    #[arg(long, value_name = "AGENT")]
    pub(crate) default_agent: Option<String>,
    /// Run at most this many agent processes at a time; further ones wait [default: 16]
    #[arg(long, value_name = "N")]
    pub(crate) max_agents: Option<NonZeroUsize>,
    /// Stop an agent's process after this many seconds without a turn; it is started again when needed [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) agent_idle: Option<u64>,
    /// Evict an idle session without subscribers from memory after this many seconds; 0 for never [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) session_idle: Option<u64>,
    /// Write tool output, pasted and attached text above this many bytes to files [default: 65536]
    #[arg(long, value_name = "BYTES")]
    pub(crate) spill_bytes: Option<NonZeroUsize>,
    /// Log operations that take longer than this many milliseconds; 0 for none [default: 500]
    #[arg(long, value_name = "MS")]
    pub(crate) slow_ms: Option<u64>,
    /// Compact a conversation when it fills this much of the model's window, in percent; 0 for never [default: 85]
    ///
    /// Agents that manage their window themselves, as ACP agents do, are left alone.
    #[arg(long, value_name = "PERCENT")]
    pub(crate) compact_at: Option<u8>,
    /// Keep this many tokens of a conversation when compacting it [default: 20000]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) compact_keep: Option<u64>,
    /// The store of new sessions: local, memory, or a [stores.NAME] of grove.toml [default: local]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// The folder for the logs of new sessions, each in a folder of its own there; overrides --store
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Exit after this many seconds without client and turn; 0 for never [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle_exit: Option<u64>,
    /// Print one JSON object, with the page's address and so the token
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Print the address, even if there is a browser
    #[arg(long)]
    pub(crate) print: bool,
    /// Print a QR code that pairs a phone with the host, through its TLS listener for other machines
    #[arg(long, conflicts_with = "print")]
    pub(crate) qr: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Cancel running turns, also those that would go on without the host
    #[arg(long)]
    pub(crate) turns: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    /// Speak on stdin and stdout
    #[arg(long, required = true)]
    pub(crate) stdio: bool,
}
