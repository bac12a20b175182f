//! Tests of the program as a whole: the real binary, started as a person would, and clients on real WebSockets.
//!
//! Each test starts a host of its own, in a folder of its own, and is named after the rule that it guards.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod access;
mod acp;
mod agents;
mod ahp_handshake;
mod ahp_mixed;
mod ahp_published;
mod ahp_reconnect;
mod ahp_refusals;
mod ahp_resources;
mod ahp_sessions;
mod ahp_support;
mod ahp_turns;
mod attach;
mod background;
mod bridge;
mod cli;
mod content;
mod creation;
mod dispose;
mod durable;
mod exchange;
mod export;
mod far;
mod files;
mod forks;
mod frames;
mod handshake;
mod history;
mod history_wire;
mod hooks;
mod hosts;
mod inspect;
mod life;
mod lists;
mod logs;
mod nonsense;
mod page;
mod pressure;
mod reconnect;
mod refusals;
mod run;
mod sessions;
mod shim;
mod show;
mod ssh;
mod stores;
mod support;
mod terminal;
mod ticket;
mod tools;
mod tree;
mod turns;
mod workspace;
