//! Import and export of sessions in the formats of other programs.
//!
//! [`prepared_import`] recognises a path and prepares its import; [`imported_log`] writes turns of other
//! tools, as `grove-history` reads them, as a log of Grove's; [`folder`] lists the files beside a log. [`copilot_cli`] is the
//! other direction: a log as the events of the Copilot CLI.
//!
//! [`stores`] finds sessions in other tools' stores. [`transcript`] is any session, Grove's own too, in the normal form;
//! `grove_transcript::export` writes it in most formats, and [`log_export`] as a log.
//!
//! Nothing here talks to a host: `commands` do.

pub(crate) mod copilot_cli;
mod folder;
mod imported_log;
pub(crate) mod log_export;
pub(crate) mod prepared_import;
pub(crate) mod running_turn;
pub(crate) mod stores;
#[cfg(test)]
mod tests;
pub(crate) mod transcript;
