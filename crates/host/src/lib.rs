//! The host: one process that owns sessions, and any number of clients that see the same state.
//!
//! # Contents
//!
//! - [`Host`]: the agents, the sessions, their start and their end.
//! - `session`: a task per session. It checks requests of clients and reports of the agent against everything accepted
//!   so far.
//! - `sequencer`: numbers each event, applies it to the published state and hands it to the subscribers, in one step;
//!   keeps the newest events for replay.
//! - `store`: the contents of a session's folder, on a `SessionFs`; and [`Stores`], the stores of sessions.
//! - `connection`: reads a client's requests in order; writes from a bounded queue, so that a slow client slows down
//!   only itself.
//! - `dialect`: the handling of each protocol's messages.
//! - [`hooks`]: programs that are called for changes of sessions' trees, and may influence them.
//! - [`server`]: HTTP and WebSocket on one port, and access control.
//! - [`Env`]: clock, randomness, tasks, storage and listening, all arguments.
//!
//! # Boundaries
//!
//! This crate knows no JSON format (that is `grove-wire`), no rule about what may happen in a session (that is
//! `grove-core`) or about which files may be seen (that is `grove-work`), and no agent by name. No lock is held across
//! an await, except for a log's lock while the log is written or read.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use grove_agents::scripted::ScriptedAgent;
//! use grove_host::{Config, CreateSession, Env, Host};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let host = Host::in_memory(Env::in_memory(), Config::default(), vec![Arc::new(ScriptedAgent)]).await.unwrap();
//! let uri = "scripted:/first".into();
//! let (working_directories, config, store) = (vec![], None, None);
//! let wanted = CreateSession { uri, provider: None, model: None, working_directories, config, store };
//! host.create_session(wanted).await.unwrap();
//! assert_eq!(host.status().await.unwrap().sessions, 1);
//! # });
//! ```
//!
//! `examples/embed.rs` serves a host with an agent of its own.

mod branch;
mod client_storage;
mod config;
mod connection;
pub mod copilot;
mod dialect;
mod editors;
mod env;
mod eviction;
pub mod history;
pub mod hooks;
mod host;
mod import;
mod journal;
mod leases;
mod removal;
mod sequencer;
pub mod server;
mod session;
pub mod session_hub;
mod store;
mod trust;

pub use client_storage::{ClientStorageError, DeleteError, DeleteOutcome, ForkError, ResumeError};
pub use config::{Compaction, Config, Durability, Folders, Limits};
pub use connection::FrameLog;
pub use env::*;
pub use host::{AgentFinder, CreateError, CreateSession, Host, HostStatus, IdGenerationError, STORE_SETTING};
pub use journal::{FileJournal, Journal, JournalContents, JournalError, NoJournal, RecoveredState, SyncMode, recover};
pub use leases::Lease;
pub use sequencer::{HostStopped, JournalWriteError};
pub use store::paths;
pub use store::register::{ClientStorageRegister, ClientStorageRow};
pub use store::stores::{RetiredStore, StoreError, StoreLifetime, Stores};
pub use store::verify::{verify_all, verify_session};
pub use trust::FolderTrust;
