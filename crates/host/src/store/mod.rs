//! The files of a session's folder, and the stores of these folders.

pub(crate) mod artifacts;
pub(crate) mod checkpoints;
pub(crate) mod content;
pub(crate) mod copies;
pub(crate) mod copy;
pub(crate) mod info;
pub(crate) mod log_lock;
pub(crate) mod pastes;
pub mod paths;
pub(crate) mod register;
pub(crate) mod session_file;
pub(crate) mod store_move;
pub(crate) mod store_scan;
pub(crate) mod stores;
pub(crate) mod verify;
