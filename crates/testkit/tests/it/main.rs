//! The scripted ACP agent, as a process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod agent;
mod behavior;
mod fixture;
