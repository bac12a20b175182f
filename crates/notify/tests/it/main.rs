//! Tests of notifications on a whole host in memory, and of requests over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod harness;
mod plan;
mod subscriptions;
mod transport;
