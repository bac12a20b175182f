//! Readers of other tools' sessions, over real ones and over small samples of each format.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod case_coverage;
mod catalog;
mod changes;
mod claude;
mod codex;
mod copilot_cli;
mod core;
mod corpus;
mod damaged_files;
mod editing;
mod gemini;
mod opencode;
mod pi;
mod recorded;
mod stores;
mod support;
mod turn_lookup;
mod vscode;
