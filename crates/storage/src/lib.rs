//! The storage of sessions.

mod journal;
mod store;

pub use journal::{
    ActionOrigin, AppendOutcome, ClientVersion, EventGroup, FileJournal, Journal, JournalContents, JournalEntry,
    JournalError, JournalStart, JournalStorage, KnownClient, NoJournal, PendingEntry, Position, RecordJournal,
    RecoveredReplay, RecoveredState, ReplayStep, SegmentFiles, SessionNames, SyncMode, recover,
};
pub use store::register::{ClientStorageRegister, ClientStorageRow, ForkRecord};
pub use store::stores::{ClientStorage, RetiredStore, StoreError, StoreLifetime, Stores};
pub use store::verify::{verify_all, verify_session};
pub use store::{
    artifacts, chat_log, checkpoints, content, copies, copy, info, pastes, paths, session_file, settings, store_move,
    store_scan,
};
