//! The catalog: a database of the sessions found on this machine. A scan reads only new and changed files.
//!
//! It can be deleted at any time: everything in it is read from the tools' own files. A damaged catalog, or one of
//! another version, is replaced. One process writes it, the host of the data folder; [`Catalog`] may be shared by its
//! threads, and lists do not wait for a scan.

pub(crate) mod backup;
mod doctor;
mod entry;
mod error;
mod folder_index;
mod list;
pub(crate) mod lookup;
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
