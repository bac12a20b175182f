//! The contract of a store, one suite that every backend passes; and the code that is built on stores.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::print_stdout, reason = "a test that was skipped says so")]

mod client_store;
mod contract;
mod copy;
mod database;
mod faults;
mod links;
mod local;
mod model;
mod names;
mod recorded;
mod spill;
mod storage_client;
mod support;
mod workspace;
