//! The visible paths of a working directory, reading, watching, and running programs in it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod browse;
mod change;
mod policy;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod terminal;
mod test_folder;
#[cfg(target_os = "linux")]
mod watch;
