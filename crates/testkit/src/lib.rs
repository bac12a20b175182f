//! What Grove's tests share: a version-1 client that trusts nothing.
//!
//! [`Client`] speaks over a real WebSocket, on TCP or on any byte stream. It keeps every state it is subscribed to by
//! the dialect's own reducers, and checks at each action that sequence numbers grow strictly (law 5).
//! It is made for tests: it panics where something is not as it should be, and waits at most [`PATIENCE`].

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod client;

pub use client::*;
