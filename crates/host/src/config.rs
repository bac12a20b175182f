//! The configuration of a host, and the limits of everything that could grow.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use grove_agents::setup::HookMode;
use grove_core::AgentId;
use grove_fs::temp_files::TempFilePolicy;
use grove_tree::turns::TurnLimit;
use grove_wire::jsonrpc::MESSAGE_BYTES;
use grove_wire::registry::Registry;
use grove_work::Roots;

use crate::usage::{Rate, UsageLimitTable, UsageLimits};

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct Config {
    pub limits: Limits,
    /// The limits of single tokens, by name, in place of those of `limits`.
    pub token_limits: BTreeMap<String, UsageLimits>,
    pub folders: Folders,
    pub durability: Durability,
    pub compaction: Compaction,
    /// The fate of the temporary files with output too large for agents, when their session ends.
    pub temp_files: TempFilePolicy,
    /// The agent of sessions that name none; by default the first one.
    pub default_agent: Option<AgentId>,
    /// Names of models that clients of the Copilot SDK ask for, each with its `<agent>` or `<agent>/<model>`.
    pub model_names: BTreeMap<String, String>,
    /// How the hooks of clients count. Without [`HookMode::Strict`], an agent that does not ask before every call is accepted.
    pub client_hooks: HookMode,
    /// The program on clients' terminals; by default `$SHELL`.
    pub shell: Option<String>,
    /// The protocol versions that the host speaks: the released ones, except in tests.
    pub registry: Registry,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            token_limits: BTreeMap::new(),
            folders: Folders::default(),
            durability: Durability::default(),
            compaction: Compaction::default(),
            temp_files: TempFilePolicy::Removed,
            default_agent: None,
            model_names: BTreeMap::new(),
            client_hooks: HookMode::Strict,
            shell: None,
            registry: Registry::RELEASED,
        }
    }
}

impl Config {
    /// The limits of use of every token.
    pub fn usage_limits(&self) -> UsageLimitTable {
        UsageLimitTable {
            connections: self.limits.connections,
            owner_connections: self.limits.owner_connections,
            common: UsageLimits::from(&self.limits),
            tokens: self.token_limits.clone(),
        }
    }
}

/// The failure that a confirmed action survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: confirmations wait until the journal has reached the disk.
    #[default]
    Power,
    /// The end of the process: confirmations wait until the journal is written.
    Process,
}

/// When conversations are compacted, and how much of them stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The fill level of the model's window at which a conversation is compacted automatically, in percent; 0 is never.
    /// Agents that manage their window themselves are left alone.
    pub at_percent: u8,
    /// The size of the tail that is not summarized, in tokens.
    pub keep_tokens: u64,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { at_percent: 85, keep_tokens: 20_000 }
    }
}

/// The parts of the file system that clients may see. Sessions' working directories are always included.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    /// The starting folder offered to clients.
    pub default_directory: Option<PathBuf>,
    /// The home folder: `~` in a folder that a client names stands for it.
    pub home: Option<PathBuf>,
    pub roots: Roots,
}

/// The folders that a client may work in and see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderReach {
    /// Every folder of the machine.
    Everywhere,
    /// Those inside the configured roots.
    Roots,
}

impl Folders {
    /// The folder that a client names, with `~` and `~/…` expanded to the home folder.
    pub fn expand(&self, folder: String) -> String {
        let below = match folder.strip_prefix('~') {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        match (below, &self.home) {
            (Some(below), Some(home)) => {
                // Without slashes at its end, which would make another URI of the same folder.
                let path: PathBuf = home.join(below.trim_start_matches('/')).components().collect();
                grove_work::file_uri(&path)
            }
            _ => folder,
        }
    }
}

/// The bound of every queue, buffer and message. Each says what happens beyond it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events kept for replay; an older `reconnect` is answered with snapshots.
    pub replay_actions: usize,
    /// Bytes kept for replay, likewise.
    pub replay_bytes: usize,
    /// Finished turns in a snapshot; older ones come by `fetchTurns`.
    pub snapshot_turns: usize,
    /// Bytes of finished turns in a snapshot, likewise.
    pub snapshot_bytes: usize,
    /// Messages queued for a connection; past half, deltas are merged, past it the connection is closed (4008).
    pub queue_messages: usize,
    /// Bytes queued for a connection, likewise.
    pub queue_bytes: usize,
    /// The largest message accepted from a client; a larger one closes its connection (1009).
    pub message_bytes: usize,
    /// Answers queued for a connection; with more, its next requests wait.
    pub open_answers: usize,
    /// Bytes of a connection's pending answers; with more, its next requests wait. One answer may be larger.
    pub answer_bytes: usize,
    /// The time in which a client may read nothing of what is written to it; then its connection is closed (4008).
    pub write_silence: Duration,
    /// Authenticated connections at a time; the next one is rejected.
    pub connections: usize,
    /// Authenticated connections of one token; its next one is rejected.
    pub token_connections: usize,
    /// Connections through the owner's socket, in addition to those: no other client can use them up.
    pub owner_connections: usize,
    /// Unauthenticated connections of each listener; the next one replaces the one that has waited longest.
    pub unauthenticated_connections: usize,
    /// Bytes read from a Copilot SDK's connection before it has sent the secret; with more, it is closed.
    pub unauthenticated_bytes: usize,
    /// The time in which a Copilot SDK's connection must send the secret; then it is closed.
    pub unauthenticated_time: Duration,
    /// The time in which a storage client must answer a call; then the call has failed and is retried.
    pub storage_call: Duration,
    /// The time in which an unanswered append may still arrive; until then its file is read back before each change.
    pub storage_late: Duration,
    /// Subscriptions of one connection; the next one is refused.
    pub subscriptions: usize,
    /// Subscriptions and watches of all connections of a token; the next one is refused.
    pub token_subscriptions: usize,
    /// Watches of files and folders of one connection; the next one is refused.
    pub watches: usize,
    /// Messages of one connection; beyond them it uses `token_requests`, then reading pauses.
    pub requests: Rate,
    /// Messages beyond their own rate of all connections of a token; beyond them, reading from the sender pauses.
    pub token_requests: Rate,
    /// Bytes that one connection sends; beyond them it uses `token_bytes`, then reading pauses.
    pub bytes: Rate,
    /// Bytes beyond their own rate of all connections of a token; beyond them, reading from the sender pauses.
    pub token_bytes: Rate,
    /// Unanswered requests of all connections of a token; the next one is refused.
    pub token_open_requests: usize,
    /// Searches, summaries, imports, exports and starts of one connection at a time; the next one is refused.
    pub large_calls: usize,
    /// The same of all connections of a token.
    pub token_large_calls: usize,
    /// New sessions and chats of all connections of a token; the next one is refused.
    pub token_starts: Rate,
    /// Disconnected clients that are remembered; the one that left first is forgotten.
    pub known_clients: usize,
    /// Larger bodies are kept by reference.
    pub inline_bytes: usize,
    /// The beginning of such a body that stays in the state, in bytes.
    pub preview_bytes: usize,
    /// Larger output of a tool goes to a file that the agent is told of.
    /// A larger message, or attachment, goes to a file of the session that the message refers to.
    pub spill_bytes: usize,
    /// The largest file or content sent to a client in one answer.
    pub fetch_bytes: u64,
    /// Sessions that one connection imports at a time; the next one is refused.
    pub imports: usize,
    /// Files of an imported session; the next one is refused.
    pub import_files: usize,
    /// Bytes of an imported session; more are refused.
    pub import_bytes: u64,
    /// Entries of a folder; a larger one is refused.
    pub folder_entries: usize,
    /// The time in which a session may be `creating`; its agent must be initialized by then.
    pub creation: Duration,
    /// The silence of a running turn, without a pending request and without a running tool, that is reported.
    pub turn_quiet: Duration,
    /// The silence of a running turn, without a pending request, that ends it in error.
    pub turn_silence: Duration,
    /// The time that running turns get when the host stops.
    pub stop_grace: Duration,
    /// The time for which a session waits for a participating client that has disconnected.
    pub client_grace: Duration,
    /// The longest silence of a connection; pings go out three times as often.
    pub connection_silence: Duration,
    /// The time for which an idle session without subscribers stays in memory; it may be twice that.
    /// With zero, sessions stay as long as the host runs.
    pub session_idle: Duration,
}

impl Limits {
    /// The finished turns of a snapshot, which are also those that a session has when it is loaded.
    pub fn snapshot(&self) -> TurnLimit {
        TurnLimit { turns: self.snapshot_turns, bytes: self.snapshot_bytes as u64 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            replay_actions: 10_000,
            replay_bytes: 32 << 20,
            snapshot_turns: 1_000,
            snapshot_bytes: 8 << 20,
            queue_messages: 65_536,
            queue_bytes: 16 << 20,
            message_bytes: MESSAGE_BYTES,
            open_answers: 64,
            answer_bytes: 64 << 20,
            write_silence: Duration::from_secs(30),
            connections: 4_096,
            token_connections: 3_072,
            owner_connections: 64,
            unauthenticated_connections: 128,
            unauthenticated_bytes: 64 << 10,
            unauthenticated_time: Duration::from_secs(5),
            storage_call: Duration::from_secs(15),
            storage_late: Duration::from_secs(10 * 60),
            subscriptions: 1_024,
            token_subscriptions: 65_536,
            watches: 128,
            requests: Rate { per_second: 500, burst: 5_000 },
            token_requests: Rate { per_second: 10_000, burst: 50_000 },
            bytes: Rate { per_second: 8 << 20, burst: 64 << 20 },
            token_bytes: Rate { per_second: 64 << 20, burst: 256 << 20 },
            token_open_requests: 16_384,
            large_calls: 32,
            token_large_calls: 256,
            token_starts: Rate { per_second: 100, burst: 5_000 },
            known_clients: 10_000,
            inline_bytes: 64 << 10,
            preview_bytes: 4 << 10,
            spill_bytes: 64 << 10,
            fetch_bytes: 64 << 20,
            imports: 4,
            import_files: 20_000,
            import_bytes: 2 << 30,
            folder_entries: 20_000,
            creation: Duration::from_secs(30),
            turn_quiet: Duration::from_secs(15),
            turn_silence: Duration::from_secs(30 * 60),
            stop_grace: Duration::from_secs(5),
            client_grace: Duration::from_secs(30),
            connection_silence: Duration::from_secs(90),
            session_idle: Duration::from_secs(10 * 60),
        }
    }
}
