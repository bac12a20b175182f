//! What other tools left on this machine: where it is looked for, the catalog of it in the data folder, and how the host
//! is told of it.

mod config_table;
mod stores;
mod summary;
mod transcript;
mod watcher;

pub(crate) use config_table::{HistoryConfig, read};
pub(crate) use stores::{DATABASE, ForeignStores, possible_roots, roots};
pub(crate) use watcher::watch_stores;
