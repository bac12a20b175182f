//! Tests of the client against a real host, and against unusual hosts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod ahp;
mod ahp_reconnect;
mod embedded;
mod harness;
mod laws;
mod list;
mod odd_hosts;
mod reconcile_vectors;
mod reconnect;

mod session;
mod steps;
mod transports;
