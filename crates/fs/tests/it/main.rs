//! The contract of a store: one suite that every backend passes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod contract;
mod local;
