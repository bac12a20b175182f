//! What was found on this machine, remembered: a list of sessions that is brought up to date by reading only what is new.
//!
//! It is a database that can be thrown away at any time: everything in it is read from the tools' own files. One that is
//! damaged, or of another version, is replaced. One process writes it, the host of the data folder; [`Catalog`] may be
//! shared by its threads, and lists are not held up by a scan.

mod doctor;
mod entry;
mod error;
mod keep;
mod list;
mod meant;
mod place;
mod private;
mod scan;
mod store;

pub use doctor::{Checkup, Suspect, check};
pub use entry::Entry;
pub use error::CatalogError;
pub use keep::Keep;
pub use list::{Cursor, Filter, MAX_PAGE, Page};
pub use scan::{Phase, Progress, Scan, ScanReport};
pub use store::Catalog;
