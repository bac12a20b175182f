//! The sessions that real agents store, offline, each with a fake model.
//!
//! `make test-agents` installs them and sets `GROVE_PEERS` to their folder; without it these tests print that they were
//! skipped. It tries the agents themselves first: see `tools/agents/run.py`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../it/support.rs"]
#[expect(dead_code, reason = "these tests need a part of it")]
mod support;

mod history;
mod import_export;
mod peer;
