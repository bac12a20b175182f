//! The rules of sessions, providers and their management, over a provider made for tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so, and one that measures what it found")]

mod active;
mod chats;
mod context;
mod documents;
mod drafts;
mod facade;
mod groups;
mod law;
mod listing;
mod names;
mod provider;
mod registry;
mod scale;
mod trust;
