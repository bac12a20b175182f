//! The host: one process that owns sessions, and any number of clients that see the same state.
//!
//! # Contents
//!
//! - [`Host`]: the agents, the sessions, their start and their end.
//! - [`session`]: a task per session. It checks requests of clients and reports of the agent against everything accepted
//!   so far.
//! - [`sequencer`]: numbers each event, applies it to the published state and hands it to the subscribers, in one step;
//!   keeps the newest events for replay.
//! - [`subscriber`]: the bounded queue of a connection, and the dialect in which events are encoded for it.
//! - [`turns`]: older turns, from the published state or from a log.
//! - `usage`: the bounds of a connection's and a token's messages, bytes, subscriptions and calls.
//! - `client_storage`: sessions that a storage client keeps. [`import`]: sessions from other hosts and programs.
//!   `eviction`: idle sessions leave memory. `editors`: unsaved files of connected editors, for agents.
//! - [`client_hooks`]: functions of clients that are asked before a tool runs, and told of what happens in a session.
//! - [`hooks`]: programs that are called for changes of sessions' trees, and may influence them.
//! - [`administration`], [`history`], [`session_hub`], [`tokens`], `trust`, `policy`: services that the program passes to the host.
//! - [`audit`]: records of who changed what, for a log that the program passes to the host.
//! - [`Env`]: clock, randomness, tasks and stores, all arguments; the journal is an argument as well.
//!
//! A program that embeds a host uses [`Host`] and what is beside it here. The public modules are for `grove-server`,
//! which connects clients: it attaches connections to the sequencer, sends requests to sessions, and writes what is put
//! into its queues.
//!
//! # Forks, content and interrupted turns
//!
//! A fork is confirmed by its record in the journal, which names its source, a byte boundary and a branch; the turns
//! are shared in memory. The log is copied outside the session's task and renamed when it is complete. After a kill the
//! next host copies what is missing. A folder is not moved while something is copied out of it.
//!
//! Bodies above 64 KiB are *content*: stored once, and clients get a reference. A *spill* is a copy of large output in
//! a temporary file, whose path the agent is told so that it can search it; it is removed with the session.
//!
//! After the end of a host, a turn goes on if its agent can: an agent behind a shim works on in any case, the scripted
//! one continues where it waited for a person. Any other turn is closed as interrupted, with everything that had
//! arrived. An agent that has forgotten a conversation is told the context at the leaf, read from the log, with
//! summaries in place of the summarized part.
//!
//! # Boundaries
//!
//! This crate knows no listener and no request of a protocol (that is `grove-server`), no JSON format (that is
//! `grove-wire`), no file of a session or of the journal (that is `grove-storage`), no rule about what may happen in a
//! session (that is `grove-core`) or about which files may be seen (that is `grove-work`), and no agent by name. It holds
//! no lock across an await.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use grove_agents::scripted::ScriptedAgent;
//! use grove_agents::setup::AgentSetup;
//! use grove_host::{Config, CreateSession, Env, Host};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let host = Host::in_memory(Env::in_memory(), Config::default(), vec![Arc::new(ScriptedAgent)]).await.unwrap();
//! let uri = "scripted:/first".into();
//! let (working_directories, config, store, setup) = (vec![], None, None, AgentSetup::default());
//! let wanted =
//!     CreateSession { uri, agent: None, model: None, working_directories, config, store, setup, active_client: None };
//! host.create_session(wanted).await.unwrap();
//! assert_eq!(host.status().await.unwrap().sessions, 1);
//! # });
//! ```
//!
//! `examples/embed.rs` of `grove-server` serves a host with an agent of its own.

pub mod administration;
mod agent_processes;
pub mod audit;
mod branch;
pub mod client_hooks;
mod client_storage;
mod config;
mod copilot_logs;
mod editors;
mod env;
mod eviction;
pub mod history;
pub mod hooks;
mod host;
pub mod import;
mod leases;
pub mod limits;
pub mod notifications;
mod policy;
pub mod presence;
mod refusal;
mod removal;
mod rule_offers;
pub mod sequencer;
pub mod session;
pub mod session_hub;
pub mod subscriber;
pub mod terminals;
mod token;
pub mod tokens;
mod trust;
pub mod turns;
mod usage;

pub use grove_agents::setup::{self, AgentSetup, SetupChange};

pub use agent_processes::{AgentProcesses, AgentRoot};
pub use client_storage::{ClientStorageError, DeleteError, DeleteOutcome, ForkError, ResumeError};
pub use config::{Compaction, Config, Durability, FolderReach, Folders, Limits};
pub use editors::Editors;
pub use env::*;
pub use host::{
    AgentFinder, CreateError, CreateSession, Host, HostStatus, IdGenerationError, STORE_SETTING, TableSizes, WeakHost,
};
pub use leases::Lease;
pub use policy::{LoadedRules, PermissionRules, resolve_links};
pub use refusal::{Refusal, refusal_label};
pub use removal::EraseError;
pub use rule_offers::RuleOfferError;
pub use sequencer::{HostStopped, JournalWriteError};
pub use token::Token;
pub use trust::FolderTrust;
pub use usage::{
    CallCost, ConnectionLimits, ConnectionUsage, LimitReached, Rate, UsageLimitTable, UsageLimits, UsageSlot,
};
