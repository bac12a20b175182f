//! What was found on this machine, remembered: a list of sessions that is brought up to date by reading only what is new.
//!
//! It is a database that can be thrown away at any time: everything in it is read from the tools' own files. One that is
//! damaged, or of another version, is replaced. One process writes it, the host of the data folder; [`Catalog`] may be
//! shared by its threads, and lists are not held up by a scan.

mod backup;
mod doctor;
mod entry;
mod error;
mod folder_index;
mod list;
mod lookup;
mod private;
mod scan;
mod store;

pub use backup::BackupStore;
pub use doctor::{DoctorFinding, DoctorReport, check};
pub use entry::CatalogEntry;
pub use error::CatalogError;
pub use list::{CatalogCursor, CatalogFilter, CatalogPage, MAX_PAGE};
pub use scan::{ScanPhase, ScanProgress, ScanReport, ScanRequest};
pub use store::Catalog;
