//! Tests of the program as a whole: the real binary, started as a person would, and clients on real WebSockets.
//!
//! Each test starts a host of its own, in a folder of its own, and is named after the rule that it guards.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod access;
mod cli;
mod content;
mod creation;
mod dispose;
mod durable;
mod files;
mod handshake;
mod inspect;
mod life;
mod lists;
mod nonsense;
mod pressure;
mod reconnect;
mod refusals;
mod support;
mod tools;
mod turns;
