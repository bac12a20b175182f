//! Sessions as other programs keep them: what comes from them, and what they are given.
//!
//! [`brought`] finds out what a path is and makes it ready to be taken in by a host; [`foreign_log`] writes turns of other
//! tools, as `grove-history` reads them, as a log of Grove's; [`folder`] lists what lies beside a log. [`copilot_cli`] is the
//! other direction: a log as the events of the Copilot CLI.
//!
//! [`stores`] finds other tools' sessions where they lie; [`opened`] is a session of whomever in the normal form, which
//! `grove_history::export` writes in most forms, and [`log_lines`] as a log.
//!
//! Nothing here talks to a host: `commands` do.

pub(crate) mod brought;
pub(crate) mod copilot_cli;
mod folder;
mod foreign_log;
pub(crate) mod log_lines;
pub(crate) mod opened;
pub(crate) mod running;
pub(crate) mod stores;
#[cfg(test)]
mod tests;
