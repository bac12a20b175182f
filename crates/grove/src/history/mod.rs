//! What other tools left on this machine: where it is looked for, the catalog of it in the data folder, and how the host
//! is told of it.

mod configured;
mod opened;
mod shown;
mod stores;
mod watching;

pub(crate) use configured::{ConfiguredHistory, read};
pub(crate) use stores::{DATABASE, ForeignStores, possible_roots, roots};
pub(crate) use watching::keep_up;
