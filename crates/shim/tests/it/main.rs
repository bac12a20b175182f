//! Shims with real agents, which are small shell scripts.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod cut;
mod life;
mod load;
mod place;
mod talk;
mod version;
