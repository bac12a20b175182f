//! The storage of sessions: the journal, the folder of each session, the stores of these folders, and recovery.
//!
//! # Contents
//!
//! - [`Journal`]: writes every event before anybody sees it, and gives it its position. [`FileJournal`] writes segments
//!   in a folder, [`NoJournal`] keeps nothing. Another implementation needs this trait and nothing of the host.
//! - The folder of a session ([`paths`] names its files): [`session_file`] is `session.json`, [`chat_log`] the log of a
//!   chat, [`content`] the large bodies, [`checkpoints`], [`pastes`] and [`artifacts`] the rest. [`settings`] are the
//!   model and the mode along the branches of a log. All of it is read and written through a
//!   [`SessionFs`](grove_fs::SessionFs).
//! - [`Stores`]: folders of sessions by name. [`store_move`] moves a session to another store, [`store_scan`] finds the
//!   sessions of all stores. [`ClientStorageRegister`] lists the sessions that storage clients keep.
//! - [`copy`]: the log of a forked chat, copied from another one. [`copies`] are those under way, [`info`] are the entries
//!   about a fork in both logs.
//! - [`recover`]: the state at a start, from the journal and the folders. It completes interrupted moves and repairs
//!   damaged logs from the journal. [`verify_all`] and [`verify_session`] report damage and change nothing.
//!
//! # Order of writes
//!
//! The journal comes first: when an event is published, the journal has it. The log of a chat and `session.json` follow,
//! and `session.json` says up to which sequence number they are complete. Then the journal may release its part. So
//! after a crash a folder and the journal's newer events give the state, and a damaged log is restored from events that
//! the journal still has.
//!
//! # Boundaries
//!
//! This crate knows no client, no connection, no protocol and no agent, starts no task, and reads no clock. It decides
//! nothing about a session: events come from the host, and `grove-core` applies them. Recovery returns the events that
//! reconnecting clients may need as data ([`RecoveredReplay`]); the host keeps and encodes them.
//!
//! [`SegmentFiles`] open their files themselves. A thread of their own writes them, but for small batches that need not
//! be synced. Reading a log for a tree ([`chat_log::LogSnapshot::with`]) runs on tokio's blocking threads. A log's lock
//! is held across awaits while the log is read or written, and so is the register's lock while it is written; no other
//! lock is.
//!
//! # Example
//!
//! A journal in a folder gives an event its position. A later start finds the event there.
//!
//! ```
//! use std::sync::Arc;
//! use grove_core::{Change, Event, RootEvent, Timestamp};
//! use grove_fs::MemoryFs;
//! use grove_storage::*;
//! use grove_tree::turns::TurnLimit;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let folder = tempfile::tempdir().unwrap();
//! let stores = Stores::new(Arc::new(MemoryFs::default()));
//! let (mut journal, _) = FileJournal::open(folder.path()).unwrap();
//! let start = JournalStart { used: 0, last_published: 0, now: Timestamp(1_000), clients: vec![] };
//! let begun = journal.begin(&start).await.unwrap();
//!
//! let events = [Event { at: Timestamp(1_001), change: Change::Root(RootEvent::ActiveSessionsChanged(1)) }];
//! let group = EventGroup { events: &events, origin: None, cursors: &[] };
//! let outcomes = journal.append(&[JournalEntry::Events(group)], SyncMode::Now).await.unwrap();
//! assert_eq!(outcomes, [AppendOutcome::Written(begun.plus(1))]);
//! drop(journal);
//!
//! let (_, contents) = FileJournal::open(folder.path()).unwrap();
//! let recovered = recover(contents, &stores, TurnLimit { turns: 1_000, bytes: 8 << 20 }).await.unwrap();
//! assert_eq!(recovered.seq, begun.plus(1).seq());
//! assert_eq!(recovered.state.root.active_sessions, 1);
//! # });
//! ```

mod journal;
pub mod limits;
mod recovery;
mod store;

pub use journal::{
    ActionOrigin, AppendOutcome, ClientProfile, ClientVersion, EventGroup, FileJournal, Journal, JournalContents,
    JournalEntry, JournalError, JournalStart, JournalStorage, KnownClient, NoJournal, PendingEntry, Position,
    RecordJournal, SegmentFiles, SyncMode,
};
pub use recovery::{RecoveredReplay, RecoveredState, ReplayStep, recover, verify_all, verify_session};
pub use store::measured::MeasuredFs;
pub use store::register::{ClientStorageRegister, ClientStorageRow, ForkRecord};
pub use store::stores::{ClientStorage, RetiredStore, StoreError, StoreLifetime, Stores};
pub use store::{
    artifacts, chat_log, checkpoints, content, copies, copy, info, pastes, paths, session_file, settings, setup_file,
    store_move, store_scan,
};
