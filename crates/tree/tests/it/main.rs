//! Tests of the log's readers. Each is named after its rule.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod append;
mod branch_log;
mod compaction;
mod context;
mod damage;
mod golden;
mod golden_api;
mod grove_entries;
mod migration;
mod model;
mod navigate;
mod properties;
#[path = "../../../core/tests/it/random/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with core's tests, which use more of it")]
mod random;
mod restoration;
mod rows;
mod samples;
mod scanner;
mod side_index;
mod store;
mod support;
mod tail;
mod tree;
mod tree_edit;
mod turns;
