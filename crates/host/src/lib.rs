//! The host: one process that owns sessions, and any number of clients that see the same state.
//!
//! # What this crate owns
//!
//! - [`Host`]: the agents, the sessions, and the way they begin and end.
//! - `session`: a task per session. It checks what clients and the agent want against everything accepted so far.
//! - `sequencer`: gives each event its number, applies it to the published state and hands it to the subscribers, in
//!   one step; keeps the newest events for replay.
//! - `store`: what lies in a session's folder, on a `SessionFs`; and [`Stores`], where sessions can lie.
//! - `connection`: reads a client's requests in their order; writes from a bounded queue, so that a slow client costs
//!   only itself.
//! - `dialect`: what the messages of each protocol do here.
//! - [`hooks`]: those who want to know what happens to sessions' trees, and to have a say in it.
//! - [`server`]: HTTP and WebSocket on one port, and who is let in.
//! - [`Env`]: clock, randomness, tasks, storage and listening, all arguments.
//!
//! # What it never does
//!
//! It knows no JSON shape (that is `grove-wire`), no rule about what may happen in a session (that is `grove-core`)
//! or about which files may be seen (that is `grove-work`), and no agent by name. No lock is held across an await,
//! but that of a log by whoever writes or reads it.
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
//! let wanted = CreateSession { uri, provider: None, model: None, working_directories: vec![], config: None, store: None };
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
