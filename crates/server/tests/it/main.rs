//! The tests of a whole host, driven by its connections, in one binary.
//!
//! The connections are in memory: its listener is an argument, and so are the streams it yields. Time
//! is tokio's paused clock, so waiting costs nothing and order is repeatable.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod agents;
mod ahp;
mod ahp_changes;
mod ahp_terminals;
mod audit;
mod checkout;
mod clean_stop;
mod client_storage;
mod convergence;
mod copilot;
mod copilot_tokens;
mod damage;
mod durability;
mod editors;
mod eviction;
mod forks;
mod gated_fs;
mod harness;
mod hooks;
mod imports;
mod in_process;
mod metrics;
mod page_access;
mod passes;
mod policy;
mod presence;
mod presence_model;
mod refusals;
mod scopes;
mod server;
mod setups;
mod slow_clients;
mod spans;
mod spills;
mod storage_client;
mod store_forks;
mod stores;
mod summaries;
mod surviving_agents;
mod table_sizes;
mod titles;
mod token_model;
mod tokens;
mod tree;
mod usage;
mod versions;
mod workspace;
