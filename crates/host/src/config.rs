//! What can be set, and the limits of everything that could grow.

use std::path::PathBuf;
use std::time::Duration;

use grove_core::ProviderId;
use grove_fs::temp_files::TempFilePolicy;
use grove_wire::jsonrpc::MESSAGE_BYTES;
use grove_wire::registry::Registry;
use grove_work::Roots;

use crate::connection::FrameLog;

/// How a host is to be.
#[derive(Clone, Debug)]
pub struct Config {
    pub limits: Limits,
    pub folders: Folders,
    pub durability: Durability,
    pub compaction: Compaction,
    /// What becomes of the files in which agents find output that is too large for them, when their session ends.
    pub temp_files: TempFilePolicy,
    /// The agent of sessions that name none; without it, the first one.
    pub default_agent: Option<ProviderId>,
    /// The protocol versions that are spoken: the released ones, but for tests.
    pub registry: Registry,
    /// Where every frame is written down, for those who look for a mistake.
    pub frame_log: Option<FrameLog>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            folders: Folders::default(),
            durability: Durability::default(),
            compaction: Compaction::default(),
            temp_files: TempFilePolicy::Removed,
            default_agent: None,
            registry: Registry::RELEASED,
            frame_log: None,
        }
    }
}

/// What a confirmation survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: it waits until the journal has reached the disk.
    #[default]
    Power,
    /// The end of the process: it waits until the journal is written.
    Process,
}

/// When conversations are compacted, and what is kept of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// How full the model's window is when a conversation is compacted by itself, in percent; 0 is never. Agents that
    /// mind their window themselves are left alone.
    pub at_percent: u8,
    /// How much of it stays as it is, in tokens.
    pub keep_tokens: u64,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { at_percent: 85, keep_tokens: 20_000 }
    }
}

/// Which parts of the file system clients may see. Sessions' working directories are always among them.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    /// What a client is offered as a starting point.
    pub default_directory: Option<PathBuf>,
    /// The home folder: `~` in a folder that a client names stands for it.
    pub home: Option<PathBuf>,
    pub roots: Roots,
}

impl Folders {
    /// The folder that a client names, with `~` and `~/…` expanded to the home folder.
    pub(crate) fn expand(&self, folder: String) -> String {
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

/// The bound of every queue, buffer and message. What happens beyond each is said beside it.
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
    /// The largest message taken from a client; a larger one closes its connection (1009).
    pub message_bytes: usize,
    /// Answers queued for a connection; with more, its next requests wait.
    pub open_answers: usize,
    /// Bytes of a connection's answers that are under way; with more, its next requests wait. One answer may be larger.
    pub answer_bytes: usize,
    /// How long a client may read nothing of what is written to it; then its connection is closed (4008).
    pub write_silence: Duration,
    /// Connections at a time that were let in; the next one is turned away.
    pub connections: usize,
    /// How many of them one token may have; its next one is turned away.
    pub token_connections: usize,
    /// Connections at a time that come through the owner's socket beside those: nobody else can take their places.
    pub owner_connections: usize,
    /// Connections of each listener that have not shown the token yet; the next one takes the place of the one that has
    /// waited longest.
    pub unauthenticated_connections: usize,
    /// Bytes read from a Copilot SDK's connection before it has sent the secret; with more, it is closed.
    pub unauthenticated_bytes: usize,
    /// How long a Copilot SDK's connection may take to send the secret; then it is closed.
    pub unauthenticated_time: Duration,
    /// How long a client that stores sessions may take to answer a call; then the call has failed, and is tried again.
    pub storage_call: Duration,
    /// How long an append that such a client did not answer may still arrive; until then its file is read back before each
    /// change.
    pub storage_late: Duration,
    /// Subscriptions of one connection; the next one is refused.
    pub subscriptions: usize,
    /// Clients remembered after they went away; the one longest gone is forgotten.
    pub known_clients: usize,
    /// Bodies above this are kept by reference.
    pub inline_bytes: usize,
    /// How much of such a body stays in the state.
    pub preview_bytes: usize,
    /// Output above this goes to a file that the agent is told of; a message above it, or what it carries, to a file of
    /// the session that the message refers to.
    pub spill_bytes: usize,
    /// The largest file or content given to a client in one answer.
    pub fetch_bytes: u64,
    /// Sessions that one connection takes in at a time; the next one is refused.
    pub imports: usize,
    /// Files of a session that is taken in; the next one is refused.
    pub import_files: usize,
    /// Bytes of a session that is taken in; more are refused.
    pub import_bytes: u64,
    /// Entries of a folder; a larger one is refused.
    pub folder_entries: usize,
    /// How long a session may be `creating`; its agent has to be initialised by then.
    pub creation: Duration,
    /// How long a running turn may be silent while nobody is asked and no tool runs, before that is said.
    pub turn_quiet: Duration,
    /// How long a running turn may be silent while nobody is asked, before it ends in error.
    pub turn_silence: Duration,
    /// How long running turns get when the host stops.
    pub stop_grace: Duration,
    /// How long a session waits for a client that takes part in it and went away.
    pub client_grace: Duration,
    /// How long a connection may be silent; pings go out three times as often.
    pub connection_silence: Duration,
    /// How long a session stays in memory that nobody looks at and that has nothing to do; it may be twice that. Zero is
    /// for as long as the host runs.
    pub session_idle: Duration,
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
