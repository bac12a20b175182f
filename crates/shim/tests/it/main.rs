//! Shims with real agents, which are small shell scripts.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod fixture;
mod lifecycle;
mod lines;
mod load;
mod reconnect;
mod version;
