//! ACP agents as real processes behind real shims: the scripted one, with all its behaviors.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod cancel;
mod creation;
mod fixture;
mod fork;
mod lifecycle;
mod protocol;
mod restart;
mod serve;
mod spills;
mod summary;
