//! A small process that holds an agent's stdio, so that a running turn outlives a restart or an upgrade of the host.
//!
//! # What this crate owns
//!
//! - [`run`]: the shim itself, which `grove agent-shim` runs with the [`ShimOptions`] that a host gives it. It starts
//!   the agent in its own process group, numbers and stores the agent's lines, and sends them to the connected host;
//!   lines reach the agent exactly once. It ends with its agent's group, never before it.
//! - [`ShimStream`]: the host's side. [`start`](ShimStream::start) a shim, or [`attach`](ShimStream::attach) to a
//!   running one; [`ShimReader`] and [`ShimWriter`] are its halves.
//! - [`stderr_tail`], [`stderr_files`]: the agent's stderr.
//! - [`ShimError`]: the errors of either side.
//!
//! # What it never does
//!
//! It does not parse lines: their meaning is the agent's and the host's business. It needs nothing of the host's data,
//! so that a shim of an older version goes on working beside a newer host.
//!
//! # Limits
//!
//! Lines that no host has acknowledged are in files without names. Past the limit the agent's stdout is not read, so
//! the agent waits. A second host takes over, and the first is told. A [`ShimStream`] may be dropped at any moment.
//!
//! # Numbers
//!
//! The agent's lines are numbered from 1, and its end has the last number. A host acknowledges a number when it will
//! never request it again; a host that comes back requests the first number that it has not handled. Lines to the agent
//! are numbered from 1 as well. The shim reports the number up to which it has *taken* them: those reach the agent, and
//! later ones were never received and have to be written again.

mod error;
mod folder;
pub mod limits;
mod log;
mod options;
mod run;
mod spool;
mod start;
mod stream;
pub mod wire;

pub use error::ShimError;
pub use folder::SocketAddress;
pub use log::{stderr_files, stderr_tail};
pub use options::{ShimLimits, ShimOptions};
pub use run::run;
pub use start::ShimProgram;
pub use stream::{FromAgent, ShimReader, ShimStream, ShimWriter};
pub use wire::{AgentEnd, EndReason};
