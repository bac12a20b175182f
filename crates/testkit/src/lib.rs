//! The test kit: clients that trust nothing, one for each dialect, hosts on pipes, a fake model and a fake agent.
//!
//! [`Client`] speaks version 1, [`ahp::Client`] the Agent Host Protocol, over a real WebSocket, on TCP or on any byte
//! stream. Each keeps every subscribed state by its dialect's own reducers, and checks at each action that sequence
//! numbers grow strictly (law 5).
//!
//! With the feature `host`, the module `host` has hosts in the test's own process, on pipes.
//!
//! [`model`] is a fake model: a server for real agents. [`acp`] is an agent without a model: a program that speaks the
//! Agent Client Protocol.
//!
//! They are made for tests: they panic on any unexpected result, and wait at most [`PATIENCE`].

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

pub mod acp;
pub mod ahp;
mod client;
mod connection;
#[cfg(feature = "host")]
pub mod host;
pub mod model;
mod socket;
mod turns;

pub use client::*;
pub use connection::TestConnection;
pub use socket::{ByteStream, ConnectionEnd, PATIENCE};
pub use turns::read_only_turn;
