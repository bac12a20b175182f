//! Grove with agents that people use, offline, each in front of a fake model.
//!
//! `make test-agents` installs them and says in `GROVE_PEERS` where; without it these tests say that they were skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../it/support.rs"]
#[expect(dead_code, reason = "these tests need a part of it")]
mod support;

mod history;
mod import_export;
mod peer;
mod story;
