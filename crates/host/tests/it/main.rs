//! The host's tests, in one binary.
//!
//! They run a whole host on in-memory connections: its listener is an argument, and so are the streams it yields. Time
//! is tokio's paused clock, so waiting costs nothing and order is repeatable.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod agents;
mod ahp;
mod backends;
mod checkout;
mod copilot;
mod damage;
mod durable;
mod entrusted;
mod forks;
mod gated;
mod harness;
mod hooks;
mod imports;
mod laws;
mod lender;
mod outlasting;
mod page_access;
mod refusals;
mod resting;
mod server;
mod slow;
mod spills;
mod stopping;
mod stores;
mod summaries;
mod titles;
mod tree;
mod versions;
mod workspace;
