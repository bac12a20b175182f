//! Sessions of other tools on this machine.
//!
//! It has their stores, the catalog in the data folder, and the host's source of them.

mod config_table;
pub(crate) mod stores;
mod summary;
pub(crate) mod transcript;
mod watcher;

pub(crate) use config_table::{HistoryConfig, read};
pub(crate) use stores::{DATABASE, ForeignStores, possible_roots, roots};
pub(crate) use watcher::watch_stores;
